from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.accept import accept
from pii_bench.construction.frontier import (
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


def problems(path: Path, sample: str) -> set[str]:
    (verdict,) = accept(parse_marked(sample, path), path)
    return {problem.rule for problem in verdict.problems}


def test_every_reason_is_met_often_enough() -> None:
    every = range(1, FRONTIER_SIZE + 1)
    counts = Counter(reason for n in every for reason in frontier_commission(n).reasons)

    assert counts.keys() == REASONS.keys()
    assert counts["none"] + counts["most"] == 40
    assert min(count for reason, count in counts.items() if reason not in {"none", "most"}) == 40


def test_many_people_where_that_is_the_reason() -> None:
    for number in range(1, 40):
        asked = frontier_commission(number)
        assert len(asked.cast) in (range(4, 8) if "who" in asked.reasons else range(2, 4))


def test_a_commission_follows_from_its_number_alone() -> None:
    assert frontier_commission(7) == frontier_commission(7)
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
def test_what_is_refused(tmp_path: Path, change: dict[str, str], rule: str) -> None:
    assert rule in problems(tmp_path, written(**change))
