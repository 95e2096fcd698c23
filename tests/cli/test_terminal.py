from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import INCOMPLETE
from pii_bench.cli.terminal import counted, say_json
from tests.cli.command import COMMAND, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL = Path("/dev/full")


def test_rows_as_json_are_json_and_move_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    name = "\x1b[2J\x7f\x9b\u202e\ud800é"

    say_json([{"model": name}])

    shown = capsys.readouterr().out
    assert json.loads(shown) == [{"model": name}]
    assert shown.replace("\n", "").isascii()
    assert shown.replace("\n", "").isprintable()


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("command", [["models"], ["data", "stats", "--dataset", "demo"]])
def test_a_full_disk_under_standard_output_is_told(command: list[str]) -> None:
    with FULL.open("wb") as full:
        done = subprocess.run(  # noqa: S603 -- our own interpreter and code
            [*COMMAND, *command],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )

    assert done.returncode == INCOMPLETE
    assert done.stderr.decode() == (
        "pii-bench: standard output cannot be written: No space left on device\n"
    )


def test_what_the_encoding_of_a_terminal_lacks_is_told_by_its_number() -> None:
    done = subprocess.run(  # noqa: S603 -- our own interpreter and code
        [*COMMAND, "score", "gone.jsonl", "--dataset", "é\u4e8c.jsonl"],
        capture_output=True,
        env=environment(PYTHONIOENCODING="ascii:strict", LC_ALL="C.UTF-8"),
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.decode("ascii") == (
        "pii-bench: \\xe9\\u4e8c.jsonl: No such file or directory\n"
    )


def test_a_long_reading_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds: Iterator[float] = iter([0.0, 4.0, 11.0, 11.0, 12.0, 30.0, 30.0])
    monkeypatch.setattr("pii_bench.cli.terminal.time.monotonic", lambda: next(seconds))

    assert list(counted("abcd", "letters read", of=4)) == ["a", "b", "c", "d"]

    assert capsys.readouterr().err == "2 of 4 letters read\n4 of 4 letters read\n"
