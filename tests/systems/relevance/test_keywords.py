from __future__ import annotations

from pii_bench.systems.relevance.keywords import KEYWORDS
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType


def test_every_category_but_names_has_one_to_six_keywords() -> None:
    expected = {name for name, pii_type in TYPE_OF_CATEGORY.items() if pii_type != PiiType.PER}

    assert set(KEYWORDS) == expected
    assert all(1 <= len(words) <= 6 for words in KEYWORDS.values())


def test_no_keyword_comes_twice_for_a_category() -> None:
    assert all(len(set(words)) == len(words) for words in KEYWORDS.values())
