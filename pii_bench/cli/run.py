"""`pii-bench run`."""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import (
    add_calls,
    add_dataset,
    add_keep,
    add_results,
    add_sampling,
    add_task,
    number_in,
    positive,
    usd,
)
from pii_bench.cli.progress import RunProgress
from pii_bench.cli.tables import print_faults, print_missing
from pii_bench.cli.terminal import say, tell
from pii_bench.datasets.catalog import load_datasets
from pii_bench.errors import PiiBenchError
from pii_bench.models.calls.guarded import CallPolicy
from pii_bench.models.catalog import LOCAL, ModelOptions, resolve
from pii_bench.models.table import ModelStatus, Price, find_card
from pii_bench.ranking.source import Source
from pii_bench.runs.jobs import (
    Job,
    batch_service,
    refuse_uncollected,
    reserved,
    run_jobs,
)
from pii_bench.systems import DEFAULT_SYSTEM
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.exposure import require_local
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pii_bench.models.table import ModelCard
    from pii_bench.ranking.rows import Row
    from pii_bench.systems.base import System


DESCRIPTION: Final = (
    "Run a system over a dataset, score it and update the leaderboard. Responses are saved as "
    "they come; run again to go on."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--model",
        default=DEFAULT_SYSTEM,
        metavar="SYSTEM",
        help="an alias (see `pii-bench models`), provider/name, local/NAME, replay:PATH, "
        "DETECTOR, DETECTOR+RELEVANCE, python:MODULE:FACTORY or a plug-in (default: %(default)s)",
    )
    parser.add_argument(
        "--strategy", help="a chat model's prompt for query-related PII (default: naive)"
    )
    add_task(parser)
    add_dataset(parser)
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="only the first N samples of each dataset"
    )
    parser.add_argument(
        "--label-map",
        type=Path,
        metavar="FILE",
        help="JSON of a detector's labels to our types, instead of its own",
    )
    parser.add_argument(
        "--local-only",
        action="store_true",
        help="refuse a system that sends the texts to another machine",
    )
    add_keep(parser)
    add_sampling(parser.add_argument_group("what a chat model is asked"))
    calls = parser.add_argument_group("how it is called")
    add_calls(calls)
    _add_money(calls)
    parser.add_argument(
        "--all",
        action="store_true",
        help="print every column of the rows of this run and of the published ones",
    )
    add_results(parser)


def run(arguments: argparse.Namespace) -> bool:
    """Run, score, update the leaderboard and print the rows of this run next to the paper's.

    Returns:
        Whether every sample asked for has an answer; True for a dry run.

    Raises:
        PiiBenchError: wrong arguments or input, found before any sample is asked about; or
            the provider refuses, after which what arrived is saved.
    """
    card = _introduce(arguments.model, arguments.base_url)
    concurrency = arguments.concurrency or _concurrency(arguments.model)
    datasets = load_datasets(arguments.dataset)
    built = build_systems(arguments.model, _options(arguments, concurrency))
    systems = _for_task(arguments.task, arguments.model, built)
    if arguments.local_only:
        require_local(systems)
    if arguments.batch is not None:
        for system in systems:
            batch_service(system)
    for dataset in datasets:
        print_faults(dataset)
    root = arguments.results / "runs"
    jobs = [
        Job.of(system, dataset, arguments.limit, root) for dataset in datasets for system in systems
    ]
    if arguments.dry_run:
        from pii_bench.cli.cost import print_estimate

        reasons = card is not None and card.reasons
        print_estimate(jobs, reasons=reasons, batched=arguments.batch is not None)
        return True
    with reserved(jobs):
        if arguments.batch is None:
            refuse_uncollected(jobs)
        try:
            with RunProgress() as progress:
                complete = asyncio.run(run_jobs(jobs, concurrency, arguments.batch, progress))
        except KeyboardInterrupt:
            tell("interrupted")
            return print_missing(jobs)
        except PiiBenchError:
            print_missing(jobs)
            raise
    from pii_bench.cli.leaderboard import update_leaderboard
    from pii_bench.cli.tables import print_rows
    from pii_bench.ranking.summary import summarise

    rows, _ = update_leaderboard(arguments.results, datasets)
    tasks = [*Task] if arguments.task == "all" else [Task(arguments.task)]
    if arguments.all:
        print_rows([row for row in rows if row.task in tasks and _is_shown(row, jobs)])
    else:
        say(f"\n{summarise(rows, _ran(jobs), tasks)}", end="")
    return complete or print_missing(jobs)


def _introduce(name: str, base_url: str | None) -> ModelCard | None:
    """Say what a name stands for, and that its provider will not serve it for long."""
    full_name = resolve(name)
    if full_name != name:
        tell(f"model {name} is {full_name}")
    provider, _, model_id = full_name.partition("/")
    card = find_card(provider, model_id)
    if card is not None and card.status is ModelStatus.DEPRECATED and base_url is None:
        leaves = f"model {full_name} will be retired on {card.retirement}"
        tell(f"{leaves}: use {card.substitute} after that")
    return card


def _options(arguments: argparse.Namespace, concurrency: int) -> SystemOptions:
    return SystemOptions(
        strategy=arguments.strategy,
        max_tokens=arguments.max_tokens,
        temperature=arguments.temperature,
        output=arguments.output,
        votes=arguments.votes,
        model=ModelOptions(
            base_url=arguments.base_url,
            timeout=float(arguments.timeout),
            asked=not arguments.dry_run,
        ),
        calls=CallPolicy(
            concurrency=concurrency,
            requests_per_minute=arguments.rpm,
            tokens_per_minute=arguments.tpm,
            max_usd=arguments.max_usd,
            price=arguments.price,
        ),
        label_map=arguments.label_map,
        keep=arguments.keep,
    )


def _concurrency(name: str) -> int:
    # A local model has one processor.
    return 1 if resolve(name).startswith(f"{LOCAL}/") else 8


def _for_task(task: str, name: str, systems: Sequence[System]) -> list[System]:
    """The systems whose answers a task needs: masking needs both, `all` what there is."""
    both = {Task.DETECTION, Task.QUERY_RELATED}
    needed = both if task in {"all", Task.MASKING} else {Task(task)}
    chosen = [system for system in systems if system.card.task in needed]
    answered = {system.card.task for system in chosen}
    if task != "all" and answered != needed:
        missing = ", ".join(sorted(needed - answered))
        raise PiiBenchError(f"system {name!r} does not answer {missing}")
    return chosen


def _is_shown(row: Row, jobs: Sequence[Job]) -> bool:
    """Whether a row is one of this run, or the paper's on a dataset of the same name."""
    if not row.source.is_system:
        return row.dataset in {job.dataset.name for job in jobs}
    return row.source is Source.RUN and (row.model, row.strategy, row.dataset) in _ran(jobs)


def _ran(jobs: Sequence[Job]) -> dict[tuple[str, str, str], None]:
    """Model, prompt and dataset of each job, in their order."""
    return {(job.system.card.model, job.system.card.prompt, job.dataset.name): None for job in jobs}


def _add_money(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--rpm", type=positive, metavar="N", help="requests a minute that the provider allows"
    )
    group.add_argument(
        "--tpm", type=positive, metavar="N", help="tokens a minute that the provider allows"
    )
    group.add_argument(
        "--batch",
        nargs="?",
        choices=("wait", "submit"),
        const="wait",
        help="ask through the provider's batch API at a lower price, and wait (the default), or "
        "`submit` and leave: run again to collect",
    )
    group.add_argument(
        "--dry-run", action="store_true", help="tell calls, tokens and cost, and ask nothing"
    )
    group.add_argument(
        "--max-usd",
        type=usd,
        metavar="USD",
        help="make no call that might pass this sum, with those in flight",
    )
    group.add_argument(
        "--price",
        type=_price,
        metavar="IN,OUT",
        help="USD per million tokens, where the table of models knows none or another",
    )


def _price(text: str) -> Price:
    numbers = [number_in(part) for part in text.split(",")]
    match numbers:
        case [float(into), float(out)] if into >= 0 and out >= 0:
            return Price(into, out, dt.datetime.now(dt.UTC).date(), "--price")
        case _:
            what = "must be two numbers, USD per million tokens in and out, such as 2.5,10"
            raise argparse.ArgumentTypeError(f"{what}, not {text!r}")
