from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pii_bench
from pii_bench.cli import main
from pii_bench.cli.arguments import parse_arguments
from tests.cli.command import environment


def refused(*arguments: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_a_run_needs_only_a_model() -> None:
    parsed = parse_arguments(["run", "--model", "gpt4o"])

    assert vars(parsed) == {
        "command": "run",
        "model": "gpt4o",
        "strategy": None,
        "task": "all",
        "dataset": "all",
        "limit": None,
        "concurrency": None,
        "base_url": None,
        "max_tokens": None,
        "label_map": None,
        "timeout": 120,
        "results": Path("results"),
    }


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["bench"], "invalid choice: 'bench'"),
        (["run"], "the following arguments are required: --model"),
        (["run", "--model", "m", "--task", "mask"], "invalid choice: 'mask'"),
        (["run", "--model", "m", "--limit", "0"], "must be a whole number from 1, not '0'"),
        (["run", "--model", "m", "--limit", "ten"], "must be a whole number from 1, not 'ten'"),
        (["run", "--model", "m", "--concurrency", "-1"], "must be a whole number from 1, not '-1'"),
        (["score", "answers.jsonl"], "the following arguments are required: --dataset"),
        (["leaderboard", "here"], "unrecognized arguments: here"),
        (["convert", "csv", "a", "--dataset", "d", "--out", "o"], "invalid choice: 'csv'"),
    ],
)
def test_wrong_arguments(
    capsys: pytest.CaptureFixture[str], arguments: list[str], what: str
) -> None:
    refused(*arguments)

    assert what in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])

    assert caught.value.code == 0
    assert capsys.readouterr().out == f"{pii_bench.__version__}\n"


@pytest.mark.parametrize("command", ["run", "score", "leaderboard", "convert"])
def test_help_of_a_command(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])

    assert caught.value.code == 0
    assert "None" not in capsys.readouterr().out


def test_help_imports_nothing_heavy() -> None:
    code = """
import contextlib, io, json, sys
from pii_bench.cli import main
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
    main(["--help"])
print(json.dumps([shown.getvalue(), list(sys.modules)]))
"""
    done = subprocess.run(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=environment(),
    )
    shown, modules = json.loads(done.stdout)

    assert all(command in shown for command in ("run", "score", "leaderboard", "convert"))
    packages = {name.partition(".")[0] for name in modules}
    assert not packages & {"asyncio", "jsonlines", "numpy", "openai", "pandas", "rich", "scipy"}
