from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from pii_bench.files import ResultsError
from pii_bench.runs.store import locked
from tests.cli.command import environment

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys, time
from pathlib import Path
from pii_bench.runs.store import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(3600)
"""


def test_a_folder_is_made_and_free_again_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "openai--m"
    for _ in range(2):
        with locked(folder):
            assert folder.is_dir()


def test_a_second_run_is_refused_and_the_first_one_keeps_its_lock(tmp_path: Path) -> None:
    message = f"{tmp_path}: another run is writing there: let it end, or give another --results"
    with locked(tmp_path):
        for _ in range(2):
            with pytest.raises(ResultsError, match=f"^{re.escape(message)}$"), locked(tmp_path):
                pass


def test_another_folder_is_free(tmp_path: Path) -> None:
    with locked(tmp_path / "openai--m"), locked(tmp_path / "openai--n"), locked(tmp_path):
        pass


def test_an_error_inside_passes_through_and_frees_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        raise ZeroDivisionError

    with locked(tmp_path):
        pass


def test_one_can_wait_for_it(tmp_path: Path) -> None:
    inside, entered = threading.Event(), []

    def hold() -> None:
        with locked(tmp_path):
            inside.set()
            time.sleep(0.02)
            entered.append("first")

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(timeout=60)
    with locked(tmp_path, wait=60.0):
        entered.append("second")
    thread.join()

    assert entered == ["first", "second"]


def test_a_process_that_is_killed_leaves_no_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert holder.stdout is not None
    with holder, holder.stdout:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(ResultsError, match="another run"), locked(tmp_path):
            pass
        holder.kill()
    assert holder.returncode == -signal.SIGKILL

    assert (tmp_path / ".lock").exists()
    with locked(tmp_path):
        pass


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
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


def test_who_is_refused_removes_nothing(tmp_path: Path) -> None:
    with locked(tmp_path):
        (tmp_path / ".demo.jsonl.k2_a9xyz.new").write_text("being written")
        with pytest.raises(ResultsError), locked(tmp_path):
            pass
        assert (tmp_path / ".demo.jsonl.k2_a9xyz.new").exists()


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")

    with (
        pytest.raises(ResultsError, match=r"runs/m: cannot be written: Not a directory$"),
        locked(tmp_path / "runs" / "m"),
    ):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with (
        pytest.raises(ResultsError, match=rf"{tmp_path}: cannot be written: Permission denied$"),
        locked(tmp_path),
    ):
        pass
