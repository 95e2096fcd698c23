"""Stored runs read back, and the leaderboard of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.models.base import SKIPPED_BUDGET
from pii_bench.ranking.rows import Source
from pii_bench.ranking.scores import Scores
from pii_bench.ranking.stored import collect, read_runs
from pii_bench.runs import kept_scores
from pii_bench.runs.records import Failure
from pii_bench.systems.base import UNKNOWN_RECIPIENT
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import sample_record, write_lines
from tests.conftest import REPOSITORY
from tests.ranking.stored_runs import ANN, BO, FAILED, changed, store_run, tiny_dataset

if TYPE_CHECKING:
    from pii_bench.datasets.catalog import Dataset
    from pii_bench.ranking.rows import Row
    from pii_bench.ranking.stored import Run


ANN_FOUND = ((("Ann Lee", "PER"), ("32", "DEM")),)
NONE = "### Answer: []"
AGE = '### Answer: ["32"]'


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return tiny_dataset(tmp_path / "tiny.jsonl")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "results" / "runs"


def related(runs: Path) -> Run:
    """The only run there that answers queries."""
    (run,) = (run for run in read_runs(runs.parent).runs if run.task is Task.QUERY_RELATED)
    return run


def rows(runs: Path) -> dict[tuple[str, Task], Row]:
    collection = collect(runs.parent)
    assert collection.left_out == ()
    found = {(row.strategy, row.task): row for row in collection.rows}
    assert len(found) == len(collection.rows)
    return found


def test_answers_come_with_what_the_same_system_detected(runs: Path, dataset: Dataset) -> None:
    store_run(runs, dataset, "detection", {"s1": ANN, "s2": "no JSON"})
    store_run(runs, dataset, "naive", {"s1": AGE, "s2": NONE})

    run = related(runs)

    assert (run.source, run.dataset) == (Source.RUN, dataset)
    assert run.with_subjects == {
        "s1": Prediction(Status.OK, ANN_FOUND, ("32",)),
        "s2": Prediction(Status.OK, None, ()),
    }
    assert run.masking == {
        "s1": Prediction(Status.OK, ANN_FOUND, ("32",)),
        "s2": Prediction(Status.MALFORMED),
    }


def test_what_failed_has_no_detection_beside(runs: Path, dataset: Dataset) -> None:
    store_run(runs, dataset, "detection", {"s1": ANN, "s2": BO})
    store_run(runs, dataset, "naive", {"s1": FAILED, "s2": ""})

    run = related(runs)

    failures = {"s1": Prediction(Status.INFRA_ERROR), "s2": Prediction(Status.EMPTY)}
    assert run.with_subjects == failures
    assert run.masking == failures


def test_without_detection_there_is_no_masking(runs: Path, dataset: Dataset) -> None:
    reference = runs.parent / "reference"
    store_run(reference, dataset, "naive", {"s1": NONE})
    store_run(reference, dataset, "detection", {"s1": ANN}, model="fake/two")

    run = related(runs)

    assert run.source is Source.REFERENCE
    assert run.detection is None
    assert run.masking is None
    assert run.with_subjects == {"s1": Prediction(Status.OK, None, ())}


def test_a_run_of_another_file_or_of_none_is_left_out(
    runs: Path, dataset: Dataset, tmp_path: Path
) -> None:
    gone = tiny_dataset(tmp_path / "gone.jsonl")
    store_run(runs, changed(dataset), "naive", {"s1": NONE})
    store_run(runs, gone, "naive", {"s1": NONE})
    store_run(runs, gone, "detection", {"s1": ANN})
    Path(gone.source).unlink()

    found = read_runs(runs.parent)

    assert found.runs == ()
    differs, missing = sorted(found.left_out)
    assert missing.startswith(f"runs on {gone.source}: ")
    assert missing.endswith("No such file or directory")
    assert differs == (
        f"fake/one, naive on {dataset.source}: its file has changed since; run again, only what "
        "changed is asked"
    )


def test_scores_are_kept_beside_the_responses(
    runs: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_run(runs, dataset, "detection", {"s1": ANN, "s2": BO})
    store_run(runs, dataset, "naive", {"s1": AGE, "s2": "?"})

    first = related(runs).scores
    again = related(runs)

    assert first.evaluations.keys() == {Task.QUERY_RELATED, Task.MASKING}
    assert again.scores == first
    # Nothing was read to know them.
    assert "answers" not in vars(again)
    monkeypatch.setattr(kept_scores, "code_sha256", lambda: "other")
    with_other_code = related(runs)
    assert with_other_code.scores == first
    assert "answers" in vars(with_other_code)


def test_scores_are_made_again_when_an_answer_changes(runs: Path, dataset: Dataset) -> None:
    figures = []
    for answer in (NONE, AGE):
        store_run(runs, dataset, "naive", {"s1": answer})
        mean = related(runs).scores.evaluations[Task.QUERY_RELATED].macro("exact")
        figures.append(mean and mean.f1)

    assert figures == [0, 1]


def test_a_damaged_file_of_scores_is_replaced(runs: Path, dataset: Dataset) -> None:
    store_run(runs, dataset, "naive", {"s1": NONE})
    first = related(runs).scores
    (path,) = runs.glob("*/*/*.scores.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[:100])

    assert related(runs).scores == first
    assert path.read_bytes() == whole


def test_a_dataset_that_is_loaded_is_not_read_again(runs: Path, dataset: Dataset) -> None:
    store_run(runs, dataset, "detection", {"s1": ANN, "s2": BO})
    read = collect(runs.parent)
    Path(dataset.source).unlink()

    assert collect(runs.parent, [dataset]) == read
    assert collect(runs.parent).rows == ()


def test_masking_is_composed_of_both_answers(runs: Path, dataset: Dataset) -> None:
    store_run(runs, dataset, "detection", {"s1": ANN, "s2": BO})
    store_run(runs, dataset, "naive", {"s1": AGE, "s2": NONE})

    masking = rows(runs)["naive", Task.MASKING]

    # Ann Lee is masked, as she should be; of Bo Ray and 40, one should be: P = 1/2, R = 1.
    assert masking.metrics["precision"] == pytest.approx((1 + 1 / 2) / 2)
    assert masking.metrics["recall"] == 1.0
    assert masking.metrics["f1"] == pytest.approx((1 + 2 / 3) / 2)
    # All that is not needed is hidden, P = 1; of 32 and 40, which are, the first is kept, R = 1/2.
    assert (masking.metrics["protection"], masking.metrics["retention"]) == (1, 1 / 2)
    assert masking.headline == masking.metrics["h"] == pytest.approx(2 / 3)
    assert f"|prompt:detection@{'d' * 12}+naive@{'n' * 12}|" in masking.signature
    assert "|returned:one|" in masking.signature


def test_samples_of_one_description_are_one_cluster(runs: Path, tmp_path: Path) -> None:
    twins = [sample_record("s1"), sample_record("s2", description="Ann Lee is 32 years old.")]
    write_lines(tmp_path / "twins.jsonl", [*twins, sample_record("s3", query="May I vote?")])
    dataset = load_dataset(str(tmp_path / "twins.jsonl"))
    for prompt, answer in (("detection", ANN), ("naive", AGE)):
        store_run(runs, dataset, prompt, {"s1": answer, "s2": "None.", "s3": answer})

    found = {task: row.by_sample[row.headline_name] for (_, task), row in rows(runs).items()}

    ids, clusters, values = ("s1", "s2", "s3"), ("s1", "s2", "s1"), (1.0, 0.0, 1.0)
    assert found[Task.DETECTION] == found[Task.QUERY_RELATED] == Scores(ids, clusters, values)
    # Where nothing is detected nothing is hidden, and what is needed can be read.
    assert found[Task.MASKING] == Scores(ids, clusters, values, (values, (1.0, 1.0, 1.0)))


def test_one_detection_run_serves_every_strategy_and_the_one_told_gold_is_marked(
    runs: Path, dataset: Dataset
) -> None:
    store_run(runs, dataset, "detection", {"s1": ANN, "s2": BO})
    for strategy in ("naive", "naive-choice"):
        store_run(runs, dataset, strategy, {"s1": NONE, "s2": NONE})

    assert [(key, row.oracle) for key, row in rows(runs).items()] == [
        (("detection", Task.DETECTION), False),
        (("naive", Task.QUERY_RELATED), False),
        (("naive", Task.MASKING), False),
        (("naive-choice", Task.QUERY_RELATED), True),
        (("naive-choice", Task.MASKING), True),
    ]


@pytest.mark.parametrize("other", ["model", "dataset", "folder"])
def test_detection_of_anything_else_composes_nothing(
    runs: Path, dataset: Dataset, tmp_path: Path, other: str
) -> None:
    elsewhere = tiny_dataset(tmp_path / "other.jsonl")
    store_run(
        runs.parent / "reference" if other == "folder" else runs,
        elsewhere if other == "dataset" else dataset,
        "detection",
        {"s1": ANN, "s2": BO},
        model="fake/two" if other == "model" else "fake/one",
    )
    store_run(runs, dataset, "naive", {"s1": NONE, "s2": NONE})

    assert Task.MASKING not in {row.task for row in collect(runs.parent).rows}


def test_masking_that_lacks_only_a_setting_is_left_out_with_the_reason(
    runs: Path, dataset: Dataset
) -> None:
    settings = {"onnxruntime": "1.32.0", "seed": 1}
    store_run(runs, dataset, "detection", {"s1": ANN}, settings=settings)
    for strategy, version in (("naive", "1.31.1"), ("self-cot", "1.32.0")):
        settings = {"onnxruntime": version, "seed": 1}
        store_run(runs, dataset, strategy, {"s1": NONE}, settings=settings)

    (reason,) = collect(runs.parent).left_out
    assert reason == (
        f"masking of fake/one, naive on {dataset.source}: the detection was run with other "
        "settings (onnxruntime 1.32.0, not 1.31.1); run both again"
    )


def test_every_reference_run_of_queries_has_the_detection_for_masking(tmp_path: Path) -> None:
    (tmp_path / "reference").symlink_to(REPOSITORY / "results/reference")

    found = read_runs(tmp_path)

    answers = [run for run in found.runs if run.task is Task.QUERY_RELATED]
    assert found.left_out == ()
    assert answers
    assert [run.manifest for run in answers if run.detection is None] == []


def test_who_received_the_text_of_recorded_answers_is_unknown(runs: Path, dataset: Dataset) -> None:
    store_run(runs, dataset, "detection", {"s1": ANN}, model="replay/answers")

    assert [row.unmasked_text_to for row in rows(runs).values()] == [UNKNOWN_RECIPIENT]


def test_masking_was_sent_to_whoever_was_sent_either_question(runs: Path, dataset: Dataset) -> None:
    away = "fake (https://api.example.org/v1)"
    store_run(runs, dataset, "detection", {"s1": ANN}, unmasked_text_to=UNKNOWN_RECIPIENT)
    store_run(runs, dataset, "naive", {"s1": NONE}, unmasked_text_to=away)
    store_run(runs, dataset, "detection", {"s1": ANN}, model="b", unmasked_text_to=away)
    store_run(runs, dataset, "self-cot", {"s1": NONE}, model="b", unmasked_text_to=away)

    found = {(row.strategy, row.task): row for row in collect(runs.parent).rows}

    assert found["naive", Task.QUERY_RELATED].unmasked_text_to == away
    assert found["naive", Task.MASKING].unmasked_text_to == f"unknown, {away}"
    assert found["self-cot", Task.MASKING].unmasked_text_to == away


SCHEMA = {"output": "schema"}


@pytest.mark.parametrize(
    ("strategy", "answers", "scored", "rates"),
    [
        # A failure of the model is scored, a failed call is not.
        (
            "naive",
            {"s1": "No idea, sorry.", "s2": FAILED},
            1,
            {Status.MALFORMED: 1 / 2, Status.INFRA_ERROR: 1 / 2},
        ),
        (
            "naive",
            {"s1": Failure(SKIPPED_BUDGET, ""), "s2": FAILED},
            0,
            {Status.SKIPPED_BUDGET: 1 / 2, Status.INFRA_ERROR: 1 / 2},
        ),
        # Shares are of the samples that were asked. An answer of text is no answer by schema.
        ("naive+schema", {"s1": AGE}, 1, {Status.MALFORMED: 1}),
    ],
)
def test_samples_without_an_answer_are_counted_by_their_status(
    runs: Path,
    dataset: Dataset,
    strategy: str,
    answers: dict[str, Any],
    scored: int,
    rates: dict[Status, float],
) -> None:
    settings = SCHEMA if strategy.endswith("schema") else {}
    store_run(runs, dataset, strategy, answers, settings=settings)

    row = rows(runs)[strategy, Task.QUERY_RELATED]

    assert (row.scored, row.gold, row.complete) == (scored, 2, False)
    assert row.headline == (0.0 if scored else None)
    assert row.rates == dict.fromkeys(Status, 0) | rates


VOTE = {"temperature": 0.7, "votes": 3}


def test_the_majority_of_the_draws_is_the_answer(runs: Path, dataset: Dataset) -> None:
    both = '### Answer: ["32", "Ann Lee"]'
    draws = {"s1": [both, AGE, NONE], "s2": ["", NONE, '### Answer: ["40"]']}
    store_run(runs, dataset, "self-consistency-vote", draws, settings=VOTE)

    row = rows(runs)["self-consistency-vote", Task.QUERY_RELATED]

    # 32 alone has more than half of three; 40 has half of the two draws that can be read.
    assert row.metrics["precision"] == row.metrics["recall"] == 1 / 2
    assert "|returned:one|" in row.signature
    assert "|temperature:0.7|votes:3|" in row.signature


def test_masking_by_a_vote_takes_the_detection_of_the_same_model(
    runs: Path, dataset: Dataset
) -> None:
    store_run(runs, dataset, "detection", {"s1": ANN, "s2": BO})
    draws = {"s1": [AGE] * 3, "s2": ['### Answer: ["40"]'] * 3}
    store_run(runs, dataset, "self-consistency-vote", draws, settings=VOTE)

    masking = rows(runs)["self-consistency-vote", Task.MASKING]

    assert masking.headline == 1.0
    assert "|detection.temperature:0.0|" in masking.signature


@pytest.mark.parametrize("endpoint", ["http://b", None])
def test_a_vote_takes_no_detection_of_another_endpoint(
    endpoint: str | None, runs: Path, dataset: Dataset
) -> None:
    store_run(runs, dataset, "detection", {"s1": ANN}, settings={"endpoint": endpoint})
    store_run(runs, dataset, "self-consistency-vote", {"s1": ["[]"]}, settings=VOTE)

    found = collect(runs.parent)

    assert Task.MASKING not in {row.task for row in found.rows}
    (reason,) = found.left_out
    assert f"(endpoint {endpoint}, not absent)" in reason


def test_both_outputs_live_beside_each_other_and_are_not_mixed(
    runs: Path, dataset: Dataset
) -> None:
    ann_by_schema = (
        '{"subjects": [{"entities":'
        ' [{"text": "Ann Lee", "type": "PER"}, {"text": "32", "type": "DEM"}]}]}'
    )
    store_run(runs, dataset, "detection", {"s1": BO})
    store_run(runs, dataset, "naive", {"s1": AGE})
    store_run(runs, dataset, "detection+schema", {"s1": ann_by_schema}, settings=SCHEMA)
    store_run(runs, dataset, "naive+schema", {"s1": '{"answer": ["32"]}'}, settings=SCHEMA)

    found = rows(runs)

    assert {key: row.headline for key, row in found.items()} == {
        ("detection", Task.DETECTION): 0.0,
        ("detection+schema", Task.DETECTION): 1.0,
        ("naive", Task.QUERY_RELATED): 1.0,
        ("naive", Task.MASKING): 0.0,
        ("naive+schema", Task.QUERY_RELATED): 1.0,
        ("naive+schema", Task.MASKING): 1.0,
    }
    assert "|output:schema|" in found["naive+schema", Task.MASKING].signature


def test_a_sample_with_half_an_answer_is_not_masked(runs: Path, dataset: Dataset) -> None:
    store_run(runs, dataset, "detection", {"s1": ANN})
    store_run(runs, dataset, "naive", {"s1": AGE, "s2": NONE})

    masking = rows(runs)["naive", Task.MASKING]

    assert (masking.scored, masking.gold) == (1, 2)


def test_an_answer_after_a_failed_call_counts(runs: Path, dataset: Dataset) -> None:
    files = store_run(runs, dataset, "naive", {"s1": FAILED, "s2": NONE})
    again = store_run(runs, dataset, "self-cot", {"s1": NONE})
    with files.responses.open("ab") as file:
        file.write(again.responses.read_bytes())

    assert rows(runs)["naive", Task.QUERY_RELATED].scored == 2


def test_a_run_that_has_just_begun_has_scored_nothing(runs: Path, dataset: Dataset) -> None:
    store_run(runs, dataset, "detection", {}).responses.unlink()

    row = rows(runs)["detection", Task.DETECTION]

    assert (row.scored, row.gold, row.headline) == (0, 2, None)


def test_without_queries_there_is_only_detection(runs: Path, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "none.jsonl", [sample_record("s1", query=None, related=[])])
    dataset = load_dataset(str(path))
    store_run(runs, dataset, "detection", {"s1": ANN})
    store_run(runs, dataset, "naive", {})

    assert list(rows(runs)) == [("detection", Task.DETECTION)]


@pytest.mark.parametrize(
    ("folder", "remedies"),
    [
        (
            "runs",
            (
                "run again: it is written again, and the answers next to it are used again",
                "run again: the line is moved away, and only its sample is asked again",
            ),
        ),
        ("reference", ("restore the file from where the results came",) * 2),
    ],
)
def test_what_cannot_be_read_is_left_out_with_what_to_do(
    runs: Path, dataset: Dataset, folder: str, remedies: tuple[str, str]
) -> None:
    root = runs.parent / folder
    lines = store_run(root, dataset, "detection", {"s1": ANN, "s2": ANN}).responses
    lines.write_bytes(b"{}\n" + lines.read_bytes().splitlines(keepends=True)[1])
    manifest = store_run(root, dataset, "naive", {"s1": AGE}).manifest
    manifest.write_text("{}")

    found = collect(runs.parent)

    of_manifest, of_line = remedies
    assert found.left_out == (
        f"{manifest}: no manifest of a run: record: 'system' is missing; {of_manifest}",
        f"{lines}:1: record: 'id' is missing; {of_line}",
    )
    # The sample of a broken line lacks an answer.
    assert [(row.task, row.scored, row.gold) for row in found.rows] == [(Task.DETECTION, 1, 2)]
