"""`pii-bench utility`."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.utility.collect import Measuring, record_of, to_table
from pii_bench.analysis.utility.preferences import EXPLANATION, preferences_to_table
from pii_bench.analysis.utility.study import Study, update_figures
from pii_bench.cli.options import (
    DATASET_HELP,
    add_calls,
    add_json,
    add_limit,
    add_local_only,
    add_max_usd,
    add_results,
    concurrency_of,
    fraction,
    load_systems,
    positive,
)
from pii_bench.cli.run import for_task, log_missing
from pii_bench.cli.terminal import RunProgress, echo, echo_json, log, log_left_out
from pii_bench.datasets.catalog import load_datasets
from pii_bench.errors import PiiBenchError
from pii_bench.models.calls import CallPolicy
from pii_bench.models.catalog import PROVIDERS, ModelOptions, resolve
from pii_bench.runs.jobs import Job, refuse_uncollected, reserved, run_jobs
from pii_bench.runs.mask_text import rewriting_system
from pii_bench.systems.catalog import SystemOptions, is_prompted
from pii_bench.systems.prompted import PromptedSystem
from pii_bench.systems.relevance.embedding import MiniLmEncoder, WordLlamaEncoder
from pii_bench.tasks import Task

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from pii_bench.systems.base import System
    from pii_bench.systems.relevance.embedding import Encoder

EMBEDDERS: Final[Mapping[str, Callable[[], Encoder]]] = MappingProxyType(
    {"wordllama": WordLlamaEncoder, "minilm": MiniLmEncoder}
)

DESCRIPTION: Final = (
    "Let a chat model answer queries over texts as they are, masked whole, masked but for "
    "what the query needs, and masked by a system; compare the answers. Answers and verdicts "
    "are saved as they come; run again to go on. Without --answerer nothing is asked, and the "
    "figures are made again of what is stored."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--model",
        metavar="SYSTEM",
        help="what masks, any that `pii-bench run` takes for both tasks; its answers are those "
        "of `run`, which has all options (default: gold's conditions alone)",
    )
    parser.add_argument(
        "--strategy", help="of --model, a chat model's prompt for query-related PII (naive)"
    )
    parser.add_argument(
        "--rewrite",
        action="store_true",
        help="let --model write the texts anew; a --judge then also compares these texts with "
        "those that gold masks",
    )
    parser.add_argument("--answerer", metavar="MODEL", help="the chat model that answers")
    parser.add_argument(
        "--judge", metavar="MODEL", help="a chat model that rates the answers (default: none)"
    )
    parser.add_argument(
        "--dataset", default="demo", help=f"all, {DATASET_HELP} (default: %(default)s)"
    )
    add_limit(parser)
    parser.add_argument(
        "--embedder",
        choices=list(EMBEDDERS),
        default="wordllama",
        help="of the answers, for their cosine (default: %(default)s)",
    )
    parser.add_argument(
        "--weight",
        type=fraction,
        default=0.5,
        metavar="A",
        help="of privacy in the balance, 0 to 1 (default: %(default)s)",
    )
    add_local_only(parser)
    calls = parser.add_argument_group("how chat models are called")
    calls.add_argument(
        "--answer-tokens",
        type=positive,
        metavar="N",
        help="longest answer, reasoning included (default: 2048; a model that reasons: 16384; "
        "local: 512)",
    )
    calls.add_argument(
        "--verdict-tokens", type=positive, metavar="N", help="longest verdict (default: likewise)"
    )
    add_calls(calls)
    calls.add_argument("--answerer-base-url", metavar="URL", help="as --base-url, the answerer's")
    calls.add_argument("--judge-base-url", metavar="URL", help="as --base-url, the judge's")
    add_max_usd(
        calls,
        "make no call to a provider's model that might pass this sum; each model has its own",
    )
    add_json(parser)
    add_results(parser)


def run(arguments: argparse.Namespace) -> bool:
    """Mask, answer, judge, and write the figures of all that is stored.

    Without an answerer nothing is asked: the figures are made again of what is stored.

    Returns:
        Whether every sample asked for has its answers and verdicts; without an answerer,
        whether every stored run has its rows.

    Raises:
        PiiBenchError: wrong arguments or input, found before anything is asked; or a provider
            refuses, after which what arrived is saved.
    """
    measuring = Measuring(arguments.embedder, EMBEDDERS[arguments.embedder](), arguments.weight)
    if arguments.answerer is None:
        if arguments.model is not None or arguments.judge is not None or arguments.rewrite:
            raise PiiBenchError("--model, --rewrite and --judge need an --answerer")
        return _write(arguments, measuring, None)
    study = _study(arguments)
    try:
        complete = [_run(jobs, calls) for jobs, calls in study.stages()]
    except KeyboardInterrupt:
        log("interrupted")
        return False
    finally:
        asyncio.run(study.close())
    _write(arguments, measuring, {dataset.name for dataset in study.datasets})
    return all(complete)


def _study(arguments: argparse.Namespace) -> Study:
    return Study(
        results=arguments.results,
        datasets=load_datasets(arguments.dataset),
        limit=arguments.limit,
        maskers=_maskers(arguments),
        answerer=_chat("answerer", arguments, arguments.answer_tokens),
        judge=_chat("judge", arguments, arguments.verdict_tokens) if arguments.judge else None,
        calls=(
            concurrency_of(arguments, arguments.model),
            concurrency_of(arguments, arguments.answerer),
            concurrency_of(arguments, arguments.judge),
        ),
    )


def _maskers(arguments: argparse.Namespace) -> tuple[System, ...]:
    """The detection and the query-related system, or the one that writes texts anew."""
    name, strategy = arguments.model, arguments.strategy
    options = _options(arguments, name, arguments.base_url)
    if arguments.rewrite:
        if name is None or not is_prompted(name):
            raise PiiBenchError("--rewrite needs a chat model, --model")
        if strategy not in {None, Task.REWRITE}:
            raise PiiBenchError("--rewrite has no use for --strategy: leave it out")
        options = replace(options, strategy=str(Task.REWRITE))
        return (rewriting_system(load_systems(name, options, local_only=arguments.local_only)),)
    if name is None:
        if strategy is not None:
            raise PiiBenchError("--strategy is that of --model: name one")
        return ()
    found = load_systems(name, replace(options, strategy=strategy), local_only=arguments.local_only)
    by_task = {system.card.task: system for system in for_task(Task.MASKING, name, found)}
    return by_task[Task.DETECTION], by_task[Task.QUERY_RELATED]


def _chat(role: str, arguments: argparse.Namespace, tokens: int | None) -> PromptedSystem:
    """A chat model with what it is sampled by; its prompt is another's."""
    name = getattr(arguments, role)
    options = _options(arguments, name, getattr(arguments, f"{role}_base_url"))
    limited = replace(options, max_tokens=tokens)
    system, *_ = load_systems(name, limited, local_only=arguments.local_only)
    if not isinstance(system, PromptedSystem):
        raise PiiBenchError(f"{role} {name!r} is no chat model (see `pii-bench models`)")
    return system


def _options(
    arguments: argparse.Namespace, name: str | None, base_url: str | None
) -> SystemOptions:
    # Only a provider's model may cost: a cap on any other would be refused.
    called = name is not None and resolve(name).partition("/")[0] in PROVIDERS
    return SystemOptions(
        model=ModelOptions(base_url=base_url, timeout=float(arguments.timeout)),
        calls=CallPolicy(
            concurrency=concurrency_of(arguments, name),
            max_usd=arguments.max_usd if called else None,
        ),
    )


def _run(jobs: Sequence[Job], calls: int) -> bool:
    """Ask what is missing; whether nothing is then."""
    if not jobs:
        return True
    with reserved(jobs):
        refuse_uncollected(jobs)
        try:
            with RunProgress() as progress:
                asyncio.run(run_jobs(jobs, calls, None, progress))
        except (KeyboardInterrupt, PiiBenchError):
            log_missing(jobs)
            raise
        return log_missing(jobs)


def _write(arguments: argparse.Namespace, measuring: Measuring, datasets: set[str] | None) -> bool:
    """Write the figures, and print those of some datasets; None for all.

    Returns:
        Whether every stored run has its rows.
    """
    figures = update_figures(arguments.results, measuring)
    log_left_out(figures.left_out)
    (log if arguments.json else echo)(f"figures: {', '.join(map(str, figures.paths))}")
    rows = [row for row in figures.rows if datasets is None or row.dataset in datasets]
    shown = [row for row in figures.preferences if datasets is None or row.dataset in datasets]
    if arguments.json:
        echo_json([record_of(row) for row in (*rows, *figures.published)])
        return not figures.left_out
    echo(f"\n{to_table([*rows, *figures.published])}")
    if shown:
        echo(f"\n{EXPLANATION}\n{preferences_to_table(shown)}")
    return not figures.left_out
