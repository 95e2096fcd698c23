from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.foreign import read_capid
from pii_bench.errors import InputFileError
from pii_bench.files import write_whole
from pii_bench.runs.capid_outputs import CapidOutputs, read_capid_outputs
from pii_bench.runs.evaluation import evaluate
from pii_bench.systems.predictions import Prediction, read_predictions, to_text
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
    """Return an answer to a sample; the keywords are `phrase="type relevance"`."""
    labels = {phrase.replace("_", " "): label.split() for phrase, label in parsed.items()}
    return {
        "context": CONTEXT,
        "question": question,
        "parsed": {phrase: {"type": t, "relevance": r} for phrase, (t, r) in labels.items()},
    }


def read(folder: Path, *records: object) -> CapidOutputs:
    return read_capid_outputs(write_lines(folder / "outputs.jsonl", records), SAMPLES)


def test_lines_are_joined_on_context_and_question(tmp_path: Path) -> None:
    outputs = read(
        tmp_path,
        line(None, Ann_Lee="name 0"),
        line("Am I tall?"),
        line("Am I old?", Ann_Lee="name 0", thirty="age 1"),
    )

    assert outputs == CapidOutputs(
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


def test_unanswered_samples_and_answers_to_unknown_samples_are_listed(tmp_path: Path) -> None:
    elsewhere = line() | {"context": "Another text."}

    outputs = read(tmp_path, elsewhere, line("Am I tall?"), line("Why?"))

    assert outputs.strangers == (1, 3)
    assert outputs.unanswered == ("s1", "s3")
    # In the order of the samples.
    assert [(name, each.status) for name, each in outputs.predictions.items()] == [
        ("s1", Status.INFRA_ERROR),
        ("s2", Status.OK),
        ("s3", Status.INFRA_ERROR),
    ]


@pytest.mark.parametrize(
    ("capid_type", "relevance", "pii_type"),
    [
        ("Age", "1", "DEM"),
        ("Age", "high", "DEM"),
        ("Age", "High", "DEM"),
        ("Age", 1, "DEM"),
        ("person", "1", "PERSON"),
        (None, "1", ""),
    ],
)
def test_relevance_has_old_and_new_values_and_an_unknown_type_is_kept(
    tmp_path: Path, capid_type: str | None, relevance: object, pii_type: str
) -> None:
    label = {"type": capid_type, "relevance": relevance}
    outputs = read(tmp_path, line() | {"parsed": {"32": label}})

    assert outputs.predictions["s1"] == Prediction(
        Status.OK, subjects=((("32", pii_type),),), related=("32",)
    )


ANN = {"type": "name", "relevance": "0"}
OUTPUT = (
    'Sure: {"Ann Lee": {"type": "name", "relevance": "1"}}\n\n### Input: {"x": {"type": "age"}}'
)


# The type of Ann Lee, and whether the query needs her name.
@pytest.mark.parametrize(
    ("answer", "pii_type", "needed"),
    [
        ({"parsed": {"Ann Lee": {"type": "name"}}}, "PER", False),
        ({"parsed": {"Ann Lee": {"type": "name", "relevance": "yes"}}}, "PER", False),
        ({"parsed": {"Ann Lee": {"type": "name", "relevance": True}}}, "PER", False),
        ({"parsed": {"Ann Lee": {"type": ["name"], "relevance": "1"}}}, "", True),
        ({"parsed": {"Ann Lee": {"relevance": "1"}}}, "", True),
        ({"parsed": {"Ann Lee": ANN, "32": "age"}}, "PER", False),
        ({"parsed": None, "decoded": OUTPUT}, "PER", True),
        ({"parsed": ["Ann Lee"], "generated_text": OUTPUT}, "PER", True),
        ({"parsed": "Ann Lee", "raw_model_output": OUTPUT}, "PER", True),
        (
            {"parsed": {"Ann Lee": "name"}, "decoded": "", "raw_model_output": OUTPUT},
            "PER",
            True,
        ),
        ({"parsed": None, "decoded": OUTPUT[:54] + ', "32": {"type": "a'}, "PER", True),
    ],
)
def test_an_answer_in_another_form_is_repaired(
    tmp_path: Path, answer: dict[str, object], pii_type: str, needed: bool
) -> None:
    outputs = read(tmp_path, line() | answer)

    assert outputs.predictions["s1"] == Prediction(
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
def test_an_answer_without_a_readable_phrase_is_a_failure_of_the_model(
    tmp_path: Path, answer: dict[str, object], status: Status
) -> None:
    outputs = read(tmp_path, line() | answer)

    assert outputs.predictions["s1"] == Prediction(status)


def test_typographic_quotes_equal_plain_ones_in_questions_and_phrases(tmp_path: Path) -> None:
    sample = make_sample(
        "s1", description="Ann’s 32.", query="Am I “old”?", subjects=[], related=[]
    )
    answer = line('Am I "old"?') | {
        "context": "Ann's 32.",
        "parsed": {"Ann's": {"type": "name", "relevance": "1"}},
    }
    path = write_lines(tmp_path / "outputs.jsonl", [answer])

    assert read_capid_outputs(path, [sample]) == CapidOutputs(
        {"s1": Prediction(Status.OK, subjects=((("Ann’s", "PER"),),), related=("Ann’s",))}, (), ()
    )


def test_samples_with_the_same_question_take_their_answers_in_order(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "outputs.jsonl", [line(Ann_Lee="name 1"), line()])

    outputs = read_capid_outputs(path, [make_sample("s1"), make_sample("s2")])

    assert outputs.predictions["s1"].related == ("Ann Lee",)
    assert outputs.predictions["s2"].related == ()


def test_all_bad_lines_are_reported_at_once_without_their_text(tmp_path: Path) -> None:
    with pytest.raises(InputFileError) as caught:
        read(tmp_path, line() | {"context": 1}, line(), line(), ["Ann"], line(["Am I?"]))

    assert str(caught.value) == (
        f"{tmp_path / 'outputs.jsonl'}: 4 lines cannot be read\n"
        "  line 1: record: 'context' must be a string, not a whole number\n"
        "  line 3: a second answer for 's1'\n"
        "  line 4: a line must be a JSON object, not a list\n"
        "  line 5: record: 'question' must be a string, not a list"
    )


@pytest.mark.parametrize(
    ("name", "strangers", "unanswered"),
    [("predicted_openai_test.jsonl", 0, 0), ("predicted_test_presidio.jsonl", 2, 2)],
)
def test_the_released_outputs_of_real_systems_can_be_scored(
    capid_folder: Path, tmp_path: Path, name: str, strangers: int, unanswered: int
) -> None:
    samples, _ = read_capid(capid_folder / "test.jsonl")
    outputs = read_capid_outputs(capid_folder / "outputs" / name, samples)
    statuses = Counter(prediction.status for prediction in outputs.predictions.values())
    path = tmp_path / "answers.jsonl"
    write_whole(path, to_text(outputs.predictions))

    assert len(outputs.predictions) == 200
    assert len(outputs.strangers) == strangers
    assert len(outputs.unanswered) == statuses[Status.INFRA_ERROR] == unanswered
    assert read_predictions(path, samples) == outputs.predictions
    for task in (Task.DETECTION, Task.QUERY_RELATED, Task.MASKING):
        evaluation = evaluate(task, samples, outputs.predictions)
        mean = evaluation.macro("rouge_l")
        assert (evaluation.gold, len(evaluation.scores)) == (200, 200 - unanswered)
        assert mean is not None
        assert 0 < mean.f1 < 1
