from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from pii_bench.systems.encoder.windows import SPELLED, padded, spelled_of, subwords_of, windows_of


def tokenizer() -> Tokenizer:
    """Words of letters a to f, cut into single letters; the rest is unknown."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    letters = [*"abcdef", *(f"##{letter}" for letter in "abcdef")]
    vocabulary = {name: number for number, name in enumerate([*names, *letters])}
    wordpiece = Tokenizer(models.WordPiece(vocabulary, unk_token=names[1]))
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return wordpiece


def test_a_window_is_the_query_and_the_text_behind_it() -> None:
    (window,) = windows_of(tokenizer(), "ab c", "d")

    # [CLS] d [SEP] a ##b c [SEP]
    assert window.ids == (2, 7, 3, 4, 11, 6, 3)
    assert window.types == (0, 0, 0, 1, 1, 1, 1)
    assert window.first == 3
    assert window.offsets == ((0, 1), (1, 2), (3, 4))
    assert window.opens == (True, False, True)
    assert window.spelled == ("ab", "", "c")
    assert window.core == (0, 3)


def test_without_a_query_the_text_comes_first_and_without_words_there_is_no_window() -> None:
    (window,) = windows_of(tokenizer(), "a")

    assert (window.ids, window.first) == ((2, 3, 4, 3), 2)
    assert [*windows_of(tokenizer(), "", "a"), *windows_of(tokenizer(), " \n ", "a")] == []


def test_a_lone_surrogate_is_an_unknown_character() -> None:
    (window,) = windows_of(tokenizer(), "a \ud83d b", "d \udce9")

    # [CLS] d [UNK] [SEP] a [UNK] b [SEP]
    assert window.ids == (2, 7, 1, 3, 4, 1, 5, 3)
    assert window.offsets == ((0, 1), (2, 3), (4, 5))


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("👋ab", ((1, 2), (2, 3))),
        ("a✅b", ((0, 1), (2, 3))),
        ("❤️a👨‍👩", ((2, 3),)),
        ("👍🏽a", ((2, 3),)),
        ("🇬🇧a", ((2, 3),)),
        ("\ufe0f\u20e3a", ((2, 3),)),
        ("↩️a", ((2, 3),)),
        ("ℹ️a", ((2, 3),)),
        ("⤴a", ((1, 2),)),
        ("㊗a", ((1, 2),)),
        ("①a", ((1, 2),)),
        # The vocabulary has these arrows.
        ("→a", ((0, 2),)),
        # Two letters of Persian with a joiner between them are one unknown word.
        ("م\u200dم", ((0, 3),)),
    ],
)
def test_an_emoji_does_not_hide_the_word_beside_it(
    text: str, offsets: tuple[tuple[int, int], ...]
) -> None:
    (window,) = windows_of(tokenizer(), text, "👋d")

    # [CLS] d [SEP]
    assert window.ids[:3] == (2, 7, 3)
    assert window.offsets == offsets


def test_a_long_text_has_windows_that_overlap() -> None:
    # Room for 149 - 3 subwords, 64 of which the next window has too.
    first, second, *rest = windows_of(tokenizer(), "a " * 228, max_tokens=149)

    assert len(first.ids) == len(second.ids) == 149
    assert second.offsets[0] == first.offsets[146 - 64]
    assert first.core == (0, 146 - 32)
    assert second.core[0] == 32
    assert all(len(window.ids) <= 149 for window in rest)


@given(st.integers(0, 900), st.integers(110, 300))
def test_cores_hold_every_subword_once(words: int, most: int) -> None:
    windows = windows_of(tokenizer(), "ab " * words, "bc", max_tokens=most)

    held = [window.offsets[place] for window in windows for place in range(*window.core)]
    spelled = [window.spelled[place] for window in windows for place in range(*window.core)]

    assert held == [(3 * n + start, 3 * n + start + 1) for n in range(words) for start in (0, 1)]
    assert spelled == ["ab", ""] * words
    assert all(len(window.ids) <= most for window in windows)


def test_a_long_word_is_in_one_window() -> None:
    (window,) = windows_of(tokenizer(), "a" * 50_000)

    assert window.offsets == ((0, 50_000),)


def test_subwords_that_a_span_touches() -> None:
    (window,) = windows_of(tokenizer(), "ab cd ef")

    assert subwords_of(window, 0, 2) == (0, 2)
    assert subwords_of(window, 1, 4) == (1, 3)
    assert subwords_of(window, 6, 8) == (4, 6)
    assert subwords_of(window, 8, 9) is None


def test_characters_stand_where_a_word_opens() -> None:
    (window,) = windows_of(tokenizer(), "ab")
    (table,) = spelled_of([window])

    assert len(table) == len(window.ids)
    assert table[2][:3] == [1 + ord("a") % (SPELLED - 1), 1 + ord("b") % (SPELLED - 1), 0]
    assert not any(any(row) for place, row in enumerate(table) if place != 2)


def test_rows_are_padded_to_the_longest() -> None:
    assert padded([(1, 2), (3,)], 9) == [[1, 2], [3, 9]]
