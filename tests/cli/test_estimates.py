"""The cost of a run: estimates, caps and totals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pii_bench.cli import main
from tests.builders import read_folder, read_lines, sample_record, write_lines
from tests.cli.conftest import leaderboard_rows, right, run_chat, table_lines
from tests.protocol_server import api_error, completion

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Capsys
    from tests.protocol_server import ProtocolServer, Reply

ANSWER: Final = '### Answer: ["Halifax"]'
# A number that fits no float.
GIANT: Final = 10**400
# USD per million tokens.
PRICE: Final = ("--price", "2,10")


def detect(server: ProtocolServer, *options: str) -> int:
    return run_chat(server, "--task", "detection", *options)


def related(server: ProtocolServer, *options: str) -> int:
    return run_chat(server, "--task", "query-related", *options)


def table(shown: str) -> list[list[str]]:
    """Return the cells of the printed table without its header."""
    return table_lines(shown)[1:]


def totals(results: Path, prompt: str) -> dict[str, Any]:
    (path,) = results.glob(f"runs/*/{prompt}/demo.run.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["totals"]
    return found


def counted(text: str) -> Reply:
    """Return an answer with 1,000 tokens in (200 cached) and 50 out (20 reasoning)."""
    counts = {
        "prompt_tokens_details": {"cached_tokens": 200},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    return completion(text, usage=(1000, 50), counts=counts)


def test_a_dry_run_estimates_calls_and_makes_none(
    protocol_server: ProtocolServer, capsys: Capsys, assert_golden: Callable[[str, str], None]
) -> None:
    assert run_chat(protocol_server, "--dry-run", *PRICE) == 0

    assert_golden("dry-run.txt", capsys.readouterr().out)
    assert protocol_server.requests == []
    assert not Path("results").exists()


def test_a_dry_run_counts_only_missing_answers(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    protocol_server.script(right(completion))
    detect(protocol_server, "--limit", "5")
    before = read_folder(Path())
    protocol_server.requests.clear()
    capsys.readouterr()

    run_chat(protocol_server, "--dry-run")

    rows = table(capsys.readouterr().out)
    assert [row[:3] for row in rows] == [
        ["detection", "demo", "7"],
        ["naive", "demo", "12"],
        ["total", "", "19"],
    ]
    assert protocol_server.requests == []
    assert read_folder(Path()) == before

    # No price is known of the model, but what is answered costs nothing more.
    detect(protocol_server, "--limit", "5", "--dry-run")
    assert [row[-1] for row in table(capsys.readouterr().out)] == ["0.00 / 0.00 / 0.00"]


def test_an_estimate_of_a_batch_is_half_the_price_and_needs_no_key(capsys: Capsys) -> None:
    arguments = ["run", "--model", "claude-fable-5.1", "--dataset", "demo", "--dry-run"]

    def expected(*options: str) -> float:
        main([*arguments, "--task", "detection", *options])
        ((*_, usd),) = table(capsys.readouterr().out)
        return float(usd.split(" / ")[1])

    assert expected("--batch") == pytest.approx(expected() / 2, abs=0.01)
    assert expected() > 0.1


def test_a_run_stops_before_its_cap_and_continues_with_a_higher_one(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    # 100 tokens may cost 0.001 USD; an answer takes 50. After three, 0.0015 are spent, and
    # another call might bring them to 0.0025.
    protocol_server.script(right(lambda text: completion(text, usage=(900, 50))))
    capped = ("--price", "0,10", "--max-tokens", "100", "--concurrency", "1", "--max-usd")

    assert detect(protocol_server, *capped, "0.0022") == 1

    assert len(protocol_server.requests) == 3
    output = capsys.readouterr()
    assert output.err.splitlines()[-1] == (
        "detection on demo: 9 of 12 samples have no answer, skipped_budget 9; "
        "run again to ask only these"
    )
    assert "9 failed, " in output.err
    assert ", 0.0015 USD\n" in output.err
    assert " 3/12" in output.out
    (row,) = leaderboard_rows()
    assert (row["coverage"], row["rate_skipped_budget"]) == ("0.2500", "0.7500")
    assert row["rate_infra_error"] == "0.0000"

    assert detect(protocol_server, *capped, "1") == 0

    assert len(protocol_server.requests) == 12
    assert capsys.readouterr().out.splitlines()[-1].endswith(" 1.000")


def test_the_manifest_has_the_total_tokens_and_cost(protocol_server: ProtocolServer) -> None:
    protocol_server.script(right(counted))

    detect(protocol_server, *PRICE)

    found = totals(Path("results"), "detection")
    price = found.pop("price")
    assert price.startswith("2 in, 10 out, 20")
    assert price.endswith(", --price")
    # 12 times 1,000 tokens at 2 USD and 50 at 10 USD per million.
    assert found == {
        "completions": 12,
        "uncounted": 0,
        "input_tokens": 12_000,
        "output_tokens": 600,
        "reasoning_tokens": 240,
        "cached_tokens": 2_400,
        "usd": 0.03,
    }


def test_a_recorded_cost_is_kept_without_the_price_until_an_answer_is_added(
    protocol_server: ProtocolServer,
) -> None:
    def cost(*options: str) -> tuple[float | None, int]:
        related(protocol_server, *options)
        found = totals(Path("results"), "naive")
        assert (found["price"] is None) == (found["usd"] is None)
        return found["usd"], found["completions"]

    protocol_server.script(counted(ANSWER))

    assert cost("--limit", "2", *PRICE) == cost("--limit", "2") == (0.005, 2)
    assert cost("--limit", "3") == (None, 3)
    assert cost("--limit", "3", "--price", "4,20") == (0.015, 3)


def test_a_refused_run_has_the_totals_of_its_answers(protocol_server: ProtocolServer) -> None:
    protocol_server.script(counted(ANSWER), counted(ANSWER), api_error(402))

    assert related(protocol_server, "--concurrency", "1", *PRICE) == 1

    found = totals(Path("results"), "naive")
    assert (found["completions"], found["usd"]) == (2, 0.005)


def test_a_users_dataset_is_estimated(protocol_server: ProtocolServer, capsys: Capsys) -> None:
    path = write_lines(Path("mine.jsonl"), [sample_record(query=None, related=[])])

    assert run_chat(protocol_server, "--dataset", str(path), "--dry-run") == 0

    # Without a query there is nothing to ask but detection. No price is known of the model.
    rows = table(capsys.readouterr().out)
    assert [(row[0], row[2], row[-1]) for row in rows] == [
        ("detection", "1", "unknown"),
        ("naive", "0", "0.00 / 0.00 / 0.00"),
        ("total", "1", "unknown"),
    ]


# Servers that count tokens wrongly, by mistake or to get past a cap on cost.


def stored() -> list[dict[str, Any]]:
    (path,) = Path("results").glob("runs/*/naive/demo.jsonl")
    return read_lines(path)


def counting(into: object, out: object) -> Reply:
    counts = {"prompt_tokens": into, "completion_tokens": out, "total_tokens": None}
    return completion(ANSWER, counts=counts)


@pytest.mark.parametrize("counts", [(-1000, 7), (0, 7), (11, 0), (0, 0), (11, -5), (GIANT, GIANT)])
def test_no_token_count_defeats_a_cap_on_cost(
    protocol_server: ProtocolServer, counts: tuple[int, int]
) -> None:
    protocol_server.script(counting(*counts))

    # A request has 1,500 to 2,500 bytes here, and 2,048 tokens of output at most: a call costs
    # up to 4.6 USD, and 4 of them less than 20.
    assert related(protocol_server, "--price", "1000,1000", "--max-usd", "20") == 1

    assert 1 <= len(protocol_server.requests) <= 9
    kinds = [line["error"]["kind"] for line in stored() if "error" in line]
    assert kinds == ["skipped_budget"] * (12 - len(protocol_server.requests))


def test_invalid_counts_in_stored_runs_are_unknown(
    protocol_server: ProtocolServer,
) -> None:
    protocol_server.script(completion(ANSWER))
    assert related(protocol_server) == 0
    (path,) = Path().glob("results/runs/*/naive/demo.jsonl")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"input_tokens": 11', '"input_tokens": true'), encoding="utf-8")

    assert main(["leaderboard"]) == 0
    assert related(protocol_server) == 0
    assert len(protocol_server.requests) == 12
