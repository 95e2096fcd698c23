from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.robustness import robustness
from pii_bench.datasets.sample import Related
from pii_bench.ranking.rows import Source
from pii_bench.tasks import Task
from tests.analysis.evaluated import (
    FAILED,
    answer,
    asked,
    detected,
    evaluated,
    perturbed,
    run_name,
)

if TYPE_CHECKING:
    from pii_bench.analysis.runs import EvaluatedRun
    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.predictions import Prediction

# Ann Lee, 32, of Halifax; the query needs the age.
ORIGINALS = [asked("one", "32"), asked("two", "32")]


def in_small_letters(sample: Sample, kind: str = "lower-case") -> Sample:
    subject = sample.subjects[0]
    entities = tuple(replace(each, text=each.text.lower()) for each in subject.entities)
    return replace(
        perturbed(sample, kind),
        description=sample.description.lower(),
        subjects=(replace(subject, entities=entities),),
        related=tuple(Related(each.subject, each.text.lower()) for each in sample.related),
    )


VERSIONS = [in_small_letters(sample) for sample in ORIGINALS]


def run(
    samples: list[Sample],
    *answers: Prediction,
    task: Task = Task.QUERY_RELATED,
    dataset: str = "single",
    source: Source = Source.RUN,
) -> EvaluatedRun:
    found = {sample.id: each for sample, each in zip(samples, answers, strict=True)}
    return evaluated(run_name(dataset, task=task, source=source), samples, found)


def test_the_drop_of_each_kind_is_from_the_same_samples_as_they_were() -> None:
    both = [*VERSIONS, in_small_letters(ORIGINALS[1], "ocr")]
    before = run(ORIGINALS, answer("32"), answer("32"))
    after = run(both, answer("32"), answer("halifax"), answer("32"), dataset="small")

    found, other = robustness([before, after])

    assert (other.kind, other.samples, other.value) == ("ocr", 1, 1.0)
    assert found.run == after.name
    assert (found.kind, found.samples) == ("lower-case", 2)
    assert (found.original, found.value, found.drop) == (1.0, 0.5, 0.5)
    assert (found.drop_low, found.drop_high) == (0.0, 1.0)
    assert (found.consistency, found.consistency_low, found.consistency_high) == (0.5, 0.0, 1.0)


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (answer("Halifax"), answer("halifax"), 1.0),
        (answer("Halifax"), answer("Halifax"), 0.0),
        (answer("Halifax"), answer("halifax", "32"), 0.0),
        (answer("York"), answer("hull"), 1.0),
        (answer("York"), answer(), 0.0),
        (answer(), answer(), 1.0),
        (FAILED, answer(), 0.0),
        (FAILED, FAILED, 1.0),
    ],
)
def test_an_answer_is_the_same_where_it_names_the_same_entities(
    before: Prediction, after: Prediction, same: float
) -> None:
    runs = [run(ORIGINALS, before, before), run(VERSIONS, after, after, dataset="small")]

    assert robustness(runs)[0].consistency == same


@pytest.mark.parametrize(("kind", "same"), [("LOC", 1.0), ("ORG", 0.0)])
def test_a_detection_says_the_same_types(kind: str, same: float) -> None:
    one, other = detected({"Halifax": "LOC"}), detected({"halifax": kind})
    runs = [
        run(ORIGINALS, one, one, task=Task.DETECTION),
        run(VERSIONS, other, other, task=Task.DETECTION, dataset="small"),
    ]

    assert [(each.metric, each.consistency) for each in robustness(runs)] == [
        ("strict_f1", same),
        ("ent_f1", same),
    ]


def test_of_masking_what_is_masked_is_the_same() -> None:
    people = ({"Ann Lee": "PER", "32": "DEM"},)
    small = ({"ann lee": "PER", "32": "DEM"},)
    before = answer("32", subjects=detected(*people).subjects)
    after = answer(subjects=detected(*small).subjects)
    runs = [
        run(ORIGINALS, before, before, task=Task.MASKING),
        run(VERSIONS, replace(after, related=("32",)), after, task=Task.MASKING, dataset="small"),
    ]

    found = robustness(runs)

    assert [each.metric for each in found] == ["h", "f1"]
    assert [each.consistency for each in found] == [0.5, 0.5]
    assert found[0].drop > 0


def test_the_original_of_the_same_place_is_taken() -> None:
    reference = run(ORIGINALS, answer(), answer(), source=Source.REFERENCE)
    own = run(ORIGINALS, answer("32"), answer("32"))
    after = run(VERSIONS, answer("32"), answer("32"), dataset="small")

    assert robustness([reference, after])[0].original == 0.0
    assert robustness([reference, own, after])[0].original == 1.0


def test_what_was_not_run_as_it_was_has_no_drop() -> None:
    after = run(VERSIONS, answer("32"), answer("32"), dataset="small")
    other = run(ORIGINALS, answer("32"), answer("32"), dataset="multi")
    stopped = replace(run(ORIGINALS[:1], answer("32")), samples=tuple(ORIGINALS))

    assert robustness([after, other]) == []
    assert [each.samples for each in robustness([after, stopped])] == [1]
