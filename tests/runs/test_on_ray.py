"""Two Ray workers give the results of one process, even if one of them is killed."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.cli import main
from pii_bench.runs.on_ray import map_on_ray
from tests.builders import read_folder, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytest.importorskip("ray", reason="`make test-ray` installs Ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    # Ray warns about its own settings and keeps sockets open until the process ends.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

LETTERS: Final = {
    f"{number:02}.txt": f"Dear Ms Lee, I am {20 + number} years old and live at {number} Mill Lane."
    for number in range(40)
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def squares() -> Callable[[int], tuple[int, int]]:
    """Return a slow function that squares a number and returns the worker's process id with it."""

    def square(number: int) -> tuple[int, int]:
        time.sleep(0.02)
        return number * number, os.getpid()

    return square


def test_nothing_is_lost_when_a_worker_is_killed() -> None:
    results: list[int] = []
    workers: set[int] = set()
    for square, worker in map_on_ray(squares, range(600), 2):
        if len(results) == 100:
            os.kill(worker, signal.SIGKILL)
        results.append(square)
        workers.add(worker)

    assert results == [number * number for number in range(600)]
    assert len(workers) == 3


def test_a_folder_is_masked_as_in_one_process(folder: Path) -> None:
    letters = folder / "letters"
    letters.mkdir()
    for name, text in LETTERS.items():
        (letters / name).write_text(text, encoding="utf-8")
    mask = ["mask", str(letters), "--query", "How old is she?"]

    assert main([*mask, "--out", "one"]) == 0
    assert main([*mask, "--out", "two", "--engine", "ray", "--workers", "2"]) == 0

    assert len(read_folder(folder / "one")) == len(LETTERS)
    assert read_folder(folder / "two") == read_folder(folder / "one")


def test_an_interrupted_table_is_resumed(folder: Path) -> None:
    table = write_lines(folder / "rows.jsonl", [{"text": text} for text in LETTERS.values()])
    mask = ["mask", str(table), "--column", "text", "--query", "How old is she?"]
    assert main([*mask, "--out", "one.jsonl"]) == 0
    lines = (folder / "one.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "two.jsonl.part").write_bytes(b"".join(lines[:7]) + lines[7][:9])

    assert main([*mask, "--out", "two.jsonl", "--engine", "ray", "--workers", "2"]) == 0

    assert (folder / "two.jsonl").read_bytes() == b"".join(lines)


def test_a_run_stores_the_responses_of_one_process(folder: Path) -> None:
    run = ["run", "--model", "encoder", "--dataset", "demo"]

    assert main([*run, "--results", "one"]) == 0
    assert main([*run, "--results", "two", "--engine", "ray", "--workers", "2"]) == 0

    one, two = (read_folder(folder / name / "runs" / "encoder") for name in ("one", "two"))
    stored = {name for name in one if name.endswith(".jsonl")}
    assert stored
    assert {name: two[name] for name in stored} == {name: one[name] for name in stored}
