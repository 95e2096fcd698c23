from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import InputFileError
from pii_bench.files import (
    BadLines,
    RecordError,
    ResultsError,
    decode,
    encodable,
    encodable_in_place,
    get,
    get_objects,
    is_encodable,
    read_object,
    read_records,
    read_text,
    remove_leftovers,
    replacing,
    sha256_of_value,
    write_whole,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_text_is_read_unchanged(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("zoë\r\n\ufeff".encode())

    assert read_text(tmp_path / "a.txt") == "zoë\r\n\ufeff"
    with pytest.raises(InputFileError, match=r"gone\.txt: No such file or directory$"):
        read_text(tmp_path / "gone.txt")


def test_an_error_about_invalid_utf_8_does_not_quote_the_text() -> None:
    with pytest.raises(InputFileError, match=r"^in\.csv:7: not valid UTF-8 \(byte 2\)$") as caught:
        decode("Zoë".encode("latin-1"), "in.csv", 7)

    # The error of Python, which would be chained in a handler, holds the text.
    assert caught.value.__context__ is None


def test_the_old_version_is_kept_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text("old")

    with pytest.raises(TypeError), replacing(path) as new:
        new.writelines([b"half of the n", None])  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]

    with replacing(path) as new:
        new.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_readers_see_a_complete_file_during_concurrent_writes(tmp_path: Path) -> None:
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


def test_temporary_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "naive" / "demo.jsonl"
    path.parent.mkdir()
    with replacing(path):
        (temporary,) = path.parent.iterdir()
    path.rename(temporary)

    remove_leftovers(tmp_path)

    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "joined", "in_place"),
    [
        ("a\ud800b😀c", "a\ufffdb😀c", "a\ufffdb😀c"),
        ("\ud83d\ude00.", "😀.", "\ufffd\ufffd."),
        ("\ude00\ud83d", "\ufffd\ufffd", "\ufffd\ufffd"),
    ],
    ids=["half", "pair", "two halves"],
)
def test_surrogates_become_encodable(text: str, joined: str, in_place: str) -> None:
    assert encodable(text) == joined
    assert encodable_in_place(text) == in_place


def test_the_hash_of_a_value_ignores_the_order_of_keys() -> None:
    value = {"b": ["é", 1], "a": None}

    assert sha256_of_value(value) == sha256_of_value(dict(reversed(value.items())))
    assert sha256_of_value(value) == (
        "78ab89dca31849202db8157bb7253b0a46e90c5e369f642a1afb539fc54e1cb2"
    )


def test_a_value_with_half_a_surrogate_pair_is_not_encodable() -> None:
    assert is_encodable({"remark": ["Zoë", "\U0001f600"]})
    assert not is_encodable({"remark": ["x \ud83d"]})


def test_a_file_is_written_with_its_folders_and_escapes_of_lone_surrogates(tmp_path: Path) -> None:
    write_whole(tmp_path / "a" / "b" / "file.json", '"é \ud83d"\n')

    assert (tmp_path / "a" / "b" / "file.json").read_bytes() == '"é \\ud83d"\n'.encode()


def test_a_file_at_the_path_of_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")

    with pytest.raises(ResultsError, match=r"results/a\.csv: cannot be written: (File|Not a)"):
        write_whole(tmp_path / "results" / "a.csv", "text")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(ResultsError, match=r"a\.csv: cannot be written: Permission denied$"):
        write_whole(tmp_path / "a.csv", "text")


def records(content: bytes, folder: Path) -> list[tuple[int, dict[str, Any]]]:
    path = folder / "file.jsonl"
    path.write_bytes(content)
    return list(read_records(path))


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (b'{"a": 1}\n\n  \n{"b": 2}', [(1, {"a": 1}), (4, {"b": 2})]),
        (b'\xef\xbb\xbf{"a": 1}\n', [(1, {"a": 1})]),
        (b'{"a": 1}\r\n{"b": 2}\r\n', [(1, {"a": 1}), (2, {"b": 2})]),
        ('{"a": "x\u2028y\x85z"}'.encode(), [(1, {"a": "x\u2028y\x85z"})]),
    ],
    ids=["blank lines", "byte order mark", "Windows line ends", "line separators in a text"],
)
def test_lines_of_json_are_read(tmp_path: Path, content: bytes, read: object) -> None:
    assert records(content, tmp_path) == read


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"secret": "Ann" "Lee"}', "not valid JSON (column 18: Expecting ',' delimiter)"),
        (b'{"secret": "Ann', "not valid JSON (column 16: Invalid control character at)"),
        (b'{"secret": Ann}', "not valid JSON (column 12: Expecting value)"),
        (b'{"secret": "A\xffnn"}', "not valid UTF-8 (byte 13 of the line)"),
        (b'["Ann"]', "a line must be a JSON object, not a list"),
        (b'"Ann"', "a line must be a JSON object, not a string"),
        (b"12", "a line must be a JSON object, not a whole number"),
        (b"true", "a line must be a JSON object, not a boolean"),
        (b"null", "a line must be a JSON object, not null"),
        (b'{"a": ' + b"[" * 100_000, "not valid JSON (nested too deep)"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "not valid JSON (a number is too long)"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_broken_line_is_reported_without_its_text(tmp_path: Path, line: bytes, what: str) -> None:
    with pytest.raises(InputFileError) as caught:
        records(b"{}\n" + line + b"\n{}\n", tmp_path)

    assert str(caught.value) == f"{tmp_path / 'file.jsonl'}:2: {what}"
    assert caught.value.__cause__ is None  # which would print the line below the message


def test_bad_lines_can_be_collected_and_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(b'{"a": 1}\n[]\n' + b"{\n" * 24)
    bad = BadLines(path)

    assert list(read_records(path, bad)) == [(1, {"a": 1})]
    with pytest.raises(InputFileError) as caught:
        bad.raise_any()

    first, *lines, last = str(caught.value).splitlines()
    assert first == f"{path}: 25 lines cannot be read"
    assert lines[0] == "  line 2: a line must be a JSON object, not a list"
    assert len(lines) == 20
    assert last == "  and 5 more"


def test_a_single_collected_bad_line_is_reported_like_a_direct_error(tmp_path: Path) -> None:
    bad = BadLines(tmp_path / "file.jsonl")
    bad.raise_any()
    bad.add(3, "no line")

    with pytest.raises(InputFileError) as caught:
        bad.raise_any()

    assert str(caught.value) == f"{tmp_path / 'file.jsonl'}:3: no line"


def test_a_missing_file_or_a_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"gone\.jsonl: No such file or directory$"):
        list(read_records(tmp_path / "gone.jsonl"))
    with pytest.raises(InputFileError, match=r": Is a directory$"):
        list(read_records(tmp_path))


@pytest.mark.parametrize(
    ("value", "kind", "what"),
    [
        ("Ann", list, "sample 's1': 'key' must be a list, not a string"),
        (["Ann"], str, "sample 's1': 'key' must be a string, not a list"),
        (None, str, "sample 's1': 'key' must be a string, not null"),
        ({"Ann": 1}, list, "sample 's1': 'key' must be a list, not an object"),
        (1.5, int, "sample 's1': 'key' must be a whole number, not a number"),
        (True, int, "sample 's1': 'key' must be a whole number, not a boolean"),
    ],
)
def test_a_value_of_the_wrong_type_is_reported(
    value: object, kind: type[object], what: str
) -> None:
    with pytest.raises(RecordError) as caught:
        get({"key": value}, "key", kind, "sample 's1'")

    assert str(caught.value) == what


@pytest.mark.parametrize("depth", [50, 900, 100_000])
def test_a_deeply_nested_object_is_refused(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"a": ' + "[" * depth + "]" * depth + "}")

    with pytest.raises(InputFileError) as caught:
        read_object(path, "manifest of a run", dict)

    assert str(caught.value) == f"{path}: no manifest of a run: nested too deep"
    path.write_text('{"a": ' + "[" * 49 + "]" * 49 + ', "b": {}}')
    assert read_object(path, "manifest of a run", dict)["b"] == {}


def test_a_missing_key_and_a_list_of_other_than_objects_are_reported() -> None:
    assert get_objects({"key": [{"a": 1}, {}]}, "key") == [{"a": 1}, {}]

    with pytest.raises(RecordError, match=r"^record: 'key' is missing$"):
        get({"other": 1}, "key", str)
    with pytest.raises(RecordError, match=r"^record: key\[1\] must be an object, not a string$"):
        get_objects({"key": [{}, "Ann"]}, "key")


@given(st.binary(max_size=60))
def test_random_bytes_raise_only_input_file_errors(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes
) -> None:
    with suppress(InputFileError):
        assert all(isinstance(r, dict) for _, r in records(raw, tmp_path_factory.mktemp("any")))
