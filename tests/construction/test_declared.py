from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.accept import Verdict, accept
from pii_bench.construction.declared import (
    FRONTIER_SIZE,
    REASONS,
    frontier_commission,
    frontier_sheet,
)
from pii_bench.construction.marked import parse_marked
from pii_bench.construction.recorded import Recorded

if TYPE_CHECKING:
    from pathlib import Path

ASKED = frontier_commission(3)
ANN, BO = ASKED.cast[:2]
FILLER = "The boiler was looked at on a rainy day and nobody could say why it hums. " * 16


def written(
    facts: str = "A1 Full Name, A2 Age, B1 Full Name",
    text: str = f"{{A1|{ANN.names[0]}}} is {{A2|44}}. {{B1|{BO.names[0]}}} is not.",
    needs: str = "-",
) -> str:
    return (
        f"=== {ASKED.id}\nregister: letter\nfacts: {facts}\n--- text\n{text} {FILLER}\n"
        f"--- query: {needs} | implied | housing | A\n"
        "How is a form like this one usually filled in, in general terms?\n"
    )


def judged(path: Path, sample: str) -> Verdict:
    (verdict,) = accept(parse_marked(sample, path), path)
    return verdict


def problems(path: Path, sample: str) -> set[str]:
    return {problem.rule for problem in judged(path, sample).problems}


def test_every_reason_has_forty_samples() -> None:
    every = range(1, FRONTIER_SIZE + 1)
    counts = Counter(reason for n in every for reason in frontier_commission(n).reasons)

    assert counts.keys() == REASONS.keys()
    assert counts["none"] + counts["most"] == 40
    assert min(count for reason, count in counts.items() if reason not in {"none", "most"}) == 40


def test_the_cast_is_large_if_people_are_the_reason() -> None:
    for number in range(1, 40):
        asked = frontier_commission(number)
        assert asked == frontier_commission(number)
        assert len(asked.cast) in (range(4, 8) if "who" in asked.reasons else range(2, 4))
    assert "=== frontier-0013\n" in frontier_sheet(2)


def test_a_query_may_need_nothing(tmp_path: Path) -> None:
    assert problems(tmp_path, written()) == set()

    (sample,) = Recorded.load(tmp_path).samples("frontier")
    assert sample.related == ()
    assert sample.meta["reasons"] == list(ASKED.reasons)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"facts": "A1 Full Name, A2 Age, B1 Full Name, Z1 Age"}, "commission"),
        ({"facts": "A1 Full Name, A2 Shoe Size, B1 Full Name"}, "commission"),
        ({"needs": "A3"}, "needs"),
        ({"text": f"{{A1|Someone Else}} is {{A2|44}}. {{B1|{BO.names[0]}}} is not."}, "value"),
        ({"text": f"{{A1|{ANN.names[0]}}} is {{A2|44}}."}, "tag"),
    ],
)
def test_invalid_frontier_texts_are_refused(
    tmp_path: Path, change: dict[str, str], rule: str
) -> None:
    assert rule in problems(tmp_path, written(**change))


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


def test_a_query_may_name_people_and_a_fact_may_have_only_a_type(tmp_path: Path) -> None:
    assert problems(tmp_path, NOTE) == set()

    first, second = Recorded.load(tmp_path).samples("train-other")
    assert (first.query, second.query) == ("Which plate is Ann's?", 'Is "wrote it down" right?')
    assert [(e.text, e.type, e.category) for e in first.entities] == [
        ("Ann", "PER", "Nickname"),
        ("KX 210", "CODE", None),
        ("Bo", "PER", "Nickname"),
    ]
    assert [need.text for need in first.related] == ["KX 210"]
    assert second.related == ()
    assert first.meta["kind"] == "note"


def test_a_text_may_contain_nothing_personal(tmp_path: Path) -> None:
    assert problems(tmp_path, IMPERSONAL) == set()

    (sample,) = Recorded.load(tmp_path).samples("train-other")
    assert sample.subjects == ()
    assert sample.meta["public"] == ["3 May 1903"]


@pytest.mark.parametrize(
    ("was", "becomes", "rule", "reason"),
    [
        ("kind: note", "kind: letter", "commission", "'letter' is no kind of text; there are chat"),
        ("A2 CODE", "A2 Plate", "commission", "'A2 Plate' is no tag with a category or type"),
        ("{A2|KX 210}", "KX 210", "tag", "A2 (CODE) is marked nowhere"),
        ("her plate", "her plate of 2024-03-01", "leak", "2024-03-01"),
        ("query: A2", "query: A3", "needs", "'A3' is no fact of the commission"),
    ],
)
def test_invalid_texts_of_other_kinds_are_refused(
    tmp_path: Path, was: str, becomes: str, rule: str, reason: str
) -> None:
    (found,) = judged(tmp_path, NOTE.replace(was, becomes, 1)).problems
    assert found.rule == rule
    assert reason in found.reason
    assert Recorded.load(tmp_path).sets["train-other"] == {}
