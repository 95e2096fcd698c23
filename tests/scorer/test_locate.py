from __future__ import annotations

import sys
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.scorer import normalise
from pii_bench.scorer.locate import (
    Claim,
    Locator,
    Strictness,
    overlap,
    place_entities,
    reading,
    resolve_claims,
    within_one_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pii_bench.scorer.locate import Span


def found(text: str, value: str, strictness: Strictness = Strictness.READABLE) -> list[str]:
    return [text[start:end] for start, end in Locator(text).spans(value, strictness)]


@pytest.mark.parametrize(
    ("text", "value", "spans"),
    [
        ("Ann and Bo, Ann's friend", "Ann", ((0, 3), (12, 15))),
        ("ANN, Ａnn, Anna, Ann_1", "Ann", ()),
        ("Zoe\u0308", "Zo\u00eb", ()),
        ("Zoe\u0308", "Zoe", ()),
        ("1.32, 32", "32", ((6, 8),)),
        ("Lee  Ann", "Lee Ann", ()),
        (" ", " ", ()),
        ("Ann", "", ()),
        ("132 or 320 or x32", "32", ()),
        ("1,320 and 32,500 and 0.32 and 32.5 and 2024-10-32 and 32:10", "32", ()),
        ("(32)-year-old, 32-year-old", "32", ((1, 3), (15, 17))),
        ("AB+ or B+?", "B+", ((7, 9),)),
        ("party art_1 Art art", "art", ((16, 19),)),
        ("ask @moss7: ok", "@moss7", ((4, 10),)),
        ("小满: yes", "小满", ((0, 2),)),
    ],
)
def test_verbatim_spans_are_whole_words_of_the_same_code_points(
    text: str, value: str, spans: tuple[tuple[int, int], ...]
) -> None:
    assert Locator(text).spans(value, Strictness.VERBATIM) == spans


@pytest.mark.parametrize(
    ("value", "text", "spans"),
    [
        ("son", "My son is a person, like any son.", ((3, 6), (29, 32))),
        ("34", "A 34F here", ((2, 4),)),
        ("$9", "$9 or $95", ((0, 2),)),
        ("C++ (dev)", "a C++ (dev) C++", ((2, 11),)),
        ("北京", "我住在北京", ((3, 5),)),
        ("gout", "Mo", ()),
        (" ", "Mo is", ()),
    ],
)
def test_placed_spans_are_whole_words_or_else_anywhere(
    value: str, text: str, spans: tuple[tuple[int, int], ...]
) -> None:
    assert Locator(text).spans(value, Strictness.PLACED) == spans


class TestEqual:
    @pytest.mark.parametrize(
        ("text", "value", "pieces"),
        [
            ("Oslo, then Oslo", "Oslo", ["Oslo", "Oslo"]),
            ("Oslo", "oslo", []),
            ("Stanford", "Stanfor", ["Stanfor"]),
            ("by Zoe\u0308 \n Ruiz", "Zo\u00eb Ruiz", ["Zoe\u0308 \n Ruiz"]),
            ("O’Neil", "O'Neil", []),
            ("Oslo", " ", []),
        ],
    )
    def test_texts_are_compared_after_normalisation(
        self, text: str, value: str, pieces: list[str]
    ) -> None:
        assert found(text, value, Strictness.EQUAL) == pieces

    @given(st.text(alphabet="ab3 \n\té\u0301-", max_size=20), st.data())
    def test_every_piece_of_the_normalised_text_is_found(
        self, text: str, data: st.DataObject
    ) -> None:
        whole = normalise(text)
        start = data.draw(st.integers(0, len(whole)))
        piece = normalise(whole[start : start + 4])
        # A mark is not found without its letter.
        marked = piece[:1] == "\u0301" or whole[start + 4 : start + 5] == "\u0301"

        assert marked or bool(found(text, piece, Strictness.EQUAL)) == bool(piece)


class TestReadable:
    @pytest.mark.parametrize(
        ("value", "writing"),
        [
            # Apostrophes and quotes.
            *(("O'Neil", f"O{mark}Neil") for mark in "'’‘‛′`´ʼ＇"),
            ("O’Neil", "O'Neil"),
            ('the "Old Mill"', "the “Old Mill”"),
            # Hyphens, also those that only show at the end of a line.
            *(("Anne-Marie", f"Anne{mark}Marie") for mark in "-‐‑–—−－﹣"),
            ("Anne‑Marie", "Anne-Marie"),
            ("Dalrymple", "Dal\u00adrym\u00adple"),
            # Case.
            ("O'Neil", "O'NEIL"),
            ("O'Neil", "o'neil"),
            ("Acme Corp", "ACME Corp"),
            ("Große Straße", "GROSSE STRASSE"),
            ("İstanbul", "ISTANBUL"),
            ("Ιάσονας", "ΙΆΣΟΝΑΣ"),
            ("Ann", "ANN"),
            ("ann", "Ann"),
            ("nurse", "Nurse"),
            # White space.
            *(
                ("Ann Lee", f"Ann{space}Lee")
                for space in ("  ", "\n", " \r\n\t", "\u00a0", "\u202f")
            ),
            # Forms of Unicode.
            ("Zo\u00eb", "Zoe\u0308"),
            ("Zoe\u0308", "Zo\u00eb"),
            ("902 55", "９０２　５５"),
            ("ガーナ", "ｶﾞｰﾅ"),
            ("Griffith", "Gri\ufb03th"),
            ("김철수", unicodedata.normalize("NFD", "김철수")),
            # Invisible characters.
            *(("Ann Lee", f"An{mark}n Lee") for mark in "\u200b\u200d\u2060\ufeff\u200e\u202a"),
            ("12½", "12½\ufe0e"),
            # Long numbers, however their digits are grouped.
            *(
                ("0412-345-678", writing)
                for writing in ("0412345678", "0412 345\n678", "0412.345.678", "0412) 345/678")
            ),
            ("$1,000,000", "1 000 000"),
            ("2024-09-16", "2024/09/16"),
        ],
    )
    def test_the_value_and_its_other_writing_are_found(self, value: str, writing: str) -> None:
        assert found(f"({value}), ({writing})", value) == [value, writing]

    @pytest.mark.parametrize(
        ("text", "value", "pieces"),
        [
            # Short words in lower case are other words, and so are capitals without the others.
            pytest.param("Will will call, WILL he?", "Will", ["Will", "WILL"], id="a short name"),
            pytest.param(
                "It works in IT, does it?", "IT", ["IT"], id="an abbreviation that is a word"
            ),
            pytest.param(
                "In the US, they tell us.", "US", ["US"], id="an abbreviation in lower case"
            ),
            pytest.param("F, 32; a female", "F", ["F"], id="a letter in another case"),
            pytest.param("A flat, blood type A", "A", ["A", "A"], id="a letter in its case"),
            # Longer ones, and short ones with a sign, are not.
            pytest.param("Grace, grace", "Grace", ["Grace", "grace"], id="a longer name"),
            pytest.param("O+ or o+", "O+", ["O+", "o+"], id="a letter with a sign"),
            pytest.param("I may call.", "May", ["may"], id="only in another case"),
            pytest.param("gender: f", "F", ["f"], id="a letter only in another case"),
            # Inside words, if there is no other occurrence. Finnish: "to Anna".
            pytest.param("Kerro Annalle", "Anna", ["Anna"], id="at the start of a word"),
            pytest.param("the LeeAnn's", "Ann", ["Ann"], id="at the end of a word"),
            pytest.param("my channel", "Ann", [], id="amid a word"),
            pytest.param(
                "#JohnDalrymple84", "Dalrymple", ["Dalrymple"], id="a long value amid a word"
            ),
            pytest.param("a 25yo, DOB25", "25", ["25", "25"], id="a number next to letters"),
            pytest.param("c8f0156e8", "0156", ["0156"], id="a number between letters"),
            pytest.param("c8f00156e8", "015", [], id="part of a number between letters"),
            pytest.param("3.5kg", "3.5", ["3.5"], id="a decimal next to letters"),
            pytest.param("in 1925", "25", [], id="part of a number"),
            pytest.param(
                "I'm a male, m, 5 m; 7 p.m. from m-commerce", "m", ["m", "m"], id="very short: m"
            ),
            pytest.param("Female from Fife", "F", [], id="very short: initial of words"),
            pytest.param("32/F and F/32", "F", ["F", "F"], id="very short: next to a slash"),
            pytest.param("e-mail, e.g. this", "e", [], id="very short: in abbreviations"),
            pytest.param(
                "5, not 3.5 nor 5,000 nor 2024-05-5 nor 15", "5", ["5"], id="very short: in numbers"
            ),
            pytest.param("only 3-5", "5", ["5"], id="very short: only in a range"),
            pytest.param(
                "32 and 2024-10-32 and 1,320.32",
                "32",
                ["32"],
                id="very short: in dates and amounts",
            ),
            pytest.param("15550134, 5550134x", "555-0134", [], id="regrouped in a longer number"),
            pytest.param(
                "555    0134, 555; 0134", "555-0134", ["555    0134"], id="regrouped by other signs"
            ),
            pytest.param("55 50 13", "555-013", [], id="regrouped: six digits"),
            pytest.param(
                "PX 004 512, px-004-512", "PX004512", [], id="regrouped: six digits with letters"
            ),
            pytest.param("李明在北京工作", "李明", ["李明"], id="Chinese"),
            pytest.param("김철수는 의사다", "김철수", ["김철수"], id="Korean"),
            pytest.param("สมชายอยู่เชียงใหม่", "สมชาย", ["สมชาย"], id="Thai"),
            pytest.param("Zoe\u0308 Zo\u00eb", "Zoe", [], id="a letter without its mark"),
            pytest.param("हिन्दी", "ह", [], id="a letter without its vowel sign"),
            pytest.param(
                "\ufeffAnn\u200b \u200bLe\u200be!",
                "Ann Lee",
                ["Ann\u200b \u200bLe\u200be"],
                id="invisible characters in a value",
            ),
            *(
                pytest.param(f"Ann {value} Lee", value, [], id=f"an invisible value, {value!r}")
                for value in ("", " \n", "\u200b", "\u00ad\u200d")
            ),
            pytest.param(
                "Dalrymple-Lee, @dalrymple_84, dalrymple@x.org, Dalrymple's",
                "Dalrymple",
                ["Dalrymple", "dalrymple", "dalrymple", "Dalrymple"],
                id="next to signs and underscores",
            ),
            pytest.param(
                "Ann Ann Ann Lee", "Ann Ann", ["Ann Ann Ann"], id="overlapping occurrences"
            ),
        ],
    )
    def test_what_is_found_of_a_value(self, text: str, value: str, pieces: list[str]) -> None:
        assert found(text, value) == pieces

    def test_every_character_is_found_in_each_of_its_forms(self) -> None:
        decomposed = {
            character: unicodedata.normalize("NFD", character)
            for character in map(chr, range(sys.maxunicode + 1))
            if unicodedata.decomposition(character)[:1] not in {"", "<"}
            or 0xAC00 <= ord(character) <= 0xD7A3
        }

        missed = [
            character
            for character, apart in decomposed.items()
            if not character.isspace()
            and not (found(f". {apart} .", character) and found(character, apart))
        ]

        assert len(decomposed) > 13_000
        assert missed == []


class TestWords:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("Annual report by Ann", "Ann"),
            ("MaryAnn met Ann", "Ann"),
            ("Flat 320, age 32", "32"),
            ("Übermut und Mut", "Mut"),
            # e and U+0301, then x: the mark does not end the word.
            ("lee\u0301x lee", "lee"),
            ("हिन्दी दी", "दी"),
        ],
    )
    def test_a_value_is_not_found_inside_a_word(self, text: str, value: str) -> None:
        assert Locator(text).spans(value) == ((len(text) - len(value), len(text)),)

    @pytest.mark.parametrize(
        ("text", "value", "pieces"),
        [
            ("PX00451277, PX 0045 1277", "px-0045-1277", ["PX00451277", "PX 0045 1277"]),
            ("GB29 NWBK 6016 1331", "GB29NWBK60161331", ["GB29 NWBK 6016 1331"]),
            ("flat 555 0134, Oslo", "Flat 5550134", ["flat 555 0134"]),
            # Part of a longer word or number, other letters, letters apart.
            ("APX 0045 1277, PX 0045 12779", "PX00451277", []),
            ("PY 0045 1277, P X 0045 1277", "PX00451277", []),
        ],
    )
    def test_long_numbers_with_letters_match_with_other_grouping(
        self, text: str, value: str, pieces: list[str]
    ) -> None:
        assert found(text, value) == pieces
        assert found(text, value, Strictness.RESTATED) == pieces
        assert {reading(piece) for piece in pieces} <= {reading(value)}


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


WRITINGS: Final[list[Callable[[str], str]]] = [
    str.upper,
    nfd,
    wide,
    lambda text: text.replace("'", "’"),
    lambda text: text.replace("-", "‑"),
    lambda text: text.replace(" ", "\u00a0\n"),
    "\u00ad".join,
]
NAMES: Final = st.lists(
    st.sampled_from(
        ["O'Neil", "Anne", "José", "Dal", "Ångström", "Wei", "Straße", "12b", "77", "5550134"]
    ),
    min_size=1,
    max_size=3,
)


@st.composite
def written(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a name and another writing of it."""
    words = draw(NAMES)
    marks = [draw(st.sampled_from(["-", " "])) for _ in words[1:]]
    name = words[0] + "".join(map("".join, zip(marks, words[1:], strict=True)))
    other = name
    for change in draw(st.lists(st.sampled_from(WRITINGS), max_size=3)):
        other = change(other)
    return name, other


@given(written())
def test_a_name_is_found_in_any_mixture_of_writings(drawn: tuple[str, str]) -> None:
    name, other = drawn

    assert found(f"{name}; {other}.", name) == [name, other]
    assert reading(name) == reading(other)


@given(st.text(), st.text(), st.text())
def test_a_value_in_another_unicode_form_is_found(before: str, value: str, after: str) -> None:
    text = f"{before} {nfd(value)} {after}"

    assert not reading(value) or found(text, unicodedata.normalize("NFC", value))


@given(st.text("aB1 .-'\u0301\u200b李ſß", max_size=20), st.text("aB1 \u0301ss", max_size=3))
def test_spans_are_in_order_without_overlaps_and_contain_the_value(text: str, value: str) -> None:
    spans = Locator(text).spans(value)

    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert all(reading(value) in reading(text[start:end]) for start, end in spans)


@pytest.mark.parametrize(
    ("others", "share"),
    [(((2, 4),), False), (((2, 4), (1, 2)), True), (((5, 8),), True), ((), False)],
)
def test_spans_overlap_if_any_two_share_a_character(
    others: tuple[tuple[int, int], ...], share: bool
) -> None:
    assert overlap(((0, 2), (7, 8)), others) is share


_SPANS = st.tuples(st.integers(0, 8), st.integers(1, 4)).map(lambda pair: (pair[0], sum(pair)))


@given(st.lists(_SPANS), _SPANS)
def test_a_span_is_within_one_that_starts_before_it_and_ends_after_it(
    spans: list[Span], span: Span
) -> None:
    expected = any(start <= span[0] and span[1] <= end for start, end in spans)

    assert within_one_of(spans)(span) is expected


class TestResolveClaims:
    TEXT: Final = "Boston has the University of Boston."

    def hidden(self, masked: list[str], kept: list[str]) -> str:
        locator = Locator(self.TEXT)
        claims = [Claim(*span, 0, "") for value in masked for span in locator.spans(value)]
        shown = list(self.TEXT)
        for claim in resolve_claims(self.TEXT, claims, map(locator.spans, kept)):
            shown[claim.start : claim.end] = "_" * (claim.end - claim.start)
        return "".join(shown)

    @pytest.mark.parametrize(
        ("masked", "kept", "shown"),
        [
            (["Boston"], [], "______ has the University of ______."),
            (["Boston"], ["University of Boston"], "______ has the University of Boston."),
            # Boston is kept outside the masked value.
            (["University of Boston"], ["Boston"], "Boston has the ____________________."),
            # University occurs nowhere else.
            (["University of Boston"], ["University"], "Boston has the University _________."),
            (["University of"], ["of Boston"], "Boston has the __________ of Boston."),
            (["nobody"], ["nowhere"], "Boston has the University of Boston."),
        ],
    )
    def test_kept_values_stay_unless_they_also_occur_outside_the_claim(
        self, masked: list[str], kept: list[str], shown: str
    ) -> None:
        assert self.hidden(masked, kept) == shown

    def test_the_longest_claim_is_whole_and_others_get_the_rest(self) -> None:
        claims = [Claim(0, 6, 0, "B"), Claim(4, 10, 9, "A"), Claim(2, 14, 5, "C")]

        assert resolve_claims("abcdefghijklmnop", claims, []) == [
            Claim(0, 2, 0, "B"),
            Claim(2, 14, 5, "C"),
        ]

    def test_the_lower_rank_wins_then_the_first_label(self) -> None:
        for labels in (("A", "B"), ("B", "A")):
            claims = [Claim(0, 3, 1, label) for label in labels]
            assert resolve_claims("abc", claims, []) == [Claim(0, 3, 1, "A")]
        assert resolve_claims("abc", [Claim(0, 3, 1, "A"), Claim(0, 3, 0, "B")], []) == [
            Claim(0, 3, 0, "B")
        ]

    def test_claims_have_no_white_space_at_their_ends(self) -> None:
        assert resolve_claims(" ab ", [Claim(0, 4, 0, "A")], []) == [Claim(1, 3, 0, "A")]
        assert resolve_claims("a  b", [Claim(1, 3, 0, "A")], []) == []


@pytest.mark.parametrize(
    ("text", "entities", "spans", "invented"),
    [
        # All occurrences, in order of the text.
        ("Ann, Bo, Ann", [("Bo", "PER"), ("Ann", "PER")], [(0, 3), (5, 7), (9, 12)], []),
        # The longest first: shorter values are not placed inside it.
        ("Ann Lee saw Ann", [("Ann", "PER"), ("Ann Lee", "PER")], [(0, 7), (12, 15)], []),
        ("Ann Lee", [("Ann", "PER"), ("Ann Lee", "PER")], [(0, 7)], []),
        # Whole words are preferred.
        ("Annual: Ann", [("Ann", "PER")], [(8, 11)], []),
        ("aged 25yo", [("25", "DEM")], [(5, 7)], []),
        # White space is normalised.
        ("Ann\n Lee", [("Ann Lee", "PER")], [(0, 8)], []),
        ("Ann", [("Zoe", "PER"), ("ann", "PER")], [], [("Zoe", "PER"), ("ann", "PER")]),
        ("", [("Ann", "PER")], [], [("Ann", "PER")]),
    ],
)
def test_entities_without_offsets_are_placed(
    text: str,
    entities: list[tuple[str, str]],
    spans: list[tuple[int, int]],
    invented: list[tuple[str, str]],
) -> None:
    placed, left = place_entities(text, entities)

    assert [span[:2] for span in placed] == spans
    assert left == invented


def test_a_value_with_two_labels_is_placed_with_the_first() -> None:
    assert place_entities("Paris", [("Paris", "PER"), ("Paris", "LOC")]) == ([(0, 5, "PER")], [])


@given(
    st.text("ab", min_size=1, max_size=4),
    st.text("ab", max_size=3),
    st.integers(1_001, 1_200),
    st.integers(0, 40),
)
def test_all_overlapping_occurrences_of_a_long_value_are_found(
    piece: str, other: str, size: int, more: int
) -> None:
    value = (piece * size)[:size]
    text = value + (piece * more)[:more] + other + value

    assert list(Locator(text).spans(value, Strictness.EQUAL)) == [
        (start, start + size) for start in range(len(text)) if text.startswith(value, start)
    ]
