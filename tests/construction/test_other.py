from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.accept import Verdict, accept
from pii_bench.construction.marked import parse_marked, read_marked
from pii_bench.construction.other import declared_facts
from pii_bench.construction.recorded import Recorded
from pii_bench.errors import PiiBenchError

if TYPE_CHECKING:
    from pathlib import Path

NOTE = """=== train-other-0001
kind: note
facts: A1 Nickname, A2 CODE, B1 Nickname
--- text
{A1|Ann} gave {B1|Bo} her plate, {A2|KX 210}. Bo wrote it down.
--- query: A2 | explicit | administration | other
Which plate is Ann's?
--- query: - | implied | personal life | other
Is "wrote it down" right?
"""

IMPERSONAL = """=== train-other-0002
kind: impersonal
facts: -
--- text
The museum opened on {-|3 May 1903}.
--- query: - | implied | travel | other
Is it open on Mondays?
"""


def judged(tmp_path: Path, text: str) -> Verdict:
    path = tmp_path / "written.txt"
    path.write_text(text, encoding="utf-8")
    (verdict,) = accept(read_marked(path), tmp_path / "texts")
    return verdict


def test_a_query_may_name_people_and_a_fact_have_a_type_alone(tmp_path: Path) -> None:
    assert judged(tmp_path, NOTE).problems == ()

    first, second = Recorded.load(tmp_path / "texts").samples("train-other")
    assert (first.query, second.query) == ("Which plate is Ann's?", 'Is "wrote it down" right?')
    assert [(e.text, e.type, e.category) for e in first.entities] == [
        ("Ann", "PER", "Nickname"),
        ("KX 210", "CODE", None),
        ("Bo", "PER", "Nickname"),
    ]
    assert [need.text for need in first.related] == ["KX 210"]
    assert second.related == ()
    assert first.meta["kind"] == "note"


def test_a_text_may_hold_nothing_personal(tmp_path: Path) -> None:
    assert judged(tmp_path, IMPERSONAL).problems == ()

    (sample,) = Recorded.load(tmp_path / "texts").samples("train-other")
    assert sample.subjects == ()
    assert sample.meta["public"] == ["3 May 1903"]


@pytest.mark.parametrize(
    ("was", "becomes", "rule"),
    [
        ("kind: note", "kind: letter", "commission"),
        ("A2 CODE", "A2 Plate", "commission"),
        ("{A2|KX 210}", "KX 210", "tag"),
        ("her plate", "her plate of 2024-03-01", "leak"),
        ("query: A2", "query: A3", "needs"),
    ],
)
def test_what_is_refused(tmp_path: Path, was: str, becomes: str, rule: str) -> None:
    verdict = judged(tmp_path, NOTE.replace(was, becomes, 1))

    assert rule in {problem.rule for problem in verdict.problems}
    assert Recorded.load(tmp_path / "texts").sets["train-other"] == {}


def test_declared_facts_name_the_kinds_that_there_are(tmp_path: Path) -> None:
    (marked,) = parse_marked(NOTE.replace("kind: note", "kind: letter"), tmp_path / "written.txt")

    with pytest.raises(PiiBenchError, match=r"'letter' is no kind of text; there are chat, "):
        declared_facts(marked)
