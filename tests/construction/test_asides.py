from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, Literal

import pytest

from pii_bench.construction.grammar import Dealer, load_banks
from pii_bench.construction.markup import SHE
from pii_bench.construction.sentences import Writer
from tests.construction.world import bank, fact, read, writer

if TYPE_CHECKING:
    from pii_bench.construction.pools import Split

SECTIONS = ("formal", "plain", "casual")
ASIDES = bank(
    {
        "formal": [", says the Baltic file"],
        "plain": ["(a Zeppelin hummed)"],
        "casual": ["(the Nokia rang)"],
    }
)


def said(sentence: str, style: Literal["record", "formal", "plain", "casual"]) -> set[str]:
    """What becomes of a sentence about an age, over many draws."""
    facts = {"Age": bank({name: [sentence] for name in ("sentence", "casual", "formal", "record")})}
    made = writer(facts=facts, asides=ASIDES)
    return {read(made.say([fact("Age", "58")], SHE, "A", style)) for _ in range(60)}


@pytest.mark.parametrize("split", ["test", "train"])
@pytest.mark.parametrize("section", SECTIONS)
def test_an_aside_is_a_tail_about_no_person(split: Split, section: str) -> None:
    frames = load_banks(split).asides.frames(section)
    assert len(frames) >= 40
    assert not [f for f in frames if not re.fullmatch(r"(, [^()]*|\(.*\))", f)]
    assert not [f for f in frames if re.search(r"[{}<>:;?!@%\d]|#{5,}|####|\.$", f)]


def test_the_authors_of_test_and_train_share_no_name_but_parts_of_names() -> None:
    names = {
        split: {
            name
            for section in SECTIONS
            for frame in load_banks(split).asides.frames(section)
            for name in re.findall(r"[A-Z]\w+", frame)
        }
        for split in ("test", "train")
    }
    assert names["test"] & names["train"] == {"Fund", "Gazette", "Rock", "Sea"}


@pytest.mark.parametrize(
    ("style", "aside"),
    [
        ("record", ", says the Baltic file"),
        ("formal", ", says the Baltic file"),
        ("plain", " (a Zeppelin hummed)"),
        ("casual", " (the Nokia rang)"),
    ],
)
def test_it_stands_before_the_full_stop_of_some_sentences(
    style: Literal["record", "formal", "plain", "casual"], aside: str
) -> None:
    assert said("{S} {am/is/are} <V>.", style) == {"She is [58].", f"She is [58]{aside}."}


@pytest.mark.parametrize(
    "sentence", ["<V>, so what?", "{S} said 'I am <V>.'", "age <V>", "I am <V>…"]
)
def test_other_sentences_stay_as_they_are(sentence: str) -> None:
    assert len(said(sentence, "plain")) == 1


def test_its_digits_are_drawn() -> None:
    random = Random(3)
    banks = load_banks("test")
    writer = Writer(banks, Dealer(random), random)
    shared = [fact("Age", "58")]
    texts = [read(writer.say(shared, SHE, "A", "formal")) for _ in range(400)]
    assert not [text for text in texts if "#" in text]
