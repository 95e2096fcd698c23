from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import InputFileError
from pii_bench.files import write_whole
from pii_bench.systems.predictions import (
    Prediction,
    PredictionsFile,
    names_types,
    read_predictions,
    to_text,
)
from pii_bench.tasks import Status, Task
from tests.builders import make_sample, write_lines

if TYPE_CHECKING:
    from pathlib import Path


STATUSES = (
    "ok, repaired, malformed, truncated, empty, refused, filtered, infra_error, skipped_budget"
)
FULL: dict[str, Any] = {
    "id": "s1",
    "subjects": [[{"text": "Ann Lee", "type": "PER"}], []],
    "related": ["32"],
    "status": "ok",
}


def read(folder: Path, *records: object, ids: list[str] | None = None) -> dict[str, Prediction]:
    samples = [make_sample(each) for each in ids or ["s1"]]
    return dict(read_predictions(write_lines(folder / "answers.jsonl", records), samples))


@pytest.mark.parametrize(
    ("record", "prediction"),
    [
        (FULL, Prediction(Status.OK, subjects=((("Ann Lee", "PER"),), ()), related=("32",))),
        ({"id": "s1", "related": []}, Prediction(Status.OK, related=())),
        (FULL | {"subjects": None}, Prediction(Status.OK, related=("32",))),
        # Other keys are allowed.
        (
            {"id": "s1", "related": ["32"], "model": "m", "seconds": 2},
            Prediction(Status.OK, related=("32",)),
        ),
    ],
)
def test_a_line_is_read(tmp_path: Path, record: dict[str, Any], prediction: Prediction) -> None:
    assert read(tmp_path, record) == {"s1": prediction}


@pytest.mark.parametrize("status", [s.value for s in Status if not s.answered])
def test_the_parts_of_a_failed_prediction_are_ignored(tmp_path: Path, status: str) -> None:
    assert read(tmp_path, FULL | {"status": status})["s1"] == Prediction(Status(status))
    assert read(tmp_path, {"id": "s1", "status": status})["s1"] == Prediction(Status(status))


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"related": []}, "record: 'id' is missing"),
        ({"id": "s7", "related": []}, "the dataset has no sample 's7'"),
        ({"id": "s0", "related": []}, "id 's0' is already on line 1"),
        (
            {"id": "s1", "relatd": ["32"]},
            "prediction 's1': unknown key 'relatd'; did you mean 'related'?",
        ),
        (
            {"id": "s1"},
            "prediction 's1': has neither 'subjects' nor 'related' nor 'rewritten' (status 'ok')",
        ),
        (
            FULL | {"status": "okay"},
            f"prediction 's1': unknown status 'okay'; did you mean 'ok'? (allowed: {STATUSES})",
        ),
        (FULL | {"related": [32]}, "prediction 's1': 'related' must be a list of strings"),
        (
            FULL | {"subjects": [{"text": "Ann", "type": "PER"}]},
            "prediction 's1', subjects[0] must be a list of entities",
        ),
        (
            FULL | {"subjects": [["Ann"]]},
            "prediction 's1', subjects[0]: entities[0] must be an object, not a string",
        ),
        (
            FULL | {"subjects": [[], [{"text": "Ann"}]]},
            "prediction 's1', subjects[1]: 'type' is missing",
        ),
        ({"id": "s1", "related": ["32"]}, "prediction 's1' has no 'subjects', but 's0' has"),
        ({"id": "s1", "subjects": []}, "prediction 's1' has no 'related', but 's0' has"),
    ],
)
def test_an_error_gives_the_line_and_not_its_text(
    tmp_path: Path, record: object, what: str
) -> None:
    with pytest.raises(InputFileError) as caught:
        read(tmp_path, FULL | {"id": "s0"}, record, ids=["s0", "s1"])

    assert str(caught.value) == f"{tmp_path / 'answers.jsonl'}:2: {what}"


def test_a_missing_sample_is_an_error(tmp_path: Path) -> None:
    hint = "`pii-bench score --partial` scores the samples of the file"
    for ids, missing in ((["s1", "s2"], "'s2'"), (["s0", "s1", "s2", "s3"], "'s0' and 2 more")):
        with pytest.raises(InputFileError) as caught:
            read(tmp_path, FULL, ids=ids)

        what = f"no prediction for sample {missing}; {hint}"
        assert str(caught.value) == f"{tmp_path / 'answers.jsonl'}: {what}"


@pytest.mark.parametrize(
    ("answer", "tasks"),
    [
        ({"subjects": []}, [Task.DETECTION]),
        ({"related": [], "status": "repaired"}, [Task.QUERY_RELATED]),
        ({"subjects": [], "related": []}, [Task.DETECTION, Task.QUERY_RELATED, Task.MASKING]),
        ({"rewritten": "She."}, [Task.REWRITE]),
        ({"subjects": [], "related": [], "rewritten": "She."}, list(Task)),
    ],
)
def test_the_tasks_follow_from_the_answered_predictions(
    tmp_path: Path, answer: dict[str, Any], tasks: list[Task]
) -> None:
    lines = [{"id": "s0", "status": "infra_error"}, {"id": "s1", **answer}]
    path = write_lines(tmp_path / "answers.jsonl", lines)

    assert read_predictions(path, [make_sample("s0"), make_sample("s1")]).tasks == tasks


@pytest.mark.parametrize(
    ("changes", "tasks"), [({}, list(Task)), ({"query": None, "related": []}, [Task.DETECTION])]
)
def test_a_file_without_answers_has_all_tasks_of_the_dataset(
    tmp_path: Path, changes: dict[str, Any], tasks: list[Task]
) -> None:
    path = write_lines(tmp_path / "answers.jsonl", [{"id": "s1", "status": "refused"}])

    assert read_predictions(path, [make_sample("s1", **changes)]).tasks == tasks


def test_a_sample_without_a_query_needs_only_subjects(tmp_path: Path) -> None:
    lines = [{"id": "s0", "subjects": []}, FULL]
    path = write_lines(tmp_path / "answers.jsonl", lines)
    samples = [make_sample("s0", query=None, related=[]), make_sample("s1")]

    tasks = read_predictions(path, samples).tasks

    assert tasks == [Task.DETECTION, Task.QUERY_RELATED, Task.MASKING]


def test_a_dataset_without_queries_has_only_detection(tmp_path: Path) -> None:
    unasked = make_sample("s1", query=None, related=[])
    path = write_lines(tmp_path / "answers.jsonl", [FULL])

    assert read_predictions(path, [unasked]).tasks == [Task.DETECTION]

    path = write_lines(tmp_path / "answers.jsonl", [{"id": "s1", "related": []}])
    with pytest.raises(InputFileError, match=r"jsonl: no line answers a task of the dataset$"):
        read_predictions(path, [unasked])


def test_all_bad_lines_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputFileError) as caught:
        read(tmp_path, FULL | {"id": "s9"}, FULL, FULL, {"id": "s2", "status": "fine"})

    assert str(caught.value) == (
        f"{tmp_path / 'answers.jsonl'}: 3 lines cannot be read\n"
        "  line 1: the dataset has no sample 's9'\n"
        "  line 3: id 's1' is already on line 2\n"
        f"  line 4: prediction 's2': unknown status 'fine' (allowed: {STATUSES})"
    )


def test_a_line_that_changes_after_opening_is_an_error(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "answers.jsonl", [FULL])
    file = PredictionsFile(path, {"s1": True})
    path.write_text("{")

    with pytest.raises(InputFileError, match=r"answers\.jsonl:1: not valid JSON"):
        file["s1"]


@pytest.mark.parametrize(
    ("types", "named"), [([], True), (["PER"], True), ([""], False), (["", "PER"], True)]
)
def test_types_are_named_if_any_entity_has_one_or_there_are_none(
    types: list[str], named: bool
) -> None:
    subjects = tuple((("Ann", pii_type),) for pii_type in types)

    assert names_types({"s1": Prediction(Status.OK, subjects=subjects)}) is named


def test_an_entity_without_a_type_is_stored_with_null(tmp_path: Path) -> None:
    untyped = FULL | {"subjects": [[{"text": "Ann Lee", "type": None}]]}
    found = read(tmp_path, untyped)
    assert found["s1"].subjects == ((("Ann Lee", ""),),)

    write_whole(tmp_path / "written.jsonl", to_text(found))
    assert '{"text": "Ann Lee", "type": null}' in (tmp_path / "written.jsonl").read_text()


def test_a_file_without_predictions_has_no_task(tmp_path: Path) -> None:
    file = PredictionsFile(write_lines(tmp_path / "answers.jsonl", []), {"s1": True})

    with pytest.raises(InputFileError, match=r"jsonl: no line answers a task of the dataset$"):
        file.require(partial=True)


# Half a surrogate pair included.
TEXTS = st.text(st.characters() | st.just("\ud83d"))
ENTITIES = st.lists(st.tuples(TEXTS, st.text(max_size=4)), max_size=2).map(tuple)
PARTS = {
    "subjects": st.lists(ENTITIES, max_size=2).map(tuple),
    "related": st.lists(TEXTS, max_size=2).map(tuple),
    "rewritten": TEXTS,
}


def answered(parts: set[str]) -> st.SearchStrategy[Prediction]:
    status = st.sampled_from([Status.OK, Status.REPAIRED])
    return st.builds(Prediction, status, **{part: PARTS[part] for part in parts})


failures = st.sampled_from([s for s in Status if not s.answered]).map(Prediction)
files = st.sets(st.sampled_from([*PARTS]), min_size=1).flatmap(
    lambda parts: st.dictionaries(st.text(max_size=3), answered(parts) | failures, max_size=3)
)


@given(files)
def test_written_predictions_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, predictions: dict[str, Prediction]
) -> None:
    path = tmp_path_factory.mktemp("predictions") / "answers.jsonl"
    write_whole(path, to_text(predictions))

    assert PredictionsFile(path, dict.fromkeys(predictions, True)) == predictions


def test_a_rewritten_text_is_not_in_the_repr() -> None:
    assert "tenant" not in repr(Prediction(Status.OK, rewritten="The tenant is 32."))
