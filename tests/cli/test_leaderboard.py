from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pii_bench.cli import leaderboard, main
from pii_bench.leaderboard.published import published_rows
from tests.leaderboard.stored_runs import ANN, BO, changed, store_run, tiny_dataset

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_it_is_made_again_from_stored_responses(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = tiny_dataset(own_folder / "tiny.jsonl")
    results = own_folder / "elsewhere"
    store_run(results / "runs", dataset, "detection", {"s1": ANN, "s2": BO})
    store_run(results / "reference", dataset, "detection", {"s1": ANN, "s2": BO})

    assert main(["leaderboard", "--results", str(results)]) == 0

    output = capsys.readouterr()
    assert output.err == ""
    assert output.out.splitlines() == [
        f"leaderboard: {results / 'leaderboard.csv'} (also .md, .tex, .html)",
        f"2 rows of ours, {len(published_rows())} published",
    ]
    lines = (results / "leaderboard.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 2 + len(published_rows())
    assert [line.split(",")[0] for line in lines[-2:]] == ["reference", "run"]


def test_without_results_the_published_figures_are_there(own_folder: Path) -> None:
    assert main(["leaderboard"]) == 0

    lines = (own_folder / "results" / "leaderboard.csv").read_text(encoding="utf-8").splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"published"}


def test_twice_gives_the_same(own_folder: Path) -> None:
    dataset = tiny_dataset(own_folder / "tiny.jsonl")
    store_run(own_folder / "results" / "runs", dataset, "detection", {"s1": ANN, "s2": BO})

    main(["leaderboard"])
    before = {p: p.read_bytes() for p in (own_folder / "results").glob("leaderboard.*")}
    main(["leaderboard"])

    assert {path: path.read_bytes() for path in before} == before
    assert len(before) == 4


def test_an_interruption_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(leaderboard, "collect", interrupt)

    assert main(["leaderboard"]) == 1
    assert capsys.readouterr().err == "pii-bench: interrupted\n"


def test_a_run_that_is_left_out_is_told(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = tiny_dataset(own_folder / "tiny.jsonl")
    runs = own_folder / "results" / "runs"
    store_run(runs, changed(dataset), "detection", {"s1": ANN, "s2": BO})

    assert main(["leaderboard"]) == 1
    assert capsys.readouterr().err.startswith("left out: fake/one, detection on ")


def test_a_broken_run_changes_nothing(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset = tiny_dataset(own_folder / "tiny.jsonl")
    runs = own_folder / "results" / "runs"
    main(["leaderboard"])
    before = (own_folder / "results" / "leaderboard.csv").read_bytes()
    store_run(runs, dataset, "detection", {"s1": ANN}).responses.write_text("{}\n")

    assert main(["leaderboard"]) == 2
    assert "jsonl:1: record: 'id' is missing" in capsys.readouterr().err
    assert (own_folder / "results" / "leaderboard.csv").read_bytes() == before
