"""Runs that are killed or crash and are then resumed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from itertools import count, product
from typing import TYPE_CHECKING, Final

from pii_bench.runs.store import RunFiles
from tests.batch_protocols import OpenAIBatches
from tests.batch_server import Item
from tests.builders import sample_record, write_lines
from tests.cli.command import environment
from tests.cli.test_interruption import finish, run_and_kill, stored
from tests.protocol_server import ProtocolServer
from tests.runs.batch_bench import IDS, Bench, Crash
from tests.torture.process import KEY, Trial

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.protocol_server import ReceivedRequest, Reply

CHATS: Final = 105
BATCHES: Final = 60
_SAMPLES: Final = 100
_IN_BATCH: Final = 40

# A lost job is searched for a minute after its submission; do not wait that long here.
_CODE: Final = """
import sys
from pii_bench.runs import batch
batch._APPEARS_WITHIN = 0.2
from pii_bench.cli import main
sys.exit(main())
"""


def kill_chats(folder: Path) -> Iterator[Trial]:
    """Kill runs without batches at random moments, three times each."""
    moments, kills = random.Random(13), 0
    with ProtocolServer() as server:
        undisturbed = finish(server, folder / "undisturbed", _SAMPLES)
        for number in count():
            results = folder / f"killed-{number}"
            killed, broken = 0, ""
            while killed < 3 and len(stored(results)) < 2 * _SAMPLES and not broken:
                try:
                    killed += run_and_kill(server, results, _SAMPLES, moments, late=0.2)
                except AssertionError as error:
                    broken = str(error)
            checks = {
                f"nothing is lost, duplicated or asked again {broken}".strip(): not broken,
                "the files are those of an undisturbed run": (
                    finish(server, results, _SAMPLES) == undisturbed
                ),
            }
            yield from (Trial.of(f"run {number}, kill {n + 1}", checks) for n in range(killed))
            kills += killed
            if kills >= CHATS:
                return


class _Batches(OpenAIBatches):
    """A batch server that sets an event after `number` calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.reached = threading.Event()
        self.number = 0
        self.outcome = lambda number: Item(text=f'### Answer: ["{number}"]')
        self.looks = 2

    def handle(self, call: ReceivedRequest) -> Reply:
        self.calls += 1
        if self.calls >= self.number:
            self.reached.set()
        return super().handle(call)


def kill_batches(folder: Path) -> Iterator[Trial]:
    """Kill batch runs at random moments, up to three times each."""
    moments = random.Random(13)
    undisturbed = _batch_run(folder / "undisturbed", moments, kills=0)[1]
    kills = 0
    for number in count():
        killed, answers, jobs = _batch_run(folder / f"killed-{number}", moments, kills=3)
        checks = {
            "the answers are those of an undisturbed run": answers == undisturbed,
            "no request is submitted twice": jobs == 1,
        }
        yield from (Trial.of(f"run {number}, kill {kill + 1}", checks) for kill in range(killed))
        kills += killed
        if kills >= BATCHES:
            return


def _batch_run(
    folder: Path, moments: random.Random, kills: int
) -> tuple[int, list[dict[str, object]], int]:
    """Kill a run up to `kills` times, then let it end; return kills, answers and jobs."""
    records = [sample_record(f"s{number}", query=f"Am I {number}?") for number in range(_IN_BATCH)]
    write_lines(folder / "set.jsonl", records)
    killed = 0
    with _Batches() as server:
        for _ in range(kills):
            server.reached.clear()
            server.number = server.calls + moments.randint(1, 5)
            process = _start(folder, server)
            while process.poll() is None and not server.reached.wait(0.01):
                pass
            time.sleep(moments.random() * 0.05)
            process.kill()
            killed += process.wait() == -signal.SIGKILL
            if process.returncode == 0:
                break
        code = _start(folder, server).wait(timeout=300)
        assert code == 0
        return killed, _stored(folder / "results"), len(server.jobs)


def _start(folder: Path, server: OpenAIBatches) -> subprocess.Popen[bytes]:
    arguments = ("run", "--model", "openai/m", "--base-url", f"{server.url}/v1", "--batch")
    return subprocess.Popen(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-c", _CODE, *arguments, "--dataset", "set.jsonl", "--task", "detection"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment(PII_BENCH_API_KEY=KEY),
    )


def _stored(results: Path) -> list[dict[str, object]]:
    """Return the answers without their request hashes, which depend on the server's port."""
    (path,) = results.glob("runs/*/detection/*.jsonl")
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [{key: value for key, value in line.items() if key != "request"} for line in lines]


def crash_batches(folder: Path) -> Iterator[Trial]:
    """Crash at every step of a batch, before and after its effect, singly and in pairs."""
    undisturbed = Bench(RunFiles.at(folder, "undisturbed", "naive", "tiny"))
    undisturbed.run()
    expected = undisturbed.files.responses.read_bytes()
    steps = range(len(undisturbed.service.steps))
    moments: list[tuple[int, ...]] = [(first,) for first in steps]
    moments += [(first, first + 1 + more) for first, more in product(steps, range(5))]
    for crashes, late in product(moments, (False, True)):
        name = f"crash-{'-'.join(map(str, crashes))}-{'late' if late else 'early'}"
        bench = Bench(RunFiles.at(folder, name, "naive", "tiny"))
        bench.service.faults = {step: Crash() for step in crashes}
        bench.service.late = late
        for _ in range(len(crashes) + 1):
            try:
                bench.run()
                break
            except Crash:
                continue
        yield Trial.of(
            name,
            {
                "no request is submitted twice": bench.service.submitted == [IDS],
                "the file is that of an undisturbed run": (
                    bench.files.responses.read_bytes() == expected
                ),
            },
        )


def tear_lines(folder: Path) -> Iterator[Trial]:
    """Cut the last line of response files at many places, as after a power cut."""
    bench = Bench(RunFiles.at(folder, "whole", "naive", "tiny"))
    bench.run()
    whole = bench.files.responses.read_bytes()
    last = whole.rstrip(b"\n").rpartition(b"\n")[0]
    for cut in range(len(last), len(whole), 3):
        torn = Bench(RunFiles.at(folder, f"torn-{cut}", "naive", "tiny"))
        torn.files.responses.parent.mkdir(parents=True)
        torn.files.responses.write_bytes(whole[:cut])
        complete = whole[:cut].count(b"\n")
        torn.run()
        asked = sum(len(job) for job in torn.service.submitted)
        ids = [json.loads(line)["id"] for line in torn.files.responses.read_bytes().splitlines()]
        yield Trial.of(
            f"cut at {cut}",
            {
                "only what is missing is asked": asked == len(IDS) - complete,
                "every sample has one answer": ids == IDS,
            },
        )
