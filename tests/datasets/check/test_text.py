from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pii_bench.datasets.check.text import annotated_spans, blanked
from pii_bench.datasets.sample import Entity, Sample, Subject
from tests.datasets.check.samples import build


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
