from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.report import figures
from pii_bench.analysis.report.data import Texts, address, collect_report
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.ranking.source import Source
from pii_bench.tasks import Task
from tests.analysis.report.folders import NOTHING, demo_results
from tests.ranking.stored_runs import ANN, BO, changed, store_run, tiny_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.analysis.report.data import Report

RIGHT = {"s1": '### Answer: ["32"]', "s2": '### Answer: ["40"]'}


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda _: None)


def shown(report: Report) -> list[tuple[str, str]]:
    """Dataset and name of each run."""
    names = [each["name"] for each in report.record["datasets"]]
    return [(names[run["dataset"]], run["name"]) for run in report.record["runs"]]


def test_runs_are_shown_with_the_detection_beside_them(tmp_path: Path) -> None:
    demo_results(tmp_path)

    report = collect_report(tmp_path)

    assert shown(report) == [("demo", "fake/one:naive"), ("demo", "fake/two:naive")]
    (dataset,) = report.record["datasets"]
    assert [sample["id"] for sample in dataset["samples"][:2]] == ["demo-0001", "demo-0002"]
    first, second = (run["answers"] for run in report.record["runs"])
    assert len(first) == len(second) == len(dataset["samples"]) == 12
    assert {tuple(each["s"]) for each in first + second} == {(0, 0, 0, None)}
    assert {each["f"][1][0] for each in first} == {1}
    assert {each["f"][1][0] for each in second} == {0}


def test_each_row_of_ours_leads_to_a_run(tmp_path: Path) -> None:
    demo_results(tmp_path)

    report = collect_report(tmp_path)

    ours = [row for row in report.rows if row.source is not Source.PUBLISHED]
    assert len(ours) == 6
    assert {address(row) for row in ours} == report.names.keys()
    assert report.names[Source.RUN, "fake/two", "naive", "demo", Task.MASKING] == "fake/two:naive"
    found = report.names[Source.RUN, "fake/two", "detection", "demo", Task.DETECTION]
    assert found == "fake/two:naive"


def test_a_detection_by_itself_is_a_run(tmp_path: Path) -> None:
    tiny = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", tiny, "detection", {"s1": ANN, "s2": BO})

    report = collect_report(tmp_path)

    assert shown(report) == [(tiny.name, "fake/one (detection)")]
    assert report.record["runs"][0]["answers"][0]["s"] == [0, None, None, None]


def test_a_reference_and_a_run_of_ones_own_have_different_names(tmp_path: Path) -> None:
    tiny = tiny_dataset(tmp_path / "tiny.jsonl")
    for folder in ("runs", "reference"):
        store_run(tmp_path / folder, tiny, "naive", RIGHT)

    names = [name for _, name in shown(collect_report(tmp_path))]

    assert names == ["fake/one:naive", "reference:fake/one:naive"]


def test_texts_of_our_own_datasets_go_in_and_those_of_others_do_not(tmp_path: Path) -> None:
    demo = demo_results(tmp_path)
    tiny = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", tiny, "naive", RIGHT)

    report = collect_report(tmp_path)

    assert [each["name"] for each in report.record["datasets"]] == ["demo", tiny.name]
    assert report.without_texts == [tiny.name]
    assert report.foreign_texts == []
    assert "Ann Lee" not in str(report.record)
    ours, foreign = (each["samples"] for each in report.record["datasets"])
    assert ours[0]["d"] == demo.samples[0].description
    assert foreign == [{"id": "s1"}, {"id": "s2"}]


def test_a_copy_of_our_file_is_not_ours(tmp_path: Path) -> None:
    tiny = tiny_dataset(tmp_path / "demo.jsonl")
    store_run(tmp_path / "runs", tiny, "naive", RIGHT)

    assert collect_report(tmp_path).without_texts == [tiny.name]


def test_all_texts_or_none_go_in_if_asked_for(tmp_path: Path) -> None:
    demo_results(tmp_path)
    tiny = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", tiny, "naive", RIGHT)

    everything = collect_report(tmp_path, texts=Texts.ALL)
    nothing = collect_report(tmp_path, texts=Texts.NONE)

    assert everything.without_texts == []
    assert everything.foreign_texts == [tiny.name]
    assert nothing.without_texts == ["demo", tiny.name]
    assert nothing.record["tags"] == nothing.record["categories"] == []
    assert all(each.keys() == {"id"} for d in nothing.record["datasets"] for each in d["samples"])


def test_systems_limit_the_samples_and_not_the_rows(tmp_path: Path) -> None:
    demo_results(tmp_path)

    report = collect_report(tmp_path, systems=["fake/two"])

    assert shown(report) == [("demo", "fake/two:naive")]
    assert report.rows == collect_report(tmp_path).rows


def test_a_misspelt_system_is_offered_its_neighbour(tmp_path: Path) -> None:
    demo_results(tmp_path)

    with pytest.raises(UnknownNameError, match="did you mean 'fake/two'"):
        collect_report(tmp_path, systems=["fake/tow"])


def test_a_name_of_several_systems_is_refused(tmp_path: Path) -> None:
    tiny = tiny_dataset(tmp_path / "tiny.jsonl")
    for strategy in ("naive", "self-cot"):
        store_run(tmp_path / "runs", tiny, strategy, RIGHT)

    with pytest.raises(PiiBenchError, match="several strategies"):
        collect_report(tmp_path, systems=["fake/one"])


def test_a_dataset_limits_rows_and_samples(tmp_path: Path) -> None:
    demo_results(tmp_path)
    tiny = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", tiny, "naive", RIGHT)

    by_name = collect_report(tmp_path, dataset=tiny.name)
    by_path = collect_report(tmp_path, dataset=tiny.source)

    assert shown(by_name) == [(tiny.name, "fake/one:naive")]
    assert {row.dataset for row in by_name.rows} == {tiny.name}
    assert by_path == by_name
    with pytest.raises(UnknownNameError, match="unknown dataset 'singel'"):
        collect_report(tmp_path, dataset="singel")


def test_published_rows_of_a_dataset_stay_beside_ours(tmp_path: Path) -> None:
    report = collect_report(tmp_path, dataset="single")

    assert {(row.dataset, row.source) for row in report.rows} == {("single", Source.PUBLISHED)}
    assert report.record["runs"] == report.record["datasets"] == []


def test_runs_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    tiny = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", changed(tiny), "naive", dict.fromkeys(RIGHT, NOTHING))

    report = collect_report(tmp_path)

    assert len(report.left_out) == 1
    assert report.record["runs"] == []
