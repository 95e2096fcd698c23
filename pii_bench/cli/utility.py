"""`pii-bench utility`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.utility.collect import Measuring, record_of, to_table
from pii_bench.analysis.utility.preferences import EXPLANATION, preferences_to_table
from pii_bench.analysis.utility.study import Study, update_figures
from pii_bench.cli.options import (
    ANSWER_LENGTH_HELP,
    DATASET_HELP,
    TEMPERATURE_HELP,
    add_options,
    concurrency_of,
    fraction,
    load_systems,
    positive,
    price_if_unknown,
)
from pii_bench.cli.run import Plan, get_responses, log_missing
from pii_bench.cli.terminal import echo, echo_json, log_left_out, report
from pii_bench.datasets.catalog import load_datasets
from pii_bench.errors import PiiBenchError
from pii_bench.models.calls import CallPolicy
from pii_bench.models.catalog import ModelOptions, has_provider, listed_price
from pii_bench.runs.mask_text import rewriting_system
from pii_bench.systems.catalog import SystemOptions, is_prompted
from pii_bench.systems.prompted import PromptedSystem
from pii_bench.systems.relevance.embedding import MiniLmEncoder, WordLlamaEncoder
from pii_bench.tasks import Task

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from pii_bench.systems.base import System
    from pii_bench.systems.relevance.embedding import Encoder

EMBEDDERS: Final[Mapping[str, Callable[[], Encoder]]] = {
    "wordllama": WordLlamaEncoder,
    "minilm": MiniLmEncoder,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Measure what masking protects and how much it harms answers. A chat model answers queries "
        "on the original texts, the texts with everything masked, with everything masked that the "
        "query does not need, and the texts masked by a system. Answers and verdicts are saved as "
        "they arrive; run again to continue. Without --answerer no call is made, and the figures "
        "are computed again from the stored answers."
    )
    parser.add_argument(
        "--model",
        metavar="SYSTEM",
        help="the system that masks; `pii-bench run`, which has more options, shares its answers "
        "(default: mask by gold only)",
    )
    parser.add_argument(
        "--strategy",
        help="a chat model's prompt for query-related PII, for --model (default: naive)",
    )
    parser.add_argument(
        "--rewrite",
        action="store_true",
        help="let --model rewrite the texts; --judge then also compares them with the texts that "
        "gold masks",
    )
    parser.add_argument("--answerer", metavar="MODEL", help="the chat model that answers")
    parser.add_argument(
        "--judge", metavar="MODEL", help="a chat model that rates the answers (default: none)"
    )
    parser.add_argument(
        "--dataset", default="demo", help=f"all, {DATASET_HELP} (default: %(default)s)"
    )
    add_options(parser, "--limit")
    parser.add_argument(
        "--embedder",
        choices=list(EMBEDDERS),
        default="wordllama",
        help="embeds the answers for their cosine similarity (default: %(default)s)",
    )
    parser.add_argument(
        "--weight",
        type=fraction,
        default=0.5,
        metavar="A",
        help="weight of privacy in the balanced score, 0 to 1 (default: %(default)s)",
    )
    add_options(parser, "--local-only")
    calls = parser.add_argument_group("calls of chat models")
    calls.add_argument("--answer-tokens", type=positive, metavar="N", help=ANSWER_LENGTH_HELP)
    add_options(calls, "--concurrency", "--base-url", "--timeout")
    calls.add_argument("--answerer-base-url", metavar="URL", help="--base-url of the answerer")
    calls.add_argument("--judge-base-url", metavar="URL", help="--base-url of the judge")
    add_options(
        calls, "--temperature", help=f"{TEMPERATURE_HELP} (of answers and verdicts; default: 0)"
    )
    add_options(
        calls,
        "--max-usd",
        help="cap for each provider's model: make no call that might exceed it",
    )
    add_options(calls, "--price", help="USD per million tokens of the models of unknown price")
    add_options(parser, "--json", "--results")


def run(arguments: argparse.Namespace) -> bool:
    """Mask, answer, judge, and write the figures of all stored answers.

    Returns:
        True if every sample has its answers and verdicts; without an answerer, True if no stored
        run was left out.
    """
    if arguments.answerer is None:
        if arguments.model is not None or arguments.judge is not None or arguments.rewrite:
            raise PiiBenchError("--model, --rewrite and --judge need an --answerer")
        if not arguments.results.is_dir():
            raise PiiBenchError(
                f"--results: {str(arguments.results)!r} is not a folder; --answerer creates one"
            )
    measuring = Measuring(arguments.embedder, EMBEDDERS[arguments.embedder](), arguments.weight)
    if arguments.answerer is None:
        return _write(arguments, measuring, None)
    study = _build_study(arguments)
    complete = True
    try:
        for jobs, concurrency in study.stages():
            if jobs:
                planned = Plan(jobs, concurrency, reasons=False)
                complete &= get_responses(planned, None) or log_missing(jobs)
    except KeyboardInterrupt:
        return False
    finally:
        asyncio.run(study.close())
    _write(arguments, measuring, {dataset.name for dataset in study.datasets})
    return complete


def _build_study(arguments: argparse.Namespace) -> Study:
    _check_price(arguments)
    return Study(
        results=arguments.results,
        datasets=load_datasets(arguments.dataset),
        limit=arguments.limit,
        maskers=_load_maskers(arguments),
        answerer=_load_chat("answerer", arguments, arguments.answer_tokens),
        judge=_load_chat("judge", arguments, None) if arguments.judge else None,
        calls=(
            concurrency_of(arguments, arguments.model),
            concurrency_of(arguments, arguments.answerer),
            concurrency_of(arguments, arguments.judge),
        ),
    )


def _check_price(arguments: argparse.Namespace) -> None:
    """Refuse a price that no model needs."""
    models = [
        (arguments.model, arguments.base_url),
        (arguments.answerer, arguments.answerer_base_url),
        (arguments.judge, arguments.judge_base_url),
    ]
    if arguments.price is not None and not any(
        name and has_provider(name) and listed_price(name, url) is None for name, url in models
    ):
        raise PiiBenchError(
            "--price is for models of unknown price: none is named (see `pii-bench models`)"
        )


def _load_maskers(arguments: argparse.Namespace) -> tuple[System, ...]:
    """Return the detection and query-related systems, or the one that rewrites texts."""
    name, strategy = arguments.model, arguments.strategy
    options = replace(_options(arguments, name, arguments.base_url), strategy=strategy)
    if arguments.rewrite:
        if name is None or not is_prompted(name):
            raise PiiBenchError("--rewrite needs a chat model, --model")
        if strategy not in {None, Task.REWRITE}:
            raise PiiBenchError("--rewrite does not use --strategy: leave it out")
        options = replace(options, strategy=str(Task.REWRITE))
        return (rewriting_system(load_systems(name, options, local_only=arguments.local_only)),)
    if name is None:
        if strategy is not None:
            raise PiiBenchError("--strategy needs --model")
        return ()
    systems = load_systems(name, options, local_only=arguments.local_only, task=Task.MASKING)
    by_task = {system.card.task: system for system in systems}
    return by_task[Task.DETECTION], by_task[Task.QUERY_RELATED]


def _load_chat(role: str, arguments: argparse.Namespace, max_tokens: int | None) -> PromptedSystem:
    """Return the chat model of a role, `answerer` or `judge`; its own prompt is not used."""
    name = getattr(arguments, role)
    options = _options(arguments, name, getattr(arguments, f"{role}_base_url"))
    options = replace(options, max_tokens=max_tokens, temperature=arguments.temperature)
    system = load_systems(name, options, local_only=arguments.local_only)[0]
    if not isinstance(system, PromptedSystem):
        raise PiiBenchError(f"{role} {name!r} is not a chat model (see `pii-bench models`)")
    return system


def _options(
    arguments: argparse.Namespace, name: str | None, base_url: str | None
) -> SystemOptions:
    model = ModelOptions(base_url=base_url)
    calls = CallPolicy(concurrency=concurrency_of(arguments, name))
    # Only a provider's model accepts a time limit and a cap on its cost.
    if name is not None and has_provider(name):
        price = price_if_unknown(arguments, name, base_url)
        model = replace(model, timeout=float(arguments.timeout))
        calls = replace(calls, max_usd=arguments.max_usd, price=price)
    return SystemOptions(model=model, calls=calls)


def _write(arguments: argparse.Namespace, measuring: Measuring, datasets: set[str] | None) -> bool:
    """Write the figures, and print those of some datasets or all; True if no run was left out."""
    figures = update_figures(arguments.results, measuring)
    log_left_out(figures.left_out)
    report(f"figures: {', '.join(map(str, figures.paths))}", as_json=arguments.json)
    rows = [row for row in figures.rows if datasets is None or row.dataset in datasets]
    rows += figures.published
    if arguments.json:
        echo_json([record_of(row) for row in rows])
        return not figures.left_out
    echo(f"\n{to_table(rows)}")
    preferences = [
        row for row in figures.preferences if datasets is None or row.dataset in datasets
    ]
    if preferences:
        echo(f"\n{EXPLANATION}\n{preferences_to_table(preferences)}")
    return not figures.left_out
