from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.capid import read_capid
from pii_bench.errors import InputFileError
from pii_bench.evaluation import evaluate
from pii_bench.outcome import Status
from pii_bench.predictions.capid_outputs import CapidOutputs, read_capid_outputs
from pii_bench.predictions.file import read_predictions, write_predictions
from pii_bench.predictions.prediction import Prediction
from pii_bench.tasks import Task
from tests.builders import make_sample, write_lines

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = [
    make_sample("s1"),
    make_sample("s2", query="Am I tall?"),
    make_sample("s3", query=None, related=[]),
]
CONTEXT = "Ann Lee is 32."


def line(question: str | None = "Am I old?", **parsed: str) -> dict[str, Any]:
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


def test_an_answer_that_was_never_parsed_is_malformed(tmp_path: Path) -> None:
    found = read(tmp_path, line() | {"parsed": None})

    assert found.predictions["s1"] == Prediction(Status.MALFORMED)


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (line("Am I tall?"), "a second answer for 's2'"),
        (line() | {"context": 1}, "record: 'context' must be a string, not a whole number"),
        (line() | {"parsed": ["Ann"]}, "record: 'parsed' must be an object, not a list"),
        (
            line() | {"parsed": {"Ann": {"type": "name"}}},
            "phrase 1 of 'parsed' lacks a type or a relevance",
        ),
        (
            line() | {"parsed": {"Ann": {"type": "name", "relevance": "yes"}}},
            "phrase 1 of 'parsed' lacks a type or a relevance",
        ),
    ],
)
def test_a_broken_line_is_named_and_its_text_is_not_told(
    tmp_path: Path, record: object, what: str
) -> None:
    with pytest.raises(InputFileError) as caught:
        read(tmp_path, line("Am I tall?"), record)

    assert str(caught.value) == f"{tmp_path / 'outputs.jsonl'}:2: {what}"


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
    for task in Task:
        evaluation = evaluate(task, samples, found.predictions)
        mean = evaluation.macro("rouge_l")
        assert (evaluation.gold, len(evaluation.scores)) == (200, 200 - unanswered)
        assert mean is not None
        assert 0 < mean.f1 < 1
