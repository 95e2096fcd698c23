from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.runs.evaluation import evaluate
from pii_bench.runs.responses import compose
from pii_bench.scorer import PRF
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.base import THIS_MACHINE, FaultError
from pii_bench.systems.composed import (
    DetectedEntities,
    GoldEntities,
    GoldRelevance,
    PredictedRelevance,
    compose_systems,
)
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import PiiType
from tests.builders import make_sample
from tests.systems.fakes import NumbersNeeded, WordDetector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import System
    from pii_bench.systems.composed import EntitySource, RelevanceSource


def entities_by(detect: Callable[[str], Iterable[DetectedSpan]]) -> DetectedEntities:
    return DetectedEntities(SimpleNamespace(name="any", identity={}, types=(), detect=detect))


SAMPLE = make_sample()
NUMBERS = PredictedRelevance(NumbersNeeded())
DETECTED = DetectedEntities(WordDetector({"Ann": PiiType.PER, "32": PiiType.DEM}))


def answer(system: System, sample: Sample = SAMPLE) -> Prediction:
    prediction = asyncio.run(system.respond(sample))
    assert isinstance(prediction, Prediction)
    return prediction


def both(entities: EntitySource, relevance: RelevanceSource) -> tuple[System, System]:
    detection, related = compose_systems(entities, relevance)
    return detection, related


def test_detected_entities_form_one_subject_and_relevance_selects_among_them() -> None:
    detection, related = both(DETECTED, NUMBERS)

    assert answer(related).related == ("32",)
    assert answer(detection).subjects == ((("Ann", "PER"), ("32", "DEM")),)


def test_a_text_without_entities_gets_an_ok_answer() -> None:
    detection, related = both(entities_by(lambda _: []), NUMBERS)

    assert answer(detection).subjects == ((),)
    assert answer(related).related == ()
    assert answer(detection).status is Status.OK


def test_a_text_with_two_types_gets_the_first() -> None:
    sample = make_sample(
        description="May came in May.", subjects=[{"id": "A", "entities": []}], related=[]
    )
    spans = [DetectedSpan(0, 3, PiiType.PER), DetectedSpan(12, 15, PiiType.DATETIME)]

    (detection,) = compose_systems(entities_by(lambda _: spans))

    assert answer(detection, sample).subjects == ((("May", "PER"),),)


@pytest.mark.parametrize(
    ("span", "kept"),
    [
        ((0, 3), True),
        ((0, 14), True),
        # Python slices would silently clip these.
        ((0, 15), False),
        ((-4, 3), False),
        ((3, 3), False),
    ],
)
def test_a_span_outside_the_text_is_an_error(span: tuple[int, int], *, kept: bool) -> None:
    sample = make_sample(description="Ann Lee is 32.")
    source = entities_by(lambda _: [DetectedSpan(*span, PiiType.PER)])

    with nullcontext() if kept else pytest.raises(ValueError, match="in a text of 14 characters"):
        assert [each.start for each in source.entities(sample)] == [0]


@pytest.mark.parametrize(
    ("detect", "what"),
    [
        (lambda _: None, "returned NoneType from detect, not spans"),
        (lambda _: [(0, 3, "PER")], "returned tuple from detect, not DetectedSpan"),
        (lambda _: [slice(0, 3)], "returned slice from detect, not DetectedSpan"),
        (
            lambda _: [DetectedSpan(0.0, 3, PiiType.PER)],  # type: ignore[arg-type]
            "returned a span from detect whose offsets are no integers",
        ),
        (
            lambda _: [DetectedSpan(0, 3, ["PER"])],  # type: ignore[arg-type]
            "returned a span from detect whose type is no string",
        ),
    ],
)
def test_a_result_that_is_no_spans_is_an_error(detect: Any, what: str) -> None:
    with pytest.raises(FaultError, match=f"^{what}"):
        entities_by(detect).entities(make_sample())


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip))
def test_any_text_is_returned_unchanged(text: str) -> None:
    sample = make_sample(description=text, subjects=[{"id": "A", "entities": []}], related=[])
    everything = entities_by(lambda text: [DetectedSpan(0, len(text), PiiType.ORG)])

    detection, related = both(everything, PredictedRelevance(NumbersNeeded(threshold=0.0)))

    assert answer(detection, sample).subjects == (((text, "ORG"),),)
    assert answer(related, sample).related == (text,)
    assert answer(detection, sample).status is answer(related, sample).status is Status.OK


def test_gold_relevance_chooses_only_among_detected_entities() -> None:
    both_needed = make_sample(
        related=[{"subject": "A", "text": "32"}, {"subject": "A", "text": "Ann Lee"}]
    )

    _, related = both(DETECTED, GoldRelevance())

    assert answer(related, both_needed).related == ("32",)


def test_gold_with_gold_is_perfect_in_all_tasks() -> None:
    sample = make_sample()
    detection, related = both(GoldEntities(), GoldRelevance())
    found, needed = answer(detection, sample), answer(related, sample)

    for task, metric, prediction in [
        (Task.DETECTION, "entity", found),
        (Task.QUERY_RELATED, "exact", needed),
        (Task.MASKING, "exact", compose(found, needed)),
    ]:
        assert evaluate(task, [sample], {"s1": prediction}).macro(metric) == PRF(1.0, 1.0, 1.0)


def test_detection_does_not_depend_on_the_relevance_system() -> None:
    detection, related = both(DETECTED, NUMBERS)
    other_detection, other = both(
        DETECTED, PredictedRelevance(NumbersNeeded(identity={"weights": "r2"}))
    )

    assert detection.card == other_detection.card
    assert not detection.card.names_subjects
    assert detection.card.unmasked_text_to == related.card.unmasked_text_to == "unknown"
    assert related.card.settings == detection.card.settings == {"weights": "w1"}
    assert related.card.prompt_sha256 != other.card.prompt_sha256


OTHER_GOLD = make_sample(
    subjects=[{"id": "A", "entities": [{"text": "32", "type": "DEM"}]}], related=[]
)


@pytest.mark.parametrize(
    ("entities", "relevance", "changed", "moves"),
    [
        (DETECTED, NUMBERS, make_sample(query="And now?"), (False, True)),
        (DETECTED, NUMBERS, make_sample(description="Ann Lee is 32!"), (True, True)),
        (DETECTED, NUMBERS, make_sample("s2"), (False, False)),
        (DETECTED, NUMBERS, OTHER_GOLD, (False, False)),
        (DETECTED, GoldRelevance(), OTHER_GOLD, (False, True)),
        (GoldEntities(), NUMBERS, OTHER_GOLD, (True, True)),
        (DETECTED, GoldRelevance(), make_sample(query="And now?"), (False, False)),
    ],
)
def test_request_hashes_depend_only_on_inputs_of_the_parts(
    entities: EntitySource, relevance: RelevanceSource, changed: Sample, moves: tuple[bool, bool]
) -> None:
    systems = both(entities, relevance)

    before = [system.request_hash(make_sample()) for system in systems]
    after = [system.request_hash(changed) for system in systems]

    assert tuple(one != other for one, other in zip(before, after, strict=True)) == moves


def test_other_weights_change_the_request_hash() -> None:
    retrained = DetectedEntities(WordDetector({}, identity={"weights": "w2"}))

    for one, other in zip(both(DETECTED, NUMBERS), both(retrained, NUMBERS), strict=True):
        assert one.request_hash(make_sample()) != other.request_hash(make_sample())


@pytest.mark.parametrize(
    ("detector_recipient", "relevance_recipient", "recipients"),
    [
        (THIS_MACHINE, THIS_MACHINE, (THIS_MACHINE, THIS_MACHINE)),
        ("acme (https://a.example)", THIS_MACHINE, ("acme (https://a.example)",) * 2),
        (THIS_MACHINE, "acme (https://a.example)", (THIS_MACHINE, "acme (https://a.example)")),
        ("unknown", THIS_MACHINE, ("unknown", "unknown")),
        (THIS_MACHINE, "unknown", (THIS_MACHINE, "unknown")),
    ],
)
def test_a_card_names_the_recipients_of_both_parts(
    detector_recipient: str, relevance_recipient: str, recipients: tuple[str, str]
) -> None:
    systems = both(
        DetectedEntities(WordDetector({}), detector_recipient),
        PredictedRelevance(NumbersNeeded(), relevance_recipient),
    )

    assert tuple(system.card.unmasked_text_to for system in systems) == recipients


def test_a_description_is_detected_once_for_both_tasks() -> None:
    asked: list[str] = []

    def detect(text: str) -> Iterator[DetectedSpan]:
        asked.append(text)
        yield DetectedSpan(11, 13, PiiType.DEM)

    detection, related = both(entities_by(detect), NUMBERS)

    assert answer(detection).subjects == ((("32", "DEM"),),)
    assert answer(related).related == ("32",)
    assert asked == ["Ann Lee is 32."]
