"""Every provider: requests, and scores of its answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pii_bench.cli import main
from pii_bench.prompting.strategies import DETECTION, answer_schema, get_strategy
from tests import anthropic_replies, mistral_replies
from tests.builders import read_lines
from tests.cli.conftest import leaderboard_rows, right
from tests.protocol_server import api_error, completion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pii_bench.models.base import AnswerSchema
    from tests.cli.conftest import Capsys
    from tests.protocol_server import ProtocolServer, ReceivedRequest, Reply

PLANTED: Final = "planted-key"


@dataclass(frozen=True, slots=True)
class Speaker:
    """A model of a provider, and the protocol in which it answers.

    Attributes:
        base: the suffix of the server's URL in `--base-url`.
        settings: the body of a request without its messages.
        form: returns the part of the body that asks for a schema.
    """

    model: str
    base: str
    path: str
    settings: Mapping[str, Any]
    reply: Callable[[str], Reply]
    form: Callable[[AnswerSchema], Mapping[str, Any]]

    def run(self, server: ProtocolServer, *options: str) -> int:
        url = f"{server.url}{self.base}"
        arguments = ("--model", self.model, "--base-url", url, "--dataset", "demo", *options)
        return main(["run", "--all", *arguments])


def response_format(schema: AnswerSchema) -> Mapping[str, Any]:
    form = {"name": schema.name, "strict": True, "schema": schema.schema}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def output_config(schema: AnswerSchema) -> Mapping[str, Any]:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema.schema}}}


OPENAI: Final = Speaker(
    model="gpt4o",
    base="/v1",
    path="/v1/chat/completions",
    settings={"model": "gpt-4o-2024-08-06", "temperature": 0.0, "max_tokens": 2048},
    reply=completion,
    form=response_format,
)
# It reasons, which takes tokens, and takes no temperature.
DEEPSEEK: Final = Speaker(
    model="deepseek-flash",
    base="",
    path="/chat/completions",
    settings={"model": "deepseek-flash", "max_tokens": 16384},
    reply=partial(completion, extra={"reasoning_content": "Who is asked about?"}),
    form=response_format,
)
CLAUDE: Final = Speaker(
    model="claude-haiku-4.5",
    base="",
    path="/v1/messages",
    settings={"model": "claude-haiku-4-5-20251001", "temperature": 0.0, "max_tokens": 2048},
    reply=anthropic_replies.message,
    form=output_config,
)
MISTRAL: Final = Speaker(
    model="mistral-small-4",
    base="",
    path="/v1/chat/completions",
    settings={
        "model": "mistral-small-2603",
        "temperature": 0.0,
        "top_p": 1.0,
        "max_tokens": 2048,
        "stream": False,
    },
    reply=mistral_replies.answer,
    form=response_format,
)
SPEAKERS: Final = pytest.mark.parametrize(
    "speaker", [OPENAI, DEEPSEEK, CLAUDE, MISTRAL], ids=lambda each: each.model
)


def settings(request: ReceivedRequest) -> dict[str, Any]:
    """Return the body of a request without its messages."""
    return {key: value for key, value in request.body.items() if key != "messages"}


@SPEAKERS
def test_right_answers_of_any_provider_score_1_with_and_without_a_schema(
    protocol_server: ProtocolServer, monkeypatch: pytest.MonkeyPatch, speaker: Speaker
) -> None:
    monkeypatch.setenv("PII_BENCH_API_KEY", PLANTED)
    protocol_server.script(right(speaker.reply))

    assert speaker.run(protocol_server, "--limit", "1") == 0
    assert speaker.run(protocol_server, "--limit", "1", "--output", "schema") == 0

    forms = [speaker.form(answer_schema(each)) for each in (DETECTION, get_strategy("naive"))]
    assert [settings(request) for request in protocol_server.requests] == [
        {**speaker.settings, **form} for form in ({}, {}, *forms)
    ]
    for request in protocol_server.requests:
        assert request.path == speaker.path
        assert request.headers["authorization"] == f"Bearer {PLANTED}"
    assert sorted(
        (row["task"], row["strategy"], row["f1"] or row["strict_f1"]) for row in leaderboard_rows()
    ) == [
        ("detection", "detection", "1.0000"),
        ("detection", "detection+schema", "1.0000"),
        ("masking", "naive", "1.0000"),
        ("masking", "naive+schema", "1.0000"),
        ("query-related", "naive", "1.0000"),
        ("query-related", "naive+schema", "1.0000"),
    ]


def test_a_vote_has_its_own_number_of_draws_and_temperature(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    protocol_server.script(right(completion))
    vote = ("--strategy", "self-consistency-vote", "--votes", "3", "--limit", "2")

    assert OPENAI.run(protocol_server, *vote) == 0

    temperatures = [request.body["temperature"] for request in protocol_server.requests]
    assert temperatures == [0.0] * 2 + [0.7] * 6
    assert capsys.readouterr().out.count("| 1.000") == 3 + 4 + 5
    (path,) = Path("results").glob("runs/*/self-consistency-vote/demo.jsonl")
    assert [len(line["draws"]) for line in read_lines(path)] == [3, 3]


def test_the_temperature_may_be_left_to_the_provider(protocol_server: ProtocolServer) -> None:
    protocol_server.script(right(completion))

    assert OPENAI.run(protocol_server, "--limit", "1", "--temperature", "default") == 0

    assert not [each for each in protocol_server.requests if "temperature" in each.body]
    (path, _) = Path("results").glob("runs/*/*/demo.run.json")
    assert '"temperature": null' in path.read_text()


def test_a_wait_that_is_too_long_is_printed(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    protocol_server.script(api_error(429, "rate_limit_exceeded", headers={"Retry-After": "600"}))

    assert OPENAI.run(protocol_server, "--task", "detection", "--limit", "3") == 1

    assert re.search(
        "rate_limit 3; run again to ask only these, after the (600|599) s that the server asks to "
        "wait$",
        capsys.readouterr().err,
        re.MULTILINE,
    )


def test_an_empty_account_leaves_the_run_incomplete(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    protocol_server.script(right(completion), api_error(429, "insufficient_quota"))

    assert OPENAI.run(protocol_server, "--concurrency", "1") == 1

    assert len(protocol_server.requests) == 2
    *_, last = capsys.readouterr().err.splitlines()
    assert last.endswith("the account has no credit or quota left, or its limit is reached")


def test_a_wrong_key_stops_the_run_at_once(protocol_server: ProtocolServer, capsys: Capsys) -> None:
    refusal = anthropic_replies.failure(401, "authentication_error")
    protocol_server.script(right(CLAUDE.reply), refusal)

    assert CLAUDE.run(protocol_server, "--concurrency", "1") == 2

    assert len(protocol_server.requests) == 2
    *_, detection, naive, last = capsys.readouterr().err.splitlines()
    assert detection.endswith(": 11 of 12 samples have no answer; run again to ask only these")
    assert naive.endswith(": 12 of 12 samples have no answer; run again to ask only these")
    assert last.startswith("pii-bench: provider 'anthropic' refuses model ")
    assert last.endswith(
        "HTTP 401 authentication_error: check the API key (with --base-url: PII_BENCH_API_KEY)"
    )
    (path,) = Path("results").glob("runs/*/detection/demo.jsonl")
    assert [line["id"] for line in read_lines(path)] == ["demo-0001"]


def test_local_only_accepts_systems_on_this_machine(protocol_server: ProtocolServer) -> None:
    protocol_server.script(right(completion))

    assert OPENAI.run(protocol_server, "--limit", "1", "--local-only") == 0
    assert main(["run", "--model", "gold+keyword", "--dataset", "demo", "--local-only"]) == 0

    recipients = {row["unmasked_text_to"] for row in leaderboard_rows()}
    assert recipients == {"this machine"}


def test_a_deprecated_model_is_announced(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, protocol_server: ProtocolServer
) -> None:
    OPENAI.run(protocol_server, "--dry-run")
    assert "retired" not in capsys.readouterr().err
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED)

    assert main(["run", "--model", "gpt4o", "--dataset", "demo", "--dry-run"]) == 0

    assert capsys.readouterr().err.splitlines() == [
        "model gpt4o is openai/gpt-4o-2024-08-06",
        "model openai/gpt-4o-2024-08-06 will be retired on 2027-01-14: use gpt-6-luna after that",
    ]
