from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import Finish
from pii_bench.models.mistral_chat import read_completion
from tests.mistral_replies import answer, answer_body, failure, invalid
from tests.models.adapters import SERVICES
from tests.models.one_call import Calls, outcome_of
from tests.protocol_server import RESET, ProtocolServer, Reply

calls = Calls(SERVICES["mistral"].connect)
failure_of, refusal_of = calls.failure_of, calls.refusal_of


class TestAnswersOutsideTheProtocol:
    @pytest.mark.parametrize(
        ("reply", "detail"),
        [
            (Reply(body=b'{"choices": [{"mess'), "not JSON"),
            (Reply(body=b""), "not JSON"),
            (Reply(body=[]), "no choices"),
            (Reply(body={"choices": []}), "no choices"),
            (Reply(body={"choices": [{"message": None}]}), "no choices"),
            (Reply(body={"choices": [{"message": {"content": {"a": 1}}}]}), "content is not text"),
            (answer([{"type": "text"}]), "a content chunk without text"),
            (answer([{"type": "thinking", "thinking": 1}]), "a content chunk without text"),
        ],
    )
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
    def test_any_content_is_an_answer_or_a_bad_response(self, content: object) -> None:
        assert outcome_of(read_completion, answer_body(content)) in {*Finish, "bad_response"}


class TestFailedCalls:
    @pytest.mark.parametrize(
        ("reply", "kind", "detail"),
        [
            (failure(400, text="Prompt contains 65673 tokens, too large for model", code="3051"),
             "bad_request", "HTTP 400 invalid_request_error"),
            (failure(422, text=invalid("body", "messages")), "bad_request",
             "HTTP 422 invalid_request_error"),
            (Reply(status=422, body={"detail": "no list"}), "bad_request", "HTTP 422"),
            (failure(408), "timeout", "HTTP 408 invalid_request_error"),
            (failure(429, "rate_limited", "Rate limit exceeded", code="1300"), "rate_limit",
             "HTTP 429 rate_limited"),
            (Reply(status=429, body={"message": "Requests rate limit exceeded"}), "rate_limit",
             "HTTP 429"),
            (failure(429, text="Service tier capacity exceeded for this model.", code="3505"),
             "overloaded", "HTTP 429 invalid_request_error"),
            (failure(503, text="Service tier capacity exceeded for this model."),
             "overloaded", "HTTP 503 invalid_request_error"),
            (failure(500, "internal_server_error", "Service unavailable.", code="1000"),
             "server_error", "HTTP 500 internal_server_error"),
            (Reply(status=502, body=b"<html>"), "server_error", "HTTP 502"),
            (answer("ha", finish_reason="error"), "server_error", "finish_reason error"),
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
            (Reply(status=401, body={"detail": "Unauthorized"}),
             "HTTP 401: check the API key, and whether its plan has quota left"),
            (failure(402), "no credit left"),
            (failure(403), "the key may not use this model"),
            (failure(404), "check the model's name and the base URL"),
            (failure(400, "invalid_model", "Invalid model: model-test", code="1500"),
             "HTTP 400 invalid_model: check the model's name"),
            (failure(400, param="model", code="unknown_model"),
             "HTTP 400 unknown_model: check the model's name"),
            (failure(422, text=invalid("body", "temperature")),
             "`temperature`: run with `--temperature default`"),
            (Reply(status=422, body=invalid("body", "temperature")),
             "`temperature`: run with `--temperature default`"),
            (failure(400, param="temperature"), "run with `--temperature default`"),
            (failure(400, text="temperature is not supported by this model"),
             "run with `--temperature default`"),
            (failure(400, text="top_p must be 1 when using greedy sampling."),
             "run with `--temperature default`"),
            (failure(422, text=invalid("body", "response_format", "json_schema")),
             "run without `--output schema`"),
            (failure(400, text="Structured output is not enabled for this model"),
             "run without `--output schema`"),
            (failure(422, text=invalid("body", "max_tokens")), "run with a lower `--max-tokens`"),
        ],
    )  # fmt: skip
    def test_every_call_would_fail(self, server: ProtocolServer, reply: Reply, says: str) -> None:
        server.script(reply)
        refusal = refusal_of(server.url)
        assert refusal.startswith("provider 'mistral' refuses model 'model-test': HTTP 4")
        assert says in refusal
        assert len(server.requests) == 1
