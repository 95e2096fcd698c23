from __future__ import annotations

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.models.service import check_key

KEY = "sk-planted-key-0123456789"


def test_a_key_of_printable_ascii_is_taken() -> None:
    check_key("openai", "!sk-Az09_~")


@pytest.mark.parametrize(
    "key",
    [
        "",
        f"{KEY}\n",
        f"{KEY} ",
        f"{KEY}\x7f",
        f"\N{LEFT DOUBLE QUOTATION MARK}{KEY}",
        f"Bearer {KEY}",
    ],
)
def test_a_key_that_no_header_may_hold_is_refused_unseen(key: str) -> None:
    with pytest.raises(PiiBenchError, match="the key for provider 'mistral' is empty") as caught:
        check_key("mistral", key)
    assert KEY not in str(caught.value)
