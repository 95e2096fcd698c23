from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError
from pii_bench.files import (
    ResultsError,
    decode,
    read_text,
    remove_leftovers,
    replacing,
    write_whole,
    writing,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_text_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("zoë\r\n\ufeff".encode())

    assert read_text(tmp_path / "a.txt") == "zoë\r\n\ufeff"
    with pytest.raises(InputFileError, match=r"gone\.txt: No such file or directory$"):
        read_text(tmp_path / "gone.txt")


def test_what_is_not_utf_8_is_not_quoted() -> None:
    with pytest.raises(InputFileError, match=r"^in\.csv:7: not valid UTF-8 \(byte 2\)$") as caught:
        decode("Zoë".encode("latin-1"), "in.csv", 7)

    # The error of Python, which would be chained in a handler, holds the text.
    assert caught.value.__context__ is None


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file.md"

    write_whole(path, "première ligne\n")

    assert path.read_text(encoding="utf-8") == "première ligne\n"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_who_may_read_it_is_for_the_umask_to_say(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "file.md", "old")
        write_whole(tmp_path / "file.md", "text")
    finally:
        os.umask(before)

    assert (tmp_path / "file.md").stat().st_mode & 0o777 == mode


def test_an_error_leaves_the_old_version_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text("old")

    with pytest.raises(TypeError), replacing(path) as new:
        new.writelines([b"half of the n", None])  # type: ignore[list-item]

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_version_stands_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text("old")

    with replacing(path) as new:
        new.write(b"new")
        assert path.read_text() == "old"

    assert path.read_text() == "new"


def test_of_two_who_write_it_at_once_one_wins_whole(tmp_path: Path) -> None:
    path = tmp_path / "leaderboard.csv"
    versions = {"a" * 100_000, "b" * 200_000}
    path.write_text("a" * 100_000)

    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(write_whole, path, text) for text in [*versions] * 10]
        while not all(writer.done() for writer in writers):
            assert path.read_text() in versions

    assert [writer.result() for writer in writers] == [None] * 20
    assert path.read_text() in versions
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_is_found_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "naive" / "demo.jsonl"
    path.parent.mkdir()
    with replacing(path):
        (temporary,) = path.parent.iterdir()
    path.rename(temporary)

    remove_leftovers(tmp_path)

    assert list(path.parent.iterdir()) == []


def test_half_a_surrogate_pair_is_written_as_its_escape(tmp_path: Path) -> None:
    write_whole(tmp_path / "file.json", '"\ud83d"')

    assert (tmp_path / "file.json").read_bytes() == rb'"\ud83d"'


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")

    with pytest.raises(ResultsError, match=r"results/a\.csv: cannot be written: (File|Not a)"):
        write_whole(tmp_path / "results" / "a.csv", "text")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(ResultsError, match=r"a\.csv: cannot be written: Permission denied$"):
        write_whole(tmp_path / "a.csv", "text")


def test_what_the_system_says_is_kept(tmp_path: Path) -> None:
    with pytest.raises(ResultsError) as caught, writing(tmp_path / "a.csv"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert str(caught.value) == f"{tmp_path / 'a.csv'}: cannot be written: No space left on device"
