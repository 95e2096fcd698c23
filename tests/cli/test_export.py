from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import export, main
from tests.integrations.schemas import valid_run, valid_samples
from tests.ranking.stored_runs import FAILED, store_run, tiny_dataset

if TYPE_CHECKING:
    from pii_bench.datasets.catalog import Dataset
    from tests.cli.conftest import Capsys

ANSWERS = {"s1": '### Answer: ["32"]', "s2": '### Answer: ["40"]'}


@pytest.fixture
def tiny(own_folder: Path) -> Dataset:
    return tiny_dataset(own_folder / "mine.jsonl")


def export_runs(*options: str) -> int:
    return main(["export", "every-eval-ever", "--out", "out", *options])


def test_runs_are_written_and_counted(tiny: Dataset, capsys: Capsys) -> None:
    store_run(Path("results/runs"), tiny, "naive", ANSWERS)

    assert export_runs("--organization", "Example") == 0

    assert capsys.readouterr() == ("1 runs in out\n", "")
    (run,) = Path("out").rglob("*.json")
    assert valid_run(run)["model_info"]["id"] == "fake/one"
    assert "Example" in run.read_text()
    assert len(valid_samples(run)) == 8


def test_an_incomplete_run_is_written_and_named(tiny: Dataset, capsys: Capsys) -> None:
    store_run(Path("results/runs"), tiny, "naive", ANSWERS | {"s2": FAILED})

    assert export_runs() == 1

    (run,) = Path("out").rglob("*.json")
    assert capsys.readouterr().err == f"incomplete: {run}\n"


def test_a_run_whose_dataset_is_gone_is_left_out_and_named(tiny: Dataset, capsys: Capsys) -> None:
    store_run(Path("results/runs"), tiny, "naive", ANSWERS)
    Path(tiny.source).unlink()

    assert export_runs() == 1

    assert capsys.readouterr().err.startswith(f"left out: runs on {tiny.source}: ")
    assert not Path("out").exists()


def test_a_folder_without_runs_is_refused(own_folder: Path, capsys: Capsys) -> None:
    (own_folder / "results").mkdir()

    assert export_runs() == 2

    assert capsys.readouterr().err == "pii-bench: results: no run in it to export\n"


def test_compressed_samples_are_those_of_a_plain_export(tiny: Dataset) -> None:
    store_run(Path("results/runs"), tiny, "naive", ANSWERS)
    assert export_runs() == 0
    (samples,) = Path("out").rglob("*_samples.jsonl")
    lines, run = samples.read_bytes(), valid_run(samples.with_name(f"{samples.stem[:-8]}.json"))

    assert export_runs("--gzip") == 0

    archive = samples.with_name(f"{samples.name}.gz")
    assert gzip.decompress(archive.read_bytes()) == lines
    assert not samples.exists()
    again = valid_run(samples.with_name(f"{samples.stem[:-8]}.json"))
    assert again["detailed_evaluation_results"] == run["detailed_evaluation_results"]

    assert export_runs() == 0
    assert samples.read_bytes() == lines
    assert not archive.exists()


@pytest.mark.parametrize(
    ("options", "hint"),
    [([], "--gzip compresses them"), (["--gzip"], "before they are compressed")],
)
def test_a_big_export_says_so_before_it_writes(
    tiny: Dataset, monkeypatch: pytest.MonkeyPatch, capsys: Capsys, options: list[str], hint: str
) -> None:
    store_run(Path("results/runs"), tiny, "naive", ANSWERS)
    monkeypatch.setattr(export, "BIG", 1000)
    Path("out").touch()

    # A file is where the folder should be: what is told was told before.
    assert export_runs(*options) == 2

    told, failed = capsys.readouterr().err.splitlines()
    assert told == f"about 0 MB of samples for out: {hint}"
    assert "cannot be written" in failed
