"""`pii-bench run`."""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import (
    Given,
    add_calls,
    add_dataset,
    add_engine,
    add_filters,
    add_json,
    add_keep,
    add_label_map,
    add_labelled,
    add_limit,
    add_local_only,
    add_max_usd,
    add_results,
    add_sampling,
    add_task,
    amount,
    built,
    calls_at_a_time,
    filtered,
    positive,
    ray_workers,
    system_options,
)
from pii_bench.cli.terminal import RunProgress, echo, echo_rows, log, log_faults, update_leaderboard
from pii_bench.datasets.catalog import load_datasets
from pii_bench.errors import PiiBenchError
from pii_bench.models.calls import CallPolicy
from pii_bench.models.catalog import ModelStatus, Price, find_card, resolve
from pii_bench.ranking.rows import Source
from pii_bench.runs.jobs import Job, batch_service, missing, refuse_uncollected, reserved, run_jobs
from pii_bench.runs.run import respond_on_ray
from pii_bench.runs.store import read_lines
from pii_bench.systems import DEFAULT_SYSTEM
from pii_bench.systems.catalog import PlugIn, fault_of, is_prompted
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Literal

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.models.catalog import ModelCard
    from pii_bench.prompting.labelled import Shots
    from pii_bench.ranking.rows import Row
    from pii_bench.runs.jobs import MapSamples
    from pii_bench.systems.base import System
    from pii_bench.systems.catalog import SystemOptions


_LISTED: Final = 5

DESCRIPTION: Final = (
    "Run a system over a dataset, score it and update the leaderboard. Responses are saved as "
    "they come; run again to go on."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    # For every option that has no action of its own.
    parser.register("action", None, Given)
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="run every model with every strategy on every dataset that a TOML file names, "
        "instead of --model, --strategy, --dataset and --limit",
    )
    parser.add_argument(
        "--model",
        default=DEFAULT_SYSTEM,
        metavar="SYSTEM",
        help="an alias (see `pii-bench models`), provider/name, local/NAME, replay:PATH, "
        "DETECTOR, DETECTOR+RELEVANCE, python:MODULE:FACTORY or a plug-in (default: %(default)s)",
    )
    parser.add_argument(
        "--strategy",
        help="a chat model's prompt for query-related PII (default: naive), json for detection in "
        "the labels of any taxonomy, or rewrite",
    )
    add_task(parser)
    add_dataset(parser)
    add_filters(parser)
    add_limit(parser)
    add_label_map(parser)
    add_local_only(parser, "system that sends the texts to")
    add_keep(parser)
    add_engine(parser.add_argument_group("where a local system works"))
    add_sampling(parser.add_argument_group("what a chat model is asked"))
    add_labelled(parser.add_argument_group("what the strategy json asks"))
    calls = parser.add_argument_group("how it is called")
    add_calls(calls)
    _add_money(calls)
    parser.add_argument(
        "--all",
        action="store_true",
        help="print every column of the rows of this run and of the published ones",
    )
    add_json(parser)
    add_results(parser)


def run(arguments: argparse.Namespace) -> bool:
    """Run, score, update the leaderboard and print the rows of this run next to the paper's.

    Returns:
        Whether every sample asked for has an answer; True for a dry run.

    Raises:
        PiiBenchError: wrong arguments or input, found before any sample is asked about; or
            the provider refuses, after which what arrived is saved.
    """
    if arguments.config is not None:
        from pii_bench.cli.run_matrix import run_matrix

        return run_matrix(arguments)
    datasets = load_datasets(filtered(arguments))
    planned = plan(arguments, datasets)
    for dataset in datasets:
        log_faults(dataset)
    if arguments.dry_run:
        from pii_bench.cli.estimates import print_estimates
        from pii_bench.runs.estimates import estimate_jobs

        batched = arguments.batch is not None
        print_estimates(
            estimate_jobs(planned.jobs, reasons=planned.reasons, batched=batched),
            as_json=arguments.json,
        )
        return True
    try:
        complete = ask(planned, arguments.batch)
    except KeyboardInterrupt:
        return not missing(planned.jobs)
    print_summary(arguments, datasets, ran(planned.jobs))
    return complete or log_missing(planned.jobs)


@dataclass(frozen=True, slots=True)
class Plan:
    """A system on datasets, before anything is asked.

    Attributes:
        jobs: what to do.
        concurrency: samples asked about at a time.
        reasons: whether the model reasons before it answers.
        map_samples: asks elsewhere than here; None to ask here.
    """

    jobs: Sequence[Job]
    concurrency: int
    reasons: bool
    map_samples: MapSamples | None = None


def plan(arguments: argparse.Namespace, datasets: Sequence[Dataset]) -> Plan:
    """Build the system of some arguments, and its jobs.

    Raises:
        PiiBenchError: a name or an option is wrong, or what the system needs is missing.
    """
    card = _introduce(arguments.model, arguments.base_url)
    concurrency = calls_at_a_time(arguments, arguments.model)
    options = _options(arguments, concurrency)
    found = built(arguments.model, options, local_only=arguments.local_only)
    systems = for_task(arguments.task, arguments.model, found)
    if arguments.batch is not None:
        for system in systems:
            batch_service(system)
    root = arguments.results / "runs"
    jobs = [
        Job.of(system, dataset, arguments.limit, root) for dataset in datasets for system in systems
    ]
    workers = ray_workers(arguments, systems)
    map_samples: MapSamples | None = None
    if workers is not None:
        map_samples = partial(respond_on_ray, arguments.model, options, workers)

    reasons = card is not None and card.reasons
    return Plan(jobs, concurrency, reasons, map_samples)


def ask(planned: Plan, batch: Literal["submit", "wait"] | None) -> bool:
    """Ask what is missing; where that ends early, say what is missing still.

    Returns:
        Whether it is known that nothing is missing any more.

    Raises:
        KeyboardInterrupt: the user ended it; what arrived is saved.
        PiiBenchError: likewise the provider, or another run writes there.
    """
    jobs = planned.jobs
    with reserved(jobs):
        if batch is None:
            refuse_uncollected(jobs)
        try:
            with RunProgress() as progress:
                complete = asyncio.run(
                    run_jobs(jobs, planned.concurrency, batch, progress, planned.map_samples)
                )
        except KeyboardInterrupt:
            log("interrupted")
            log_missing(jobs)
            raise
        except PiiBenchError:
            log_missing(jobs)
            raise
    _tell_plug_in_faults(jobs)
    return complete


def log_missing(jobs: Sequence[Job]) -> bool:
    """Say what has no answer yet; whether nothing is missing."""
    lines = missing(jobs)
    for line in lines:
        log(line)
    return not lines


def _tell_plug_in_faults(jobs: Sequence[Job]) -> None:
    """The samples on which a plug-in's code failed; such an answer counts as a wrong one."""
    for job in jobs:
        if not isinstance(job.system, PlugIn):
            continue
        asked = {sample.id for sample in job.samples}
        faults = [
            f"sample {record.id!r}: {fault}"
            for _, record in read_lines(job.files.responses, unreadable=[])
            if record.id in asked and (fault := fault_of(record.response))
        ]
        for fault in faults[:_LISTED]:
            log(f"{job.label}, {fault}")
        if len(faults) > _LISTED:
            log(f"{job.label}: and {len(faults) - _LISTED} more")


def print_summary(
    arguments: argparse.Namespace,
    datasets: Iterable[Dataset],
    shown: Mapping[tuple[str, str, str], None],
) -> None:
    """Update the leaderboard, and print the rows of what was run (`shown`) next to the paper's."""
    from pii_bench.ranking.render import summarise

    report = log if arguments.json else echo
    rows, _ = update_leaderboard(arguments.results, datasets, report=report)
    tasks = [*Task] if arguments.task == "all" else [Task(arguments.task)]
    chosen = [row for row in rows if row.task in tasks and _is_shown(row, shown)]
    if arguments.json:
        echo_rows([row for row in chosen if row.source.is_system], as_json=True)
    elif arguments.all:
        echo_rows(chosen, as_json=False)
    else:
        echo(f"\n{summarise(rows, shown, tasks)}", end="")


def _introduce(name: str, base_url: str | None) -> ModelCard | None:
    """Say which model an alias names, and when that model will be retired."""
    full_name = resolve(name)
    if full_name != name:
        log(f"model {name} is {full_name}")
    provider, _, model_id = full_name.partition("/")
    card = find_card(provider, model_id)
    if card is not None and card.status is ModelStatus.DEPRECATED and base_url is None:
        leaves = f"model {full_name} will be retired on {card.retirement}"
        log(f"{leaves}: use {card.substitute} after that")
    return card


def _options(arguments: argparse.Namespace, concurrency: int) -> SystemOptions:
    shared = system_options(arguments)
    return replace(
        shared,
        strategy=_strategy(arguments),
        model=replace(shared.model, asked=not arguments.dry_run),
        calls=CallPolicy(
            concurrency=concurrency,
            requests_per_minute=arguments.rpm,
            tokens_per_minute=arguments.tpm,
            max_usd=arguments.max_usd,
            price=arguments.price,
        ),
        taxonomy=arguments.taxonomy,
        shots=_shots(arguments),
        chunk=arguments.chunk,
    )


def _strategy(arguments: argparse.Namespace) -> str | None:
    """The one asked for; of a chat model that is to rewrite, the only one."""
    if arguments.strategy is None and arguments.task == Task.REWRITE:
        return str(Task.REWRITE) if is_prompted(arguments.model) else None
    strategy: str | None = arguments.strategy
    return strategy


def _shots(arguments: argparse.Namespace) -> Shots | None:
    """The examples asked for; what the user did not say is as `Shots` has it."""
    given = {
        key: value
        for key in ("source", "by", "seed")
        if (value := getattr(arguments, f"shots_{key}")) is not None
    }
    if arguments.shots is not None:
        from pii_bench.prompting.labelled import Shots

        return Shots(arguments.shots, **given)
    if given:
        raise PiiBenchError("--shots-from, --shots-by and --shots-seed need --shots")
    return None


def for_task(task: str, name: str, systems: Sequence[System]) -> list[System]:
    """The systems whose answers a task needs: masking needs both, `all` what there is."""
    both = {Task.DETECTION, Task.QUERY_RELATED}
    several = {"all": {Task.REWRITE, *both}, Task.MASKING: both}
    needed = several.get(task) or {Task(task)}
    chosen = [system for system in systems if system.card.task in needed]
    answered = {system.card.task for system in chosen}
    if task != "all" and answered != needed:
        missing = ", ".join(sorted(needed - answered))
        raise PiiBenchError(f"system {name!r} does not answer {missing}")
    return chosen


def _is_shown(row: Row, shown: Collection[tuple[str, str, str]]) -> bool:
    """Whether a row is one of this run, or the paper's on a dataset of the same name."""
    if not row.source.is_system:
        return row.dataset in {dataset for _, _, dataset in shown}
    return row.source is Source.RUN and (row.model, row.strategy, row.dataset) in shown


def ran(jobs: Sequence[Job]) -> dict[tuple[str, str, str], None]:
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
    add_max_usd(group, "make no call that might pass this sum, with those in flight")
    group.add_argument(
        "--price",
        type=_price,
        metavar="IN,OUT",
        help="USD per million tokens, where the table of models knows none or another",
    )


def _price(text: str) -> Price:
    try:
        into, out = map(amount, text.split(","))
    except (ValueError, argparse.ArgumentTypeError):
        what = "must be two numbers, USD per million tokens in and out, such as 2.5,10"
        raise argparse.ArgumentTypeError(f"{what}, not {text!r}") from None
    return Price(into, out, dt.datetime.now(dt.UTC).date(), "--price")
