from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import ProviderRefusedError
from pii_bench.models.anthropic_messages import judge, read_completion
from pii_bench.models.base import CallError, Completion, Finish
from tests.anthropic_replies import error_body, failure
from tests.models.adapters import SERVICES
from tests.models.one_call import Calls, outcome_of
from tests.protocol_server import RESET, ProtocolServer, Reply

calls = Calls(SERVICES["anthropic"].connect)
failure_of, refusal_of = calls.failure_of, calls.refusal_of


class TestAnswersOutsideTheProtocol:
    @pytest.mark.parametrize(
        ("reply", "detail"),
        [
            (Reply(body=b'{"content": [{"ty'), "not JSON"),
            (Reply(body=b'{"content": "\xff"}'), "not JSON"),
            (Reply(body=b""), "not JSON"),
            (Reply(body=[]), "no content"),
            (Reply(body={"content": "hello"}), "no content"),
            (Reply(body=error_body("api_error")), "no content"),
            (Reply(body={"content": [{"type": "text"}]}), "a content block without text"),
            (Reply(body={"content": [{"type": "thinking", "thinking": 1}]}),
             "a content block without text"),
        ],
    )  # fmt: skip
    def test_are_bad_responses(self, server: ProtocolServer, reply: Reply, detail: str) -> None:
        server.script(reply)
        error = failure_of(server.url)
        assert (error.kind, error.detail) == ("bad_response", detail)

    @given(
        st.recursive(
            st.none() | st.integers() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["content", "type", "text", "thinking", "usage", "model"]),
                    inner | st.sampled_from(["text", "thinking"]),
                )
            ),
        )
    )
    def test_any_json_is_an_answer_or_a_bad_response(self, body: object) -> None:
        assert outcome_of(read_completion, body) in {*Finish, "bad_response"}


class TestFailedCalls:
    @pytest.mark.parametrize(
        ("reply", "kind", "detail"),
        [
            (failure(400, text="prompt is too long: 210000 tokens > 200000 maximum"),
             "bad_request", "HTTP 400 invalid_request_error"),
            (failure(400, text="input length and `max_tokens` exceed context limit"),
             "bad_request", "HTTP 400 invalid_request_error"),
            (failure(413, "request_too_large"), "bad_request", "HTTP 413 request_too_large"),
            (failure(408, "timeout_error"), "timeout", "HTTP 408 timeout_error"),
            (failure(429, "rate_limit_error"), "rate_limit", "HTTP 429 rate_limit_error"),
            (failure(429, "rate_limit_error", code="ramp_limit_exceeded"), "rate_limit",
             "HTTP 429 rate_limit_error"),
            (failure(429, "rate_limit_error", code=["organization_on_hold"]), "rate_limit",
             "HTTP 429 rate_limit_error"),
            (Reply(status=429, body=b"slow down"), "rate_limit", "HTTP 429"),
            (failure(500, "api_error"), "server_error", "HTTP 500 api_error"),
            (failure(504, "timeout_error"), "server_error", "HTTP 504 timeout_error"),
            (Reply(status=502, body=b"<html>"), "server_error", "HTTP 502"),
            (failure(529, "overloaded_error"), "overloaded", "HTTP 529 overloaded_error"),
            (failure(503, "overloaded_error"), "overloaded", "HTTP 503 overloaded_error"),
            (RESET, "connection", ""),
        ],
    )  # fmt: skip
    def test_are_tried_once_and_told_apart(
        self, server: ProtocolServer, reply: Reply, kind: str, detail: str
    ) -> None:
        server.script(reply)
        error = failure_of(server.url)
        assert (error.kind, error.detail, error.retry_after) == (kind, detail, None)
        assert len(server.requests) == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("reply", "says"),
        [
            (failure(401, "authentication_error"), "HTTP 401 authentication_error: check the API"),
            (failure(402, "billing_error"), "no credit left"),
            (failure(403, "permission_error"), "the key may not use this model"),
            (failure(404, "not_found_error"), "check the model's name and the base URL"),
            (failure(400, text="Your credit balance is too low to access the Anthropic API."),
             "no credit left"),
            (failure(400, text="You have reached your specified API usage limits."),
             "spend limit is reached"),
            (failure(400, text="This organization has been disabled."), "account is closed"),
            (failure(400, code="organization_on_hold"), "account is closed or on hold"),
            (failure(429, "rate_limit_error", code="enforced_spend_limit_reached"),
             "spend limit is reached"),
            (failure(400, text="`temperature` is deprecated for this model."),
             "`temperature`: run with `--temperature default`"),
            (failure(400, text="temperature: Extra inputs are not permitted"),
             "`temperature`: run with `--temperature default`"),
            (failure(400, text="output_config.format: Extra inputs are not permitted"),
             "run without `--output schema`"),
            (failure(400, text="'model-test' does not support structured outputs."),
             "run without `--output schema`"),
            (failure(400, text="max_tokens: 9000 > 8192, which is the maximum for model-test"),
             "run with a lower `--max-tokens`"),
        ],
    )  # fmt: skip
    def test_every_call_would_fail(self, server: ProtocolServer, reply: Reply, says: str) -> None:
        server.script(reply)
        refusal = refusal_of(server.url)
        assert refusal.startswith("provider 'anthropic' refuses model 'model-test': HTTP 4")
        assert says in refusal
        assert len(server.requests) == 1


class TestBatchItems:
    @pytest.mark.parametrize(
        ("kind", "outcome"),
        [
            ("overloaded_error", "overloaded: overloaded_error"),
            ("rate_limit_error", "rate_limit: rate_limit_error"),
            ("invalid_request_error", "bad_request: invalid_request_error"),
            ("api_error", "server_error: api_error"),
            ("of_a_later_version", "server_error: of_a_later_version"),
        ],
    )
    def test_have_no_status_and_are_told_apart_by_type(self, kind: str, outcome: str) -> None:
        assert str(judge(None, error_body(kind), model="m")) == outcome

    def test_may_be_refused_or_filtered(self) -> None:
        refused = judge(None, error_body("authentication_error"), model="m")
        filtered = judge(
            None,
            error_body("invalid_request_error", "blocked by content filtering policy"),
            model="m",
        )
        assert isinstance(refused, ProviderRefusedError)
        assert filtered == Completion("", Finish.FILTER)

    @pytest.mark.parametrize("body", [None, [], {"error": "text"}, {"error": None}])
    def test_may_say_nothing(self, body: object) -> None:
        outcome = judge(None, body, model="m")
        assert isinstance(outcome, CallError)
        assert (outcome.kind, outcome.detail) == ("server_error", "")
