from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.cli import main
from tests.builders import read_lines, write_lines
from tests.cli.conftest import table_lines
from tests.ranking.stored_runs import ANN, BO, store_run, tiny_dataset

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys


def answered(*, model: str = "fake/one", to: str = "this machine") -> None:
    """Store the right detection and query answers of both samples."""
    dataset = tiny_dataset(Path("tiny.jsonl"))
    runs = Path("results/runs")
    store_run(runs, dataset, "detection", {"s1": ANN, "s2": BO}, model=model, unmasked_text_to=to)
    answers = {"s1": '### Answer: ["32"]', "s2": '### Answer: ["40"]'}
    store_run(runs, dataset, "naive", answers, model=model, unmasked_text_to=to)


def tiny(*options: str) -> int:
    """Run the command on that dataset."""
    return main(["cost", "--dataset", "tiny.jsonl", *options])


def rows(capsys: Capsys, *options: str) -> list[dict[str, Any]]:
    assert tiny("--json", *options) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_the_published_sums_are_reproduced(capsys: Capsys) -> None:
    answered()

    # Of the source only the sums are known: the defaults and 15 USD per 100,000 give both.
    assert tiny("--documents", "100000", "--usd", "fake/one:naive=0.00015") == 0

    shown = capsys.readouterr().out
    assert "100,000 documents, masking on tiny-" in shown
    assert "All by hand: 1,667 h, 33,333 USD\n" in shown
    _, cells = table_lines(shown)
    assert cells[0] == "fake/one:naive"
    assert cells[3:] == ["0.0%", "100.0%", "", "15", "556", "11,111", "11,126", "22,207"]
    assert (
        "Assumed: --documents 100000 --wage 20 --hand-seconds 60 --review-seconds 20 --machine 0"
    ) in shown
    assert "- model USD, --usd: fake/one:naive\n" in shown
    assert "- model h, unknown: no times are stored; give --seconds or --measure: " in shown


def test_every_assumption_is_in_the_output(capsys: Capsys) -> None:
    answered()

    (row,) = rows(
        capsys,
        *("--documents", "3600", "--wage", "10", "--hand-seconds", "30", "--review-seconds", "4"),
        *("--review-share", "0.9", "--review-share", "fake/one=0.25"),
        *("--seconds", "fake/one:naive=2", "--machine", "1.5"),
    )

    assert row["assumed"] == {
        "documents": 3600,
        "wage": 10.0,
        "hand_seconds": 30.0,
        "review_seconds": 4.0,
        "review_share": 0.25,
        "machine": 1.5,
    }
    # 3,600 x 2 s are 2 h, at 1.5 USD; a quarter checked in 4 s each is an hour, at 10 USD.
    assert (row["model_hours"], row["model_usd"]) == (2.0, pytest.approx(3.0))
    assert (row["people_usd"], row["total_usd"]) == (10.0, pytest.approx(13.0))
    assert (row["by_hand_usd"], row["saved_usd"]) == (300.0, pytest.approx(287.0))
    assert (row["system"], row["metric"], row["quality"]) == ("fake/one:naive", "h", 1.0)


def test_stored_tokens_are_paid_at_the_price_of_the_table_and_stored_durations_are_the_time(
    capsys: Capsys,
) -> None:
    # gpt-4o-2024-08-06 takes 2.5 and 10 USD per million: 0.0025 for 1,000 in, 0.001 for 100 out.
    answered(model="openai/gpt-4o-2024-08-06", to="openai (https://api.openai.com)")
    stored = {"usage": {"input_tokens": 1000, "output_tokens": 100}, "seconds": 0.5}
    for path in Path("results/runs").glob("*/*/*.jsonl"):
        write_lines(path, [answer | stored for answer in read_lines(path)])

    (row,) = rows(capsys, "--documents", "3600")
    (given,) = rows(capsys, "--documents", "3600", "--seconds", "openai/gpt-4o-2024-08-06=2")

    # A document takes detection and the query's answer.
    assert row["usd_per_document"] == pytest.approx(2 * 0.0035)
    assert row["usd_from"].startswith(
        "stored tokens at 2.5 in, 10 out, 1.25 in from a cache per million tokens, "
    )
    assert (row["seconds_per_document"], row["model_hours"]) == (1.0, 1.0)
    assert row["seconds_from"] == "stored durations of its calls"
    assert (given["model_hours"], given["seconds_from"]) == (2.0, "--seconds")


@pytest.mark.parametrize(
    ("model", "to"),
    [("fake/one", "fake (https://example.org)"), ("replay/answers", "this machine")],
)
def test_unknown_costs_stay_empty(model: str, to: str, capsys: Capsys) -> None:
    answered(model=model, to=to)

    (row,) = rows(capsys, "--measure", "1")

    assert row["usd_per_document"] is row["model_usd"] is row["total_usd"] is None
    assert row["seconds_per_document"] is row["model_hours"] is None
    assert row["usd_from"] == "unknown: no price or no counted tokens; give --usd"
    assert row["seconds_from"] == "unknown: no times are stored; give --seconds"


def test_systems_of_this_machine_are_timed_on_request(capsys: Capsys) -> None:
    results = "results"
    assert main(["run", "--model", "encoder", "--dataset", "demo", "--results", results]) == 0
    capsys.readouterr()

    assert main(["cost", "--dataset", "demo", "--measure", "2", "--json"]) == 0

    (row,) = json.loads(capsys.readouterr().out)
    assert row["seconds_per_document"] > 0
    assert row["seconds_from"] == "measured now on this machine, 2 samples of demo"
    assert row["model_usd"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--usd", "fake/won=1"], "unknown system 'fake/won' among the rows; did you mean"),
        (["--dataset", "tinny.jsonl"], "unknown dataset 'tinny.jsonl' among the stored runs"),
        (["--task", "rewrite"], "tiny.jsonl is stored"),
    ],
)
def test_systems_and_datasets_without_rows_are_refused(
    capsys: Capsys, options: list[str], message: str
) -> None:
    answered()

    assert tiny(*options) == 2
    assert message in capsys.readouterr().err
