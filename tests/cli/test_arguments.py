from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pii_bench
from pii_bench.cli import COMMANDS, main, parse_arguments

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys


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


RATE = "must be a number above 0 and at most 1, not "
WHOLE = "must be a whole number from 1, not "
WRITER = "data build --writer openai/m --set"


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("bench", "invalid choice: 'bench'"),
        ("cost --results . --documents 0", f"{WHOLE}'0'"),
        ("cost --results . --hand-seconds soon", "must be a number from 0, not 'soon'"),
        ("cost --results . --review-share fake/one=1.5", "a number from 0 to 1, not '1.5'"),
        ("cost --results . --usd 0.1", "must be SYSTEM=NUMBER, not '0.1'"),
        ("cost --results . --wage=-1", "must be a number from 0, not '-1'"),
        ("data", "the following arguments are required: COMMAND"),
        ("data check", "the following arguments are required: FILE"),
        ("data mend", "invalid choice: 'mend'"),
        ("data perturb demo --out o.jsonl --rate 0", f"{RATE}'0'"),
        ("data perturb demo --out o.jsonl --rate nan", f"{RATE}'nan'"),
        # These sets have no commissions.
        (f"{WRITER} demo", "invalid choice: 'demo' (choose from"),
        (f"{WRITER} frontier", "invalid choice: 'frontier' (choose from"),
        (f"{WRITER} train-other", "invalid choice: 'train-other' (choose from"),
        (f"{WRITER} twins", "invalid choice: 'twins' (choose from"),
        ("run --concurrency 100000000", "must be at most 1000, not '100000000'"),
        ("run --limit 0", f"{WHOLE}'0'"),
        ("run --max-usd 0", "must be a sum above 0 in USD, not '0'"),
        ("run --max-usd inf", "must be a sum above 0 in USD, not 'inf'"),
        ("run --price 1,-2", "such as 2.5,10, not '1,-2'"),
        ("run --price 5", "such as 2.5,10, not '5'"),
        ("run --rpm 1.5", f"{WHOLE}'1.5'"),
        ("run --temperature 3", "a number from 0 to 2, not '3'"),
        ("run --temperature nan", "a number from 0 to 2, not 'nan'"),
        ("serve --port 0", f"{WHOLE}'0'"),
        ("serve --port 65536", "must be at most 65535, not '65536'"),
        ("serve --port http", f"{WHOLE}'http'"),
        ("train lora --learning-rate 0", f"{RATE}'0'"),
        ("train lora --learning-rate 2", f"{RATE}'2'"),
        ("train lora --learning-rate x", f"{RATE}'x'"),
        ("utility --embedder none", "invalid choice: 'none'"),
        ("utility --weight 1.1", "must be a number from 0 to 1, not '1.1'"),
        ("utility --weight nan", "must be a number from 0 to 1, not 'nan'"),
        *(
            (f"{command} --results nowhere", "'nowhere' is not a folder; `pii-bench run` creates")
            for command in (
                *("leaderboard", "report", "analyse", "cost", "diagnose", "compare a b"),
                "export every-eval-ever --out out",
            )
        ),
    ],
)
def test_wrong_arguments_are_refused_and_write_nothing(
    capsys: Capsys, command: str, what: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(command.split())

    assert what in capsys.readouterr().err
    assert list(Path().iterdir()) == []


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
