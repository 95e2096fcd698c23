from __future__ import annotations

import pytest

from pii_bench.prompting.parsing.reader import read_literal


@pytest.mark.parametrize("text", ["[\U00050d9c", "[\u0378", '{"a": \u0378', "[a:\u0378"])
def test_what_the_end_cuts_off_is_dropped_whatever_character_it_is(text: str) -> None:
    """On Python 3.11.2, that of Debian 12, the reader once never came to an end here."""
    found = read_literal(text, 0, len(text))

    assert (found.end, found.closed) == (len(text), False)
