from __future__ import annotations

import errno
import json
import math
import os
import subprocess
from datetime import date
from io import StringIO
from pathlib import Path
from subprocess import PIPE
from typing import IO, TYPE_CHECKING

import pytest
from rich.console import Console

from pii_bench.cli import DONE, INCOMPLETE, WRONG_INPUT, main
from pii_bench.cli.terminal import RunProgress, echo_json, log_progress
from pii_bench.models.base import Usage
from pii_bench.models.budget import Ledger
from pii_bench.models.catalog import Price
from tests.cli.command import COMMAND, environment
from tests.models.simulated import make_request
from tests.ranking.stored_runs import changed, store_run, tiny_dataset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Capsys

FULL = Path("/dev/full")


def test_json_output_has_no_control_characters(capsys: Capsys) -> None:
    name = "\x1b[2J\x7f\x9b\u202e\ud800é"

    echo_json([{"model": name}])

    shown = capsys.readouterr().out
    assert json.loads(shown) == [{"model": name}]
    assert shown.replace("\n", "").isascii()
    assert shown.replace("\n", "").isprintable()


@pytest.mark.parametrize("figure", [math.inf, -math.inf, math.nan])
def test_json_output_has_no_numbers_that_json_lacks(figure: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        echo_json([{"threshold": figure}])


@pytest.mark.parametrize(
    ("command", "code"),
    [
        *[("leaderboard", 1), ("report", 1), ("analyse", 1), ("diagnose", 1)],
        ("cost --dataset tiny.jsonl --task query-related", 1),
        ("export every-eval-ever --out out", 1),
        # Of what it compares nothing lacks.
        ("compare fake/one fake/two", 0),
    ],
)
def test_a_run_that_is_left_out_is_logged_and_the_others_are_shown(
    capsys: Capsys, command: str, code: int
) -> None:
    dataset, runs = tiny_dataset(Path("tiny.jsonl")), Path("results/runs")
    for model, answer in (("fake/one", "32"), ("fake/two", "Ann Lee")):
        answers = {"s1": f'### Answer: ["{answer}"]', "s2": "### Answer: []"}
        store_run(runs, dataset, "naive", answers, model=model)
    store_run(runs, changed(dataset), "naive", {}, model="fake/three")

    assert main(command.split()) == code

    output = capsys.readouterr()
    assert output.err.startswith("left out: ") or "\nleft out: " in output.err
    assert output.out


def run_alone(
    arguments: list[str], launcher: tuple[str, ...] = (), stdout: int | IO[bytes] = PIPE
) -> subprocess.CompletedProcess[str]:
    """Run a command in a separate process whose encoding is ASCII."""
    return subprocess.run(  # noqa: S603 -- our own interpreter and code
        [*launcher, *COMMAND, *arguments],
        stdout=stdout,
        stderr=PIPE,
        text=True,
        env=environment(PYTHONIOENCODING="ascii:strict", LC_ALL="C.UTF-8"),
        check=False,
    )


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("command", [["models"], ["data", "stats", "--dataset", "demo"]])
def test_a_full_disk_under_standard_output_is_an_error(command: list[str]) -> None:
    with FULL.open("wb") as full:
        done = run_alone(command, stdout=full)

    assert (done.returncode, done.stderr) == (
        INCOMPLETE,
        "pii-bench: standard output cannot be written: No space left on device\n",
    )


def test_a_reader_that_has_read_enough_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = run_alone(["models"], stdout=closed)

    assert (done.returncode, done.stderr) == (DONE, "")


def test_another_broken_pipe_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    def broken(_: object) -> bool:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    monkeypatch.setattr("pii_bench.cli.models.run", broken)

    assert main(["models"]) == WRONG_INPUT
    assert capsys.readouterr().err == "pii-bench: Broken pipe\n"


@pytest.mark.parametrize(
    ("closed", "command", "message"),
    [
        ("<&-", ["mask", "--query", "Q"], "pii-bench: standard input is closed\n"),
        (">&-", ["data", "stats"], "pii-bench: standard output is closed\n"),
        # The message is not printed to standard output instead.
        ("2>&-", ["score", "gone.jsonl", "--dataset", "demo"], ""),
    ],
)
def test_a_closed_stream_is_no_traceback(closed: str, command: list[str], message: str) -> None:
    done = run_alone(command, launcher=("/bin/sh", "-c", f'exec "$@" {closed}', "sh"))

    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_characters_that_the_encoding_lacks_are_escaped() -> None:
    done = run_alone(["score", "gone.jsonl", "--dataset", "é\u4e8c.jsonl"])

    assert (done.returncode, done.stderr) == (
        2,
        "pii-bench: \\xe9\\u4e8c.jsonl: No such file or directory\n",
    )


def test_progress_is_logged_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    seconds: Iterator[float] = iter([0.0, 4.0, 11.0, 11.0, 12.0, 30.0, 30.0])
    monkeypatch.setattr("pii_bench.cli.terminal.time.monotonic", lambda: next(seconds))

    assert list(log_progress("abcd", "letters read", of=4)) == ["a", "b", "c", "d"]

    assert capsys.readouterr().err == "2 of 4 letters read\n4 of 4 letters read\n"


def show(
    progress: RunProgress,
    *,
    done: int = 1,
    total: int = 3,
    ledger: Ledger | None = None,
) -> None:
    """Show a run whose first call fails; each call takes 1,000 tokens."""
    progress.label("naive on demo", ledger)
    progress.started(done, total)
    for number in range(total - done):
        if ledger is not None:
            ledger.settle(ledger.reserve(make_request()), Usage(1000, 0))
        progress.advanced(failed=number == 0)


@pytest.fixture
def terminal() -> Console:
    return Console(file=StringIO(), force_terminal=True, width=100)


def printed(terminal: Console) -> str:
    assert isinstance(terminal.file, StringIO)
    return terminal.file.getvalue()


def test_without_a_terminal_progress_is_printed_as_plain_lines(capsys: Capsys) -> None:
    with RunProgress() as progress:
        show(progress)
        progress.waiting(finished=0, total=0)
        progress.waiting(finished=1, total=3)

    begun, to_answer, last, *batches = capsys.readouterr().err.splitlines()
    label = "naive on demo"
    assert (begun, to_answer) == (f"{label}: 1 of 3 already answered", f"{label}: 2 to answer")
    assert last.startswith(f"{label}: 3 of 3 done, 1 failed, ")
    assert batches == [f"{label}: batches: {count} finished" for count in ("0 of ?", "1 of 3")]


def test_a_run_without_calls_prints_little(capsys: Capsys) -> None:
    show(RunProgress(), done=3)
    show(RunProgress(), done=0, total=0)

    assert capsys.readouterr().err == "naive on demo: 3 of 3 already answered\n"


def test_on_a_terminal_there_is_a_bar_and_names_stay_as_they_are(terminal: Console) -> None:
    name = f"{'a-long-name-' * 9}[v1]:smile:"
    with RunProgress(terminal) as progress:
        show(progress)
        progress.label(name)
        progress.note("slow")

    bar = printed(terminal)
    assert f"{name}: slow" in bar
    assert "to answer" not in bar
    assert "3/3" in bar
    assert "1 failed" in bar


def test_the_cost_is_shown_if_the_price_is_known(terminal: Console, capsys: Capsys) -> None:
    price = Price(2.5, 10.0, date(2026, 1, 1), "test")
    for ledger, cost in ((Ledger(None), ""), (Ledger(price), "0.0050 USD")):
        with RunProgress(terminal) as progress:
            show(progress, ledger=ledger)
        assert ("USD" in printed(terminal)) == bool(cost)
        assert cost in printed(terminal)
        show(RunProgress(), ledger=Ledger(ledger.price))
        assert capsys.readouterr().err.endswith(f" s left{cost and f', {cost}'}\n")


def pause_and_resume(progress: RunProgress) -> None:
    """Show a run that is paused for another one and resumed."""
    for label, done in (("naive", 0), ("detection", 0), ("naive", 1)):
        progress.label(label)
        progress.started(done, 3)
    progress.advanced(failed=False)
    progress.advanced(failed=False)


def test_a_resumed_run_is_announced_once(capsys: Capsys) -> None:
    pause_and_resume(RunProgress())

    *announced, end = capsys.readouterr().err.splitlines()
    assert announced == ["naive: 3 to answer", "detection: 3 to answer"]
    assert end.startswith("naive: 3 of 3 done, 0 failed, ")


def test_a_resumed_run_keeps_its_bar(terminal: Console) -> None:
    with RunProgress(terminal) as progress:
        pause_and_resume(progress)

    last = [bar for bar in printed(terminal).splitlines() if "naive" in bar or "detection" in bar]
    assert ["naive" in bar and "3/3" in bar for bar in last[-2:]] == [True, False]
    assert "0/3" in last[-1]
