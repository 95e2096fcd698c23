from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pii_bench.cli import main
from pii_bench.ranking import stored
from pii_bench.ranking.external import HumanAnswer, published_rows, to_lines
from pii_bench.tasks import Task
from tests.ranking.stored_runs import ANN, BO, store_run, tiny_dataset

if TYPE_CHECKING:
    import pytest

    from tests.cli.conftest import Capsys


def test_the_leaderboard_is_built_from_stored_responses(capsys: Capsys) -> None:
    dataset = tiny_dataset(Path("tiny.jsonl"))
    results = Path("elsewhere")
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


def test_without_runs_the_leaderboard_has_the_published_rows() -> None:
    assert main(["leaderboard"]) == 0

    lines = Path("results/leaderboard.csv").read_text(encoding="utf-8").splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"published"}


def test_the_table_of_people_has_their_answers(capsys: Capsys) -> None:
    answer = HumanAnswer(
        "single", Task.QUERY_RELATED, "s1", "s1", annotator=1, answer=["gout"], gold=["gout"]
    )
    folder = Path("results/human")
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text(to_lines([answer]), encoding="utf-8")

    assert main(["leaderboard", "--table", "2"]) == 0
    assert "|people|human|||||1.000||||" in capsys.readouterr().out.replace(" ", "")

    (folder / "b.jsonl").write_text("{", encoding="utf-8")
    assert main(["leaderboard", "--table", "2"]) == 1
    assert "left out: results/human/b.jsonl" in capsys.readouterr().err


def test_an_interruption_prints_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(stored, "update", interrupt)

    assert main(["leaderboard"]) == 1
    assert capsys.readouterr().err == "pii-bench: interrupted\n"


def test_broken_runs_are_left_out_and_the_others_are_shown(capsys: Capsys) -> None:
    dataset = tiny_dataset(Path("tiny.jsonl"))
    runs = Path("results/runs")
    store_run(runs, dataset, "detection", {"s1": ANN}, model="fake/sound")
    line = store_run(runs, dataset, "detection", {"s1": ANN}, model="fake/line").responses
    with line.open("a") as file:
        file.write('{"id": "s2", "request": "x", "text": 12}\n')
    run = store_run(runs, dataset, "detection", {"s1": ANN}, model="fake/run").manifest
    run.write_text("[" * 100_000)

    assert main(["leaderboard"]) == 1

    left_out = [each for each in capsys.readouterr().err.splitlines() if "left out" in each]
    where, other = run, line
    anew = "run again: it is written again, and the answers next to it are used again"
    moved = "run again: the line is moved away, and only its sample is asked again"
    assert left_out == [
        f"left out: {where}: no manifest of a run: nested too deep; {anew}",
        f"left out: {other}:2: record: 'text' must be a string, not a whole number; {moved}",
    ]
    table = Path("results/leaderboard.csv").read_text()
    assert "run,fake/sound,detection" in table
    assert "run,fake/line,detection" in table
    assert "fake/run" not in table


def test_the_advice_for_a_damaged_run_repairs_it(capsys: Capsys) -> None:
    asked = ["run", "--model", "gold", "--dataset", "demo"]
    assert main(asked) == 0
    (manifest,) = Path().rglob("demo.run.json")
    lines = manifest.with_name("demo.jsonl")
    sound = lines.read_bytes()
    for damaged, advice in ((manifest, "it is written again"), (lines, "the line is moved away")):
        damaged.write_bytes(damaged.read_bytes()[1:])
        assert main(["leaderboard"]) == 1
        assert f"; run again: {advice}, and " in capsys.readouterr().err

        assert main(asked) == 0
        assert main(["leaderboard"]) == 0
        errors = capsys.readouterr().err
        assert ("1 lines cannot be read, first results/runs" in errors) == (damaged == lines)
        assert "left out" not in errors.splitlines()[-1]
        assert lines.read_bytes() == sound
