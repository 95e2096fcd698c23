from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys

import pii_bench
from pii_bench.cli import COMMANDS, main, parse_arguments


def refused(*arguments: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


def test_the_default_model_is_the_encoder(capsys: Capsys) -> None:
    assert main(["run", "--dataset", "demo", "--dry-run", "--json"]) == 0

    assert {job["model"] for job in json.loads(capsys.readouterr().out)} == {"encoder"}


@pytest.mark.parametrize(
    "option", ["--model=encoder", "--strategy=naive", "--dataset=all", "--limit=5"]
)
def test_options_that_the_file_of_runs_sets_are_refused_next_to_it(
    capsys: Capsys, option: str
) -> None:
    name = option.partition("=")[0]
    for arguments in ([option, "--config=b.toml"], ["--config=b.toml", "--batch", option]):
        assert main(["run", *arguments]) == 2

        assert capsys.readouterr().err == (
            f"pii-bench: --config: not allowed with {name}, which the file sets\n"
        )


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        (["--batch"], "batch", "wait"),
        (["--batch", "wait"], "batch", "wait"),
        (["--batch", "submit"], "batch", "submit"),
        (["--temperature", "default"], "temperature", "default"),
        (["--temperature", "0"], "temperature", 0.0),
        (["--temperature", "0.7"], "temperature", 0.7),
    ],
)
def test_options_of_chat_models_are_parsed(given: list[str], name: str, value: object) -> None:
    parsed = parse_arguments(["run", "--model", "gpt4o", *given])

    assert getattr(parsed, name) == value


def test_a_price_has_todays_date() -> None:
    before = dt.datetime.now(dt.UTC).date()
    price = parse_arguments(["run", "--model", "gpt4o", "--price", "2.5,0"]).price

    assert (price.input, price.output, price.source) == (2.5, 0.0, "--price")
    assert before <= price.date <= dt.datetime.now(dt.UTC).date()
    assert price.batch_factor == 0.5


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["bench"], "invalid choice: 'bench'"),
        (["run", "--model", "m", "--limit", "0"], "must be a whole number from 1, not '0'"),
        (["run", "--concurrency", "100000000"], "must be at most 1000, not '100000000'"),
        (["run", "--model", "m", "--rpm", "1.5"], "must be a whole number from 1, not '1.5'"),
        (["run", "--model", "m", "--temperature", "3"], "a number from 0 to 2, not '3'"),
        (["run", "--model", "m", "--temperature", "nan"], "a number from 0 to 2, not 'nan'"),
        (["run", "--model", "m", "--max-usd", "0"], "must be a sum above 0 in USD, not '0'"),
        (["run", "--model", "m", "--max-usd", "inf"], "must be a sum above 0 in USD, not 'inf'"),
        (["run", "--model", "m", "--price", "5"], "such as 2.5,10, not '5'"),
        (["run", "--model", "m", "--price", "1,-2"], "such as 2.5,10, not '1,-2'"),
    ],
)
def test_wrong_arguments(capsys: Capsys, arguments: list[str], what: str) -> None:
    refused(*arguments)

    assert what in capsys.readouterr().err


def test_version(capsys: Capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])

    assert caught.value.code == 0
    assert capsys.readouterr().out == f"{pii_bench.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(capsys: Capsys, command: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command.split(), "--help"])

    assert caught.value.code == 0
    assert "None" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        *("leaderboard", "report", "analyse", "cost", "diagnose", "compare a b"),
        "export every-eval-ever --out out",
    ],
)
def test_missing_results_folders_are_refused(command: str) -> None:
    refused(*command.split(), "--results", "nowhere")

    assert list(Path().iterdir()) == []
