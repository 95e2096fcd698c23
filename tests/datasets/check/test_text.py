from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.check.text import annotated_spans, blanked, occurrences
from pii_bench.datasets.sample import Entity, Sample, Subject
from tests.datasets.check.samples import build


@pytest.mark.parametrize(
    ("text", "within", "spans"),
    [
        ("32", "32, then 32.", [(0, 2), (9, 11)]),
        ("32", "132 or 320 or x32", []),
        ("32", "1,320 and 32,500 and 0.32 and 32.5 and 2024-10-32 and 32:10", []),
        ("32", "(32)-year-old, 32-year-old", [(1, 3), (15, 17)]),
        ("B+", "AB+ or B+?", [(7, 9)]),
        ("art", "party art_1 Art art", [(16, 19)]),
        ("@moss7", "ask @moss7: ok", [(4, 10)]),
        ("aba", "aba aba", [(0, 3), (4, 7)]),
        ("小满", "小满: yes", [(0, 2)]),
    ],
)
def test_occurrences_are_whole_words(text: str, within: str, spans: list[tuple[int, int]]) -> None:
    assert list(occurrences(text, within)) == spans


def test_entities_are_replaced_by_their_type() -> None:
    text = "Ann Lee, of the University of Hull, lives in Hull."
    facts = {"Ann Lee": "Full Name", "University of Hull": "Educational Institution"}

    # Hull inside the university's name has no placeholder of its own.
    assert blanked(build(text, facts | {"Hull": "City/Region"})) == (
        "<PER>, of the <ORG>, lives in <LOC>."
    )


def test_an_entity_without_spans_is_replaced_at_all_occurrences() -> None:
    subject = Subject("A", (Entity("Ann", "PER"),))

    assert blanked(Sample("s", "Ann met Anna and Ann.", None, (subject,), ())) == (
        "<PER> met Anna and <PER>."
    )


def test_overlapping_spans_have_one_placeholder() -> None:
    entities = (
        Entity("old Hull", "LOC", spans=((3, 11),)),
        Entity("Hull pier", "ORG", spans=((7, 16),)),
    )

    assert blanked(Sample("s", "At old Hull pier.", None, (Subject("A", entities),), ())) == (
        "At <LOC>."
    )


_FILLERS = st.text(" abc,.", max_size=8)
_ENTITIES = st.tuples(st.text("XYZ", min_size=1, max_size=6), st.sampled_from(("PER", "LOC")))


@given(st.lists(st.tuples(_FILLERS, _ENTITIES)), _FILLERS)
def test_text_outside_entities_is_kept(
    pieces: list[tuple[str, tuple[str, str]]], tail: str
) -> None:
    text, expected = "", ""
    entities: list[Entity] = []
    for filler, (name, pii_type) in pieces:
        start = len(text) + len(filler)
        entities.append(Entity(name, pii_type, spans=((start, start + len(name)),)))
        text += filler + name
        expected += f"{filler}<{pii_type}>"
    sample = Sample("s", text + tail, None, (Subject("A", tuple(entities)),), ())

    assert blanked(sample) == expected + tail
    assert len(annotated_spans(sample)) == len(pieces)
