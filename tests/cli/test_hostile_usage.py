"""Servers that count tokens wrongly, by mistake or to get past a cap on cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from pii_bench.cli import main
from tests.anthropic_replies import message
from tests.mistral_replies import answer
from tests.protocol_server import completion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.protocol_server import ProtocolServer, Reply

ANSWER: Final = '### Answer: ["Halifax"]'
# A number that fits no float.
GIANT: Final = 10**400

Counts = tuple[object, object]

PROVIDERS: Final[Mapping[str, Callable[[Counts], Reply]]] = {
    "openai": lambda counts: completion(
        ANSWER, counts={"prompt_tokens": counts[0], "completion_tokens": counts[1]}
    ),
    "anthropic": lambda counts: message(
        ANSWER, usage={"input_tokens": counts[0], "output_tokens": counts[1]}
    ),
    "mistral": lambda counts: answer(
        ANSWER, usage={"prompt_tokens": counts[0], "completion_tokens": counts[1]}
    ),
}


def run(server: ProtocolServer, provider: str, *options: str) -> int:
    asked = ("--model", f"{provider}/m", "--base-url", server.url + "/v1")
    about = ("--task", "query-related", "--dataset", "demo")
    return main(["run", *asked, *about, *options])


def stored(results: Path) -> list[dict[str, Any]]:
    (path,) = results.glob("runs/*/naive/demo.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("provider", "counts"),
    [("openai", (True, 7)), ("anthropic", (GIANT, 7)), ("mistral", (11, -GIANT))],
)
def test_what_is_no_count_is_stored_as_unknown_and_read_by_every_command(
    protocol_server: ProtocolServer, own_folder: Path, provider: str, counts: Counts
) -> None:
    protocol_server.script(PROVIDERS[provider](counts))

    assert run(protocol_server, provider, "--price", "2,10") == 0
    lines = stored(own_folder / "results")
    assert len(lines) == 12
    assert all("usage" not in line and line["text"] == ANSWER for line in lines)

    # Nothing is asked again, and nothing is refused.
    asked = len(protocol_server.requests)
    assert run(protocol_server, provider, "--price", "2,10") == 0
    assert main(["leaderboard"]) == 0
    assert len(protocol_server.requests) == asked == 12


@pytest.mark.parametrize(
    ("provider", "counts"),
    [
        *(("openai", each) for each in [(-1000, 7), (0, 7), (11, 0), (0, 0), (11, -5)]),
        *((provider, (GIANT, GIANT)) for provider in PROVIDERS),
    ],
)
def test_no_count_gets_past_a_cap_on_cost(
    protocol_server: ProtocolServer, own_folder: Path, provider: str, counts: Counts
) -> None:
    protocol_server.script(PROVIDERS[provider](counts))

    # A request has 1,500 to 2,500 bytes here, and 2,048 tokens of output at most: a call costs
    # up to 4.6 USD, and 4 of them less than 20.
    code = run(protocol_server, provider, "--price", "1000,1000", "--max-usd", "20")

    assert code == 1
    assert 1 <= len(protocol_server.requests) <= 9
    kinds = [line["error"]["kind"] for line in stored(own_folder / "results") if "error" in line]
    assert kinds == ["skipped_budget"] * (12 - len(protocol_server.requests))


def test_counts_that_an_earlier_version_stored_are_unknown_and_refuse_no_command(
    protocol_server: ProtocolServer, own_folder: Path
) -> None:
    protocol_server.script(completion(ANSWER))
    assert run(protocol_server, "openai") == 0
    (path,) = own_folder.glob("results/runs/*/naive/demo.jsonl")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"input_tokens": 11', '"input_tokens": true'), encoding="utf-8")

    assert main(["leaderboard"]) == 0
    assert run(protocol_server, "openai") == 0
    assert len(protocol_server.requests) == 12
