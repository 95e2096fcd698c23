from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from tests.builders import read_folder, read_lines, write_lines
from tests.protocol_server import Reply, api_error, completion

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys
    from tests.protocol_server import ProtocolServer, ReceivedRequest

RUN = ("run", "--all", "--dataset", "demo", "--model")


def run(*arguments: object) -> int:
    return main([*RUN, *map(str, arguments)])


def titles(output: str) -> list[str]:
    return re.findall(r"^(\S+: \S+)$", output, re.MULTILINE)


def answer_nothing(request: ReceivedRequest) -> Reply:
    prompt = request.body["messages"][-1]["content"]
    return completion("Subject1{}" if prompt.endswith("Your lines:") else "### Answer: []")


def test_the_main_job_from_gold_answers_is_perfect(gold_answers: Path, capsys: Capsys) -> None:
    assert run(f"replay:{gold_answers}") == 0

    output = capsys.readouterr()
    assert [title for title in titles(output.out) if "demo" in title] == [
        "demo: detection",
        "demo: query-related",
        "demo: masking",
    ]
    assert output.out.count("| 1.000") == 3 + 4 + 5
    assert output.out.count("| 12/12") == 3
    signatures = [line for line in output.out.splitlines() if line.startswith("data:demo@")]
    board = Path("results/leaderboard.md").read_text(encoding="utf-8")
    assert len([line for line in signatures if f"- `{line}`\n" in board]) == 3
    assert sorted(read_folder(Path("results"))) == [
        "leaderboard.csv",
        "leaderboard.html",
        "leaderboard.md",
        "leaderboard.tex",
        "runs/replay--gold/detection/demo.jsonl",
        "runs/replay--gold/detection/demo.run.json",
        "runs/replay--gold/detection/demo.scores.npz",
        "runs/replay--gold/naive/demo.jsonl",
        "runs/replay--gold/naive/demo.run.json",
        "runs/replay--gold/naive/demo.scores.npz",
    ]

    # A second run makes no call and changes nothing.
    before = read_folder(Path("results"))
    assert run(f"replay:{gold_answers}") == 0
    assert read_folder(Path("results")) == before
    second = capsys.readouterr()
    assert second.out == output.out
    assert second.err.splitlines() == [
        "detection on demo: 12 of 12 already answered",
        "naive on demo: 12 of 12 already answered",
    ]


@pytest.mark.parametrize(
    ("task", "shown", "asked"),
    [
        ("detection", ["demo: detection"], {"detection"}),
        ("query-related", ["demo: query-related"], {"naive"}),
        ("masking", ["demo: masking"], {"detection", "naive"}),
    ],
)
def test_one_task_alone(
    gold_answers: Path, capsys: Capsys, task: str, shown: list[str], asked: set[str]
) -> None:
    assert run(f"replay:{gold_answers}", "--task", task) == 0

    assert titles(capsys.readouterr().out) == shown
    folder = Path("results/runs/replay--gold")
    assert {path.name for path in folder.iterdir() if path.is_dir()} == asked


def test_after_a_limit_only_the_rest_is_asked(gold_answers: Path, capsys: Capsys) -> None:
    assert run(f"replay:{gold_answers}", "--limit", 5) == 0
    assert len(re.findall(r"\| 5/12 .*\| run, incomplete *\|", capsys.readouterr().out)) == 3

    run(f"replay:{gold_answers}", "--task", "detection")

    assert "detection on demo: 5 of 12 already answered" in capsys.readouterr().err
    path = Path("results/runs/replay--gold/detection/demo.jsonl")
    assert [line["id"] for line in read_lines(path)] == [
        sample.id for sample in load_dataset("demo").samples
    ]


def test_a_limit_shows_the_figures_of_the_first_samples_also_if_more_are_stored(
    gold_answers: Path, capsys: Capsys
) -> None:
    first = {sample.id for sample in load_dataset("demo").samples[:3]}
    answers = [
        line if line["id"] in first else line | {"text": "### Answer: []"}
        for line in read_lines(gold_answers)
    ]
    path = write_lines(Path("first-right.jsonl"), answers)
    arguments = (f"replay:{path}", "--task", "query-related", "--json")
    assert run(*arguments) == 0
    stored = Path("results/leaderboard.csv").read_bytes()
    (everything,) = json.loads(capsys.readouterr().out)

    assert run(*arguments, "--limit", 3) == 0

    (limited,) = json.loads(capsys.readouterr().out)
    assert (everything["scored"], everything["gold"]) == (12, 12)
    assert everything["f1"] < 1
    assert (limited["scored"], limited["gold"], limited["f1"]) == (3, 12, 1)
    assert limited["rank"] is None
    assert Path("results/leaderboard.csv").read_bytes() == stored


def test_the_next_run_asks_only_the_failed_samples(
    capsys: Capsys, protocol_server: ProtocolServer
) -> None:
    failing = api_error(400, "bad_thing")
    protocol_server.script(answer_nothing, failing, failing, answer_nothing)
    arguments = ("openai/m", "--base-url", f"{protocol_server.url}/v1", "--task", "detection")

    assert run(*arguments) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "detection on demo: 2 of 12 samples have no answer, bad_request 2; "
        "run again to ask only these"
    )
    assert len(protocol_server.requests) == 12

    assert run(*arguments) == 0
    assert len(protocol_server.requests) == 14
    assert "| 12/12" in capsys.readouterr().out


def test_concurrency_limits_the_calls_in_flight(protocol_server: ProtocolServer) -> None:
    protocol_server.script(lambda _: completion("### Answer: []", delay=0.02))
    url = f"{protocol_server.url}/v1"

    run("openai/m", "--base-url", url, "--concurrency", 3)

    assert len(protocol_server.requests) == 24
    assert 1 < protocol_server.peak <= 3


def test_a_setting_changed_back_reuses_its_answers(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    protocol_server.script(answer_nothing)
    command = "openai/m", "--base-url", f"{protocol_server.url}/v1", "--task", "detection"
    run(*command)
    run(*command, "--max-tokens", 100)
    (path,) = Path("results").glob("runs/openai--m@*/detection/demo.jsonl")
    aside = path.with_name("demo.superseded.jsonl")
    assert (
        "detection on demo: 12 answers to other requests (another model, endpoint, prompt or "
        f"setting) are superseded: they are kept in {aside}\n"
    ) in capsys.readouterr().err
    assert len(protocol_server.requests) == 24

    run(*command, "--dry-run")
    assert re.search(r"^\| detection +\| demo +\| +0 \|", capsys.readouterr().out, re.MULTILINE)
    assert run(*command) == 0

    errors = capsys.readouterr().err
    assert (
        f"detection on demo: 12 answers to the same requests are used again, from {aside}\n"
    ) in errors
    assert "detection on demo: 12 of 12 already answered\n" in errors
    assert len(protocol_server.requests) == 24


@pytest.mark.parametrize(
    ("system", "strategy", "detection"),
    [
        # It names no subjects, and so has no Strict-F1 and no rank.
        ("bilstm-crf+embedding", "embedding", r"\| +\| bilstm-crf \| detection +\| - "),
        ("encoder", "encoder", r"\| 1 +\| encoder \| detection +\| 0\.\d{3} "),
    ],
)
def test_a_system_of_this_machine_answers_all_tasks(
    capsys: Capsys, system: str, strategy: str, detection: str
) -> None:
    assert run(system) == 0

    output = capsys.readouterr().out
    assert re.search(detection, output)
    assert len(re.findall(rf"\| 1 +\| [a-z-]+ \| {strategy} ", output)) == 2


def test_a_detector_alone_only_detects(capsys: Capsys) -> None:
    assert run("gold") == 0
    assert titles(capsys.readouterr().out) == ["demo: detection"]


def test_the_papers_rows_are_shown_next_to_ours(capsys: Capsys) -> None:
    assert main(["run", "--all", "--model", "gold+gold", "--dataset", "hard", "--limit", "1"]) == 0

    shown = capsys.readouterr().out
    assert "| published" in shown
    assert "| run, oracle, incomplete" in shown


PLUG_IN = """
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.composed import DetectedEntities, PredictedRelevance, compose_systems
from pii_bench.systems.relevance.catalog import build_relevance
from pii_bench.taxonomy import PiiType

class Mine:
    name, identity = "mine", {}
    def detect(self, text): return [DetectedSpan(0, SPAN, PiiType.PER)]

def systems():
    return compose_systems(DetectedEntities(Mine()), PredictedRelevance(build_relevance("all")))
"""


FAULT = "detection on demo: sample '{}': the plug-in returned a wrong span from detect:"


@pytest.mark.parametrize(
    ("place", "messages"),
    [
        # The text of demo-0001 alone names Halifax.
        (
            "10**6 if 'Halifax' in text else 4",
            [f"{FAULT.format('demo-0001')} 0:1000000 in a text of 935 characters"],
        ),
        (
            "-1",
            [
                f"{FAULT.format('demo-0005')} 0:-1 in a text of 991 characters",
                "detection on demo: and 7 more",
            ],
        ),
    ],
)
def test_samples_on_which_a_plug_in_fails_are_logged_and_the_run_continues(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch, place: str, messages: list[str]
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    Path("mine.py").write_text(PLUG_IN.replace("SPAN", place))

    assert run("python:mine:systems", "--task", "detection") == 0

    output = capsys.readouterr()
    assert output.err.splitlines()[-len(messages) :] == messages
    assert "| 12/12" in output.out
