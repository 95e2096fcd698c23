from __future__ import annotations

import asyncio
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.models.base import (
    CallError,
    Completion,
    Finish,
    Message,
    Request,
    Sampling,
    Usage,
)
from pii_bench.models.openai_compatible import OpenAICompatibleModel
from tests.protocol_server import HANG, RESET, ProtocolServer, Reply, api_error, completion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.protocol_server import ReceivedRequest

KEY = "sk-planted-key-0123456789"
OPENAI = "https://api.openai.com/v1"
SAMPLE_TEXT = "Rosalind Achebe lives at 14 Marlowe Court"
REQUEST = Request(
    sample_id="multi-0001",
    prompt="naive",
    messages=(Message("system", "Be brief."), Message("user", SAMPLE_TEXT)),
    sampling=Sampling(temperature=0.0, max_tokens=321),
)
SOON = {"retry-after-ms": "1"}


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        yield server


def ask(url: str, *, max_retries: int = 0, timeout: float = 5.0, times: int = 1) -> Completion:
    async def run() -> Completion:
        model = OpenAICompatibleModel(
            "openai",
            "gpt-test",
            api_key=KEY,
            base_url=f"{url}/v1",
            timeout=timeout,
            max_retries=max_retries,
        )
        try:
            answers = await asyncio.gather(*[model.complete(REQUEST) for _ in range(times)])
        finally:
            await model.close()
        return answers[0]

    return asyncio.run(run())


def failure_of(url: str, *, max_retries: int = 0, timeout: float = 5.0) -> CallError:
    with pytest.raises(CallError) as caught:
        ask(url, max_retries=max_retries, timeout=timeout)
    return caught.value


def choices(*items: object) -> Reply:
    return Reply(body={"choices": list(items)})


class TestRequest:
    def test_sends_the_messages_and_the_sampling_and_nothing_of_the_bookkeeping(
        self, server: ProtocolServer
    ) -> None:
        server.script(completion("hello"))
        ask(server.url)
        (request,) = server.requests
        assert request.path == "/v1/chat/completions"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.body == {
            "model": "gpt-test",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": SAMPLE_TEXT},
            ],
            "temperature": 0.0,
            "max_tokens": 321,
        }

    @pytest.mark.parametrize(
        ("host", "limit", "other"),
        [
            ("api.openai.com", "max_completion_tokens", "max_tokens"),
            ("eu.api.openai.com", "max_completion_tokens", "max_tokens"),
            ("api.openai.com.example.org", "max_tokens", "max_completion_tokens"),
            ("notapi.openai.com", "max_tokens", "max_completion_tokens"),
        ],
    )
    def test_names_the_token_limit_as_the_endpoint_knows_it(
        self,
        server: ProtocolServer,
        monkeypatch: pytest.MonkeyPatch,
        host: str,
        limit: str,
        other: str,
    ) -> None:
        # As a proxy, the server receives what is meant for any host.
        monkeypatch.setenv("HTTP_PROXY", server.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        server.script(completion("hello"))
        ask(f"http://{host}")
        assert server.requests[0].path == f"http://{host}/v1/chat/completions"
        assert server.requests[0].body[limit] == 321
        assert other not in server.requests[0].body

    def test_account_ids_of_openai_go_to_no_other_endpoint(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
        server.script(completion("hello"))
        ask(server.url)
        headers = server.requests[0].headers
        assert not {"openai-organization", "openai-project"} & headers.keys()

    def test_a_proxy_of_the_environment_is_not_asked_for_the_loopback(
        self, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        server.script(completion("hello"))
        assert ask(server.url).text == "hello"

    def test_requests_run_at_the_same_time(self, server: ProtocolServer) -> None:
        server.script(completion("hello", delay=0.3))
        ask(server.url, times=4)
        assert server.peak == 4

    def test_a_scripted_function_answers_from_the_request(self, server: ProtocolServer) -> None:
        def echo(request: ReceivedRequest) -> Reply:
            return completion(request.body["messages"][-1]["content"])

        server.script(echo)
        assert ask(server.url).text == SAMPLE_TEXT


class TestAnswers:
    def test_a_normal_answer(self, server: ProtocolServer) -> None:
        server.script(completion(" raw text\n", usage=(120, 8), model="gpt-test-2024"))
        assert ask(server.url) == Completion(
            text=" raw text\n",
            finish=Finish.STOP,
            model="gpt-test-2024",
            usage=Usage(input_tokens=120, output_tokens=8),
        )

    @pytest.mark.parametrize(
        ("reason", "finish"),
        [
            ("stop", Finish.STOP),
            ("length", Finish.LENGTH),
            ("content_filter", Finish.FILTER),
            ("abort", Finish.UNKNOWN),
        ],
    )
    def test_finish_reasons(self, server: ProtocolServer, reason: str, finish: Finish) -> None:
        server.script(completion("part", finish_reason=reason))
        answer = ask(server.url)
        assert (answer.text, answer.finish) == ("part", finish)

    @pytest.mark.parametrize("content", ["", None])
    def test_no_content_is_an_empty_answer(
        self, server: ProtocolServer, content: str | None
    ) -> None:
        server.script(completion(content))
        answer = ask(server.url)
        assert (answer.text, answer.finish) == ("", Finish.STOP)

    def test_a_refusal_is_the_answer(self, server: ProtocolServer) -> None:
        server.script(completion(None, refusal="I cannot help with that."))
        answer = ask(server.url)
        assert (answer.text, answer.finish) == ("I cannot help with that.", Finish.REFUSAL)

    def test_usage_and_model_may_be_missing(self, server: ProtocolServer) -> None:
        server.script(choices({"message": {"content": "hello"}}))
        assert ask(server.url) == Completion("hello", Finish.UNKNOWN, model=None, usage=None)

    @pytest.mark.parametrize(
        "reply",
        [
            api_error(400, "content_filter"),
            api_error(400, "content_policy_violation"),
            api_error(400, "invalid_request_error", message="Content Exists Risk"),
        ],
    )
    def test_a_prompt_that_a_filter_stops(self, server: ProtocolServer, reply: Reply) -> None:
        server.script(reply)
        assert ask(server.url) == Completion(text="", finish=Finish.FILTER)


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
            (Reply(status=503, body=b"<html>"), "server_error", "HTTP 503"),
            (completion("half", finish_reason="insufficient_system_resource"), "server_error",
             "insufficient_system_resource"),
        ],
    )  # fmt: skip
    def test_statuses(self, server: ProtocolServer, reply: Reply, kind: str, detail: str) -> None:
        server.script(reply)
        failure = failure_of(server.url)
        assert (failure.kind, failure.detail) == (kind, detail)

    def test_a_server_that_does_not_answer_in_time(self, server: ProtocolServer) -> None:
        server.script(HANG)
        assert str(failure_of(server.url, timeout=0.2)) == "timeout"

    def test_a_server_that_is_not_there(self) -> None:
        assert str(failure_of("http://127.0.0.1:9")) == "connection"


class TestRetries:
    @pytest.mark.parametrize(
        "first",
        [
            api_error(429, "rate_limit_exceeded", headers={"Retry-After": "0.01"}),
            api_error(500, headers=SOON),
            RESET,
        ],
    )
    def test_a_failure_that_passes(self, server: ProtocolServer, first: Reply) -> None:
        server.script(first, completion("at last"))
        assert ask(server.url, max_retries=1).text == "at last"
        assert len(server.requests) == 2

    @pytest.mark.parametrize(
        ("reply", "kind"),
        [(RESET, "connection"), (api_error(429, headers=SOON), "rate_limit"),
         (api_error(503, headers=SOON), "server_error")],
    )  # fmt: skip
    def test_a_failure_that_stays(self, server: ProtocolServer, reply: Reply, kind: str) -> None:
        server.script(reply)
        assert failure_of(server.url, max_retries=1).kind == kind
        assert len(server.requests) == 2

    def test_a_timeout_is_tried_again(self, server: ProtocolServer) -> None:
        server.script(HANG, completion("at last"))
        assert ask(server.url, max_retries=1, timeout=0.2).text == "at last"

    def test_a_bad_request_is_not_tried_again(self, server: ProtocolServer) -> None:
        server.script(api_error(400, "context_length_exceeded"))
        failure_of(server.url, max_retries=3)
        assert len(server.requests) == 1

    def test_a_wait_of_more_than_two_minutes_is_not_waited(self, server: ProtocolServer) -> None:
        server.script(api_error(429, headers={"Retry-After": "121"}))
        assert failure_of(server.url, max_retries=3).kind == "rate_limit"
        assert len(server.requests) == 1


class TestRefusingProviders:
    @pytest.mark.parametrize(
        ("reply", "says"),
        [
            (api_error(401, "invalid_api_key"), "HTTP 401 invalid_api_key: check the API key"),
            (api_error(402, "invalid_request_error"), "no credit left"),
            (api_error(403, "model_not_allowed"), "HTTP 403 model_not_allowed"),
            (api_error(404, "model_not_found"), "check the model's name and the base URL"),
            (api_error(400, message="Model Not Exist"), "check the model's name"),
            (api_error(429, "insufficient_quota"), "no quota left"),
        ],
    )
    def test_every_call_would_fail(self, server: ProtocolServer, reply: Reply, says: str) -> None:
        server.script(reply)
        with pytest.raises(ProviderRefusedError) as caught:
            ask(server.url)
        assert "provider 'openai' refuses model 'gpt-test'" in str(caught.value)
        assert says in str(caught.value)


class TestPrivacy:
    @pytest.mark.parametrize(
        "reply",
        [
            api_error(400, SAMPLE_TEXT, kind=SAMPLE_TEXT, message=f"{SAMPLE_TEXT} {KEY}"),
            api_error(401, "invalid_api_key", message=f"wrong key {KEY}"),
            api_error(500, message=SAMPLE_TEXT),
            Reply(body=f"{SAMPLE_TEXT} {KEY}".encode()),
            choices({"message": {"content": {"text": SAMPLE_TEXT}}}),
            RESET,
            HANG,
        ],
    )
    def test_no_failure_carries_the_key_or_the_text(
        self, server: ProtocolServer, reply: Reply
    ) -> None:
        server.script(reply)
        with pytest.raises((CallError, ProviderRefusedError)) as caught:
            ask(server.url, timeout=0.2)
        shown = "".join(traceback.format_exception(caught.value))
        assert KEY not in shown
        assert "Achebe" not in shown
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None

    @pytest.mark.parametrize(
        "key", ["", f"{KEY}\n", f"{KEY} ", f"\N{LEFT DOUBLE QUOTATION MARK}{KEY}"]
    )
    def test_a_key_that_cannot_be_sent_is_refused_unseen(self, key: str) -> None:
        with pytest.raises(PiiBenchError, match="key for provider 'openai'") as caught:
            OpenAICompatibleModel("openai", "m", api_key=key, base_url=OPENAI)
        assert KEY not in str(caught.value)


class TestIdentity:
    def test_name_and_endpoint(self) -> None:
        model = OpenAICompatibleModel("openai", "some-model", api_key=KEY, base_url=f"{OPENAI}/")
        asyncio.run(model.close())
        assert (model.name, model.identity) == ("openai/some-model", {"endpoint": OPENAI})

    def test_the_environment_does_not_move_the_endpoint(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.example/v1")
        model = OpenAICompatibleModel("openai", "m", api_key=KEY, base_url=OPENAI)
        asyncio.run(model.close())
        assert str(model._client.base_url) == f"{OPENAI}/"

    def test_importing_the_module_does_not_import_the_sdk(self) -> None:
        code = "import pii_bench.models.openai_compatible, sys; sys.exit('openai' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603
