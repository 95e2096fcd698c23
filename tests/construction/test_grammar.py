from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import inflect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.construction.describe import PAIR_REGISTERS, SINGLE_REGISTERS, takes_alias
from pii_bench.construction.grammar import DOMAINS, REGISTERS, Dealer, load_banks, slug
from pii_bench.construction.pools import GRAMMAR
from pii_bench.construction.relations import RELATIONS
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType
from tests.construction.frames import (
    ABSTRACTIONS,
    FILES,
    PEOPLE,
    TEXT_SECTIONS,
    frames,
    name_of,
    texts,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.construction.bank import Bank
    from pii_bench.construction.pools import Split

CATEGORIES = [name for name, of in TYPE_OF_CATEGORY.items() if of is not PiiType.PER]
# Values that may begin with a small letter, which no sentence does.
LOWER_CASE = {
    *("Email Address", "Password Hash", "Occupation", "Gender", "Sexual Orientation", "Ethnicity"),
    *("Religious Belief", "Political Affiliation", "Education Level", "Physical Features"),
    *("Medical Condition", "Disability Status", "Race"),
}
EACH_FILE = pytest.mark.parametrize("path", FILES, ids=name_of)
EACH_SPLIT = pytest.mark.parametrize("split", ["test", "train"])

# "It was they who" and "that is I" are right.
_DISAGREEMENT = re.compile(
    r"\bI (?:is|are|has|does)\b|\b(?:she|he) (?:am|are)\b|\bthey (?:am|is|has|does|was)\b"
    r"|\b(?:is|does|has|isn't|doesn't|hasn't) they\b|\b(?:am|are|don't|aren't) (?:she|he)\b"
)
_ARTICLE = re.compile(r"\b([Aa]n?) ([A-Za-z][\w'’-]*)")
# inflect takes them for "a usher" as in "usual", and "a roi".
_AN = {"usher", "ROI"}


@pytest.mark.parametrize(
    ("category", "expected"),
    [
        ("Driver's License", "driver-s-license"),
        ("City/Region", "city-region"),
        ("ROI", "roi"),
    ],
)
def test_a_category_s_file(category: str, expected: str) -> None:
    assert slug(category) == expected


# What frames are like.


@EACH_FILE
def test_every_frame_renders_for_everybody_with_its_slots(path: Path) -> None:
    for frame in frames(path):
        for person in PEOPLE.values():
            for text, slots in texts(frame, person):
                # An introduction may call somebody twice by their name.
                both = frame.section.startswith("intro")
                assert (tuple(sorted(set(slots))) if both else slots) == frame.slots, frame.source
                assert not re.search(r"[{}<>|\[\]]", text), frame.source


@EACH_FILE
def test_verbs_agree_with_everybody(path: Path) -> None:
    for frame in frames(path):
        for name, person in PEOPLE.items():
            # Records and case notes are never written by their subject.
            if name == "I" and frame.section in {"formal", "record"}:
                continue
            for text, _ in texts(frame, person):
                assert not _DISAGREEMENT.search(text), f"{text!r} of {frame.source!r}"


@EACH_FILE
def test_a_and_an_stand_as_words_sound(path: Path) -> None:
    engine = inflect.engine()
    for frame in frames(path):
        for text, _ in texts(frame, PEOPLE["she"]):
            for article, word in _ARTICLE.findall(text):
                right = "an" if word in _AN else engine.a(word).split()[0]
                assert article.lower() == right, f"{article} {word} in {frame.source!r}"


@EACH_FILE
def test_no_frame_holds_a_digit_but_those_of_what_is_nobodys(path: Path) -> None:
    for frame in frames(path):
        if path.stem == "distractors" and frame.section in {"value", "word"}:
            continue
        assert not re.search(r"\d", re.sub(r"<[^<>]*>", "", frame.opened)), frame.source


def test_test_and_train_share_no_frame() -> None:
    # Nouns for people ("the visitor") and the two plainest ways to join clauses are anybody's.
    closed = {"role", "two", "three"}
    found: dict[str, set[str]] = {"test": set(), "train": set()}
    for path in FILES:
        found[path.relative_to(GRAMMAR).parts[0]] |= {
            frame.source for frame in frames(path) if frame.section not in closed
        }
    assert not found["test"] & found["train"]


# What banks hold.


@EACH_SPLIT
@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_has_enough_frames_and_abstractions(split: Split, category: str) -> None:
    bank = load_banks(split).facts[category]
    frames_least, abstractions_least = {"test": (40, 15), "train": (25, 11)}[split]
    assert _count(bank, TEXT_SECTIONS) >= frames_least
    assert _count(bank, ABSTRACTIONS) >= abstractions_least


@EACH_SPLIT
@pytest.mark.parametrize("category", CATEGORIES)
def test_every_facet_can_be_told_in_every_style_and_asked_at_every_level(
    split: Split, category: str
) -> None:
    bank = load_banks(split).facts[category]
    assert set(bank.facets) == set(load_banks("test").facts[category].facets)
    for facet in bank.facets:
        assert all(bank.frames(section, facet) for section in ABSTRACTIONS), facet
        for section in TEXT_SECTIONS:
            shortest_first = sorted(bank.frames(section, facet), key=len)
            assert shortest_first, f"{facet} {section}"
            # Where much is to be said only the shorter half is used.
            short = shortest_first[: len(shortest_first) // 2 + 1]
            if category in LOWER_CASE:
                assert any(not frame.startswith("<") for frame in short), f"{facet} {section}"


@EACH_SPLIT
def test_every_domain_has_enough_scenarios(split: Split) -> None:
    assert len(DOMAINS) == 7
    for domain, bank in load_banks(split).queries.items():
        assert len(bank.facets) >= {"test": 15, "train": 8}[split], domain
        for scenario in bank.facets:
            assert len(bank.frames("needs", scenario)) == 1, scenario
            for section in ("one", "two", "three"):
                assert bank.frames(section, scenario), f"{scenario} {section}"


@EACH_SPLIT
def test_scenarios_need_facts_that_there_are(split: Split) -> None:
    banks = load_banks(split)
    for bank in banks.queries.values():
        for category, facet in _needs(bank):
            assert category in banks.facts, category
            assert not facet or facet in banks.facts[category].facets, f"{category}: {facet}"


@EACH_SPLIT
def test_every_category_is_needed_by_some_scenario(split: Split) -> None:
    needed = {
        category for bank in load_banks(split).queries.values() for category, _ in _needs(bank)
    }
    assert needed == set(CATEGORIES)


@EACH_SPLIT
def test_every_register_can_open_go_on_and_close(split: Split) -> None:
    assert len(REGISTERS) >= 10
    assert set(SINGLE_REGISTERS) | set(PAIR_REGISTERS) == set(REGISTERS)
    for register, bank in load_banks(split).registers.items():
        needed = {"opening", "filler", "hook", "closing"}
        needed |= {"staff", "prompt"} if register in {"transcript", "chat"} else set()
        needed |= {"opening alias"} if takes_alias(register) else set()
        assert not [section for section in needed if not bank.frames(section)], register
        for frame in bank.frames("hook"):
            assert frame.count(" || ") == 1, frame


@EACH_SPLIT
def test_every_relation_can_be_told(split: Split) -> None:
    banks = load_banks(split)
    assert set(banks.relations) == set(RELATIONS)
    for name, bank in banks.relations.items():
        for kind in ("formal", "first", "scene", "dialogue"):
            assert bank.frames(f"intro {kind}"), name
        for category, _ in RELATIONS[name].shared:
            assert bank.frames(f"shared {category}"), f"{name} {category}"
        assert bank.frames("filler"), name
        for section in ("roles outsider", "roles own"):
            (line,) = bank.frames(section)
            sides = [side.split(", ") for side in line.split(" || ")]
            assert [len(side) for side in sides] == [3, 3], line


@EACH_SPLIT
def test_only_who_writes_of_two_says_my(split: Split) -> None:
    for name, bank in load_banks(split).relations.items():
        for kind in ("formal", "scene", "dialogue"):
            for frame in bank.frames(f"intro {kind}"):
                assert not re.search(r"\{[BSOPQR]\}", frame), f"{name}: {frame}"


@EACH_SPLIT
def test_every_conversation_can_be_held(split: Split) -> None:
    bank = load_banks(split).distract
    for template in ("network", "knowledge", "community"):
        for part in ("head", "greet", "relay", "drift", "close", "query"):
            assert bank.frames(f"{template} {part}"), f"{template} {part}"
    for section in ("about first", "about next", "about last", "one of two"):
        assert bank.frames(section), section


def _count(bank: Bank, sections: tuple[str, ...]) -> int:
    return sum(len(bank.frames(section, facet)) for section in sections for facet in bank.facets)


def _needs(bank: Bank) -> list[tuple[str, str]]:
    lines = [line for scenario in bank.facets for line in bank.frames("needs", scenario)]
    entries = [entry.strip() for line in lines for entry in line.split(";")]
    return [(category, facet) for category, _, facet in (e.partition(": ") for e in entries)]


# Dealing.


@given(st.lists(st.text("ab"), min_size=1, unique=True), st.integers(1, 4), st.integers(0, 99))
def test_every_frame_comes_as_often_as_every_other(deck: list[str], rounds: int, seed: int) -> None:
    dealer = Dealer(Random(seed))
    dealt = [dealer.deal(("deck",), tuple(deck)) for _ in range(rounds * len(deck))]
    assert Counter(dealt) == dict.fromkeys(deck, rounds)


def test_a_frame_that_does_not_fit_waits_and_comes_before_the_next_round() -> None:
    dealer = Dealer(Random(1))
    deck = ("long", "a", "b")
    short = [dealer.deal(("deck",), deck, lambda frame: len(frame) == 1) for _ in range(4)]
    assert Counter(short) == {"a": 2, "b": 2}
    assert dealer.deal(("deck",), deck) == "long"


def test_decks_do_not_disturb_each_other() -> None:
    dealer = Dealer(Random(1))
    first = {dealer.deal(("one",), ("a", "b")), dealer.deal(("other",), ("a", "b"))}
    second = {dealer.deal(("one",), ("a", "b")), dealer.deal(("other",), ("a", "b"))}
    assert first | second == {"a", "b"}


@pytest.mark.parametrize("deck", [(), ("a", "b")])
def test_where_no_frame_fits_the_deck_is_named(deck: tuple[str, ...]) -> None:
    with pytest.raises(LookupError, match="Age / near"):
        Dealer(Random(1)).deal(("Age", "near"), deck, lambda _: False)
