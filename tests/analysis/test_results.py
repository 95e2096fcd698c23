from __future__ import annotations

import csv
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.means import CurvePoint, Drop
from pii_bench.analysis.recall import Rule, Share
from pii_bench.analysis.results import Analysis, analyse, to_csv, write_csvs
from pii_bench.ranking.external import published_rows
from pii_bench.tasks import Task
from tests.analysis.evaluated import answer, asked, evaluated, perturbed, run_name

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.analysis.runs import EvaluatedRun

RUN = "source,model,strategy,dataset,task,oracle,complete"


def small(dataset: str, text: str) -> EvaluatedRun:
    """A run over two samples that answers the same to both."""
    samples = [
        replace(asked(f"{dataset}-1", "32"), meta={"reasons": ["time"]}),
        asked(f"{dataset}-2", "32", "Halifax"),
    ]
    return evaluated(run_name(dataset), samples, {sample.id: answer(text) for sample in samples})


@pytest.fixture
def analysis() -> Analysis:
    sample = asked("single-1", "32")
    both = {"single-1": answer("32", subjects=((("Ann Lee", "PER"),),))}
    masking = evaluated(run_name("twins", task=Task.MASKING), [sample], both)
    version = perturbed(asked("single-1", "33"), "typos", "single")
    versions = evaluated(run_name("versions"), [version], {version.id: answer("33")})
    runs = [small("single", "32"), small("multi", "33"), small("hard", "32"), masking]
    return analyse([*runs, versions], [])


@pytest.mark.parametrize(
    ("record", "columns", "cells"),
    [
        (
            CurvePoint(run_name("single+multi"), "f1", "entities", 56, None, 3, 2 / 3, 0.5, 1.0),
            "metric,factor,low,high,samples,value,interval_low,interval_high",
            "single+multi,query-related,False,True,f1,entities,56,,3,0.6667,0.5000,1.0000",
        ),
        # Rates follow their counts and are empty where undefined.
        (
            Share(run_name(task=Task.DETECTION), Rule.TYPED, "type", "DEM", "DEM", 0, 0, 4),
            "rule,level,name,type,found,predicted,gold,precision,recall,f1",
            "single,detection,False,True,typed,type,DEM,DEM,0,0,4,,0.0000,0.0000",
        ),
        (
            Drop(run_name("hard"), "f1", 0.75, 0.5),
            "metric,base,value,drop,relative",
            "hard,query-related,False,True,f1,0.7500,0.5000,0.2500,0.3333",
        ),
    ],
)
def test_a_record_as_csv(record: CurvePoint | Share | Drop, columns: str, cells: str) -> None:
    header = f"{RUN},{columns}\n"

    assert to_csv(type(record), [record]) == f"{header}run,fake/one,naive,{cells}\n"
    assert to_csv(type(record), []) == header


def test_runs_are_analysed_alone_and_over_several_sets(analysis: Analysis) -> None:
    assert {each.run.dataset for each in analysis.curves} - {"twins"} == {
        *("single", "multi", "hard"),
        "single+multi",
    }
    means = [each for each in analysis.headlines if each.run.task is Task.QUERY_RELATED]
    assert [(e.run.dataset, e.value) for e in means] == [
        ("single", pytest.approx((1 + 2 / 3) / 2)),
        ("multi", 0.0),
        ("hard", pytest.approx((1 + 2 / 3) / 2)),
        ("single+multi", pytest.approx((1 + 2 / 3) / 4)),
    ]
    (drop,) = analysis.drops
    assert drop.drop == pytest.approx(-(1 + 2 / 3) / 4)
    assert len(analysis.consistency) == len(analysis.agreement) == 4


def test_each_analysis_is_a_file(analysis: Analysis, tmp_path: Path) -> None:
    paths = write_csvs(analysis, tmp_path / "results")

    assert [path.name for path in paths] == [f"{field.name}.csv" for field in fields(Analysis)]
    for path, field in zip(paths, fields(Analysis), strict=True):
        assert path.parent == tmp_path / "results" / "analysis"
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == len(getattr(analysis, field.name))
        # Without a dataset of others, nothing is compared with one.
        assert (not rows) == (field.name == "transfers")
        assert all({None, ""} & set(row) == set() for row in rows)


def test_without_runs_there_is_what_is_published(tmp_path: Path) -> None:
    paths = write_csvs(analyse([], published_rows()), tmp_path)

    lines = {path.stem: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    assert lines["curves"] == lines["recall"] == 1
    assert min(lines["headlines"], lines["drops"], lines["agreement"]) > 1


def test_it_holds_no_text_of_a_sample(analysis: Analysis, tmp_path: Path) -> None:
    written = "".join(path.read_text() for path in write_csvs(analysis, tmp_path))

    assert "Halifax" not in written
    assert "Ann Lee" not in written
