"""Options that several commands share, and what they build from them."""

from __future__ import annotations

import argparse
import datetime as dt
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlencode

from pii_bench.errors import PiiBenchError
from pii_bench.models.calls import MOST_CALLS
from pii_bench.models.catalog import (
    BATCH_FACTOR,
    LOCAL,
    TIMEOUT,
    ModelOptions,
    Price,
    has_provider,
    listed_price,
    resolve,
)
from pii_bench.systems import KEEP
from pii_bench.systems.base import THIS_MACHINE, require_local, sending_of
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.tasks import ALL_TASKS, TASK_CHOICES, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pii_bench.systems.base import System

DATASET_HELP: Final = "a dataset name, a file path, or FORMAT:PATH (capid, tab, ai4privacy...)"
ANSWER_LENGTH_HELP: Final = (
    "length limit of an answer, reasoning included (default: 2048; reasoning models: 16384; "
    "local models: 512)"
)
TEMPERATURE_HELP: Final = "a number from 0 to 2, or `default` to send none"


def positive(text: str) -> int:
    """Parse a whole number from 1 (an argparse type)."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, not {text!r}")
    return value


def up_to(most: int) -> Callable[[str], int]:
    """Return an argparse type that parses a whole number from 1 to `most`."""

    def parse(text: str) -> int:
        value = positive(text)
        if value > most:
            raise argparse.ArgumentTypeError(f"must be at most {most}, not {text!r}")
        return value

    return parse


def number(what: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    """Return an argparse type that parses a finite number for which `fits` holds."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and fits(value)):
            raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}")
        return value

    return parse


usd: Final = number("a sum above 0 in USD", lambda value: value > 0)
amount: Final = number("a number from 0", lambda value: value >= 0)
share: Final = number("a number above 0 and at most 1", lambda value: 0 < value <= 1)
fraction: Final = number("a number from 0 to 1", lambda value: 0 <= value <= 1)


def _temperature(text: str) -> float | Literal["default"]:
    if text == "default":
        return "default"
    return number("`default` or a number from 0 to 2", lambda value: 0 <= value <= 2)(text)


def _price(text: str) -> Price:
    try:
        input_usd, output_usd = [amount(part) for part in text.split(",")]
    except (ValueError, argparse.ArgumentTypeError):
        expected = "must be two numbers, USD per million tokens in and out, such as 2.5,10"
        raise argparse.ArgumentTypeError(f"{expected}, not {text!r}") from None
    today = dt.datetime.now(dt.UTC).date()
    return Price(input_usd, output_usd, today, "--price", batch_factor=BATCH_FACTOR)


def stored_results(text: str) -> Path:
    """Parse a folder that exists (an argparse type)."""
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a folder; `pii-bench run` creates one")
    return path


_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "--base-url": {
        "metavar": "URL",
        "help": "another server that speaks the provider's protocol (openai/NAME: vLLM, Ollama, "
        "llama.cpp); its key, if any, is read from PII_BENCH_API_KEY",
    },
    "--concurrency": {
        "type": up_to(MOST_CALLS),
        "metavar": "N",
        "help": f"number of calls at a time, at most {MOST_CALLS} (default: 8; local models: 1)",
    },
    "--data": {
        "type": Path,
        "default": Path("data"),
        "metavar": "DIR",
        "help": "folder of the sets and their cards (default: %(default)s)",
    },
    "--dataset": {"default": "all", "help": f"all (the default), {DATASET_HELP}"},
    "--engine": {
        "choices": ("process", "ray"),
        "default": "process",
        "help": "process: this process; ray: a Ray cluster, the one at RAY_ADDRESS or a new one "
        "on this machine, with a copy of the system in each worker (default: %(default)s)",
    },
    "--gzip": {
        "action": "store_true",
        "help": "compress the samples (.gz); `gunzip` restores them",
    },
    "--json": {
        "action": "store_true",
        "help": "print the rows as a JSON array instead of tables",
    },
    "--keep": {
        "choices": KEEP,
        "help": "how much the encoder leaves readable (default: balanced)",
    },
    "--label-map": {
        "type": Path,
        "metavar": "FILE",
        "help": "JSON file that maps a detector's labels to our types, instead of its own map",
    },
    "--language": {
        "metavar": "CODE",
        "help": "only the rows in this language, of ai4privacy:PATH...",
    },
    "--limit": {
        "type": positive,
        "metavar": "N",
        "help": "only the first N samples of each dataset",
    },
    "--local-only": {
        "action": "store_true",
        "help": "refuse systems that send text to another machine",
    },
    "--max-tokens": {"type": positive, "metavar": "N", "help": ANSWER_LENGTH_HELP},
    "--max-usd": {
        "type": usd,
        "metavar": "USD",
        "help": "cap: make no call that might exceed it, counting the calls in flight",
    },
    "--output": {
        "choices": ("text", "schema"),
        "default": "text",
        "help": "schema: let the provider enforce a JSON schema (default: %(default)s)",
    },
    "--price": {
        "type": _price,
        "metavar": "IN,OUT",
        "help": "USD per million tokens, instead of the price in `pii-bench models`; half in "
        "batches; with --config, only for models of unknown price",
    },
    "--reader": {
        "choices": ("a", "b", "c"),
        "required": True,
        "help": "a and b read every version; c reads samples of the finished sets",
    },
    "--results": {
        "type": Path,
        "default": Path("results"),
        "metavar": "DIR",
        "help": "folder of the runs and the leaderboard (default: results)",
    },
    "--split": {
        "metavar": "NAME",
        "help": "only the rows of this split, of ai4privacy:PATH...",
    },
    "--task": {
        "default": ALL_TASKS,
        "choices": TASK_CHOICES,
        "help": f"the task (default: {ALL_TASKS})",
    },
    "--temperature": {
        "type": _temperature,
        "metavar": "T",
        "help": f"{TEMPERATURE_HELP} (default: 0; with votes: 0.7)",
    },
    "--timeout": {
        "type": positive,
        "default": TIMEOUT,
        "metavar": "SECONDS",
        "help": f"time limit of one attempt of a call (default: {TIMEOUT})",
    },
    "--votes": {
        "type": positive,
        "metavar": "K",
        "help": "number of draws of self-consistency-vote (default: 5)",
    },
    "--workers": {
        "type": positive,
        "metavar": "N",
        "help": "number of workers of --engine ray (default: one for each processor)",
    },
}
"""The options that several commands have."""

SAMPLING: Final = ("--max-tokens", "--temperature", "--output", "--votes")
"""The options of a chat model's answers."""


def add_options(parser: argparse._ActionsContainer, *names: str, **changes: Any) -> None:
    """Add options that several commands have; `changes` replace arguments of `add_argument`."""
    for name in names:
        parser.add_argument(name, **{**_OPTIONS[name], **changes})


def price_if_unknown(
    arguments: argparse.Namespace, name: str, base_url: str | None
) -> Price | None:
    """Return --price for a model of unknown price; None if its listed price counts."""
    given: Price | None = arguments.price
    return given if listed_price(name, base_url) is None else None


def dataset_source(arguments: argparse.Namespace) -> str:
    """Return `--dataset` with the filters `--language` and `--split` appended.

    Raises:
        PiiBenchError: the format of the dataset has no filters.
    """
    source: str = arguments.dataset
    filters = {"language": arguments.language, "split": arguments.split}
    filters = {name: value for name, value in filters.items() if value}
    if not filters:
        return source
    from pii_bench.datasets.span_files import SPAN_FORMATS

    if source.partition(":")[0] not in SPAN_FORMATS or "#" in source:
        names = " and ".join(f"--{name}" for name in filters)
        raise PiiBenchError(f"dataset {source!r} takes no {names}: {', '.join(SPAN_FORMATS)} do")
    return f"{source}#{urlencode(filters)}"


def system_options(arguments: argparse.Namespace) -> SystemOptions:
    """Return the system options that `run` and `mask` share."""
    return SystemOptions(
        strategy=arguments.strategy,
        max_tokens=arguments.max_tokens,
        temperature=arguments.temperature,
        output=arguments.output,
        votes=arguments.votes,
        model=ModelOptions(base_url=arguments.base_url, timeout=float(arguments.timeout)),
        label_map=arguments.label_map,
        keep=arguments.keep,
    )


def given_options(arguments: argparse.Namespace, names: Iterable[str]) -> str:
    """Return those of the options that are not None, as `--one, --two`; empty if none is given."""
    given = [name for name in names if getattr(arguments, name) is not None]
    return ", ".join(f"--{name.replace('_', '-')}" for name in given)


def load_systems(
    name: str, options: SystemOptions, *, local_only: bool, task: str = ALL_TASKS
) -> list[System]:
    """Build the systems of a name that a task needs: for masking two, for `all` every system.

    Raises:
        PiiBenchError: a system that the task needs is missing; or, with `local_only`, a system
            sends text to another machine.
    """

    def build(options: SystemOptions) -> list[System]:
        systems = build_systems(name, options)
        if local_only:
            require_local(systems)
        return _for_task(task, name, systems, options.strategy)

    if has_provider(name):
        # What is wrong is reported before the provider's key is asked for.
        build(replace(options, model=replace(options.model, asked=False)))
    return build(options)


def _for_task(
    task: str, name: str, systems: Sequence[System], strategy: str | None
) -> list[System]:
    if task == ALL_TASKS:
        return list(systems)
    needed = {Task(task)}
    if task == Task.MASKING:
        needed = {Task.DETECTION, Task.QUERY_RELATED}
    if lacking := needed - {system.card.task for system in systems}:
        by_strategy = f" with strategy {strategy!r}" if strategy is not None else ""
        tasks = ", ".join(sorted(lacking))
        raise PiiBenchError(f"system {name!r}{by_strategy} does not answer {tasks}")
    return [system for system in systems if system.card.task in needed]


def concurrency_of(arguments: argparse.Namespace, model: str | None) -> int:
    """Return `--concurrency`, by default 8, or 1 for a local model, which uses every core."""
    local = model is not None and resolve(model).startswith(f"{LOCAL}/")
    return arguments.concurrency or (1 if local else 8)


def ray_workers(
    arguments: argparse.Namespace, systems: Iterable[System], instead: str = ""
) -> int | None:
    """Return the number of Ray workers; None to run in this process.

    `instead` says what the command has for a system that calls another machine, for the error.

    Raises:
        PiiBenchError: `--workers` is given without Ray, or a system calls another machine.
    """
    if arguments.engine == "process":
        if arguments.workers is not None:
            raise PiiBenchError("--workers is for --engine ray")
        return None
    for system in systems:
        if system.card.unmasked_text_to != THIS_MACHINE:
            raise PiiBenchError(
                "--engine ray is for systems of this machine; "
                f"{system.card.model!r} {sending_of(system.card)}{instead}"
            )
    workers: int | None = arguments.workers
    return workers or os.cpu_count() or 1
