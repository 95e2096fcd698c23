from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.datasets.catalog import load_dataset
from pii_bench.prompting.parsing.detection import parse_detection
from pii_bench.prompting.parsing.texts import parse_related
from pii_bench.prompting.targets import (
    Target,
    detection_answer,
    examples_of,
    related_answer,
    rewritten,
)
from pii_bench.tasks import Status
from tests.builders import make_sample

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample

TEXT = "Ann Lee, 32, and Bo Ek, 41, both in York; Ann is at Acme."


def two_people(**changes: Any) -> Sample:
    def entity(text: str, kind: str, start: int) -> dict[str, Any]:
        return {"text": text, "type": kind, "category": None, "spans": [[start, start + len(text)]]}

    return make_sample(
        description=TEXT,
        query="Who is older?",
        subjects=[
            {
                "id": "A",
                "entities": [
                    entity("Acme", "ORG", 52),
                    entity("32", "DEM", 9),
                    entity("Ann Lee", "PER", 0),
                ],
            },
            {"id": "B", "entities": [entity("Bo Ek", "PER", 17), entity("41", "DEM", 24)]},
        ],
        related=[{"subject": "B", "text": "41"}, {"subject": "A", "text": "32"}],
        **changes,
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            detection_answer,
            (
                'Subject1{"Ann Lee": "PER", "32": "DEM", "Acme": "ORG"}\n'
                'Subject2{"Bo Ek": "PER", "41": "DEM"}'
            ),
        ),
        (related_answer, '### Answer: ["32", "41"]'),
        (
            rewritten,
            "<Full Name 1>, 32, and <Full Name 2>, 41, both in York; Ann is at <Organisation>.",
        ),
    ],
)
def test_answers_are_gold_in_the_order_of_the_text(answer: Any, expected: str) -> None:
    assert answer(two_people()) == expected


def test_what_has_no_pii_and_what_needs_none() -> None:
    without_pii = make_sample(subjects=[], related=[])

    assert detection_answer(without_pii) == "Subject1{}"
    assert related_answer(without_pii) == "### Answer: []"
    assert rewritten(without_pii) == "Ann Lee is 32."


@pytest.mark.parametrize("name", ["train-single", "train-multi"])
def test_every_answer_of_the_train_sets_is_read_without_repairs(name: str) -> None:
    for sample in load_dataset(name).samples:
        detected = parse_detection(detection_answer(sample))
        related = parse_related(related_answer(sample))

        assert (detected.status, related.status) == (Status.OK, Status.OK)
        assert detected.payload is not None
        assert [set(dict(subject)) for subject in detected.payload] == [
            {entity.text for entity in subject.entities} for subject in sample.subjects
        ]
        assert set(related.payload or ()) == {each.text for each in sample.related}


def test_a_text_that_several_samples_share_is_asked_once_without_a_query() -> None:
    samples = [two_people(), two_people(), make_sample("s3", query=None, related=[])]

    detection = [each.answer for each in examples_of(samples, Target.DETECTION)]
    related = [each.sample_id for each in examples_of(samples, Target.QUERY_RELATED)]

    assert detection == [detection_answer(samples[0]), detection_answer(samples[2])]
    assert related == ["s1"]


def test_the_prompt_is_the_one_of_a_run() -> None:
    (detection,) = examples_of([two_people()], Target.DETECTION)
    (related,) = examples_of([two_people()], Target.QUERY_RELATED)
    (rewriting,) = examples_of([two_people()], Target.REWRITING)

    assert detection.prompt[0].content.startswith("You mark up personal information")
    assert related.prompt[0].content.startswith("You decide what has to stay readable")
    for example in (related, rewriting):
        (message,) = example.prompt
        assert message.role == "user"
        assert f"Description:\n{TEXT}\n\nQuery:\nWho is older?\n\n" in message.content
