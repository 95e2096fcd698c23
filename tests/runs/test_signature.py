from __future__ import annotations

import platform
import re
from importlib.metadata import version

import pii_bench
from pii_bench.prompting.parsing import PARSER
from pii_bench.runs.signature import Signature
from pii_bench.tasks import Task


def parts(signature: Signature) -> dict[str, str]:
    return dict(part.split(":", 1) for part in str(signature).split("|"))


def test_a_run_tells_all_that_its_score_depends_on() -> None:
    signature = Signature(
        dataset="demo",
        dataset_sha256="0123456789abcdef" * 4,
        task=Task.MASKING,
        strategy="self-cot",
        prompts={"detection": "d" * 64, "self-cot": "e" * 64},
        model="openai/gpt-4o",
        returned=["gpt-4o-2024-11-20", "gpt-4o-2024-08-06"],
        settings={"temperature": 0.0, "endpoint": "https://api.openai.com/v1", "max_tokens": 2048},
    )

    assert parts(signature) == {
        "data": "demo@0123456789ab",
        "task": "masking",
        "strategy": "self-cot",
        "prompt": "detection@dddddddddddd+self-cot@eeeeeeeeeeee",
        "model": "openai/gpt-4o",
        "returned": "gpt-4o-2024-08-06+gpt-4o-2024-11-20",
        "endpoint": "https://api.openai.com/v1",
        "max_tokens": "2048",
        "temperature": "0.0",
        "norm": "nfc-ws-1",
        "match": "lsa-lex-1",
        "rougeL": "rouge-uni-1",
        "parser": PARSER,
        "pii_bench": pii_bench.__version__,
        "scipy": version("scipy"),
        "rapidfuzz": version("rapidfuzz"),
        "python": platform.python_version(),
    }


def test_predictions_made_elsewhere_tell_of_no_model_and_no_parser() -> None:
    signature = Signature("demo", "a" * 64, Task.DETECTION)

    assert re.fullmatch(
        r"data:demo@a{12}\|task:detection\|norm:.+\|match:.+\|rougeL:.+\|pii_bench:.+",
        str(signature),
    )


def test_it_is_one_line() -> None:
    assert "\n" not in str(Signature("demo", "a" * 64, Task.DETECTION))
