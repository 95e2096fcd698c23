from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import InputFileError
from pii_bench.jsonl import (
    BadLines,
    RecordError,
    get,
    get_objects,
    read_object,
    read_records,
)

if TYPE_CHECKING:
    from pathlib import Path


def records(content: bytes, folder: Path) -> list[tuple[int, dict[str, Any]]]:
    path = folder / "file.jsonl"
    path.write_bytes(content)
    return list(read_records(path))


def test_blank_lines_are_skipped_but_counted(tmp_path: Path) -> None:
    assert records(b'{"a": 1}\n\n  \n{"b": 2}', tmp_path) == [(1, {"a": 1}), (4, {"b": 2})]


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    assert records(b'\xef\xbb\xbf{"a": 1}\n', tmp_path) == [(1, {"a": 1})]


def test_windows_line_ends_are_no_fault(tmp_path: Path) -> None:
    assert records(b'{"a": 1}\r\n{"b": 2}\r\n', tmp_path) == [(1, {"a": 1}), (2, {"b": 2})]


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    content = json.dumps({"a": "x\u2028y\x85z"}, ensure_ascii=False).encode()

    assert records(content, tmp_path) == [(1, {"a": "x\u2028y\x85z"})]


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
def test_a_broken_line_is_named_and_not_quoted(tmp_path: Path, line: bytes, what: str) -> None:
    with pytest.raises(InputFileError) as caught:
        records(b"{}\n" + line + b"\n{}\n", tmp_path)

    assert str(caught.value) == f"{tmp_path / 'file.jsonl'}:2: {what}"
    assert caught.value.__cause__ is None  # which would print the line below the message


def test_bad_lines_are_told_all_at_once_where_the_reader_wants_it(tmp_path: Path) -> None:
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


def test_one_bad_line_is_told_as_ever_and_none_not_at_all(tmp_path: Path) -> None:
    bad = BadLines(tmp_path / "file.jsonl")
    bad.raise_any()
    bad.add(3, "no line")

    with pytest.raises(InputFileError) as caught:
        bad.raise_any()

    assert str(caught.value) == f"{tmp_path / 'file.jsonl'}:3: no line"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"gone\.jsonl: No such file or directory$"):
        list(read_records(tmp_path / "gone.jsonl"))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
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
def test_a_value_of_another_kind(value: object, kind: type[object], what: str) -> None:
    with pytest.raises(RecordError) as caught:
        get({"key": value}, "key", kind, "sample 's1'")

    assert str(caught.value) == what


@pytest.mark.parametrize("depth", [60, 900, 100_000])
def test_an_object_that_is_nested_deeply_is_told(tmp_path: Path, depth: int) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"a": ' + "[" * depth + "]" * depth + "}")

    with pytest.raises(InputFileError) as caught:
        read_object(path, "manifest of a run", dict)

    assert str(caught.value) == f"{path}: no manifest of a run: nested too deep"


def test_an_object_of_some_depth_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"a": [{"b": [1, {}]}], "c": 2}')

    assert read_object(path, "manifest of a run", dict) == {"a": [{"b": [1, {}]}], "c": 2}


def test_a_missing_key() -> None:
    with pytest.raises(RecordError, match=r"^record: 'key' is missing$"):
        get({"other": 1}, "key", str)


def test_a_list_of_objects() -> None:
    assert get_objects({"key": [{"a": 1}, {}]}, "key") == [{"a": 1}, {}]

    with pytest.raises(RecordError, match=r"^record: key\[1\] must be an object, not a string$"):
        get_objects({"key": [{}, "Ann"]}, "key")


@given(st.binary(max_size=60))
def test_no_bytes_bring_another_error(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    with suppress(InputFileError):
        assert all(isinstance(r, dict) for _, r in records(raw, tmp_path_factory.mktemp("any")))
