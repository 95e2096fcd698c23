from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.ranking.rows import Source
from pii_bench.ranking.stored import read_runs
from pii_bench.runs import kept_scores
from pii_bench.runs.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.ranking.stored_runs import ANN, BO, FAILED, changed, store_run, tiny_dataset

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pii_bench.ranking.stored import Run

ANN_FOUND = ((("Ann Lee", "PER"), ("32", "DEM")),)


def related(results: Path) -> Run:
    """The only run there that answers queries."""
    (run,) = (run for run in read_runs(results).runs if run.task is Task.QUERY_RELATED)
    return run


def test_answers_come_with_what_the_same_system_detected(tmp_path: Path) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", dataset, "detection", {"s1": ANN, "s2": "no JSON"})
    store_run(
        tmp_path / "runs", dataset, "naive", {"s1": '### Answer: ["32"]', "s2": "### Answer: []"}
    )

    run = related(tmp_path)

    assert (run.source, run.dataset) == (Source.RUN, dataset)
    assert run.with_subjects == {
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

    run = related(tmp_path)

    failures = {"s1": Prediction(Status.INFRA_ERROR), "s2": Prediction(Status.EMPTY)}
    assert run.with_subjects == failures
    assert run.masking == failures


def test_without_detection_there_is_no_masking(tmp_path: Path) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "reference", dataset, "naive", {"s1": "### Answer: []"})
    store_run(tmp_path / "reference", dataset, "detection", {"s1": ANN}, model="fake/two")

    run = related(tmp_path)

    assert run.source is Source.REFERENCE
    assert run.detection is None
    assert run.masking is None
    assert run.with_subjects == {"s1": Prediction(Status.OK, None, ())}


def test_a_run_of_another_file_or_of_none_is_left_out(tmp_path: Path) -> None:
    dataset, gone = tiny_dataset(tmp_path / "tiny.jsonl"), tiny_dataset(tmp_path / "gone.jsonl")
    store_run(tmp_path / "runs", changed(dataset), "naive", {"s1": "### Answer: []"})
    store_run(tmp_path / "runs", gone, "naive", {"s1": "### Answer: []"})
    store_run(tmp_path / "runs", gone, "detection", {"s1": ANN})
    (tmp_path / "gone.jsonl").unlink()

    found = read_runs(tmp_path)

    assert found.runs == ()
    differs, missing = sorted(found.left_out)
    assert missing.startswith(f"runs on {gone.source}: ")
    assert differs == (
        f"fake/one, naive on {dataset.source}: its file has changed since; run again, only what "
        "changed is asked"
    )


def test_scores_are_kept_beside_the_responses(tmp_path: Path) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", dataset, "detection", {"s1": ANN, "s2": BO})
    store_run(tmp_path / "runs", dataset, "naive", {"s1": '### Answer: ["32"]', "s2": "?"})

    first = related(tmp_path).scores
    again = related(tmp_path)

    assert first.evaluations.keys() == {Task.QUERY_RELATED, Task.MASKING}
    assert again.scores == first
    # Nothing was read to know them.
    assert "answers" not in vars(again)


def test_scores_are_made_again_when_an_answer_changes(tmp_path: Path) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", dataset, "naive", {"s1": "### Answer: []"})
    before = related(tmp_path).scores.evaluations[Task.QUERY_RELATED].macro("exact")
    store_run(tmp_path / "runs", dataset, "naive", {"s1": '### Answer: ["32"]'})

    after = related(tmp_path).scores.evaluations[Task.QUERY_RELATED].macro("exact")

    assert before is not None
    assert after is not None
    assert (before.f1, after.f1) == (0, 1)


def test_scores_are_made_again_when_the_code_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", dataset, "naive", {"s1": "### Answer: []"})
    first = related(tmp_path).scores
    monkeypatch.setattr(kept_scores, "code_sha256", lambda: "other")

    again = related(tmp_path)

    assert again.scores == first
    assert "answers" in vars(again)


def test_a_damaged_file_of_scores_is_replaced(tmp_path: Path) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", dataset, "naive", {"s1": "### Answer: []"})
    first = related(tmp_path).scores
    (path,) = tmp_path.glob("runs/*/*/*.scores.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[:100])

    assert related(tmp_path).scores == first
    assert path.read_bytes() == whole


def test_what_is_left_out_is_known_without_scoring(tmp_path: Path) -> None:
    dataset = tiny_dataset(tmp_path / "tiny.jsonl")
    store_run(tmp_path / "runs", dataset, "naive", {"s1": "### Answer: []"})
    found = read_runs(tmp_path)

    assert found.left_out == ()
    assert "scores" not in vars(found.runs[0])
