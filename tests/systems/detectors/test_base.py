from __future__ import annotations

import hashlib
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import MissingExtraError
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.detectors.base import encodable, import_part, tidy, version_of
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from pathlib import Path

PER, LOC, ORG = PiiType.PER, PiiType.LOC, PiiType.ORG
TEXT = "Ann Lee of Leeds"


def test_the_longest_of_two_that_overlap_stays() -> None:
    name, whole = DetectedSpan(0, 3, PER), DetectedSpan(0, 7, PER)

    assert tidy(TEXT, [name, whole]) == tidy(TEXT, [whole, name]) == [whole]


def test_the_earlier_of_one_length_stays() -> None:
    first, second = DetectedSpan(0, 7, PER), DetectedSpan(4, 11, ORG)

    assert tidy(TEXT, [second, first]) == [first]


def test_at_one_place_the_first_given_stays() -> None:
    person, place = DetectedSpan(0, 7, PER), DetectedSpan(0, 7, LOC)

    assert tidy(TEXT, [place, person]) == [place]


def test_what_the_dropped_one_covered_is_free_again() -> None:
    spans = [DetectedSpan(0, 3, PER), DetectedSpan(2, 10, ORG), DetectedSpan(8, 16, LOC)]

    # The second and third are of one length: the second stays and alone meets both others.
    assert tidy(TEXT, spans) == [spans[1]]
    # Without it, the others have nothing in common.
    assert tidy(TEXT, [spans[2], spans[0]]) == [spans[0], spans[2]]


def test_spans_that_touch_both_stay() -> None:
    spans = [DetectedSpan(0, 4, PER), DetectedSpan(4, 7, ORG)]

    assert tidy("AnneLee", spans) == spans


def test_white_space_at_the_ends_is_no_part_of_a_span() -> None:
    spans = [DetectedSpan(3, 8, PER), DetectedSpan(10, 11, LOC)]

    assert tidy(TEXT, spans) == [DetectedSpan(4, 7, PER)]
    assert tidy(" \n ", [DetectedSpan(0, 3, PER)]) == []


def test_a_lone_surrogate_is_replaced_in_its_place() -> None:
    assert encodable("a\ud800b😀c") == "a�b😀c"


@st.composite
def found(draw: st.DrawFn) -> tuple[str, list[DetectedSpan]]:
    text = draw(st.text("ab \n", max_size=12))
    place = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    spans = st.builds(
        lambda ends, pii_type: DetectedSpan(min(ends), max(ends), pii_type),
        place,
        st.sampled_from(PiiType),
    )
    return text, draw(st.lists(spans, max_size=8))


@given(found())
def test_the_result_is_in_order_and_free_of_overlaps(case: tuple[str, list[DetectedSpan]]) -> None:
    text, spans = case

    tidied = tidy(text, spans)

    assert all(one.end <= other.start for one, other in pairwise(tidied))
    assert all(span.start < span.end for span in tidied)
    assert all(
        text[span.start : span.end].strip() == text[span.start : span.end] for span in tidied
    )
    assert tidy(text, tidied) == tidied


@given(found())
def test_every_span_is_covered_in_part_by_one_at_least_as_long(
    case: tuple[str, list[DetectedSpan]],
) -> None:
    text, spans = case

    for span in tidy(text, spans):
        assert any(each.start <= span.start and span.end <= each.end for each in spans)
    for alone in (tidy(text, [span]) for span in spans):
        for span in alone:
            assert any(
                kept.start < span.end
                and span.start < kept.end
                and kept.end - kept.start >= span.end - span.start
                for kept in tidy(text, spans)
            )


def test_a_module_that_is_installed_is_imported() -> None:
    assert import_part("hashlib", "make it") is hashlib


def test_a_module_that_is_not_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "somebodys_ner", None)

    with pytest.raises(MissingExtraError) as caught:
        import_part("somebodys_ner", "make detectors")

    assert str(caught.value) == "somebodys_ner is not installed: run `make detectors`"


def test_what_a_module_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_installed.py").write_text("import its_runtime\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(MissingExtraError, match=r"^its_runtime is not installed"):
        import_part("half_installed", "make detectors")


def test_a_version_is_told_with_its_name() -> None:
    assert version_of("pytest") == f"pytest {pytest.__version__}"
