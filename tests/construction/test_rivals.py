from __future__ import annotations

from pathlib import Path

import pytest

from pii_bench.construction.marked import parse_marked, to_samples
from pii_bench.construction.recorded import SIZES, Recorded
from pii_bench.construction.rivals import Rivals

TEXT = """\
=== dev-single-{number:04d}
register: letter
facts: A1 Company Name
--- text
{opening} {{A1|{company}}} {word}{number} is where I went.
--- query: A1 | implied | legal | A
{query} on page {number}?
--- query: A1 | implied | legal | A
Also {word}{number}, what of it, please?
"""
UNLIKE = {"opening": "Amber brisk cedar delta", "company": "Ember Frost", "query": "Grove heron"}


def against(recorded: int, **changes: str) -> set[str]:
    """The rules by which a text is refused where so many that open alike are recorded."""
    told = {"opening": "When I rang up", "company": "Hopfen Hof", "query": "May I go there"}
    rivals = Rivals(Recorded(Path("texts"), {name: {} for name in SIZES}))
    for number in range(recorded):
        (marked,) = parse_marked(TEXT.format(number=number, word="x", **told), Path("texts"))
        rivals.add("dev-single", marked)
    text = TEXT.format(number=60, word="y", **(told | changes))
    (marked,) = parse_marked(text, Path("texts"))
    return {p.rule for p in rivals.problems("dev-single", marked, list(to_samples(marked)))}


def test_few_texts_of_a_set_have_much_in_common() -> None:
    assert against(2, **UNLIKE) == set()
    # Of 60 texts with two queries each nine may be letters.
    assert against(8, **UNLIKE) == set()
    assert against(9, **UNLIKE) == {"register"}


@pytest.mark.parametrize(
    ("kept", "rules"),
    [
        ("opening", {"opening"}),
        ("query", {"opening"}),
        ("company", {"organisation", "lead"}),
    ],
)
def test_two_may_have_one_opening_or_organisation(kept: str, rules: set[str]) -> None:
    others = {key: text for key, text in UNLIKE.items() if key != kept}

    assert against(1, **others) == set()
    assert against(2, **others) == rules
