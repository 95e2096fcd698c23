"""Five kinds of text that people mask, as the encoder that ships masks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

import pii_bench
from pii_bench.systems.encoder.reader import SHIPPED, Reader
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

LETTERS: Final = REPOSITORY / "tests" / "letters"

QUERIES: Final = {
    "tenant": "Is my landlord allowed to leave the wall damp when a child of that age was ill?",
    "cv": "Which of my jobs should come first if I apply to a school workshop?",
    "medical": "Is the antibiotic safe together with what I take for my joints?",
    "ticket": "Does the address of that login belong to a hosting company, and how do I block it?",
    "family": "What care allowance could my father get with his illness and his income?",
}


def letter(name: str) -> str:
    return (LETTERS / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", QUERIES)
def test_a_letter_masked(name: str, assert_golden: Callable[[str, str], None]) -> None:
    masked = pii_bench.mask(letter(name), QUERIES[name], "encoder")

    assert_golden(f"letters/{name}.txt", f"{QUERIES[name]}\n\n{masked.text}")


@pytest.mark.parametrize("name", QUERIES)
def test_no_span_crosses_a_line(name: str) -> None:
    text = letter(name)

    found = Reader(SHIPPED).detect(text)

    assert found
    assert not [item for item in found for start, end in item.spans if "\n" in text[start:end]]


def test_headings_of_a_form_stay() -> None:
    masked = pii_bench.mask(letter("cv"), QUERIES["cv"], "encoder").text

    headings = ["CURRICULUM VITAE", "EXPERIENCE", "EDUCATION", "SKILLS", "Street:", "Phone:"]
    assert [heading for heading in headings if heading not in masked] == []
