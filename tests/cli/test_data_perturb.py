from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main
from tests.builders import read_lines, sample_record, write_lines

if TYPE_CHECKING:
    from pathlib import Path


def test_versions_are_a_sound_dataset(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = own_folder / "versions.jsonl"
    options = ["--kind", "typos,lower-case", "--rate", "0.5", "--seed", "1", "--limit", "5"]

    assert main(["data", "perturb", "demo", *options, "--out", str(out)]) == 0

    output = capsys.readouterr()
    assert output.out.splitlines()[2:] == [
        "| typos      | 5          | 0                   | 0               |",
        "| lower-case | 5          | 0                   | 0               |",
        "",
        f"10 samples: {out}",
    ]
    marks = [record["meta"]["perturbation"] for record in read_lines(out)]
    assert {(mark["kind"], mark["rate"], mark["seed"], mark["dataset"]) for mark in marks} == {
        ("typos", 0.5, 1, "demo"),
        ("lower-case", 0.5, 1, "demo"),
    }
    assert main(["data", "check", str(out)]) == 0


def test_versions_run_and_are_compared_with_their_originals(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, results = own_folder / "versions.jsonl", str(own_folder / "results")
    arguments = ["--kind", "lower-case", "--out", str(out)]
    assert main(["data", "perturb", "demo", *arguments]) == 0
    for dataset in ("demo", str(out)):
        command = ["run", "--model", "gold+keyword", "--dataset", dataset, "--results", results]
        assert main(command) == 0
    capsys.readouterr()

    assert main(["analyse", "--results", results]) == 0

    assert "+0.000 (0.00 to 0.00) | 1.00 (1.00 to 1.00)" in capsys.readouterr().out
    table = (own_folder / "results" / "analysis" / "robustness.csv").read_text(encoding="utf-8")
    assert "gold,detection,versions-" in table


def test_all_kinds_are_written_where_none_is_asked_for(own_folder: Path) -> None:
    out = own_folder / "versions.jsonl"

    assert main(["data", "perturb", "demo", "--limit", "1", "--out", str(out)]) == 0

    assert len(read_lines(out)) == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["demo", "--kind", "tyops"], "unknown kind 'tyops'; did you mean 'typos'?"),
        (["demmo"], "unknown dataset 'demmo'; did you mean 'demo'?"),
        (["one.jsonl", "--kind", "dates"], "dates: nothing to change in one-"),
    ],
)
def test_what_cannot_be_written_is_said(
    options: list[str], message: str, own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_lines(own_folder / "one.jsonl", [sample_record()])

    assert main(["data", "perturb", *options, "--out", "out.jsonl"]) == 2

    assert message in capsys.readouterr().err
    assert not (own_folder / "out.jsonl").exists()


def test_a_dataset_is_not_replaced(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(own_folder / "one.jsonl", [sample_record()])
    before = path.read_bytes()

    assert main(["data", "perturb", "one.jsonl", "--out", str(path)]) == 2

    assert "is the dataset itself" in capsys.readouterr().err
    assert path.read_bytes() == before


@pytest.mark.parametrize("rate", ["0", "1.5", "nan", "much"])
def test_a_rate_is_a_share(rate: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["data", "perturb", "demo", "--rate", rate, "--out", "out.jsonl"])

    assert f"must be a number above 0 and at most 1, not '{rate}'" in capsys.readouterr().err
