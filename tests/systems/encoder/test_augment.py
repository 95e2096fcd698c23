from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.sample import Entity, Related, Sample, Subject
from pii_bench.errors import MissingExtraError
from pii_bench.systems.encoder import augment as module
from pii_bench.systems.encoder.augment import (
    DEFAULT,
    augmented,
    conversation,
    excerpt,
    excerpts,
    synonyms,
    with_synonyms,
)
from tests.builders import unlisted

if TYPE_CHECKING:
    from collections.abc import Iterator

DEMO = load_dataset("demo").samples

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


def assert_spans_hold(found: Sample) -> None:
    for entity in found.entities:
        assert entity.spans
        assert {found.description[start:end] for start, end in entity.spans} == {entity.text}


def rewritten(kind: str, query: str = "Is her pay fair?") -> Sample:
    found = augmented(sample(query), [kind], Random(1))
    assert found is not None
    return found


def test_small_letters_are_of_the_whole_text_and_of_the_query() -> None:
    found = rewritten("small letters", "Is HER pay fair?")

    assert (found.description, found.query) == (TEXT.lower(), "is her pay fair?")
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
    names = set()
    for seed in range(50):
        found = augmented(Sample("s1", text, None, (person,), ()), [kind], Random(seed))
        assert found is not None
        assert_spans_hold(found)
        (entity,) = found.entities
        names.add(entity.text)
    assert name in names
    assert len(names) > 5


def test_other_values_keep_form_and_need() -> None:
    found = rewritten("values")

    name, age, income, city = [entity.text for entity in found.entities]
    assert name != "Ann Lee"
    assert age == "32"
    assert income.startswith("$2,")
    assert len(income) == len("$2,180")
    assert city != "York"
    assert found.related == (Related("A", income),)
    # What the query quotes keeps its value.
    assert "York" in rewritten("values", "Is her pay fair in York?").description


def test_entities_that_overlap_cannot_be_put_together_again() -> None:
    inner = Entity("Lee", "PER", None, ((4, 7),))
    overlapping = Sample("s1", TEXT, None, (Subject("A", (*sample().entities, inner)),), related=())

    assert augmented(overlapping, DEFAULT, Random(1)) is None


@given(st.integers(), st.sampled_from(DEMO))
def test_annotations_are_carried_along(seed: int, original: Sample) -> None:
    found = augmented(original, DEFAULT, Random(seed))

    assert found is not None
    assert len(found.related) == len(original.related)
    texts = {(subject.id, entity.text) for subject in found.subjects for entity in subject.entities}
    assert {(need.subject, need.text) for need in found.related} <= texts
    assert_spans_hold(found)


@pytest.mark.parametrize("seed", range(20))
def test_a_conversation_needs_what_the_texts_need_that_are_asked_about(seed: int) -> None:
    samples = Random(seed).sample(DEMO, 3)
    talk = conversation(samples, Random(seed))

    assert_spans_hold(talk)
    asked = {int(need.subject[0]) for need in talk.related}
    assert all((samples[place].query or "") in (talk.query or "") for place in asked)
    assert {(need.subject[1:], need.text) for need in talk.related} == {
        (need.subject, need.text) for place in asked for need in samples[place].related
    }


def test_people_of_several_texts_stay_apart() -> None:
    talk = conversation(DEMO[:2], Random(1))

    assert [subject.id for subject in talk.subjects] == [
        f"{place}{subject.id}" for place in (0, 1) for subject in DEMO[place].subjects
    ]


def test_turns_keep_the_order_of_their_text() -> None:
    talk = conversation(DEMO[:3], Random(2))
    turns = talk.description.splitlines()

    for place, sample in enumerate(DEMO[:3], start=1):
        own = [turn.partition(": ")[2] for turn in turns if turn.startswith(f"[PER_{place}]: ")]
        places = [sample.description.find(turn.splitlines()[0]) for turn in own]
        assert own
        assert places == sorted(places)


SENTENCES = "Ann lives in Bonn. Bo is 32."
ANN = (Entity("Ann", "PER", spans=((0, 3),)), Entity("Bonn", "LOC", spans=((13, 17),)))
BO = (Entity("Bo", "PER", spans=((19, 21),)), Entity("32", "DEM", spans=((25, 27),)))
TWO = Sample(
    "s", SENTENCES, "How old is he?", (Subject("A", ANN), Subject("B", BO)), (Related("B", "32"),)
)


@pytest.mark.parametrize("sample", [TWO, unlisted(TWO)], ids=["with spans", "without"])
def test_an_excerpt_is_a_sentence_or_more_with_the_entities_within(sample: Sample) -> None:
    drawn = [excerpt(sample, Random(seed)) for seed in range(50)]
    found = {each.description: each for each in drawn}
    first, second = found["Ann lives in Bonn."], found["Bo is 32."]

    assert found.keys() == {first.description, second.description, SENTENCES}
    assert [entity.text for entity in second.entities] == ["Bo", "32"]
    assert [entity.spans for entity in second.entities] == [((0, 2),), ((6, 8),)]
    # The query stays only with all related entities.
    assert (second.query, second.related) == (TWO.query, TWO.related)
    assert (first.query, first.related) == (None, ())


@pytest.mark.parametrize("seed", range(20))
def test_an_excerpt_cuts_no_entity(seed: int) -> None:
    for sample in excerpts(DEMO, 5, Random(seed)):
        assert_spans_hold(sample)


def test_every_text_is_drawn_once_before_any_is_drawn_twice() -> None:
    found = excerpts(DEMO, len(DEMO) + 1, Random(3))

    assert [sample.id for sample in found[:-1]] == [sample.id for sample in DEMO]


DRAWN = """
from random import Random
from pii_bench.datasets.catalog import load_dataset
from pii_bench.systems.encoder.augment import DEFAULT, augmented, conversations, excerpts

chance = Random(1)
samples = load_dataset("demo").samples
for _ in range(20):
    for sample in samples:
        print(augmented(sample, DEFAULT, chance))
print(conversations(samples, 5, chance), excerpts(samples, 20, chance))
"""


def test_another_process_draws_the_same_samples() -> None:
    def drawn(hash_seed: str) -> str:
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", DRAWN]
        return subprocess.run(  # noqa: S603 -- our own interpreter and code
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert drawn("1") == drawn("2")


@dataclass(frozen=True)
class Sense:
    """A synset as WordNet has it."""

    kind: str
    names: tuple[str, ...]

    def pos(self) -> str:
        return self.kind

    def lemma_names(self) -> list[str]:
        return list(self.names)


class SmallWordNet:
    senses: ClassVar = {
        "quickly": [Sense("r", ("quickly", "rapidly", "chop-chop", "right_away"))],
        "glad": [Sense("a", ("glad", "happy")), Sense("s", ("beaming", "glad"))],
        "earns": [Sense("v", ("gain", "earn"))],
        "book": [Sense("n", ("book", "volume")), Sense("v", ("book", "reserve"))],
    }

    def synsets(self, word: str) -> list[Sense]:
        return self.senses.get(word, [])


@pytest.fixture(autouse=True)
def wordnet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    synonyms.cache_clear()
    monkeypatch.setattr(module, "_wordnet", SmallWordNet)
    yield
    synonyms.cache_clear()


def test_a_synonym_fits_in_the_place_of_the_word() -> None:
    # Single words in small letters; two kinds of adjective are one part of speech.
    assert synonyms("quickly") == ("rapidly",)
    assert synonyms("glad") == ("happy",)
    # Inflected, of two parts of speech, and unknown.
    assert synonyms("earns") == synonyms("book") == synonyms("zyxt") == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("She came quickly, glad.", "She came rapidly, happy."),
        ("Quickly!", "Quickly!"),
        ("a quickly-made bed", "a quickly-made bed"),
    ],
)
def test_words_are_replaced_but_not_names_and_parts_of_words(text: str, found: str) -> None:
    assert with_synonyms(text, Random(1), 1) == found
    assert with_synonyms(text, Random(1), 0) == text


def test_a_share_of_the_words_is_replaced() -> None:
    found = with_synonyms("quickly " * 1_000, Random(1), 0.3)

    assert 250 < found.count("rapidly") < 350


def test_entities_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmallWordNet, "synsets", lambda _, word: [Sense("n", (word, "word"))])
    found = [augmented(sample(), ["synonyms"], Random(seed)) for seed in range(20)]

    texts = {each.description for each in found if each is not None}
    assert texts == {TEXT, TEXT.replace("earns", "word")}


def test_without_wordnet_the_error_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    module._wordnet.cache_clear()
    monkeypatch.setitem(sys.modules, "wn", None)

    with pytest.raises(MissingExtraError, match=r"pip install -e '.\[synonyms\]'"):
        synonyms("quickly")
