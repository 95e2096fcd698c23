from __future__ import annotations

import sys

import pytest

from pii_bench.construction.quality.embeddings import CategoryNames
from pii_bench.errors import MissingExtraError
from tests.construction.quality.asked import ask


def test_a_category_that_the_query_names_is_the_nearest() -> None:
    choices = ask("", pay="Monthly Income", kind="Blood Type", place="City/Region").choices

    scores = CategoryNames().score("It's late, but could you check my blood type?", choices)

    assert scores.shape == (3,)
    assert scores.argmax() == 1
    assert ((scores >= -1.001) & (scores <= 1.001)).all()


def test_a_clause_that_is_the_name_has_cosine_1() -> None:
    (score,) = CategoryNames().score(
        "First, blood type, then sleep.", ask("", a="blood type").choices
    )

    assert score == pytest.approx(1, abs=1e-5)


def test_without_the_extra_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)

    with pytest.raises(MissingExtraError, match=r"WordLlama .* `pip install 'pii-bench\[build\]'`"):
        CategoryNames()
