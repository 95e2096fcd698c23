from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import InputFileError
from pii_bench.files import ResultsError
from pii_bench.models.base import Completion
from pii_bench.runs.records import Failure, RunRecord, encode_record
from pii_bench.runs.store import Batch, BatchesFile, RunFiles, RunStore, locked, read_responses
from tests.full_disk import no_file_longer_than

if TYPE_CHECKING:
    from collections.abc import Callable

REQUESTS = {"s1": "hash1", "s2": "hash2", "s3": "hash3"}
ONE = RunRecord("s1", "hash1", Completion("one"))
TWO = RunRecord("s2", "hash2", Completion("zwei, \u4e8c"))
THREE = RunRecord("s3", "hash3", Completion("three"))
FAILED = RunRecord("s2", "hash2", Failure("timeout", ""))


def lines(*records: RunRecord) -> bytes:
    return b"".join(encode_record(record) for record in records)


def write_responses(files: RunFiles, content: bytes) -> None:
    files.responses.parent.mkdir(parents=True)
    files.responses.write_bytes(content)


def done_after_opening(files: RunFiles, requests: dict[str, str] | None = None) -> set[str]:
    with RunStore(files, requests or REQUESTS) as store:
        return set(store.done)


def test_the_paths_of_the_files_of_a_run(tmp_path: Path) -> None:
    files = RunFiles.at(tmp_path, "openai/gpt-4o", "self-cot", "my-set-0a1b")

    folder = tmp_path / "openai--gpt-4o" / "self-cot"
    assert files == RunFiles(
        responses=folder / "my-set-0a1b.jsonl",
        manifest=folder / "my-set-0a1b.run.json",
        superseded=folder / "my-set-0a1b.superseded.jsonl",
        batches=folder / "my-set-0a1b.batch.json",
    )
    assert RunFiles.of_manifest(files.manifest) == files
    assert files.model_folder == tmp_path / "openai--gpt-4o"


def test_no_name_leads_out_of_the_results_folder(tmp_path: Path) -> None:
    files = RunFiles.at(tmp_path, "openai/../../x y:z\\w", "na/ive", "de\0mo")

    model = "openai--..--..--x--y--z--w-d3303dc8"
    assert files.responses == tmp_path / model / "na--ive" / "de--mo-36235a62.jsonl"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("bilstm-crf", "bilstm-crf"),
        ("openai/org/m", "openai--org--m"),
        ("openai/m@localhost:8000", "openai--m@localhost--8000"),
        ("openai/m@localhost:8000/a", "openai--m@localhost--8000--a-"),
        ("local/m", "local--m"),
        ("local--m", "local--m-"),
        ("local//m", "local--m-"),
        ("local m", "local--m-"),
        ("local/m:8b", "local--m--8b-"),
        ("模型", "---"),
        ("model\ud800", "model---"),
        ("..", "..-"),
        ("x" * 300, f"{'x' * 150}-"),
    ],
)
def test_a_folder_name_ends_in_a_hash_if_it_changes_the_model_name(
    tmp_path: Path, name: str, folder: str
) -> None:
    actual = RunFiles.at(tmp_path, name, "naive", "demo").model_folder.name

    if folder.endswith("-"):
        assert actual.startswith(folder)
        assert re.fullmatch("[0-9a-f]{8}", actual.removeprefix(folder))
    else:
        assert actual == folder


@given(st.lists(st.text("am/-.:@1 é", max_size=6), min_size=2, max_size=2, unique=True))
def test_two_names_never_share_a_folder(names: list[str]) -> None:
    one, other = (RunFiles.at(Path("runs"), name, "naive", "demo") for name in names)

    assert one.responses != other.responses


def test_an_answer_is_kept_and_a_failed_call_only_until_the_next_run(files: RunFiles) -> None:
    with RunStore(files, REQUESTS) as store:
        store.append(ONE)
        store.append(FAILED)
        assert store.done == {"s1"}
        # Stored at once.
        assert files.responses.read_bytes() == lines(ONE, FAILED)

    assert done_after_opening(files) == {"s1"}
    assert files.responses.read_bytes() == lines(ONE)


@pytest.mark.parametrize(
    ("broken", "message"),
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
def test_a_broken_line_is_reported_and_moved_to_the_superseded_file(
    files: RunFiles, broken: bytes, message: str
) -> None:
    write_responses(files, lines(ONE) + broken + lines(THREE))

    with RunStore(files, REQUESTS) as store:
        assert store.unreadable == [f"{files.responses}:2: {message}"]
        assert store.done == {"s1", "s3"}

    assert files.responses.read_bytes() == lines(ONE, THREE)
    assert files.superseded.read_bytes() == broken
    # A broken superseded line does not stop a later run.
    with RunStore(files, REQUESTS) as store:
        assert store.unreadable == []
        assert store.done == {"s1", "s3"}


def test_a_response_to_another_request_is_superseded(files: RunFiles) -> None:
    write_responses(files, lines(ONE, TWO, THREE))

    with RunStore(files, REQUESTS | {"s2": "another"}) as store:
        assert store.done == {"s1", "s3"}
        assert (store.superseded, store.reused) == (1, 0)

    assert files.responses.read_bytes() == lines(ONE, THREE)
    assert files.superseded.read_bytes() == lines(TWO)


def test_a_superseded_response_is_reused_for_its_request(files: RunFiles) -> None:
    write_responses(files, lines(ONE, TWO, THREE))
    others = {"s1": "other1", "s2": "other2", "s3": "other3"}
    another = RunRecord("s2", "other2", Completion("another two"))
    with RunStore(files, others) as store:
        store.append(another)

    with RunStore(files, REQUESTS) as store:
        assert store.done == {"s1", "s2", "s3"}
        assert (store.superseded, store.reused) == (1, 3)
    assert files.responses.read_bytes() == lines(ONE, TWO, THREE)

    # Switching between the requests neither asks again nor lets the file grow.
    before = files.superseded.read_bytes()
    assert before == lines(ONE, TWO, THREE, another)
    for requests, done in ((others, {"s2"}), (REQUESTS, {"s1", "s2", "s3"})) * 2:
        assert done_after_opening(files, requests) == done
    assert files.superseded.read_bytes() == before


def test_a_newer_response_is_preferred_to_a_superseded_one(files: RunFiles) -> None:
    again = RunRecord("s1", "hash1", Completion("another one"))
    write_responses(files, lines(again))
    files.superseded.write_bytes(lines(ONE, TWO))

    assert done_after_opening(files) == {"s1", "s2"}
    assert files.responses.read_bytes() == lines(again, TWO)


def test_a_torn_superseded_line_is_ignored(files: RunFiles) -> None:
    write_responses(files, lines(ONE))
    files.superseded.write_bytes(lines(TWO) + lines(THREE)[:-9])

    assert done_after_opening(files, REQUESTS | {"s1": "another"}) == {"s2"}
    assert done_after_opening(files) == {"s1", "s2"}


def test_of_two_responses_to_one_request_the_first_is_kept(files: RunFiles) -> None:
    again = RunRecord("s1", "hash1", Completion("another one"))
    write_responses(files, lines(ONE, again, TWO))

    assert done_after_opening(files) == {"s1", "s2"}
    assert files.responses.read_bytes() == lines(ONE, TWO)


def test_lines_are_sorted_in_the_order_of_the_dataset(files: RunFiles) -> None:
    with RunStore(files, REQUESTS) as store:
        for record in (THREE, FAILED, ONE):
            store.append(record)
        store.sort()
        assert files.responses.read_bytes() == lines(ONE, FAILED, THREE)
        # Of two lines of a sample the last is kept.
        store.append(TWO)
        store.sort()
        # A sorted file is left alone, by another sort and by the next run.
        same = files.responses.with_name("same")
        same.hardlink_to(files.responses)
        store.sort()

    assert done_after_opening(files) == {"s1", "s2", "s3"}
    assert files.responses.read_bytes() == lines(ONE, TWO, THREE)
    assert files.responses.samefile(same)


def test_answers_whose_file_is_gone_are_not_done(files: RunFiles) -> None:
    with RunStore(files, REQUESTS) as store:
        store.append(ONE)
        files.responses.unlink()
        with pytest.raises(ResultsError, match="No such file"):
            store.sort()


def test_a_line_is_complete_even_if_the_system_writes_single_bytes(
    files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    write: Callable[[int, memoryview], int] = os.write
    with RunStore(files, REQUESTS) as store, monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:1]))
        store.append(TWO)

    assert files.responses.read_bytes() == lines(TWO)


def test_a_line_that_does_not_fit_on_the_disk_is_removed_again(files: RunFiles) -> None:
    fits = len(lines(ONE)) + 5
    with RunStore(files, REQUESTS) as store:
        store.append(ONE)
        with (
            no_file_longer_than(fits),
            pytest.raises(ResultsError, match=r"tiny\.jsonl: cannot be written: File too large$"),
        ):
            store.append(TWO)
        assert files.responses.read_bytes() == lines(ONE)
        # The disk has room again when a running call ends.
        store.append(THREE)

    assert files.responses.read_bytes() == lines(ONE, THREE)
    assert done_after_opening(files) == {"s1", "s3"}


def test_a_failed_sort_leaves_the_file_unchanged(files: RunFiles) -> None:
    unsorted = lines(TWO, ONE)
    with RunStore(files, REQUESTS) as store:
        store.append(TWO)
        store.append(ONE)
        with (
            no_file_longer_than(len(unsorted) - 1),
            pytest.raises(ResultsError, match=r"tiny\.jsonl: cannot be written: File too large$"),
        ):
            store.sort()

    assert files.responses.read_bytes() == unsorted
    assert list(files.responses.parent.iterdir()) == [files.responses]


def test_a_failed_write_of_superseded_lines_leaves_the_responses_unchanged(
    files: RunFiles,
) -> None:
    write_responses(files, lines(ONE, TWO))

    with (
        no_file_longer_than(5),
        pytest.raises(ResultsError, match=r"tiny\.superseded\.jsonl: cannot be .*File too large$"),
    ):
        RunStore(files, {"s1": "hash1", "s2": "another"})

    assert files.responses.read_bytes() == lines(ONE, TWO)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_umask_decides_who_may_read_the_files(files: RunFiles, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        with RunStore(files, REQUESTS) as store:
            store.append(TWO)
            store.append(ONE)
            assert files.responses.stat().st_mode & 0o777 == mode
            store.sort()
        done_after_opening(files, {"s1": "hash1", "s2": "another"})
    finally:
        os.umask(before)

    assert files.responses.stat().st_mode & 0o777 == mode
    assert files.superseded.stat().st_mode & 0o777 == mode


def test_reading_raises_at_a_broken_line_or_collects_it(files: RunFiles) -> None:
    # The last line is incomplete, which is no error.
    write_responses(files, lines(ONE) + b"{}\n" + lines(TWO) + b'{"id": "s3"')
    message = f"{files.responses}:2: record: 'id' is missing"

    with pytest.raises(InputFileError) as caught:
        list(read_responses(files.responses))
    assert str(caught.value) == message

    unreadable: list[str] = []
    read = list(read_responses(files.responses, unreadable))
    assert read == [ONE, TWO]
    assert unreadable == [message]


def test_a_lock_creates_the_folder_and_is_released(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "openai--m"
    for _ in range(2):
        # Locks of different folders are independent.
        with locked(folder), locked(tmp_path / "runs"):
            assert folder.is_dir()


def test_a_second_run_is_refused_and_the_first_one_keeps_its_lock(tmp_path: Path) -> None:
    message = f"{tmp_path}: another run is writing there: wait for it, or give another --results"
    with locked(tmp_path):
        (tmp_path / ".demo.jsonl.k2_a9xyz.new").write_text("being written")
        for _ in range(2):
            with pytest.raises(ResultsError, match=f"^{re.escape(message)}$"), locked(tmp_path):
                pass
        assert (tmp_path / ".demo.jsonl.k2_a9xyz.new").exists()


def test_a_run_can_wait_for_a_lock(tmp_path: Path) -> None:
    is_locked, order = threading.Event(), []

    def hold() -> None:
        with locked(tmp_path):
            is_locked.set()
            time.sleep(0.02)
            order.append("first")

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_locked.wait(timeout=60)
    with locked(tmp_path, wait=60.0):
        order.append("second")
    thread.join()

    assert order == ["first", "second"]


def test_half_written_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    prompt = tmp_path / "naive"
    prompt.mkdir()
    kept = [".hidden", ".demo.jsonl.new", ".notes.k2_a9xyz.txt", "demo.jsonl", "demo.abcdefgh.new"]
    leftover = ".demo.jsonl.k2_a9xyz.new"
    for name in (*kept, leftover):
        for folder in (tmp_path, prompt):
            (folder / name).write_text("half of it")

    with locked(tmp_path):
        assert sorted(path.name for path in prompt.iterdir()) == sorted(kept)
        assert not (tmp_path / leftover).exists()


def test_batches_are_read_back_in_order(files: RunFiles) -> None:
    first, second = Batch("00ff", 1.5, {"s2": "h2", "s1": "h1"}), Batch("aa00", 2.0, {"s3": "h3"})
    batches = BatchesFile(files)
    batches.put(first)
    batches.put(second)
    batches.set_id(first, "job-1")

    read = list(BatchesFile(files))

    assert read == [Batch("00ff", 1.5, {"s2": "h2", "s1": "h1"}, "job-1"), second]
    assert list(read[0].requests) == ["s2", "s1"]


@pytest.mark.parametrize("content", ["", "[]", '{"jobs": [{}]}', '{"jobs": [{"tag": 3}]}'])
def test_an_invalid_list_of_batches_is_reported(files: RunFiles, content: str) -> None:
    files.batches.parent.mkdir(parents=True)
    files.batches.write_text(content)

    with pytest.raises(InputFileError, match=r"tiny\.batch\.json: no list of batches") as caught:
        BatchesFile(files)

    advice = "move the file away and run again: what its batches ask is asked, and paid, again"
    assert str(caught.value).endswith(f"; {advice}")


def lock(files: RunFiles) -> None:
    with locked(files.model_folder):
        pass


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda files: RunStore(files, REQUESTS), "tiny.jsonl"),
        (lambda files: BatchesFile(files).put(Batch("00", 1.5, {"s1": "h1"})), "tiny.batch.json"),
        (lock, "fake--one"),
    ],
    ids=["responses", "batches", "lock"],
)
def test_a_file_in_the_way_of_the_folder_is_reported(
    files: RunFiles, write: Callable[[RunFiles], object], name: str
) -> None:
    files.model_folder.parent.write_text("in the way")

    with pytest.raises(ResultsError, match=rf"/{name}: cannot be written: Not a directory$"):
        write(files)
