from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.foreign import read_capid
from pii_bench.errors import InputFileError
from pii_bench.runs.capid_outputs import CapidOutputs, read_capid_outputs
from pii_bench.runs.evaluation import evaluate
from pii_bench.systems.predictions import Prediction, read_predictions, write_predictions
from pii_bench.tasks import Status, Task
from tests.builders import make_sample, write_lines

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = [
    make_sample("s1"),
    make_sample("s2", query="Am I tall?"),
    make_sample("s3", query=None, related=[]),
]
CONTEXT = "Ann Lee is 32."


def line(question: object = "Am I old?", **parsed: str) -> dict[str, Any]:
    """An answer to one of the samples; `phrase="type relevance"`."""
    labels = {phrase.replace("_", " "): label.split() for phrase, label in parsed.items()}
    return {
        "context": CONTEXT,
        "question": question,
        "parsed": {phrase: {"type": t, "relevance": r} for phrase, (t, r) in labels.items()},
    }


def read(folder: Path, *records: object) -> CapidOutputs:
    return read_capid_outputs(write_lines(folder / "outputs.jsonl", records), SAMPLES)


def test_lines_join_on_context_and_question(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        line(None, Ann_Lee="name 0"),
        line("Am I tall?"),
        line("Am I old?", Ann_Lee="name 0", thirty="age 1"),
    )

    assert found == CapidOutputs(
        {
            "s1": Prediction(
                Status.OK,
                subjects=((("Ann Lee", "PER"), ("thirty", "DEM")),),
                related=("thirty",),
            ),
            "s2": Prediction(Status.OK, subjects=((),), related=()),
            "s3": Prediction(Status.OK, subjects=((("Ann Lee", "PER"),),), related=()),
        },
        unanswered=(),
        strangers=(),
    )


def test_samples_in_their_order_with_those_that_nobody_answered(tmp_path: Path) -> None:
    found = read(tmp_path, line("Am I tall?"))

    assert list(found.predictions) == ["s1", "s2", "s3"]
    assert found.unanswered == ("s1", "s3")
    assert found.predictions["s1"] == Prediction(Status.INFRA_ERROR)


def test_answers_to_no_sample_are_told_by_line(tmp_path: Path) -> None:
    elsewhere = line() | {"context": "Another text."}

    assert read(tmp_path, elsewhere, line(), line("Why?")).strangers == (1, 3)


def test_a_type_that_the_model_invented_stays(tmp_path: Path) -> None:
    found = read(tmp_path, line(Ann_Lee="person 0"))

    assert found.predictions["s1"].subjects == ((("Ann Lee", "PERSON"),),)


def test_a_type_of_null_names_none(tmp_path: Path) -> None:
    found = read(tmp_path, line() | {"parsed": {"Ann Lee": {"type": None, "relevance": "1"}}})

    assert found.predictions["s1"] == Prediction(
        Status.OK, subjects=((("Ann Lee", ""),),), related=("Ann Lee",)
    )


@pytest.mark.parametrize("relevance", ["1", "high", "High", 1])
def test_relevance_by_its_old_and_new_names(tmp_path: Path, relevance: object) -> None:
    found = read(tmp_path, line() | {"parsed": {"32": {"type": "Age", "relevance": relevance}}})

    assert found.predictions["s1"] == Prediction(
        Status.OK, subjects=((("32", "DEM"),),), related=("32",)
    )


ANN = {"type": "name", "relevance": "0"}
WRITTEN = (
    'Sure: {"Ann Lee": {"type": "name", "relevance": "1"}}\n\n### Input: {"x": {"type": "age"}}'
)


# What each holds of Ann Lee: her type, and whether she is needed.
@pytest.mark.parametrize(
    ("answer", "pii_type", "needed"),
    [
        ({"parsed": {"Ann Lee": {"type": "name"}}}, "PER", False),
        ({"parsed": {"Ann Lee": {"type": "name", "relevance": "yes"}}}, "PER", False),
        ({"parsed": {"Ann Lee": {"type": "name", "relevance": True}}}, "PER", False),
        ({"parsed": {"Ann Lee": {"type": ["name"], "relevance": "1"}}}, "", True),
        ({"parsed": {"Ann Lee": {"relevance": "1"}}}, "", True),
        ({"parsed": {"Ann Lee": ANN, "32": "age"}}, "PER", False),
        ({"parsed": None, "decoded": WRITTEN}, "PER", True),
        ({"parsed": ["Ann Lee"], "generated_text": WRITTEN}, "PER", True),
        ({"parsed": "Ann Lee", "raw_model_output": WRITTEN}, "PER", True),
        ({"parsed": {"Ann Lee": "name"}, "decoded": "", "raw_model_output": WRITTEN}, "PER", True),
        ({"parsed": None, "decoded": WRITTEN[:54] + ', "32": {"type": "a'}, "PER", True),
    ],
)
def test_an_answer_in_another_shape_is_repaired(
    tmp_path: Path, answer: dict[str, object], pii_type: str, needed: bool
) -> None:
    found = read(tmp_path, line() | answer)

    assert found.predictions["s1"] == Prediction(
        Status.REPAIRED,
        subjects=((("Ann Lee", pii_type),),),
        related=("Ann Lee",) if needed else (),
    )


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"parsed": None}, Status.MALFORMED),
        ({"parsed": []}, Status.MALFORMED),
        ({"parsed": "Ann Lee"}, Status.MALFORMED),
        ({"parsed": {"type": "name", "relevance": "1"}}, Status.MALFORMED),
        ({"parsed": {"Ann Lee": {}}}, Status.MALFORMED),
        ({"parsed": None, "decoded": "I see none."}, Status.MALFORMED),
        ({"parsed": None, "decoded": 12}, Status.MALFORMED),
        ({"parsed": None, "decoded": " \n", "generated_text": ""}, Status.EMPTY),
    ],
)
def test_an_answer_without_a_phrase_that_can_be_read_is_the_models_failure(
    tmp_path: Path, answer: dict[str, object], status: Status
) -> None:
    found = read(tmp_path, line() | answer)

    assert found.predictions["s1"] == Prediction(status)


def test_typographic_quotes_keep_no_line_and_no_phrase_apart(tmp_path: Path) -> None:
    sample = make_sample(
        "s1", description="Ann’s 32.", query="Am I “old”?", subjects=[], related=[]
    )
    answer = line('Am I "old"?') | {
        "context": "Ann's 32.",
        "parsed": {"Ann's": {"type": "name", "relevance": "1"}},
    }
    path = write_lines(tmp_path / "outputs.jsonl", [answer])

    found = read_capid_outputs(path, [sample])

    assert found == CapidOutputs(
        {"s1": Prediction(Status.OK, subjects=((("Ann’s", "PER"),),), related=("Ann’s",))}, (), ()
    )


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (line("Am I tall?"), "a second answer for 's2'"),
        (line() | {"context": 1}, "record: 'context' must be a string, not a whole number"),
        (line(["Am I?"]), "record: 'question' must be a string, not a list"),
    ],
)
def test_a_broken_line_is_named_and_its_text_is_not_told(
    tmp_path: Path, record: object, what: str
) -> None:
    with pytest.raises(InputFileError) as caught:
        read(tmp_path, line("Am I tall?"), record)

    assert str(caught.value) == f"{tmp_path / 'outputs.jsonl'}:2: {what}"


def test_samples_that_ask_the_same_take_their_answers_in_order(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "outputs.jsonl", [line(Ann_Lee="name 1"), line()])

    found = read_capid_outputs(path, [make_sample("s1"), make_sample("s2")])

    assert found.predictions["s1"].related == ("Ann Lee",)
    assert found.predictions["s2"].related == ()


def test_all_bad_lines_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputFileError) as caught:
        read(tmp_path, line() | {"context": 1}, line(), line(), ["Ann"])

    assert str(caught.value) == (
        f"{tmp_path / 'outputs.jsonl'}: 3 lines cannot be read\n"
        "  line 1: record: 'context' must be a string, not a whole number\n"
        "  line 3: a second answer for 's1'\n"
        "  line 4: a line must be a JSON object, not a list"
    )


@pytest.mark.parametrize(
    ("name", "strangers", "unanswered"),
    [("predicted_openai_test.jsonl", 0, 0), ("predicted_test_presidio.jsonl", 2, 2)],
)
def test_what_real_systems_answered(
    capid_folder: Path, tmp_path: Path, name: str, strangers: int, unanswered: int
) -> None:
    samples, _ = read_capid(capid_folder / "test.jsonl")
    found = read_capid_outputs(capid_folder / "outputs" / name, samples)
    statuses = Counter(prediction.status for prediction in found.predictions.values())
    path = tmp_path / "answers.jsonl"
    write_predictions(path, found.predictions)

    assert len(found.predictions) == 200
    assert len(found.strangers) == strangers
    assert len(found.unanswered) == statuses[Status.INFRA_ERROR] == unanswered
    assert read_predictions(path, [sample.id for sample in samples]) == found.predictions
    for task in (Task.DETECTION, Task.QUERY_RELATED, Task.MASKING):
        evaluation = evaluate(task, samples, found.predictions)
        mean = evaluation.macro("rouge_l")
        assert (evaluation.gold, len(evaluation.scores)) == (200, 200 - unanswered)
        assert mean is not None
        assert 0 < mean.f1 < 1
