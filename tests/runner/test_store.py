from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError
from pii_bench.files import ResultsError
from pii_bench.models.base import Completion
from pii_bench.runner.records import Failure, RunRecord, encode_record
from pii_bench.runner.store import RunFiles, RunStore, read_lines
from tests.full_disk import no_file_longer_than

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REQUESTS = {"s1": "hash1", "s2": "hash2", "s3": "hash3"}
ONE = RunRecord("s1", "hash1", Completion("one"))
TWO = RunRecord("s2", "hash2", Completion("zwei, \u4e8c"))
THREE = RunRecord("s3", "hash3", Completion("three"))
FAILED = RunRecord("s2", "hash2", Failure("timeout", ""))


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles.at(tmp_path / "runs", "openai/gpt-4o", "naive", "demo")


def lines(*records: RunRecord) -> bytes:
    return b"".join(encode_record(record) for record in records)


def left_by_a_run(files: RunFiles, content: bytes) -> None:
    files.responses.parent.mkdir(parents=True)
    files.responses.write_bytes(content)


def done_after_opening(files: RunFiles, requests: dict[str, str] | None = None) -> set[str]:
    with RunStore(files, requests or REQUESTS) as store:
        return set(store.done)


def test_where_the_files_of_a_run_are(tmp_path: Path) -> None:
    files = RunFiles.at(tmp_path, "openai/gpt-4o", "self-cot", "my-set-0a1b")

    folder = tmp_path / "openai--gpt-4o" / "self-cot"
    assert files.responses == folder / "my-set-0a1b.jsonl"
    assert files.manifest == folder / "my-set-0a1b.run.json"
    assert files.superseded == folder / "my-set-0a1b.superseded.jsonl"
    assert RunFiles.of_manifest(files.manifest) == files
    assert files.model_folder == tmp_path / "openai--gpt-4o"


def test_no_name_leaves_the_folder_of_results(tmp_path: Path) -> None:
    files = RunFiles.at(tmp_path, "openai/../../x y:z\\w", "na/ive", "de\0mo")

    assert files.responses == tmp_path / "openai--..--..--x--y--z--w" / "na--ive" / "de--mo.jsonl"


def test_a_new_store_is_empty(files: RunFiles) -> None:
    assert done_after_opening(files) == set()
    assert files.responses.read_bytes() == b""


def test_what_is_appended_is_there_at_once_and_next_time(files: RunFiles) -> None:
    with RunStore(files, REQUESTS) as store:
        store.append(ONE)
        assert store.done == {"s1"}
        assert files.responses.read_bytes() == lines(ONE)

    assert done_after_opening(files) == {"s1"}
    assert files.responses.read_bytes() == lines(ONE)


def test_a_failed_call_is_kept_until_the_next_run(files: RunFiles) -> None:
    with RunStore(files, REQUESTS) as store:
        store.append(ONE)
        store.append(FAILED)
        assert store.done == {"s1"}
        assert files.responses.read_bytes() == lines(ONE, FAILED)

    assert done_after_opening(files) == {"s1"}
    assert files.responses.read_bytes() == lines(ONE)


def test_a_torn_last_line_is_dropped_wherever_it_tore(files: RunFiles) -> None:
    left_by_a_run(files, b"")
    whole, last = lines(ONE), lines(TWO)

    for cut in range(len(last)):
        files.responses.write_bytes(whole + last[:cut])
        assert done_after_opening(files) == {"s1"}
        assert files.responses.read_bytes() == whole


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        (b'{"id": "s2", "request": "hash2", "te\n', "no line of a run"),
        (b"\n", "no line of a run"),
        (b"12\n", "no line of a run"),
        (b'{"text": "\xff"}\n', "no line of a run"),
        (b"[" * 100_000 + b"\n", "no line of a run"),
        (b'{"id": "s2", "text": "Ann"}\n', "record: 'request' is missing"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_broken_line_is_named_and_nothing_is_changed(
    files: RunFiles, broken: bytes, what: str
) -> None:
    content = lines(ONE) + broken + lines(THREE)
    left_by_a_run(files, content)

    with pytest.raises(InputFileError) as caught:
        RunStore(files, REQUESTS)

    assert str(caught.value) == f"{files.responses}:2: {what}"
    assert files.responses.read_bytes() == content
    assert not files.superseded.exists()


def test_a_response_to_another_request_moves_away_and_is_never_used(files: RunFiles) -> None:
    left_by_a_run(files, lines(ONE, TWO, THREE))

    assert done_after_opening(files, REQUESTS | {"s2": "another"}) == {"s1", "s3"}
    assert files.responses.read_bytes() == lines(ONE, THREE)
    assert files.superseded.read_bytes() == lines(TWO)

    # Not even when its request is asked again.
    assert done_after_opening(files) == {"s1", "s3"}


def test_superseded_responses_add_up(files: RunFiles) -> None:
    left_by_a_run(files, lines(ONE, TWO))

    done_after_opening(files, {"s2": "hash2"})
    done_after_opening(files, {"s2": "another"})

    assert files.superseded.read_bytes() == lines(ONE, TWO)
    assert files.responses.read_bytes() == b""


def test_of_two_responses_to_one_request_the_first_stays(files: RunFiles) -> None:
    again = RunRecord("s1", "hash1", Completion("another one"))
    left_by_a_run(files, lines(ONE, again, TWO))

    assert done_after_opening(files) == {"s1", "s2"}
    assert files.responses.read_bytes() == lines(ONE, TWO)


def test_lines_are_sorted_as_the_dataset_is(files: RunFiles) -> None:
    with RunStore(files, REQUESTS) as store:
        for record in (THREE, FAILED, ONE):
            store.append(record)
        store.sort()
        assert files.responses.read_bytes() == lines(ONE, FAILED, THREE)


def test_one_can_go_on_appending_after_sorting(files: RunFiles) -> None:
    with RunStore(files, REQUESTS) as store:
        store.append(THREE)
        store.append(ONE)
        store.sort()
        store.append(TWO)

    assert files.responses.read_bytes() == lines(ONE, THREE, TWO)


def test_a_file_in_order_is_not_written_again(files: RunFiles) -> None:
    with RunStore(files, REQUESTS) as store:
        store.append(ONE)
        store.append(THREE)
        before = files.responses.stat().st_ino
        store.sort()

    assert done_after_opening(files) == {"s1", "s3"}
    assert files.responses.stat().st_ino == before


def test_a_line_is_whole_even_if_the_system_writes_a_byte_at_a_time(
    files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    write: Callable[[int, memoryview], int] = os.write
    with RunStore(files, REQUESTS) as store, monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:1]))
        store.append(TWO)

    assert files.responses.read_bytes() == lines(TWO)


def test_a_full_disk_is_named(files: RunFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with RunStore(files, REQUESTS) as store:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(ResultsError, match=r"demo\.jsonl: cannot be written: No space"):
                store.append(ONE)
        assert store.done == set()


def test_of_a_line_that_does_not_fit_nothing_stays(files: RunFiles) -> None:
    fits = len(lines(ONE)) + 5
    with RunStore(files, REQUESTS) as store:
        store.append(ONE)
        with (
            no_file_longer_than(fits),
            pytest.raises(ResultsError, match=r"demo\.jsonl: cannot be written: File too large$"),
        ):
            store.append(TWO)
        assert files.responses.read_bytes() == lines(ONE)
        # The disk has room again, and a call that was under way ends.
        store.append(THREE)

    assert files.responses.read_bytes() == lines(ONE, THREE)
    assert done_after_opening(files) == {"s1", "s3"}


def test_lines_that_cannot_be_sorted_stay_as_they_are(files: RunFiles) -> None:
    unsorted = lines(TWO, ONE)
    with RunStore(files, REQUESTS) as store:
        store.append(TWO)
        store.append(ONE)
        with (
            no_file_longer_than(len(unsorted) - 1),
            pytest.raises(ResultsError, match=r"demo\.jsonl: cannot be written: File too large$"),
        ):
            store.sort()

    assert files.responses.read_bytes() == unsorted
    assert list(files.responses.parent.iterdir()) == [files.responses]


def test_lines_that_cannot_be_superseded_stay_as_they_are(files: RunFiles) -> None:
    left_by_a_run(files, lines(ONE, TWO))

    with (
        no_file_longer_than(5),
        pytest.raises(ResultsError, match=r"demo\.jsonl: cannot be written: File too large$"),
    ):
        RunStore(files, {"s1": "hash1", "s2": "another"})

    assert files.responses.read_bytes() == lines(ONE, TWO)


def test_others_may_read_it_before_and_after_sorting(files: RunFiles) -> None:
    with RunStore(files, REQUESTS) as store:
        store.append(TWO)
        store.append(ONE)
        assert files.responses.stat().st_mode & 0o777 == 0o644
        store.sort()

    assert files.responses.stat().st_mode & 0o777 == 0o644


def test_a_file_in_the_place_of_the_folder_is_named(files: RunFiles) -> None:
    files.responses.parent.parent.parent.write_text("a file named runs")

    with pytest.raises(ResultsError, match=r"demo\.jsonl: cannot be written: Not a directory$"):
        RunStore(files, REQUESTS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_named(files: RunFiles, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(ResultsError, match=r"demo\.jsonl: cannot be written: Permission denied$"):
        RunStore(files, REQUESTS)


def test_reading_leaves_a_torn_last_line_out(files: RunFiles) -> None:
    left_by_a_run(files, lines(ONE, TWO) + b'{"id": "s3"')

    assert list(read_lines(files.responses)) == [(lines(ONE), ONE), (lines(TWO), TWO)]
