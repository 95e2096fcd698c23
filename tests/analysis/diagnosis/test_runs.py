from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.analysis.diagnosis.runs import QueryRuns, read_query_runs
from pii_bench.datasets.catalog import load_dataset
from pii_bench.prompting.outcome import Status
from pii_bench.ranking.source import Source
from pii_bench.runs.predictions.prediction import Prediction
from tests.analysis.diagnosis.samples import EVERYONE, couple
from tests.analysis.diagnosis.stored import query_run
from tests.builders import sample_record, write_lines
from tests.ranking.stored_runs import ANN, BO, FAILED, changed, store_run, tiny_dataset

if TYPE_CHECKING:
    from pathlib import Path

ANN_FOUND = ((("Ann Lee", "PER"), ("32", "DEM")),)


def test_answers_come_with_what_the_same_system_detected(tmp_path: Path) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", dataset, "detection", {"s1": ANN, "s2": "no JSON"})
    store_run(
        tmp_path / "runs", dataset, "naive", {"s1": '### Answer: ["32"]', "s2": "### Answer: []"}
    )

    (run,) = read_query_runs(tmp_path).runs

    assert (run.source, run.dataset) == (Source.RUN, dataset)
    assert run.answers == {
        "s1": Prediction(Status.OK, ANN_FOUND, ("32",)),
        "s2": Prediction(Status.OK, None, ()),
    }
    assert run.masking == {
        "s1": Prediction(Status.OK, ANN_FOUND, ("32",)),
        "s2": Prediction(Status.MALFORMED),
    }


def test_what_failed_has_no_detection_beside(tmp_path: Path) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", dataset, "detection", {"s1": ANN, "s2": BO})
    store_run(tmp_path / "runs", dataset, "naive", {"s1": FAILED, "s2": ""})

    (run,) = read_query_runs(tmp_path).runs

    failures = {"s1": Prediction(Status.INFRA_ERROR), "s2": Prediction(Status.EMPTY)}
    assert run.answers == failures
    assert run.masking == failures


def test_without_detection_there_is_no_masking(tmp_path: Path) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "reference", dataset, "naive", {"s1": "### Answer: []"})
    store_run(tmp_path / "reference", dataset, "detection", {"s1": ANN}, model="fake/two")

    (run,) = read_query_runs(tmp_path).runs

    assert run.source is Source.REFERENCE
    assert run.detection is None
    assert run.masking is None
    assert run.answers == {"s1": Prediction(Status.OK, None, ())}


def test_a_run_of_another_file_or_of_none_is_left_out(tmp_path: Path) -> None:
    dataset, gone = tiny_dataset(tmp_path / "tiny.jsonl"), tiny_dataset(tmp_path / "gone.jsonl")
    store_run(tmp_path / "runs", changed(dataset), "naive", {"s1": "### Answer: []"})
    store_run(tmp_path / "runs", gone, "naive", {"s1": "### Answer: []"})
    store_run(tmp_path / "runs", gone, "detection", {"s1": ANN})
    (tmp_path / "gone.jsonl").unlink()

    found = read_query_runs(tmp_path)

    assert found.runs == ()
    differs, missing = sorted(found.left_out)
    assert missing.startswith(f"runs on {gone.source}: ")
    assert differs == (
        f"fake/one, naive on {dataset.source}: its file has changed since; run again, only what "
        "changed is asked"
    )


def test_a_dataset_without_queries_has_none(tmp_path: Path) -> None:
    write_lines(tmp_path / "silent.jsonl", [sample_record(query=None, related=[])])
    dataset = load_dataset(str(tmp_path / "silent.jsonl"))
    store_run(tmp_path / "runs", dataset, "naive", {})

    assert read_query_runs(tmp_path) == QueryRuns((), ())


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert read_query_runs(tmp_path) == QueryRuns((), ())


def test_one_system_is_told_from_another_by_all_but_the_dataset() -> None:
    samples, chosen = [couple()], {"s1": ()}
    run = query_run(samples, chosen)

    assert run.system == query_run(samples, chosen, {"s1": EVERYONE}, dataset="other").system
    assert run.system != query_run(samples, chosen, settings={"weights": "0"}).system
    assert run.system != query_run(samples, chosen, prompt_sha256="0").system
    assert run.system != query_run(samples, chosen, relevance="random").system
