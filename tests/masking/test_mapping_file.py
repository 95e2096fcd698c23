from __future__ import annotations

import json
import os
import re
import stat
import traceback
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import ResultsError
from pii_bench.masking import mapping_file
from pii_bench.masking.mapping_file import check_target, read_mapping, write_mapping

if TYPE_CHECKING:
    from pathlib import Path

MAPPING = {"<Full Name>": ("Zoë Lee", "Zoë\nLee"), "<Age>": ("32",)}


def test_a_mapping_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "mapping.json"

    write_mapping(path, MAPPING, force=False)

    assert json.loads(path.read_text(encoding="utf-8")) == {
        "format": "pii-bench-mask-1",
        "tags": {"<Full Name>": ["Zoë Lee", "Zoë\nLee"], "<Age>": ["32"]},
    }
    assert read_mapping(path) == MAPPING
    assert os.listdir(tmp_path) == ["mapping.json"]  # noqa: PTH208 -- hidden files too


@settings(max_examples=20)
@given(st.dictionaries(st.sampled_from(["<Age>", "<Age 1>"]), st.tuples(st.text(), st.text())))
def test_every_mapping_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, mapping: dict[str, tuple[str, ...]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"

    write_mapping(path, mapping, force=path.exists())

    assert read_mapping(path) == mapping


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_may_read_it(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "mapping.json"
    before = os.umask(umask)
    try:
        write_mapping(path, MAPPING, force=False)
        first = stat.S_IMODE(path.stat().st_mode)
        path.chmod(0o644)
        write_mapping(path, MAPPING, force=True)
    finally:
        os.umask(before)

    assert first == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_force_replaces_only_mapping_files(tmp_path: Path) -> None:
    path, letter = tmp_path / "mapping.json", tmp_path / "letter.txt"
    write_mapping(path, {}, force=False)
    letter.write_text("Dear Ann")
    (tmp_path / "link").symlink_to(path)

    with pytest.raises(PiiBenchError, match=r"already exists, .*; --force replaces it$"):
        write_mapping(path, MAPPING, force=False)
    assert read_mapping(path) == {}
    write_mapping(path, MAPPING, force=True)
    assert read_mapping(path) == MAPPING
    for other in (letter, tmp_path, tmp_path / "link"):
        with pytest.raises(PiiBenchError, match=r": not a mapping file; --force repl"):
            write_mapping(other, MAPPING, force=True)
    assert letter.read_text() == "Dear Ann"


def test_check_target_creates_no_file(tmp_path: Path) -> None:
    check_target(tmp_path / "new.json", force=False)
    check_target(tmp_path / "new.json", force=True)

    with pytest.raises(PiiBenchError, match="gone: no such folder; a mapping cannot be written"):
        check_target(tmp_path / "gone" / "new.json", force=False)
    assert list(tmp_path.iterdir()) == []


def test_of_two_concurrent_writers_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mapping.json"
    write_mapping(path, MAPPING, force=False)
    monkeypatch.setattr(mapping_file, "check_target", lambda *_, **__: None)

    with pytest.raises(ResultsError, match="cannot be written: File exists"):
        write_mapping(path, {}, force=False)
    assert read_mapping(path) == MAPPING


@pytest.mark.parametrize("force", [False, True])
def test_a_full_disk_keeps_the_earlier_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, force: bool
) -> None:
    path = tmp_path / "mapping.json"
    if force:
        write_mapping(path, MAPPING, force=False)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(ResultsError, match="cannot be written: No space left on device"):
        write_mapping(path, {}, force=force)
    left = ["mapping.json"] if force else []
    assert os.listdir(tmp_path) == left  # noqa: PTH208 -- hidden files too
    assert not force or read_mapping(path) == MAPPING


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "No such file or directory"),
        (b"Ann Lee", "not a mapping file: not valid JSON"),
        (b"\xff\xfe", "not a mapping file: not valid JSON"),
        (b"[" * 100_000, "not a mapping file: not valid JSON"),
        (b'["Ann Lee"]', "not a mapping file: must be a JSON object"),
        (b"{}", "mapping: 'tags' is missing"),
        (b'{"tags": {}}', "mapping: 'format' is missing"),
        (b'{"tags": {}, "format": "x"}', "mapping: 'format' must be 'pii-bench-mask-1'"),
        (b'{"tags": "Ann", "format": "x"}', "mapping: 'tags' must be an object, not a string"),
    ],
)
def test_another_file_is_refused_and_not_quoted(
    tmp_path: Path, content: bytes | None, what: str
) -> None:
    path = tmp_path / "mapping.json"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(InputFileError, match=f"^{re.escape(f'{path}: {what}')}$") as caught:
        read_mapping(path)

    assert "Ann" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("tag", "texts"),
    [
        ("Ann", ["x"]),
        ("<>", ["x"]),
        ("<Age", ["x"]),
        ("<A>e>", ["x"]),
        ("<Age>", []),
        ("<Age>", "Ann"),
        ("<Age>", [1]),
    ],
)
def test_errors_number_the_broken_entry(tmp_path: Path, tag: str, texts: object) -> None:
    path = tmp_path / "mapping.json"
    tags = {"<Person>": ["Bo"], tag: texts}
    path.write_text(json.dumps({"format": "pii-bench-mask-1", "tags": tags}))

    message = f"{path}: tag 2 must be <NAME> with a list of texts"
    with pytest.raises(InputFileError, match=f"^{re.escape(message)}$"):
        read_mapping(path)
