from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from tests.builders import sample_record, write_lines
from tests.cli.conftest import leaderboard_rows, table_lines

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys


def gold_predictions() -> list[dict[str, Any]]:
    return [
        {
            "id": sample.id,
            "subjects": [
                [{"text": e.text, "type": e.type} for e in subject.entities]
                for subject in sample.subjects
            ],
            "related": [related.text for related in sample.related],
        }
        for sample in load_dataset("demo").samples
    ]


def score(path: Path, *options: str, dataset: str = "demo") -> int:
    return main(["score", str(path), "--dataset", dataset, *options])


def cells(output: str, title: str) -> list[str]:
    """Return the cells of the only row under a title."""
    return table_lines(output.split(f"\n{title}\n\n")[1])[1]


def test_gold_as_predictions_is_perfect(capsys: Capsys) -> None:
    path = write_lines(Path("mine.jsonl"), gold_predictions())

    assert score(path) == 0
    output = capsys.readouterr()
    assert output.err == ""
    signatures = re.findall(r"^data:demo@c66c71042b2a\|task:([a-z-]+)\|", output.out, re.MULTILINE)
    assert signatures == ["detection", "query-related", "masking"]
    masking = [*["1.000"] * 3, "0.000", *["1.000"] * 2]
    tables = {"detection": ["1.000"] * 3, "query-related": ["1.000"] * 4, "masking": masking}
    for task, figures in tables.items():
        row = cells(output.out, f"demo: {task}")
        interval = ["[1.000, 1.000]", ""]
        assert row == ["", "mine", "", *figures, *interval, "12/12", "", "", "run"]


def test_named_predictions_are_kept_and_enter_the_leaderboard(capsys: Capsys) -> None:
    path = write_lines(Path("mine.jsonl"), gold_predictions())

    assert score(path, "--name", "our-filter") == 0

    output = capsys.readouterr().out
    assert output.startswith("kept: results/submitted/our-filter/demo.jsonl\nleaderboard: ")
    for task in ("detection", "query-related", "masking"):
        row = cells(output, f"demo: {task}")
        assert (row[0], row[1], row[2], row[-1]) == ("1", "our-filter", "", "submitted")
    rows = leaderboard_rows("submitted")
    assert [(row["task"], row["model"], row["h"]) for row in rows] == [
        ("detection", "our-filter", ""),
        ("query-related", "our-filter", ""),
        ("masking", "our-filter", "1.0000"),
    ]


def test_a_failure_of_the_model_is_zero_and_a_failed_call_leaves_a_gap(capsys: Capsys) -> None:
    answers = [{"id": p["id"], "related": p["related"]} for p in gold_predictions()]
    answers[0] |= {"status": "refused"}
    answers[1] |= {"status": "infra_error"}

    assert score(write_lines(Path("mine.jsonl"), answers)) == 1
    row = cells(capsys.readouterr().out, "demo: query-related")
    # 10 of 11 scored samples are right.
    assert row[3] == "0.909"
    assert row[-4:] == ["11/12", "refused 8%, infra_error 8%", "", "run, incomplete"]


@pytest.mark.parametrize(
    ("status", "code", "scored", "f1"), [("refused", 0, 12, 0), ("infra_error", 1, 0, None)]
)
@pytest.mark.parametrize("name", [(), ("--name", "ours")])
def test_a_file_of_failures_is_scored_for_all_tasks(
    capsys: Capsys, name: tuple[str, ...], status: str, code: int, scored: int, f1: float | None
) -> None:
    lines = [{"id": each["id"], "status": status} for each in gold_predictions()]
    path = write_lines(Path("mine.jsonl"), lines)

    assert score(path, "--json", *name) == code

    rows = json.loads(capsys.readouterr().out)
    assert [(row["task"], row["scored"]) for row in rows] == [
        ("detection", scored),
        ("query-related", scored),
        ("masking", scored),
        ("rewrite", scored),
    ]
    assert rows[1].get("f1") == f1


@pytest.mark.parametrize("name", [(), ("--name", "ours")])
def test_only_the_samples_with_a_query_need_more_than_subjects(
    capsys: Capsys, name: tuple[str, ...]
) -> None:
    samples = [sample_record("s1"), sample_record("s2", query=None, related=[])]
    dataset = write_lines(Path("mixed.jsonl"), samples)
    answers = [{"id": "s1", "subjects": [], "related": ["32"]}, {"id": "s2", "subjects": []}]
    path = write_lines(Path("mine.jsonl"), answers)

    assert score(path, "--json", *name, dataset=str(dataset)) == 0

    rows = json.loads(capsys.readouterr().out)
    assert [(row["task"], row["scored"], row["gold"]) for row in rows] == [
        ("detection", 2, 2),
        ("query-related", 1, 1),
        ("masking", 1, 1),
    ]


ANSWERED = {"asthma": {"type": "health", "relevance": "1"}}
ASKED: dict[str, Any] = {"context": "Mo has asthma.", "question": "Is flour bad?"}
CAPID_LINE: dict[str, Any] = ASKED | {"piis": ANSWERED}
CAPID_ANSWER = ASKED | {"parsed": ANSWERED}


def convert(*answers: object) -> int:
    dataset = write_lines(Path("test.jsonl"), [CAPID_LINE])
    outputs = write_lines(Path("outputs.jsonl"), answers)
    asked = ("--dataset", f"capid:{dataset}", "--out", "mine.jsonl")
    return main(["convert", "capid-outputs", str(outputs), *asked])


def test_stored_answers_are_converted_and_scored(capsys: Capsys) -> None:
    assert convert(CAPID_ANSWER) == 0
    assert json.loads(Path("mine.jsonl").read_text()) == {
        "id": "capid-0001",
        "subjects": [[{"text": "asthma", "type": "DEM"}]],
        "related": ["asthma"],
        "status": "ok",
    }
    assert score(Path("mine.jsonl"), dataset="capid:test.jsonl") == 0
    assert capsys.readouterr().out.count("1.000") == 12


def test_annotation_faults_are_counted_and_logged(capsys: Capsys) -> None:
    faulty = CAPID_LINE | {"piis": ANSWERED | {"gout": ANSWERED["asthma"]}}
    write_lines(Path("test.jsonl"), [faulty])
    write_lines(Path("outputs.jsonl"), [CAPID_ANSWER])
    write_lines(Path("replay.jsonl"), [{"id": "capid-0001", "text": "[]"}])

    for command in (
        ["convert", "capid-outputs", "outputs.jsonl", "--out", "mine.jsonl"],
        ["score", "mine.jsonl"],
        ["run", "--model", "replay:replay.jsonl"],
    ):
        assert main([*command, "--dataset", "capid:test.jsonl"]) == 0
        output = capsys.readouterr()
        assert output.err.splitlines()[:2] == [
            "capid:test.jsonl: annotation faults left out: 1",
            "  capid-0001: phrase 2 of 'piis' is not in it",
        ]
        if command[0] == "convert":
            assert output.out == "mine.jsonl: 1 predictions (ok 1)\n"


def test_answers_without_types_have_no_strict_f1(capsys: Capsys) -> None:
    untyped = CAPID_ANSWER | {"parsed": {"asthma": {"type": None, "relevance": "1"}}}
    assert convert(untyped) == 0
    assert score(Path("mine.jsonl"), dataset="capid:test.jsonl") == 0

    output = capsys.readouterr().out
    (title,) = re.findall(r"^(capid-test-\w+: detection)$", output, re.MULTILINE)
    row = cells(output, title)
    assert row[3:6] == ["-", "1.000", "-"]  # Strict-F1, Ent-F1, RougeL-F
    assert '"type": null' in Path("mine.jsonl").read_text()


def test_answers_and_samples_that_do_not_match_are_logged(capsys: Capsys) -> None:
    assert convert(CAPID_ANSWER | {"question": "Why?"}) == 1

    assert capsys.readouterr().err.splitlines() == [
        "answers that belong to no sample of the dataset, on lines 1",
        "samples without an answer, written as infra_error: capid-0001",
    ]


def test_a_partial_file_needs_a_flag_and_is_counted(capsys: Capsys) -> None:
    path = write_lines(Path("mine.jsonl"), gold_predictions()[:2])

    assert score(path) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"pii-bench: {path}: no prediction for sample 'demo-0003' and 9")
    for name in ((), ("--name", "ours")):
        assert score(path, "--partial", *name, "--json") == 0
        output = capsys.readouterr()
        assert {(row["scored"], row["gold"]) for row in json.loads(output.out)} == {(2, 12)}
        assert "partial: 2 of 12 samples have a prediction and are scored\n" in output.err


def test_unknown_types_are_logged(capsys: Capsys) -> None:
    line = {"id": "demo-0001", "subjects": [[{"text": "Ann", "type": "NAME"}]]}
    path = write_lines(Path("mine.jsonl"), [line])

    assert score(path, "--partial") == 0

    assert "1 entities have types other than PER, CODE," in (errors := capsys.readouterr().err)
    assert "'NAME' 1" in errors
