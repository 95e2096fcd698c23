"""Runs that are interrupted, and the runs that continue them."""

from __future__ import annotations

import hashlib
import json
import random
import re
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.prompting.strategies import DETECTION, get_strategy, load_prompt
from pii_bench.runs.store import locked
from tests.builders import read_folder
from tests.cli.command import COMMAND, environment
from tests.full_disk import no_file_longer_than
from tests.protocol_server import HANG, Reply, completion

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys
    from tests.protocol_server import ProtocolServer, ReceivedRequest

DATASET: Final = "hard"
PROMPTS: Final = (load_prompt(DETECTION), load_prompt(get_strategy("naive")))
QUESTIONS: Final = {
    prompt.messages(sample)[-1].content: (prompt.name, sample.id)
    for prompt in PROMPTS
    for sample in load_dataset(DATASET).samples
}


def question(request: ReceivedRequest) -> tuple[str, str]:
    """Return the prompt name and sample id of a request."""
    return QUESTIONS[request.body["messages"][-1]["content"]]


def answer(request: ReceivedRequest) -> Reply:
    """Return about 1,000 characters that depend only on the question."""
    digest = hashlib.sha256("/".join(question(request)).encode()).hexdigest()
    return completion(f"小满 {digest * 15}", delay=0.005)


def tell_at_request(server: ProtocolServer, number: int, *, hang: bool) -> threading.Event:
    """Return an event that is set at a number of requests; from then on the server may hang."""
    reached = threading.Event()

    def step(request: ReceivedRequest) -> Reply:
        if len(server.requests) >= number:
            reached.set()
            return HANG if hang else answer(request)
        return answer(request)

    server.requests.clear()
    server.script(step)
    return reached


def start(server: ProtocolServer, results: Path, samples: int) -> subprocess.Popen[str]:
    """Start `pii-bench run` on the first samples, in a separate process."""
    arguments = ("run", "--model", "openai/m", "--base-url", f"{server.url}/v1")
    options = ("--dataset", DATASET, "--limit", str(samples), "--concurrency", "10")
    return subprocess.Popen(  # noqa: S603 -- our own interpreter and code
        [*COMMAND, *arguments, *options, "--results", str(results)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def stored(results: Path) -> list[tuple[str, str]]:
    """Return the questions with a complete line on disk."""
    found = []
    for prompt in PROMPTS:
        paths = (results / "runs").glob(f"openai--m@*/{prompt.name}/{DATASET}.jsonl")
        lines = [line for path in paths for line in path.read_bytes().splitlines(keepends=True)]
        complete = [json.loads(line) for line in lines if line.endswith(b"\n")]
        found += [(prompt.name, line["id"]) for line in complete]
    return found


def run_and_kill(
    server: ProtocolServer, results: Path, samples: int, moments: random.Random, late: float = 0.0
) -> bool:
    """Kill a run at a random moment after its first request; return True if it was still running.

    The share `late` of the moments is after the last request, when lines are sorted and the
    leaderboard is written.
    """
    before = stored(results)
    missing = 2 * samples - len(before)
    if not missing:
        return False
    number, longest_pause = moments.randint(1, missing), 0.02
    if moments.random() < late:
        number, longest_pause = missing, 0.5
    reached = tell_at_request(server, number, hang=False)
    process = start(server, results, samples)
    assert reached.wait(timeout=60)
    time.sleep(moments.random() * longest_pause)
    process.kill()
    _, errors = process.communicate()

    after = stored(results)
    assert process.returncode in {-signal.SIGKILL, 0}, errors
    assert set(before) <= set(after)
    assert len(after) == len(set(after))
    assert not set(before) & {question(request) for request in server.requests}
    return process.returncode != 0


def finish(server: ProtocolServer, results: Path, samples: int) -> dict[str, bytes]:
    """Run to the end, and return the result files without the seconds of calls.

    Score files are left out: their names are hashes over these seconds.
    """
    server.script(answer)
    process = start(server, results, samples)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert not [path for path in results.rglob(".*") if path.name != ".lock"]
    files = read_folder(results)
    return {
        name: re.sub(rb', "seconds": [0-9.]+', b"", content)
        for name, content in files.items()
        if not name.endswith(".scores.npz")
    }


def test_a_run_that_is_killed_twice_ends_like_an_undisturbed_one(
    protocol_server: ProtocolServer,
) -> None:
    moments = random.Random(20250218)
    kills = [run_and_kill(protocol_server, Path("killed"), 20, moments) for _ in range(2)]
    killed = finish(protocol_server, Path("killed"), 20)

    assert kills == [True, True]
    assert len(set(stored(Path("killed")))) == 2 * 20
    assert killed == finish(protocol_server, Path("undisturbed"), 20)


def test_an_interrupted_run_logs_what_is_missing(protocol_server: ProtocolServer) -> None:
    reached = tell_at_request(protocol_server, 12, hang=True)
    process = start(protocol_server, Path(), 20)
    assert reached.wait(timeout=60)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    kept = stored(Path())

    assert process.returncode == 1
    assert "Traceback" not in errors
    assert errors.splitlines()[-3:] == [
        "interrupted",
        (
            f"detection on hard: {20 - len(kept)} of 20 samples have no answer; "
            "run again to ask only these"
        ),
        "naive on hard: 20 of 20 samples have no answer; run again to ask only these",
    ]
    (path,) = Path("runs").glob("openai--m@*/detection/hard.jsonl")
    assert path.read_bytes().endswith(b"\n")
    assert len(kept) >= 2


def run_gold(answers: Path, results: str) -> int:
    model = f"replay:{answers}"
    return main(["run", "--model", model, "--dataset", "demo", "--results", results])


def test_a_full_disk_ends_a_run_and_loses_no_answer(gold_answers: Path, capsys: Capsys) -> None:
    with no_file_longer_than(2500):
        assert run_gold(gold_answers, "full") == 2

    errors = capsys.readouterr().err.splitlines()
    path = Path("full/runs/replay--gold/detection/demo.jsonl")
    kept = path.read_bytes()
    count = kept.count(b"\n")
    assert 1 <= count < 12
    assert kept.endswith(b"\n")
    assert errors[-3:] == [
        (
            f"detection on demo: {12 - count} of 12 samples have no answer; "
            "run again to ask only these"
        ),
        "naive on demo: 12 of 12 samples have no answer; run again to ask only these",
        f"pii-bench: {path}: cannot be written: File too large",
    ]

    assert run_gold(gold_answers, "full") == run_gold(gold_answers, "roomy") == 0

    assert path.read_bytes().startswith(kept)
    assert f"detection on demo: {count} of 12 already answered" in capsys.readouterr().err
    assert read_folder(Path("full")) == read_folder(Path("roomy"))


def test_a_second_run_on_the_same_results_is_refused(gold_answers: Path, capsys: Capsys) -> None:
    folder = Path("results/runs/replay--gold")
    with locked(folder):
        assert run_gold(gold_answers, "results") == 2
        assert read_folder(Path("results")) == {}
    assert capsys.readouterr().err.splitlines()[-1] == (
        "pii-bench: results/runs/replay--gold: another run is writing there: "
        "wait for it, or give another --results"
    )

    assert run_gold(gold_answers, "results") == 0
    with locked(folder):
        pass
