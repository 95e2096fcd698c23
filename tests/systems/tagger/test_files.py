from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pii_bench.errors import InputFileError
from pii_bench.systems.tagger.files import (
    TRANSITIONS,
    VOCABULARY,
    Decoder,
    read_decoder,
    write_decoder,
)
from pii_bench.systems.tagger.labels import LABELS, Transitions
from pii_bench.systems.tagger.vocabulary import Vocabulary
from tests.builders import read_folder

if TYPE_CHECKING:
    from pathlib import Path

COUNT = len(LABELS)


def make_decoder() -> Decoder:
    numbers = np.arange(COUNT, dtype=np.float32)
    pairs = np.arange(COUNT * COUNT, dtype=np.float32).reshape(COUNT, COUNT)
    return Decoder(Vocabulary(["łódź", "東"], ["ł", "'"]), Transitions(numbers, pairs, -numbers))


def test_a_decoder_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = make_decoder()

    write_decoder(tmp_path / "new", written)
    read = read_decoder(tmp_path / "new")

    assert read.vocabulary.words == written.vocabulary.words
    assert read.vocabulary.characters == written.vocabulary.characters
    np.testing.assert_array_equal(read.transitions.start, written.transitions.start)
    np.testing.assert_array_equal(read.transitions.pairs, written.transitions.pairs)
    np.testing.assert_array_equal(read.transitions.end, written.transitions.end)


def test_the_same_decoder_gives_the_same_bytes(tmp_path: Path) -> None:
    write_decoder(tmp_path / "one", make_decoder())
    write_decoder(tmp_path / "other", make_decoder())

    assert read_folder(tmp_path / "one") == read_folder(tmp_path / "other")


@pytest.mark.parametrize("name", [VOCABULARY, TRANSITIONS])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    write_decoder(tmp_path, make_decoder())
    (tmp_path / name).unlink()

    with pytest.raises(InputFileError, match=f"{name}: No such file"):
        read_decoder(tmp_path)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b"PK"])
@pytest.mark.parametrize("name", [VOCABULARY, TRANSITIONS])
def test_a_broken_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    write_decoder(tmp_path, make_decoder())
    (tmp_path / name).write_bytes(content)

    with pytest.raises(InputFileError, match=name):
        read_decoder(tmp_path)


def test_other_labels_are_refused(tmp_path: Path) -> None:
    write_decoder(tmp_path, make_decoder())
    known = json.loads((tmp_path / VOCABULARY).read_text(encoding="utf-8"))
    known["labels"].remove("I-PER")
    (tmp_path / VOCABULARY).write_text(json.dumps(known), encoding="utf-8")

    with pytest.raises(InputFileError, match=r"its labels must be O, B-PER, I-PER"):
        read_decoder(tmp_path)
