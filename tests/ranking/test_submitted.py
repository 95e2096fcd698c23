from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.analysis.diagnosis.tables import query_runs
from pii_bench.analysis.report.data import collect_report
from pii_bench.analysis.runs import read_evaluated
from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.integrations.every_eval_ever import Evaluator, export_runs
from pii_bench.ranking.collect import collect
from pii_bench.ranking.rows import Source, find_rows, rank, system_name
from pii_bench.ranking.stored import read_runs
from pii_bench.ranking.submitted import keep_submission
from pii_bench.runs.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.ranking.stored_runs import ANN, BO, changed, store_run, tiny_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset

# Ann Lee (32) and Bo Ray (40); both ages are needed.
RIGHT = {
    "s1": Prediction(Status.OK, ((("Ann Lee", "PER"), ("32", "DEM")),), ("32",)),
    "s2": Prediction(Status.OK, ((("Bo Ray", "PER"), ("40", "DEM")),), ("40",)),
}
FAILED = RIGHT | {"s2": Prediction(Status.REFUSED)}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return tiny_dataset(tmp_path / "tiny.jsonl")


def kept(results: Path, dataset: Dataset) -> dict[str, Any]:
    path = results / "submitted" / "acme" / f"{dataset.name}.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_predictions_are_kept_with_what_they_are(tmp_path: Path, dataset: Dataset) -> None:
    path = keep_submission(tmp_path, "acme", dataset, FAILED)

    assert path == tmp_path / "submitted" / "acme" / f"{dataset.name}.jsonl"
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {
            "id": "s1",
            "subjects": [[{"text": "Ann Lee", "type": "PER"}, {"text": "32", "type": "DEM"}]],
            "related": ["32"],
            "status": "ok",
        },
        {"id": "s2", "status": "refused"},
    ]
    told = kept(tmp_path, dataset)
    assert (told["format"], told["name"]) == ("pii-bench-submission-1", "acme")
    assert told["dataset"] == {
        "name": dataset.name,
        "source": dataset.source,
        "sha256": dataset.sha256,
        "samples": 2,
    }


def test_they_have_rows_of_their_own_with_the_hash_of_what_was_scored(
    tmp_path: Path, dataset: Dataset
) -> None:
    keep_submission(tmp_path, "acme", dataset, FAILED)

    rows = collect(tmp_path).rows

    assert [(row.task, row.headline, row.complete) for row in rows] == [
        (Task.DETECTION, 0.5, True),
        (Task.QUERY_RELATED, 0.5, True),
        # Protection and retention are 1 and, of the failure, 0.
        (Task.MASKING, 0.5, True),
    ]
    for row in rows:
        assert (row.source, row.model, row.strategy) == (Source.SUBMITTED, "acme", "")
        assert "|model:acme|predictions:" in row.signature
        assert row.rates is not None
        assert row.rates[Status.REFUSED] == 0.5


def test_they_are_ranked_among_runs(tmp_path: Path, dataset: Dataset) -> None:
    keep_submission(tmp_path, "acme", dataset, RIGHT)
    store_run(tmp_path / "runs", dataset, "detection", {"s1": ANN, "s2": BO})

    ranked = [row for row in rank(collect(tmp_path).rows) if row.task is Task.DETECTION]

    assert [(row.source, row.model, row.rank) for row in ranked] == [
        (Source.SUBMITTED, "acme", 1),
        (Source.RUN, "fake/one", 1),
    ]


def test_one_task_alone_has_one_row(tmp_path: Path, dataset: Dataset) -> None:
    only = {name: Prediction(Status.OK, related=each.related) for name, each in RIGHT.items()}
    keep_submission(tmp_path, "acme", dataset, only)

    assert [row.task for row in collect(tmp_path).rows] == [Task.QUERY_RELATED]


def test_a_dataset_without_queries_has_detection_alone(tmp_path: Path) -> None:
    record: dict[str, Any] = {
        "id": "s1",
        "description": "Ann",
        "query": None,
        "subjects": [],
        "related": [],
    }
    (tmp_path / "plain.jsonl").write_text(json.dumps(record) + "\n")
    plain = load_dataset(str(tmp_path / "plain.jsonl"))
    keep_submission(tmp_path, "acme", plain, {"s1": Prediction(Status.OK, (), ())})

    assert [row.task for row in collect(tmp_path).rows] == [Task.DETECTION]


def test_their_name_is_all_that_names_them(tmp_path: Path, dataset: Dataset) -> None:
    keep_submission(tmp_path, "acme", dataset, RIGHT)
    rows = collect(tmp_path).rows

    for name in ("acme", "submitted:acme"):
        assert {task for _, task in find_rows(rows, name)} == (set(Task) - {Task.REWRITE})
    assert system_name("acme", "") == "acme"
    with pytest.raises(PiiBenchError, match="did you mean 'acme'"):
        find_rows(rows, "acmee")


def test_they_enter_analysis_diagnosis_report_and_export(tmp_path: Path, dataset: Dataset) -> None:
    keep_submission(tmp_path, "acme", dataset, FAILED)

    analysed = read_evaluated(tmp_path).runs
    (diagnosed,) = query_runs(read_runs(tmp_path).runs)
    report = collect_report(tmp_path)
    exported = export_runs(tmp_path, tmp_path / "out", Evaluator(), created=0)

    assert {(run.name.source, run.name.model) for run in analysed} == {(Source.SUBMITTED, "acme")}
    assert diagnosed.masking is not None
    assert [run["name"] for run in report.record["runs"]] == ["submitted:acme"]
    assert [len(run["answers"]) for run in report.record["runs"]] == [2]
    assert len(exported.files) == 2
    assert exported.left_out == ()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "-a", "<b>", "a" * 81, "é", "a+b"])
def test_a_name_that_is_none_for_a_folder_is_refused(
    tmp_path: Path, dataset: Dataset, name: str
) -> None:
    with pytest.raises(PiiBenchError, match="a submission came with the name"):
        keep_submission(tmp_path, name, dataset, RIGHT)
    assert not (tmp_path / "submitted").exists()


@pytest.mark.parametrize("name", ["gold", "bilstm-crf", "gpt4o"])
def test_a_system_of_the_suite_lends_its_name_to_nobody(
    tmp_path: Path, dataset: Dataset, name: str
) -> None:
    with pytest.raises(PiiBenchError, match=f"'{name}' is a system of the suite"):
        keep_submission(tmp_path, name, dataset, RIGHT)


def test_what_is_kept_is_replaced_by_force_alone(tmp_path: Path, dataset: Dataset) -> None:
    path = keep_submission(tmp_path, "acme", dataset, RIGHT)
    before = path.read_bytes()

    assert keep_submission(tmp_path, "acme", dataset, RIGHT) == path
    with pytest.raises(PiiBenchError, match="other predictions are kept there; --force replaces"):
        keep_submission(tmp_path, "acme", dataset, FAILED)
    assert path.read_bytes() == before
    keep_submission(tmp_path, "acme", dataset, FAILED, force=True)
    assert path.read_bytes() != before


class TestLeftOut:
    """What cannot be read is named with its reason, and the rest is shown."""

    def reasons(self, results: Path, dataset: Dataset) -> tuple[str, ...]:
        store_run(results / "runs", dataset, "detection", {"s1": ANN, "s2": BO})
        found = collect(results)
        assert [row.model for row in found.rows] == ["fake/one"]
        return found.left_out

    def test_a_dataset_that_has_changed(self, tmp_path: Path, dataset: Dataset) -> None:
        keep_submission(tmp_path, "acme", changed(dataset), RIGHT)

        assert self.reasons(tmp_path, dataset) == (
            f"acme on {dataset.source}: its file has changed since; score the predictions again",
        )

    def test_a_dataset_that_is_gone(self, tmp_path: Path, dataset: Dataset) -> None:
        gone = tiny_dataset(tmp_path / "gone.jsonl")
        keep_submission(tmp_path, "acme", gone, RIGHT)
        (tmp_path / "gone.jsonl").unlink()

        (reason,) = self.reasons(tmp_path, dataset)
        assert reason.startswith(f"runs on {gone.source}: ")

    def test_broken_predictions(self, tmp_path: Path, dataset: Dataset) -> None:
        path = keep_submission(tmp_path, "acme", dataset, RIGHT)
        path.write_text(path.read_text().splitlines()[0] + "\n")

        reason = f"{path}: no prediction for sample 's2'; score the predictions again"
        assert self.reasons(tmp_path, dataset) == (reason,)

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"format": "2"}, "no submission: 'format' must be 'pii-bench-submission-1'"),
            ({"name": "other"}, "'name' must be that of its folder, 'acme'"),
            ({"dataset": None}, "no submission: record: 'dataset' must be an object, not null"),
        ],
    )
    def test_a_file_that_does_not_say_what_it_is(
        self, tmp_path: Path, dataset: Dataset, change: dict[str, Any], reason: str
    ) -> None:
        path = keep_submission(tmp_path, "acme", dataset, RIGHT).with_suffix(".json")
        path.write_text(json.dumps(kept(tmp_path, dataset) | change))

        told = f"{path}: {reason}; score the predictions again"
        assert self.reasons(tmp_path, dataset) == (told,)
