from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis import figures
from pii_bench.analysis.report.data import LeakedCategory, Leaks, Texts, collect_report
from pii_bench.errors import UnknownNameError
from pii_bench.files import write_json
from pii_bench.models.base import Completion, Usage
from pii_bench.prompting.strategies import STRATEGIES, load_prompt
from pii_bench.ranking.html import address, merged
from pii_bench.ranking.rows import Source
from pii_bench.runs.records import DatasetRef, Manifest, RunRecord, encode_record
from pii_bench.runs.store import RunFiles
from pii_bench.systems.base import SystemCard
from pii_bench.tasks import Task
from tests.analysis.report.folders import NOTHING, demo_results
from tests.ranking.stored_runs import ANN, BO, store_run, tiny_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.analysis.report.data import Report
    from pii_bench.datasets.catalog import Dataset

RIGHT = {"s1": '### Answer: ["32"]', "s2": '### Answer: ["40"]'}


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda _: None)


@pytest.fixture
def tiny(tmp_path: Path) -> Dataset:
    return tiny_dataset(tmp_path / "tiny.jsonl")


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


def test_a_detection_by_itself_is_a_run(tmp_path: Path, tiny: Dataset) -> None:
    store_run(tmp_path / "runs", tiny, "detection", {"s1": ANN, "s2": BO})

    report = collect_report(tmp_path)

    assert shown(report) == [(tiny.name, "fake/one (detection)")]
    assert report.record["runs"][0]["answers"][0]["s"] == [0, None, None, None]


def test_a_reference_run_and_a_run_have_different_names(tmp_path: Path, tiny: Dataset) -> None:
    store_run(tmp_path / "runs", tiny, "naive", RIGHT)
    store_run(tmp_path / "reference", tiny, "naive", {**RIGHT, "s2": NOTHING})

    names = [name for _, name in shown(collect_report(tmp_path))]

    assert names == ["fake/one:naive", "reference:fake/one:naive"]


def test_a_reference_that_a_run_repeats_is_shown_once(tmp_path: Path, tiny: Dataset) -> None:
    for folder in ("runs", "reference"):
        store_run(tmp_path / folder, tiny, "naive", RIGHT)

    report = collect_report(tmp_path)

    assert shown(report) == [(tiny.name, "fake/one:naive")]
    (each,) = [each for each in merged(report.rows) if each.row.source is not Source.PUBLISHED]
    assert (each.row.source, each.repeated) == (Source.RUN, True)


def test_the_best_system_gives_leaks_and_examples(tmp_path: Path, tiny: Dataset) -> None:
    """Bo's name is kept although only the age is needed; Ann's age is hidden."""
    store_run(tmp_path / "runs", tiny, "detection", {"s1": ANN, "s2": BO})
    related = {"s1": NOTHING, "s2": '### Answer: ["40", "Bo Ray"]'}
    store_run(tmp_path / "runs", tiny, "naive", related)

    report = collect_report(tmp_path, texts=Texts.ALL)

    assert report.leaks == Leaks(
        system="fake/one:naive",
        title="fake/one:naive",
        dataset=tiny.name,
        categories=(LeakedCategory("PER", readable=1, unneeded=1),),
        examples={"Leaks what the query does not need": "s2", "Hides what the query needs": "s1"},
    )
    samples = [(each["sample"], each["run"]) for each in report.record["examples"]]
    assert samples == [("s2", "fake/one:naive"), ("s1", "fake/one:naive")]
    assert collect_report(tmp_path).record["examples"] == []


def test_prompt_raw_answer_tokens_and_cost_of_a_chat_model(tmp_path: Path, tiny: Dataset) -> None:
    card = SystemCard(
        model="openai/gpt-4o-2024-08-06",
        prompt="naive",
        prompt_sha256=load_prompt(STRATEGIES["naive"]).sha256,
        task=Task.QUERY_RELATED,
        oracle=False,
        settings={},
        unmasked_text_to="api.openai.com",
    )
    files = RunFiles.at(tmp_path / "runs", card.model, card.prompt, tiny.name)
    write_json(files.manifest, Manifest(card, DatasetRef.of(tiny)))
    said = Completion(NOTHING, usage=Usage(1000, 100), seconds=1.25)
    files.responses.write_bytes(encode_record(RunRecord("s1", "0", said)))

    (run,) = collect_report(tmp_path, texts=Texts.ALL).record["runs"]

    prompt = run["prompts"][1]
    sample = tiny.samples[0]
    filled = prompt.replace("\ue000", sample.description).replace("\ue001", sample.query or "")
    (message,) = load_prompt(STRATEGIES["naive"]).messages(sample)
    assert filled == message.content
    # USD per million tokens: 2.5 in, 10 out.
    assert run["answers"][0]["x"] == [None, [NOTHING, 1000, 100, 1.25, 0.0035]]
    assert run["answers"][1] is None


def test_texts_of_our_own_datasets_go_in_and_no_others(tmp_path: Path, tiny: Dataset) -> None:
    demo = demo_results(tmp_path)
    store_run(tmp_path / "runs", tiny, "naive", RIGHT)

    report = collect_report(tmp_path)

    assert [each["name"] for each in report.record["datasets"]] == ["demo", tiny.name]
    assert report.without_texts == [tiny.name]
    assert report.foreign_texts == []
    assert "Ann Lee" not in str(report.record)
    copy = tiny_dataset(tmp_path / "copy" / "demo.jsonl")
    store_run(tmp_path / "copy" / "runs", copy, "naive", RIGHT)
    assert collect_report(tmp_path / "copy").without_texts == [copy.name]
    ours, foreign = (each["samples"] for each in report.record["datasets"])
    assert ours[0]["d"] == demo.samples[0].description
    assert foreign == [{"id": "s1"}, {"id": "s2"}]


def test_all_texts_or_none_go_in_if_asked_for(tmp_path: Path, tiny: Dataset) -> None:
    demo_results(tmp_path)
    store_run(tmp_path / "runs", tiny, "naive", RIGHT)

    everything = collect_report(tmp_path, texts=Texts.ALL)
    nothing = collect_report(tmp_path, texts=Texts.NONE)

    assert everything.without_texts == []
    assert everything.foreign_texts == [tiny.name]
    assert nothing.without_texts == ["demo", tiny.name]
    assert nothing.record["tags"] == nothing.record["categories"] == []
    assert all(each.keys() == {"id"} for d in nothing.record["datasets"] for each in d["samples"])


def test_systems_limit_samples_and_a_dataset_limits_rows_too(tmp_path: Path, tiny: Dataset) -> None:
    demo_results(tmp_path)
    store_run(tmp_path / "runs", tiny, "naive", RIGHT)

    by_system = collect_report(tmp_path, systems=["fake/two"])
    assert shown(by_system) == [("demo", "fake/two:naive")]
    assert by_system.rows == collect_report(tmp_path).rows
    by_name = collect_report(tmp_path, dataset=tiny.name)
    by_path = collect_report(tmp_path, dataset=tiny.source)

    assert shown(by_name) == [(tiny.name, "fake/one:naive")]
    assert {row.dataset for row in by_name.rows} == {tiny.name}
    assert by_path == by_name
    published = collect_report(tmp_path, dataset="single")
    assert {(row.dataset, row.source) for row in published.rows} == {("single", Source.PUBLISHED)}
    assert published.record["runs"] == published.record["datasets"] == []
    with pytest.raises(UnknownNameError, match="unknown dataset 'singel'"):
        collect_report(tmp_path, dataset="singel")
