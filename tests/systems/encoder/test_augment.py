from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.systems.encoder.augment import ALL, augmented

TEXT = "Ann Lee, 32, earns $2,180 in York."


def sample(query: str = "Is her pay fair?") -> Sample:
    entities = [
        Entity("Ann Lee", "PER", "Full Name", ((0, 7),)),
        Entity("32", "DEM", "Age", ((9, 11),)),
        Entity("$2,180", "QUANTITY", "Monthly Income", ((19, 25),)),
        Entity("York", "LOC", "City/Region", ((29, 33),)),
    ]
    subject = Subject("A", tuple(entities))
    return Sample("s1", TEXT, query, (subject,), (Related("A", "$2,180"),))


def rewritten(kind: str, query: str = "Is her pay fair?") -> Sample:
    found = augmented(sample(query), [kind], Random(1))
    assert found is not None
    return found


def test_small_letters_are_of_the_whole_text() -> None:
    found = rewritten("small letters")

    assert found.description == TEXT.lower()
    assert [entity.text for entity in found.entities] == ["ann lee", "32", "$2,180", "york"]


def test_punctuation_goes_between_entities() -> None:
    assert rewritten("no punctuation").description == "Ann Lee 32 earns $2,180 in York."


@pytest.mark.parametrize("kind", ["typos", "scanned"])
def test_typing_and_scanning_change_names_in_each_mention_alike(kind: str) -> None:
    """At 3 % of the letters, a long name is hit in some of fifty draws."""
    name = "Maximiliane Wolkenstein-Oberhauser"
    text = f"{name} called. {name} is 32."
    spans = ((0, len(name)), (len(name) + 9, 2 * len(name) + 9))
    person = Subject("A", (Entity(name, "PER", "Full Name", spans),))
    told = set()
    for seed in range(50):
        found = augmented(Sample("s1", text, None, (person,), ()), [kind], Random(seed))
        assert found is not None
        (entity,) = found.entities
        assert {found.description[start:end] for start, end in entity.spans} == {entity.text}
        told.add(entity.text)
    assert name in told
    assert len(told) > 5


def test_the_query_is_rewritten_too() -> None:
    assert rewritten("small letters", "Is HER pay fair?").query == "is her pay fair?"


def test_other_values_keep_form_and_need() -> None:
    found = rewritten("values")

    name, age, income, city = [entity.text for entity in found.entities]
    assert name != "Ann Lee"
    assert age == "32"
    assert income.startswith("$2,")
    assert len(income) == len("$2,180")
    assert city != "York"
    assert found.related == (Related("A", income),)


def test_what_the_query_quotes_keeps_its_value() -> None:
    assert "York" in rewritten("values", "Is her pay fair in York?").description


def test_entities_that_overlap_cannot_be_put_together_again() -> None:
    inner = Entity("Lee", "PER", None, ((4, 7),))
    overlapping = Sample("s1", TEXT, None, (Subject("A", (*sample().entities, inner)),), related=())

    assert augmented(overlapping, ALL, Random(1)) is None


@given(st.integers(), st.sampled_from(load_dataset("demo").samples))
def test_annotations_are_carried_along(seed: int, original: Sample) -> None:
    found = augmented(original, ALL, Random(seed))

    assert found is not None
    assert len(found.related) == len(original.related)
    texts = {(subject.id, entity.text) for subject in found.subjects for entity in subject.entities}
    assert {(need.subject, need.text) for need in found.related} <= texts
    for entity in found.entities:
        assert {found.description[start:end] for start, end in entity.spans} == {entity.text}
