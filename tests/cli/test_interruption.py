"""Runs that are killed in the middle, and what the next run makes of it."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from pii_bench.datasets.catalog import load_dataset
from tests.builders import read_folder
from tests.cli.command import COMMAND, environment
from tests.protocol_server import HANG, Reply, completion

if TYPE_CHECKING:
    from pathlib import Path

    from tests.protocol_server import ProtocolServer, ReceivedRequest

PROMPTS = ("detection", "naive")
SAMPLES = load_dataset("demo").samples


def question(request: ReceivedRequest) -> tuple[str, str]:
    """The prompt and the sample that a request is about."""
    text = request.body["messages"][-1]["content"]
    (sample,) = (sample for sample in SAMPLES if sample.description in text)
    return PROMPTS[0] if text.endswith("Your lines:") else PROMPTS[1], sample.id


def answer(request: ReceivedRequest) -> Reply:
    """The same answer to the same question, of about 1,000 characters."""
    digest = hashlib.sha256("/".join(question(request)).encode()).hexdigest()
    return completion(f"小满 {digest * 15}", delay=0.005)


def hang_at_request(server: ProtocolServer, number: int) -> threading.Event:
    """Let the server answer fewer requests than that; the event says that it hangs."""
    reached = threading.Event()

    def step(request: ReceivedRequest) -> Reply:
        if len(server.requests) < number:
            return answer(request)
        reached.set()
        return HANG

    server.requests.clear()
    server.script(step)
    return reached


class Run:
    """`pii-bench run` on demo in a process of its own."""

    def __init__(self, server: ProtocolServer, results: Path) -> None:
        arguments = ("run", "--model", "openai/m", "--base-url", f"{server.url}/v1")
        options = ("--dataset", "demo", "--concurrency", "3", "--results", str(results))
        self.process = subprocess.Popen(  # noqa: S603 -- our own interpreter and code
            [*COMMAND, *arguments, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )

    def end(self) -> tuple[int, str]:
        _, errors = self.process.communicate()
        return self.process.returncode, errors


def stored(results: Path) -> list[tuple[str, str]]:
    """The questions whose answers are on disk as complete lines."""
    found = []
    for prompt in PROMPTS:
        paths = (results / "runs").glob(f"openai--m@*/{prompt}/demo.jsonl")
        lines = [line for path in paths for line in path.read_bytes().splitlines(keepends=True)]
        complete = [json.loads(line) for line in lines if line.endswith(b"\n")]
        found += [(prompt, line["id"]) for line in complete]
    return found


def test_a_run_that_is_killed_five_times_ends_as_if_it_had_never_been(
    protocol_server: ProtocolServer, own_folder: Path
) -> None:
    moments = random.Random(20250218)
    interrupted, undisturbed = own_folder / "interrupted", own_folder / "undisturbed"
    for _ in range(5):
        before = stored(interrupted)
        reached = hang_at_request(protocol_server, moments.randint(1, 5))
        run = Run(protocol_server, interrupted)
        assert reached.wait(timeout=60)
        time.sleep(moments.random() / 50)
        run.process.kill()

        assert run.end()[0] == -signal.SIGKILL
        after = stored(interrupted)
        assert set(before) <= set(after)
        assert len(after) == len(set(after))
        assert not set(before) & {question(request) for request in protocol_server.requests}

    protocol_server.script(answer)
    for results in (interrupted, undisturbed):
        assert Run(protocol_server, results).end()[0] == 0

    assert len(set(stored(undisturbed))) == len(stored(undisturbed)) == 24
    assert read_folder(interrupted) == read_folder(undisturbed)


def test_an_interrupted_run_stops_and_says_what_is_left(
    protocol_server: ProtocolServer, own_folder: Path
) -> None:
    reached = hang_at_request(protocol_server, 6)
    run = Run(protocol_server, own_folder)
    assert reached.wait(timeout=60)
    run.process.send_signal(signal.SIGINT)

    code, errors = run.end()
    kept = stored(own_folder)

    assert code == 1
    assert "Traceback" not in errors
    assert errors.splitlines()[-3:] == [
        "interrupted",
        (
            f"detection on demo: {12 - len(kept)} of 12 samples have no answer; "
            "run again to ask only these"
        ),
        "naive on demo: 12 of 12 samples have no answer; run again to ask only these",
    ]
    (path,) = (own_folder / "runs").glob("openai--m@*/detection/demo.jsonl")
    assert path.read_bytes().endswith(b"\n")
    assert len(kept) >= 3
