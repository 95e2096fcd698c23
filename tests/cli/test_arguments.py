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


def test_a_price_has_todays_date() -> None:
    before = dt.datetime.now(dt.UTC).date()
    price = parse_arguments(["run", "--model", "gpt4o", "--price", "2.5,0"]).price

    assert (price.input, price.output, price.source) == (2.5, 0.0, "--price")
    assert before <= price.date <= dt.datetime.now(dt.UTC).date()
    assert price.batch_factor == 0.5


RATE = "must be a number above 0 and at most 1, not "
WHOLE = "must be a whole number from 1, not "


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("bench", "invalid choice: 'bench'"),
        ("cost --results . --hand-seconds soon", "must be a number from 0, not 'soon'"),
        ("cost --results . --review-share fake/one=1.5", "a number from 0 to 1, not '1.5'"),
        ("cost --results . --usd 0.1", "must be SYSTEM=NUMBER, not '0.1'"),
        ("cost --results . --wage=-1", "must be a number from 0, not '-1'"),
        ("data", "the following arguments are required: COMMAND"),
        ("data check", "the following arguments are required: FILE"),
        ("data mend", "invalid choice: 'mend'"),
        ("data perturb demo --out o.jsonl --rate nan", f"{RATE}'nan'"),
        # It has no commissions.
        ("data build --writer openai/m --set frontier", "invalid choice: 'frontier' (choose from"),
        ("run --concurrency 100000000", "must be at most 1000, not '100000000'"),
        ("run --limit 0", f"{WHOLE}'0'"),
        ("run --max-usd inf", "must be a sum above 0 in USD, not 'inf'"),
        ("run --price 5", "such as 2.5,10, not '5'"),
        ("run --rpm 1.5", f"{WHOLE}'1.5'"),
        ("run --temperature 3", "a number from 0 to 2, not '3'"),
        ("serve --port 65536", "must be at most 65535, not '65536'"),
        ("train lora --learning-rate 0", f"{RATE}'0'"),
        ("utility --embedder none", "invalid choice: 'none'"),
        ("utility --weight 1.1", "must be a number from 0 to 1, not '1.1'"),
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


CHAT = "run --dataset demo --model openai/m --base-url http://[::1]:1"
REPLAY = "run --dataset demo --model replay:gold.jsonl"
SCORE = "score missing.jsonl --dataset demo"
ON_RAY = "--model openai/m --base-url https://models.example/v1 --engine ray"
NOT_HERE = (
    "--engine ray is for systems of this machine; 'openai/m@models.example' sends unmasked text to "
    "openai (https://models.example/v1), which is not this machine"
)
ALONE = "only with --writer; without it, every set is built"


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (f"{CHAT} --model gold", "system 'gold' does not use --base-url"),
        (f"{CHAT} --taxonomy spacy", "strategy 'naive' does not use --taxonomy"),
        (f"{CHAT} --strategy json --taxonomy spcy", "'spcy'; did you mean 'spacy'?"),
        (f"{CHAT} --strategy json --shots-by similarity", "need --shots"),
        (f"{CHAT} --strategy json --shots 1 --shots-from single", "'single' is no train split"),
        (f"{CHAT} --strategy json --chunk 9 --batch --task detection", "cannot be run in batches"),
        (f"{CHAT} --strategy json --task query-related", "does not answer query-related"),
        (
            f"{CHAT} --max-usd 5",
            "the model's price is unknown; give it with --price IN,OUT (USD per million tokens)",
        ),
        (
            f"{CHAT} --batch --strategy self-consistency-vote",
            "system 'openai/m@[::1]:1' (self-consistency-vote) cannot be run in batches",
        ),
        (
            "run --dataset demo --batch --model gold+all",
            "system 'gold' (detection) cannot be run in batches: only a chat model that is asked ",
        ),
        (
            "run --dataset demo --batch --model deepseek/m --base-url http://localhost:1",
            "model 'deepseek/m@localhost:1' has no batch API (those of openai, anthropic and",
        ),
        (f"{REPLAY} --batch", "model 'replay/gold' has no batch API"),
        (f"{REPLAY} --strategy self-cott", "'self-cott'; did you mean 'self-cot'?"),
        (f"{REPLAY} --task rewrite --strategy naive", "does not answer rewrite"),
        *(
            (f"{system} {option} 5", f"makes no calls that this limits: leave {option} out")
            for system in (REPLAY, "run --dataset demo --model gold+all")
            for option in ("--max-usd", "--rpm", "--tpm")
        ),
        *(
            (f"run --config=b.toml --batch {option}=5", f"--config: not allowed with {option}, wh")
            for option in ("--model", "--strategy", "--dataset", "--limit")
        ),
        ("run --dataset demo --model bilstm-crf --shots 1", "'bilstm-crf' does not use --shots"),
        ("run --dataset demo --model gold --task masking", "'gold' does not answer query-related"),
        ("run --dataset demo --model gpt-4o", "unknown model 'gpt-4o'; did you mean 'gpt4o'?"),
        ("run --dataset demo --model openai/gpt-4o", "needs a key: set OPENAI_API_KEY in the env"),
        ("run --dataset demo --model replay:gone.jsonl", "gone.jsonl: No such file or directory"),
        ("run --dataset demo --task rewrite --model encoder", "'encoder' does not answer rewrite"),
        ("run --dataset gone.jsonl --model openai/gpt-4o", "gone.jsonl: No such file or director"),
        # These are refused before a key is asked for.
        (f"mask gold.jsonl --column text --query Q --out o.jsonl {ON_RAY}", NOT_HERE),
        (
            f"run --dataset demo {ON_RAY}",
            f"{NOT_HERE}; use --concurrency for other machines",
        ),
        ("mask gold.jsonl --query Q --model gpt-6-luna --local-only", "--local-only: system "),
        ("run --dataset demo --model gpt-6-luna --local-only", "--local-only: system "),
        (
            "run --dataset demo --model gpt-6-luna --strategy json --task masking",
            "system 'gpt-6-luna' with strategy 'json' does not answer query-related",
        ),
        ("data build --timeout 120", f"--timeout: {ALONE}"),
        ("data build --limit 20 --max-usd 1", f"--limit, --max-usd: {ALONE}"),
        ("export fine-tuning --for mistral --out x --dataset hard", "'hard' is only for tests"),
        ("fit keywords", "did you mean 'keyword'?"),
        ("gate", "nothing to check: give --min, --baseline or --write-baseline"),
        ("gate --model gold+gold --min masking.hh=1", "did you mean 'h'?"),
        ("gate --min masking.h=1 --temperature default", "does not use --temperature"),
        ("leaderboard --results . --table 99", "99"),
        # The name is checked before the files are read.
        (f"{SCORE} --name a/b", "a submission came with the name 'a/b'; allowed: "),
        (f"{SCORE} --force", "--force replaces predictions kept under --name: leave it out"),
        ("spans --dataset demo", "nothing to score: give --model, --run or both"),
        ("spans --dataset demo --model bilstm-crf --split test", "dataset 'demo' takes no --split"),
        ("train lora --base smollm2-135m-instrukt", "135m-instrukt: no such file or folder"),
        ("train lora --base gold.jsonl", "gold.jsonl: not a GGUF file"),
    ],
)
@pytest.mark.usefixtures("gold_answers")
def test_wrong_input_is_refused_before_anything_is_written(
    capsys: Capsys, command: str, what: str
) -> None:
    assert main(command.split()) == 2

    output = capsys.readouterr()
    assert output.out == ""
    assert what in output.err.splitlines()[-1]
    assert [path.name for path in Path().iterdir()] == ["gold.jsonl"]


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
