"""What the errors and the broken answers of each provider mean for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.models.base import Completion, Finish
from tests import anthropic_replies, mistral_replies
from tests.mistral_replies import invalid
from tests.protocol_server import Reply, api_error, completion

if TYPE_CHECKING:
    from tests.models.adapters import Adapter, Asker

claude, mistral = anthropic_replies.failure, mistral_replies.failure
answer_body = mistral_replies.answer_body


@pytest.mark.parametrize(
    ("adapter", "reply", "message"),
    [
        ("openai", api_error(400, "context_length_exceeded"),
         "bad_request: HTTP 400 context_length_exceeded"),
        ("openai", api_error(400, 400, kind="exceed_context_size_error"),
         "bad_request: HTTP 400 exceed_context_size_error"),
        # The prompt of this call is too long, whatever else the error names.
        ("openai", api_error(400, message="This model's maximum context length is 65536 tokens."),
         "bad_request: HTTP 400 context_length_exceeded"),
        ("openai",
         api_error(400, 400, param="max_tokens",
                   message="'max_tokens' is too large. This model's maximum context length is"),
         "bad_request: HTTP 400 context_length_exceeded"),
        ("openai", api_error(422, "two words", kind="x" * 65), "bad_request: HTTP 422"),
        ("openai",
         Reply(status=400, body={"object": "error", "type": "BadRequestError", "code": 400}),
         "bad_request: HTTP 400 BadRequestError"),
        ("openai", Reply(status=409, body={}), "server_error: HTTP 409"),
        ("openai", Reply(status=503), "overloaded: HTTP 503"),
        # Errors with the status of a success.
        ("openai", Reply(body={"error": {"code": 429, "message": "Provider returned error"}}),
         "rate_limit: HTTP 429"),
        ("openai", Reply(body={"error": {"code": 502}, "choices": []}), "server_error: HTTP 502"),
        ("openai", Reply(body={"error": {"code": "oops"}}), "bad_response: no choices"),
        # Parameters that differ from call to call, and none.
        ("openai", api_error(400, "a", "'temperature' is not supported", param="messages"),
         "bad_request: HTTP 400 a"),
        ("openai", api_error(400, "a", "This model does not support images"),
         "bad_request: HTTP 400 a"),
        ("openai", api_error(400, "a", "temperature"), "bad_request: HTTP 400 a"),
        ("anthropic", claude(400, text="input length and `max_tokens` exceed context limit"),
         "bad_request: HTTP 400 invalid_request_error"),
        ("anthropic", claude(429, "rate_limit_error", code="ramp_limit_exceeded"),
         "rate_limit: HTTP 429 rate_limit_error"),
        ("anthropic", claude(503, "overloaded_error"), "overloaded: HTTP 503 overloaded_error"),
        ("mistral", mistral(422, text=invalid("body", "messages")),
         "bad_request: HTTP 422 invalid_request_error"),
        ("mistral", Reply(status=422, body={"detail": "no list"}), "bad_request: HTTP 422"),
        ("mistral", Reply(status=429, body={"message": "Requests rate limit exceeded"}),
         "rate_limit: HTTP 429"),
        ("mistral", mistral(429, text="Service tier capacity exceeded for this model."),
         "overloaded: HTTP 429 invalid_request_error"),
        ("mistral", mistral(503, text="Service tier capacity exceeded for this model."),
         "overloaded: HTTP 503 invalid_request_error"),
    ],
    indirect=["adapter"],
)  # fmt: skip
def test_failures_of_one_call(ask: Asker, reply: Reply, message: str) -> None:
    assert ask.failure(reply) == message


@pytest.mark.parametrize(
    ("adapter", "reply", "remedy"),
    [
        ("openai", api_error(400, message="Model Not Exist"), "check the model's name"),
        ("openai", Reply(status=405), "check the model's name and the base URL"),
        ("openai", api_error(400, message="invalid model ID", param="model"),
         "check the model's name"),
        ("openai", api_error(429, "insufficient_quota"), "no credit or quota left"),
        ("openai", api_error(429, "project_spend_limit_exceeded", kind="insufficient_quota"),
         "HTTP 429 project_spend_limit_exceeded: the account has no credit or quota left"),
        ("openai", Reply(body={"error": {"code": 402}}), "HTTP 402: the account has no credit"),
        ("openai", api_error(422, "unsupported_parameter", param="temperature"),
         "HTTP 422 unsupported_parameter: it takes no such `temperature`: run with `--temp"),
        ("openai", api_error(400, message="Unsupported value of 'temperature': 0."),
         "`--temperature default`"),
        ("openai", api_error(422, message="openai does not support parameters: ['temperature']"),
         "`--temperature default`"),
        ("openai", api_error(400, message="invalid temperature: only 1 is allowed for this model"),
         "`--temperature default`"),
        ("openai",
         api_error(400, "invalid_value", "max_tokens is too large: 20480.", param="max_tokens"),
         "`--max-tokens`"),
        ("openai",
         api_error(400, "unsupported_parameter", "Use 'max_completion_tokens' instead.",
                   param="max_tokens"),
         "takes no `max_tokens`"),
        ("openai", api_error(422, message="Invalid schema for 'answer'", param="response_format"),
         "`--output schema`"),
        ("openai", api_error(400, "unknown_parameter", param="response_format.json_schema"),
         "`--output schema`"),
        ("openai", api_error(400, message="This response_format type is unavailable now"),
         "`--output schema`"),
        ("anthropic", claude(400, text="Your credit balance is too low to access the API."),
         "no credit left"),
        ("anthropic", claude(400, text="This organization has been disabled."),
         "account is closed"),
        ("anthropic", claude(400, code="organization_on_hold"), "account is closed or on hold"),
        ("anthropic", claude(429, "rate_limit_error", code="enforced_spend_limit_reached"),
         "spend limit is reached"),
        ("anthropic", claude(400, text="`temperature` is deprecated for this model."),
         "`temperature`: run with `--temperature default`"),
        ("anthropic", claude(400, text="output_config.format: Extra inputs are not permitted"),
         "run without `--output schema`"),
        ("anthropic", claude(400, text="'model-test' does not support structured outputs."),
         "run without `--output schema`"),
        ("anthropic", claude(400, text="max_tokens: 9000 > 8192, which is the maximum"),
         "run with a lower `--max-tokens`"),
        ("mistral", Reply(status=401, body={"detail": "Unauthorized"}),
         "(with --base-url: PII_BENCH_API_KEY), and whether its plan has quota left"),
        ("mistral", mistral(400, "invalid_model", "Invalid model: model-test", code="1500"),
         "HTTP 400 invalid_model: check the model's name"),
        ("mistral", mistral(400, param="model", code="unknown_model"),
         "HTTP 400 unknown_model: check the model's name"),
        ("mistral", mistral(422, text=invalid("body", "temperature")),
         "`temperature`: run with `--temperature default`"),
        ("mistral", Reply(status=422, body=invalid("body", "temperature")),
         "`temperature`: run with `--temperature default`"),
        ("mistral", mistral(400, param="temperature"), "run with `--temperature default`"),
        ("mistral", mistral(400, text="temperature is not supported by this model"),
         "run with `--temperature default`"),
        ("mistral", mistral(400, text="top_p must be 1 when using greedy sampling."),
         "run with `--temperature default`"),
        ("mistral", mistral(422, text=invalid("body", "response_format", "json_schema")),
         "run without `--output schema`"),
        ("mistral", mistral(400, text="Structured output is not enabled for this model"),
         "run without `--output schema`"),
        ("mistral", mistral(422, text=invalid("body", "max_tokens")),
         "run with a lower `--max-tokens`"),
    ],
    indirect=["adapter"],
)  # fmt: skip
def test_refusals_of_every_call(adapter: Adapter, ask: Asker, reply: Reply, remedy: str) -> None:
    refusal = ask.failure(reply)
    assert refusal.startswith(f"provider {adapter.name!r} refuses model 'model-test': HTTP ")
    assert remedy in refusal


@pytest.mark.parametrize(
    ("adapter", "reply"),
    [
        ("openai", api_error(400, "content_filter")),
        ("openai", api_error(400, "content_policy_violation")),
        ("openai", api_error(400, "invalid_request_error", message="Content Exists Risk")),
        ("openai",
         api_error(400, "invalid_prompt",
                   message="Invalid prompt: your prompt was flagged as potentially violating")),
        ("openai",
         api_error(403, 403, message="model-test requires moderation. Your input was flagged")),
        ("anthropic", claude(400, text="Output blocked by content filtering policy")),
    ],
    indirect=["adapter"],
)  # fmt: skip
def test_a_filter_error_is_an_empty_answer(ask: Asker, reply: Reply) -> None:
    assert ask(reply) == Completion(text="", finish=Finish.FILTER)


@pytest.mark.parametrize(
    ("adapter", "body", "message"),
    [
        ("openai", b'{"choices": [{"mess', "bad_response: not JSON"),
        ("openai", {"choices": [{"message": None}]}, "bad_response: no choices"),
        ("openai", {"choices": [{"message": {"content": [{"type": "text"}]}}]},
         "bad_response: content is not text"),
        ("openai", completion("half", finish_reason="insufficient_system_resource").body,
         "server_error: finish_reason insufficient_system_resource"),
        ("openai", completion("half", finish_reason="error").body,
         "server_error: finish_reason error"),
        ("anthropic", b'{"content": [{"ty', "bad_response: not JSON"),
        ("anthropic", {"content": "hello"}, "bad_response: no content"),
        ("anthropic", {"content": [{"type": "text"}]},
         "bad_response: a content block without text"),
        ("anthropic", {"content": [{"type": "thinking", "thinking": 1}]},
         "bad_response: a content block without text"),
        ("mistral", b'{"choices": [{"mess', "bad_response: not JSON"),
        ("mistral", {"choices": [{"message": None}]}, "bad_response: no choices"),
        ("mistral", {"choices": [{"message": {"content": {"a": 1}}}]},
         "bad_response: content is not text"),
        ("mistral", answer_body([{"type": "text"}]), "bad_response: a content chunk without text"),
        ("mistral", answer_body([{"type": "thinking", "thinking": 1}]),
         "bad_response: a content chunk without text"),
        ("mistral", answer_body("ha", finish_reason="error"), "server_error: finish_reason error"),
    ],
    indirect=["adapter"],
)  # fmt: skip
def test_broken_answers_are_failures(ask: Asker, body: object, message: str) -> None:
    assert ask.failure(Reply(body=body)) == message
