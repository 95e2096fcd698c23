from __future__ import annotations

import pytest

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import TRANSIENT, CallError, Completion
from pii_bench.models.openai_compatible import judge
from tests.models.adapters import SERVICES
from tests.models.one_call import Calls
from tests.protocol_server import ProtocolServer, Reply, api_error, completion

calls = Calls(SERVICES["openai"].connect)
ask, failure_of = calls.ask, calls.failure_of


def choices(*items: object) -> Reply:
    return Reply(body={"choices": list(items)})


def judged(status: int, **error: object) -> Completion | CallError | ProviderRefusedError:
    return judge(status, {"error": error}, provider="openai", model="model-test")


class TestFailedCalls:
    @pytest.mark.parametrize(
        ("reply", "detail"),
        [
            (Reply(body=b'{"choices": [{"mess'), "not JSON"),
            (Reply(body=b'{"text": "\xff"}'), "not JSON"),
            (Reply(body=b"[]"), "no choices"),
            (Reply(body={"error": {"message": "overloaded"}}), "no choices"),
            (choices(), "no choices"),
            (Reply(body={"choices": None}), "no choices"),
            (choices({"message": None}), "no choices"),
            (choices({"message": {"content": [{"type": "text"}]}}), "content is not text"),
        ],
    )
    def test_an_answer_outside_the_protocol(
        self, server: ProtocolServer, reply: Reply, detail: str
    ) -> None:
        server.script(reply)
        failure = failure_of(server.url)
        assert (failure.kind, failure.detail) == ("bad_response", detail)

    @pytest.mark.parametrize(
        ("reply", "kind", "detail"),
        [
            (api_error(400, "context_length_exceeded"), "bad_request",
             "HTTP 400 context_length_exceeded"),
            (api_error(400, 400, kind="exceed_context_size_error"), "bad_request",
             "HTTP 400 exceed_context_size_error"),
            (api_error(422, "two words", kind="x" * 65), "bad_request", "HTTP 422"),
            (api_error(429, "rate_limit_exceeded"), "rate_limit", "HTTP 429 rate_limit_exceeded"),
            (Reply(status=429, body=b"slow down"), "rate_limit", "HTTP 429"),
            (Reply(status=408, body=b""), "timeout", "HTTP 408"),
            (Reply(status=409, body=b"{}"), "server_error", "HTTP 409"),
            (Reply(status=413, body=b"[]"), "bad_request", "HTTP 413"),
            (api_error(500, "server_error"), "server_error", "HTTP 500 server_error"),
            (Reply(status=503, body=b"<html>"), "overloaded", "HTTP 503"),
            (Reply(status=529, body={"error": "busy"}), "overloaded", "HTTP 529"),
            (completion("half", finish_reason="insufficient_system_resource"), "server_error",
             "insufficient_system_resource"),
        ],
    )  # fmt: skip
    def test_statuses(self, server: ProtocolServer, reply: Reply, kind: str, detail: str) -> None:
        server.script(reply)
        failure = failure_of(server.url)
        assert (failure.kind, failure.detail) == (kind, detail)


class TestWaiting:
    @pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
    def test_what_may_pass(self, status: int) -> None:
        failure = judged(status)
        assert isinstance(failure, CallError)
        assert failure.kind in TRANSIENT

    @pytest.mark.parametrize("status", [400, 413, 415, 418, 422])
    def test_what_does_not(self, status: int) -> None:
        failure = judged(status)
        assert isinstance(failure, CallError)
        assert failure.kind not in TRANSIENT


class TestTooLongPrompts:
    @pytest.mark.parametrize(
        ("message", "param", "code"),
        [
            ("This model's maximum context length is 128000 tokens.", "messages",
             "context_length_exceeded"),
            ("This model's maximum context length is 65536 tokens. However, you requested",
             None, "invalid_request_error"),
            ("'max_tokens' is too large: 2048. This model's maximum context length is 4096",
             "max_tokens", 400),
            ("This model's maximum context length is 2048 tokens.", "input_tokens, max_tokens",
             400),
        ],
    )  # fmt: skip
    def test_they_are_a_failure_of_one_call(
        self, message: str, param: str | None, code: object
    ) -> None:
        failure = judged(400, message=message, param=param, code=code)
        assert isinstance(failure, CallError)
        assert str(failure) == "bad_request: HTTP 400 context_length_exceeded"


class TestRefusingProviders:
    @pytest.mark.parametrize(
        ("reply", "says"),
        [
            (api_error(401, "invalid_api_key"), "HTTP 401 invalid_api_key: check the API key"),
            (api_error(402, "invalid_request_error"), "no credit or quota left"),
            (api_error(403, "model_not_allowed"), "HTTP 403 model_not_allowed"),
            (api_error(404, "model_not_found"), "check the model's name and the base URL"),
            (api_error(400, message="Model Not Exist"), "check the model's name"),
            (Reply(status=405), "check the model's name and the base URL"),
            (api_error(429, "insufficient_quota"), "no credit or quota left"),
            (api_error(429, "project_spend_limit_exceeded", kind="insufficient_quota"),
             "HTTP 429 project_spend_limit_exceeded: the account has no credit or quota left"),
            (api_error(429, "credit_balance_exhausted"), "no credit or quota left"),
        ],
    )  # fmt: skip
    def test_every_call_would_fail(self, server: ProtocolServer, reply: Reply, says: str) -> None:
        server.script(reply)
        with pytest.raises(ProviderRefusedError) as caught:
            ask(server.url)
        assert "provider 'openai' refuses model 'model-test'" in str(caught.value)
        assert says in str(caught.value)


class TestRefusedParameters:
    @pytest.mark.parametrize(
        ("param", "code", "message", "says"),
        [
            ("temperature", "unsupported_value",
             "Unsupported value: 'temperature' does not support 0 with this model.",
             "`--temperature default`"),
            ("temperature", "unsupported_parameter", "", "`--temperature default`"),
            (None, None, "Unsupported value: 'temperature' does not support 0 with this model.",
             "`--temperature default`"),
            (None, None, "openai does not support parameters: ['temperature']",
             "`--temperature default`"),
            (None, None, "invalid temperature: only 1 is allowed for this model",
             "`--temperature default`"),
            ("max_tokens", "invalid_value", "max_tokens is too large: 20480.", "`--max-tokens`"),
            ("max_completion_tokens", None, "", "`--max-tokens`"),
            ("max_tokens", "unsupported_parameter", "Use 'max_completion_tokens' instead.",
             "takes no `max_tokens`"),
            ("response_format", None, "Invalid schema for response_format 'answer'",
             "`--output schema`"),
            ("response_format.json_schema", "unknown_parameter", "", "`--output schema`"),
            (None, "invalid_request_error", "This response_format type is unavailable now",
             "`--output schema`"),
            ("model", None, "invalid model ID", "check the model's name"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("status", [400, 422])
    def test_every_call_would_fail(
        self, status: int, param: str | None, code: str | None, message: str, says: str
    ) -> None:
        outcome = judged(status, param=param, code=code, message=message)
        assert isinstance(outcome, ProviderRefusedError)
        assert f"HTTP {status}" in str(outcome)
        assert says in str(outcome)

    @pytest.mark.parametrize(
        ("param", "message"),
        [
            ("messages", "Invalid value"),
            ("messages", "'temperature' is not supported"),
            (None, "This model does not support images"),
            (None, "temperature"),
            (["temperature"], ""),
        ],
    )
    def test_other_faults_are_of_one_call(self, param: object, message: str) -> None:
        assert isinstance(judged(400, param=param, message=message), CallError)

    @pytest.mark.parametrize(
        "body", [None, [], "refused", {"error": None}, {"error": ["x"]}, {"error": {"code": [1]}}]
    )
    def test_an_error_outside_the_protocol_says_nothing(self, body: object) -> None:
        outcome = judge(400, body, provider="openai", model="m", wait=2.0)
        assert isinstance(outcome, CallError)
        assert (str(outcome), outcome.retry_after) == ("bad_request: HTTP 400", 2.0)

    def test_an_error_without_its_wrapping(self) -> None:
        bare = {"object": "error", "message": "?", "type": "BadRequestError", "code": 400}
        outcome = judge(400, bare, provider="openai", model="m")
        assert str(outcome) == "bad_request: HTTP 400 BadRequestError"
