from __future__ import annotations

from dataclasses import replace

import pytest

from pii_bench.construction.markup import HE, SHE, THEY, I
from pii_bench.construction.people import Mention
from pii_bench.construction.sentences import Writer, article
from tests.construction.world import bank, fact, read, writer

JOB = fact("Occupation", "night porter")
AGE = fact("Age", "32")
CITY = fact("City/Region: home", "Lund")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("porter", "a"),
        ("actuary", "an"),
        ("university lecturer", "a"),
        ("heir", "an"),
        ("MSc in Botany", "an"),
        ("BSc in Geology", "a"),
        ("A+", "an"),
        ("O-", "an"),
        ("B+", "a"),
        ("Unitarian", "a"),
        ("Igbo", "an"),
        # Eight, eleven and eighteen, and thousands of them.
        ("8.20%", "an"),
        ("84", "an"),
        ("812", "an"),
        ("11", "an"),
        ("18.40%", "an"),
        ("$8,400", "an"),
        ("C$11,000", "an"),
        ("$1,100", "a"),
        ("$1,800", "a"),
        ("110", "a"),
        ("180", "a"),
        ("7.00%", "a"),
    ],
)
def test_articles_go_by_sound(value: str, expected: str) -> None:
    assert article(value) == expected


def small_writer() -> Writer:
    return writer(
        facts={
            "Occupation": bank(
                {
                    "clause": ["{work/works} as <a V>"],
                    "sentence": ["{S} {am/is/are} <a V>."],
                    "casual": ["{S} {am/is/are} <a V>."],
                    "formal": ["{S} {am/is/are} <a V>."],
                    "record": ["<V> by trade, or <a V>."],
                }
            ),
            "Age": bank({"clause": ["turned <V>"]}),
            "City/Region": bank({"clause": ["{live/lives} in <V>"]}, "home"),
        },
        registers={"letter": bank({"closing": ["{P} best"]})},
        joints=bank(
            {
                "two": ["{S} <1> and <2>."],
                "three": ["{S} <1>; {S} <2> and <3>."],
                "lead formal": ["On record,"],
                "lead plain": ["On record,"],
                "lead casual": ["on record,"],
            }
        ),
    )


def test_one_fact_is_one_sentence_in_the_person_s_voice() -> None:
    say = small_writer().say
    assert read(say([JOB], I, "A", "plain")) == "I am a [night porter]."
    assert read(say([JOB], SHE, "A", "plain")) == "She is a [night porter]."
    assert read(say([JOB], THEY, "A", "casual")) == "They are a [night porter]."
    assert read(say([JOB], replace(HE, role="the guest"), "A", "plain")) == (
        "The guest is a [night porter]."
    )


def without_lead(text: str) -> str:
    text = text.removeprefix("On record, ")
    return text[0].upper() + text[1:]


def test_two_facts_are_joined_in_their_order() -> None:
    text = read(small_writer().say([JOB, AGE], SHE, "A", "plain"))
    assert without_lead(text) == "She works as a [night porter] and turned [32]."


def test_of_three_facts_each_stands_once() -> None:
    text = read(small_writer().say([AGE, JOB, CITY], THEY, "A", "formal"))
    assert (
        without_lead(text) == "They turned [32]; they work as a [night porter] and live in [Lund]."
    )


def test_a_lead_comes_now_and_then() -> None:
    own = small_writer()
    leads = [read(own.say([AGE, JOB], SHE, "A", "plain")).startswith("On") for _ in range(100)]
    # 15 in a hundred: within five standard deviations.
    assert 1 <= sum(leads) <= 33


def test_mentions_say_whose_they_are() -> None:
    pieces = small_writer().say([JOB, AGE], SHE, "B", "plain")
    mentions = [piece for piece in pieces if isinstance(piece, Mention)]
    assert mentions == [Mention(("B",), JOB), Mention(("B",), AGE)]


def test_a_lower_case_value_opens_no_sentence() -> None:
    own = writer(facts={"Occupation": bank({"sentence": ["<V> by trade.", "By trade <a V>."]})})
    for section in range(12):
        frame = own._frame(JOB, "sentence", dense=False)
        assert frame == "By trade <a V>.", section


def test_dense_texts_take_the_shorter_frames() -> None:
    own = writer(facts={"Age": bank({"clause": ["{am/is/are} <V> years old", "is <V>", "be <V>"]})})
    assert {own._frame(AGE, "clause", dense=True) for _ in range(9)} == {"is <V>", "be <V>"}
    assert len({own._frame(AGE, "clause", dense=False) for _ in range(9)}) == 3


@pytest.mark.parametrize(
    ("agency", "frame", "expected"),
    [
        ("Land Registry", "a letter from <V> came", "A letter from the [Land Registry] came"),
        ("Skatteverket", "a letter from <V> came", "A letter from [Skatteverket] came"),
        ("Land Registry", "the <V> wrote", "The [Land Registry] wrote"),
        ("Land Registry", "that <V> form", "That the [Land Registry] form"),
        ("Tax Office", "called <a V> desk", "Called a [Tax Office] desk"),
    ],
)
def test_agencies_that_are_common_nouns_have_their_article(
    agency: str, frame: str, expected: str
) -> None:
    office = fact("Government Agency: case", agency)
    assert read(small_writer().introduce(frame, {"V": ("A", office)}, SHE)) == expected


def test_frames_without_facts() -> None:
    own = small_writer()
    assert read(own.frame("letter", "closing", replace(SHE, role="the aunt"))) == "The aunt's best"
    assert read(own.plain("so {S} {do/does}", HE)) == "So he does"


def test_an_introduction_names_both() -> None:
    names = {"A": ("A", fact("Full Name", "Ann Lee")), "B": ("B", fact("Full Name", "Bo Ek"))}
    pieces = small_writer().introduce("<B> met <A>.", names, I)
    assert read(pieces) == "[Bo Ek] met [Ann Lee]."
    assert [p.subjects for p in pieces if isinstance(p, Mention)] == [("B",), ("A",)]
