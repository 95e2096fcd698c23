from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.grammar import Dealer, load_banks
from pii_bench.construction.sentences import Writer

if TYPE_CHECKING:
    from pii_bench.construction.pools import Split

KINDS = ("number", "value", "name", "word")


@pytest.mark.parametrize("split", ["test", "train"])
def test_no_frame_mentions_a_person_or_holds_a_long_number(split: Split) -> None:
    bank = load_banks(split).distractors
    frames = [frame for kind in KINDS for frame in bank.frames(kind)]
    assert not [f for f in frames if re.search(r"[{}<>]", f) or re.search(r"#{5,}", f)]


def test_the_authors_of_test_and_train_share_no_frame() -> None:
    test, train = (load_banks(split).distractors for split in ("test", "train"))
    for kind in KINDS:
        assert not set(test.frames(kind)) & set(train.frames(kind))


def test_each_digit_is_drawn_and_no_number_starts_in_zero() -> None:
    random = Random(3)
    writer = Writer(load_banks("test"), Dealer(random), random)
    texts = ["".join(str(piece) for piece in writer.distractor()) for _ in range(300)]
    numbers = [number for text in texts for number in re.findall(r"\d[\d,.]*", text)]

    assert len(set(numbers)) > 100
    assert not [number for number in numbers if number.startswith("0")]
    assert not [text for text in texts if "#" in text]
