from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from pii_bench.errors import PiiBenchError
from pii_bench.masking.plan import make_plan
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.taxonomy import PiiType
from tests.masking.drawn import texts_and_entities, words_and_entities

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pii_bench.masking.plan import Entity


def masked(text: str, entities: Iterable[Entity], keep: Iterable[str] = ()) -> list[str]:
    """What is replaced, as `TYPE: piece`."""
    plan = make_plan(text, entities, keep)
    return [f"{each.label}: {text[each.start : each.end]}" for each in plan.claims]


def test_every_place_of_an_entity_is_masked_but_for_those_to_keep() -> None:
    entities = [("Ann Lee", "PER"), ("32", "DEM"), ("Oslo", "LOC")]

    assert masked("Ann Lee, 32, Oslo. Ann Lee!", entities, ["32"]) == [
        "PER: Ann Lee",
        "LOC: Oslo",
        "PER: Ann Lee",
    ]


def test_kept_texts_are_compared_as_the_scorer_does() -> None:
    assert masked("Zoe\u0308\nLee", [("Zo\u00eb Lee", "PER")], ["Zoe\u0308  Lee"]) == []


def test_of_overlapping_entities_the_longest_is_whole_and_the_rest_masked_beside_it() -> None:
    entities = [("Ann Lee", "PER"), ("Lee Shipping Ltd", "ORG"), ("Shipping", "ORG")]

    assert masked("Ann Lee Shipping Ltd", entities) == [
        "PER: Ann",
        "ORG: Lee Shipping Ltd",
    ]


def test_of_two_types_for_one_place_the_first_of_the_taxonomy_counts() -> None:
    for types in (("LOC", "ORG"), ("ORG", "LOC"), ("ZZZ", "LOC")):
        assert masked("Victoria", [("Victoria", each) for each in types]) == ["LOC: Victoria"]


def test_adjacent_entities_stay_apart() -> None:
    spans = [DetectedSpan(0, 3, PiiType.PER), DetectedSpan(3, 5, PiiType.DEM)]

    assert masked("Ann32", spans) == ["PER: Ann", "DEM: 32"]


def test_a_kept_text_holds_its_place_inside_and_around_masked_ones() -> None:
    text = "an MSc from Dalrymple University, Halifax"
    entities = [("Dalrymple University", "ORG"), ("MSc", "DEM")]

    assert masked(text, entities, ["MSc from Dalrymple University"]) == []
    assert masked(text, entities, ["Dalrymple"]) == [
        "DEM: MSc",
        "ORG: University",
    ]
    assert masked(text, entities, ["University, Halifax"]) == [
        "DEM: MSc",
        "ORG: Dalrymple",
    ]


def test_a_kept_text_opens_no_longer_entity_if_it_stands_anywhere_else() -> None:
    entities = [("666-32-0847", "CODE"), ("32", "DEM")]

    assert masked("Aged 32, number 666-32-0847", entities, ["32"]) == ["CODE: 666-32-0847"]


def test_a_name_in_the_text_is_no_part_of_a_word_but_a_span_may_be() -> None:
    text = "Annual report by Ann"

    assert masked(text, [("Ann", "PER")]) == ["PER: Ann"]
    assert make_plan(text, [("Ann", "PER")], []).claims[0].start == 17
    assert make_plan(text, [DetectedSpan(0, 3, PiiType.PER)], []).claims[0].start == 0


def test_white_space_at_the_ends_of_a_span_stays() -> None:
    text = " Ann \n"

    assert masked(text, [DetectedSpan(0, 6, PiiType.PER)]) == ["PER: Ann"]
    assert masked(text, [DetectedSpan(4, 6, PiiType.PER), DetectedSpan(2, 2, PiiType.PER)]) == []


def test_a_span_takes_the_marks_behind_it_along() -> None:
    assert masked("Zoe\u0308 Lee", [DetectedSpan(0, 3, PiiType.PER)]) == ["PER: Zoe\u0308"]


def test_offsets_are_code_points() -> None:
    text = "👩‍👩‍👧 שלום Ann"

    assert text[11:14] == "Ann"
    assert masked(text, [DetectedSpan(11, 14, PiiType.PER), ("שלום", "PER")]) == [
        "PER: שלום",
        "PER: Ann",
    ]


def test_what_is_not_found_is_told() -> None:
    entities = [("Bo", "PER"), ("Al", "PER"), ("Ann", "PER"), (" ", "PER"), ("Bo", "ORG")]

    plan = make_plan("Ann", entities, ["Cy"])

    assert plan.not_found == ("Al", "Bo")
    assert len(plan.claims) == 1


@pytest.mark.parametrize(
    ("entities", "keep", "message"),
    [
        ([DetectedSpan(2, 4, PiiType.PER)], [], "a span came from 2 to 4; allowed: 0 <= start"),
        ([DetectedSpan(2, 1, PiiType.PER)], [], "a span came from 2 to 1; allowed: 0 <= start"),
        ([DetectedSpan(-1, 1, PiiType.PER)], [], "a span came from -1 to 1; allowed: 0 <= start"),
        (["Me"], [], "an entity came as str; allowed: "),
        ([("Me", "PER", "x")], [], "an entity came as tuple; allowed: "),
        ([], "Me", "keep came as one str; allowed: an iterable of str"),
    ],
)
def test_what_is_no_entity_is_refused(
    entities: Sequence[Any], keep: Sequence[str], message: str
) -> None:
    with pytest.raises(PiiBenchError, match=f"^{re.escape(message)}"):
        make_plan("Ann", entities, keep)


def places(text: str, wanted: str) -> list[range]:
    """Where a run of words stands, told without the module under test."""
    pattern = rf"(?=(?<!\S){re.escape(wanted)}(?!\S))"
    return [range(m.start(), m.start() + len(wanted)) for m in re.finditer(pattern, text)]


@given(words_and_entities())
def test_all_of_an_entity_is_masked_but_where_it_meets_a_kept_one(
    drawn: tuple[str, list[tuple[str, str]], list[str]],
) -> None:
    text, entities, keep = drawn
    plan = make_plan(text, entities, keep)

    gone = {n for piece in plan.claims for n in range(piece.start, piece.end)}
    may_stay = {n for each in keep for place in places(text, each) for n in place}
    for written, _ in entities:
        if written not in keep:
            for place in places(text, written):
                shown = {n for n in place if text[n] != " "} - gone
                assert shown <= may_stay


@given(words_and_entities())
def test_only_entities_are_masked(drawn: tuple[str, list[tuple[str, str]], list[str]]) -> None:
    text, entities, keep = drawn
    plan = make_plan(text, entities, keep)

    gone = {n for piece in plan.claims for n in range(piece.start, piece.end)}
    assert gone <= {
        n
        for written, _ in entities
        if written not in keep
        for place in places(text, written)
        for n in place
    }


@given(words_and_entities())
def test_a_kept_text_stays_wherever_it_is_no_part_of_a_longer_entity_and_somewhere_anyhow(
    drawn: tuple[str, list[tuple[str, str]], list[str]],
) -> None:
    text, entities, keep = drawn
    plan = make_plan(text, entities, keep)

    gone = {n for piece in plan.claims for n in range(piece.start, piece.end)}
    longer = [
        set(place)
        for written, _ in entities
        if written not in keep
        for place in places(text, written)
    ]
    for each in keep:
        found = [set(place) for place in places(text, each)]
        assert any(place.isdisjoint(gone) for place in found)
        for place in found:
            assert place.isdisjoint(gone) or any(place < other for other in longer)


@given(texts_and_entities())
def test_pieces_are_in_order_apart_and_not_blank_at_their_ends(
    drawn: tuple[str, list[Entity], list[str]],
) -> None:
    text, entities, keep = drawn
    pieces = make_plan(text, entities, keep).claims

    ends = [0, *(piece.end for piece in pieces)]
    for end, piece in zip(ends, pieces, strict=False):
        assert end <= piece.start < piece.end <= len(text)
        assert not text[piece.start].isspace()
        assert not text[piece.end - 1].isspace()
