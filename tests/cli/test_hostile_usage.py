"""Servers that count tokens wrongly, by mistake or to get past a cap on cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from pii_bench.cli import main
from tests.builders import read_lines
from tests.protocol_server import completion

if TYPE_CHECKING:
    from pathlib import Path

    from tests.protocol_server import ProtocolServer, Reply

ANSWER: Final = '### Answer: ["Halifax"]'
# A number that fits no float.
GIANT: Final = 10**400


def run(server: ProtocolServer, *options: str) -> int:
    asked = ("--model", "openai/m", "--base-url", f"{server.url}/v1")
    return main(["run", *asked, "--task", "query-related", "--dataset", "demo", *options])


def stored(results: Path) -> list[dict[str, Any]]:
    (path,) = results.glob("runs/*/naive/demo.jsonl")
    return read_lines(path)


def counting(into: object, out: object) -> Reply:
    return completion(ANSWER, counts={"prompt_tokens": into, "completion_tokens": out})


def test_what_is_no_count_is_stored_as_unknown_and_read_by_every_command(
    protocol_server: ProtocolServer, own_folder: Path
) -> None:
    protocol_server.script(counting(True, 7), counting(GIANT, 7), counting(11, -GIANT))

    assert run(protocol_server, "--price", "2,10") == 0
    lines = stored(own_folder / "results")
    assert len(lines) == 12
    assert all("usage" not in line and line["text"] == ANSWER for line in lines)

    # Nothing is asked again, and nothing is refused.
    assert run(protocol_server, "--price", "2,10") == 0
    assert main(["leaderboard"]) == 0
    assert len(protocol_server.requests) == 12


@pytest.mark.parametrize("counts", [(-1000, 7), (0, 7), (11, 0), (0, 0), (11, -5), (GIANT, GIANT)])
def test_no_count_gets_past_a_cap_on_cost(
    protocol_server: ProtocolServer, own_folder: Path, counts: tuple[int, int]
) -> None:
    protocol_server.script(counting(*counts))

    # A request has 1,500 to 2,500 bytes here, and 2,048 tokens of output at most: a call costs
    # up to 4.6 USD, and 4 of them less than 20.
    assert run(protocol_server, "--price", "1000,1000", "--max-usd", "20") == 1

    assert 1 <= len(protocol_server.requests) <= 9
    kinds = [line["error"]["kind"] for line in stored(own_folder / "results") if "error" in line]
    assert kinds == ["skipped_budget"] * (12 - len(protocol_server.requests))


def test_counts_that_an_earlier_version_stored_are_unknown_and_refuse_no_command(
    protocol_server: ProtocolServer, own_folder: Path
) -> None:
    protocol_server.script(completion(ANSWER))
    assert run(protocol_server) == 0
    (path,) = own_folder.glob("results/runs/*/naive/demo.jsonl")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"input_tokens": 11', '"input_tokens": true'), encoding="utf-8")

    assert main(["leaderboard"]) == 0
    assert run(protocol_server) == 0
    assert len(protocol_server.requests) == 12
