"""`pii-bench run`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import (
    SAMPLING,
    add_options,
    concurrency_of,
    dataset_source,
    given_options,
    load_systems,
    positive,
    ray_workers,
    system_options,
)
from pii_bench.cli.terminal import (
    RunProgress,
    echo,
    echo_estimates,
    echo_rows,
    log,
    log_faults,
    update_leaderboard,
)
from pii_bench.datasets.catalog import load_datasets
from pii_bench.errors import PiiBenchError
from pii_bench.models.calls import CallPolicy
from pii_bench.models.catalog import ModelStatus, find_card, resolve
from pii_bench.ranking.rows import Source
from pii_bench.runs.jobs import (
    Job,
    batch_service,
    estimate_jobs,
    missing,
    refuse_uncollected,
    reserved,
    run_jobs,
)
from pii_bench.runs.run import respond_on_ray
from pii_bench.runs.store import RunFiles
from pii_bench.systems import DEFAULT_SYSTEM
from pii_bench.systems.catalog import is_prompted
from pii_bench.tasks import ALL_TASKS, Task

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterable, Sequence
    from typing import Literal

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.models.catalog import ModelCard
    from pii_bench.prompting.labelled import Shots
    from pii_bench.ranking.rows import Row
    from pii_bench.runs.jobs import MapTaskSamples
    from pii_bench.systems.catalog import SystemOptions

_NOT_WITH_CONFIG: Final = ("dataset", "limit", "model", "strategy")
# Filled in by `run`: until then, None says that an option was not given.
_DEFAULTS: Final = {
    "model": DEFAULT_SYSTEM,
    "dataset": "all",
    "task": ALL_TASKS,
    "results": Path("results"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Run a system on datasets, score it and update the leaderboard. Responses are saved as "
        "they arrive; run again to continue."
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="TOML file of models, strategies and datasets: run every combination; replaces "
        "--model, --strategy, --dataset and --limit",
    )
    parser.add_argument(
        "--model",
        metavar="SYSTEM",
        help="an alias (see `pii-bench models`), provider/name, local/NAME, replay:PATH, "
        "DETECTOR, DETECTOR+RELEVANCE, python:MODULE:FACTORY or a plug-in "
        f"(default: {DEFAULT_SYSTEM})",
    )
    parser.add_argument(
        "--strategy",
        help="a chat model's prompt for query-related PII (default: naive), json for detection in "
        "the labels of any taxonomy, or rewrite",
    )
    add_options(parser, "--task", "--dataset", "--language", "--split", "--limit")
    add_options(parser, "--label-map", "--local-only", "--keep")
    add_options(parser.add_argument_group("local systems"), "--engine", "--workers")
    add_options(parser.add_argument_group("answers of chat models"), *SAMPLING)
    _add_labelled(parser.add_argument_group("strategy json"))
    calls = parser.add_argument_group("calls of chat models")
    add_options(calls, "--concurrency", "--base-url", "--timeout")
    _add_money(calls)
    parser.add_argument(
        "--all",
        action="store_true",
        help="print every column, of the rows of this run and of the published ones",
    )
    add_options(parser, "--json", "--results")
    parser.set_defaults(**dict.fromkeys(_DEFAULTS))


def run(arguments: argparse.Namespace) -> bool:
    """Run, score, update the leaderboard, and print the rows of this run next to the paper's.

    Wrong arguments and input are found before the first call. If the provider refuses, the
    responses so far are saved.
    """
    if arguments.config is not None:
        from pii_bench.cli.run_matrix import run_matrix

        if given := given_options(arguments, _NOT_WITH_CONFIG):
            raise PiiBenchError(f"--config: not allowed with {given}, which the file sets")
        return run_matrix(arguments)
    for name, default in _DEFAULTS.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, default)
    datasets = load_datasets(dataset_source(arguments))
    planned = plan(arguments, datasets)
    for dataset in datasets:
        log_faults(dataset)
    if arguments.dry_run:
        batched = arguments.batch is not None
        estimates = estimate_jobs(planned.jobs, reasons=planned.reasons, batched=batched)
        echo_estimates(estimates, as_json=arguments.json)
        return True
    try:
        complete = get_responses(planned, arguments.batch)
    except KeyboardInterrupt:
        return not missing(planned.jobs)
    print_summary(arguments, datasets, run_keys(planned.jobs))
    return complete or log_missing(planned.jobs)


@dataclass(frozen=True, slots=True)
class Plan:
    """The jobs of a system, one for each dataset and task, before the first call.

    Attributes:
        concurrency: number of samples in flight at a time.
        reasons: True if the model reasons before it answers.
        map_samples: gets the responses in other processes; None for this process.
    """

    jobs: Sequence[Job]
    concurrency: int
    reasons: bool
    map_samples: MapTaskSamples | None = None


def plan(arguments: argparse.Namespace, datasets: Sequence[Dataset]) -> Plan:
    """Build the system that the arguments name, and its jobs."""
    card = _announce_model(arguments.model, arguments.base_url)
    concurrency = concurrency_of(arguments, arguments.model)
    options = _options(arguments, concurrency)
    systems = load_systems(
        arguments.model, options, local_only=arguments.local_only, task=arguments.task
    )
    if arguments.batch is not None:
        for system in systems:
            # Refuses a system without a batch API.
            batch_service(system)
    root = arguments.results / "runs"
    jobs = [
        Job.of(system, dataset, arguments.limit, root) for dataset in datasets for system in systems
    ]
    workers = ray_workers(arguments, systems, "; use --concurrency for other machines")
    map_samples: MapTaskSamples | None = None
    if workers is not None:
        map_samples = partial(respond_on_ray, arguments.model, options, workers)
    return Plan(jobs, concurrency, card is not None and card.reasons, map_samples)


def get_responses(planned: Plan, batch: Literal["submit", "wait"] | None) -> bool:
    """Get the missing responses; if that ends early, log which are still missing.

    Returns:
        True if every sample has an answer; always False for batches.

    Raises:
        KeyboardInterrupt: the user stopped it; the responses so far are saved.
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
        except (KeyboardInterrupt, PiiBenchError) as error:
            if isinstance(error, KeyboardInterrupt):
                log("interrupted")
            log_missing(jobs)
            raise
    return complete


def log_missing(jobs: Sequence[Job]) -> bool:
    """Log how many samples have no answer; return True if every sample has one."""
    lines = missing(jobs)
    for line in lines:
        log(line)
    return not lines


def run_keys(jobs: Sequence[Job]) -> list[tuple[str, str, str]]:
    """Return the model, prompt and dataset of each job."""
    return [(job.system.card.model, job.system.card.prompt, job.dataset.name) for job in jobs]


def print_summary(
    arguments: argparse.Namespace,
    datasets: Iterable[Dataset],
    keys: Collection[tuple[str, str, str]],
) -> None:
    """Update the leaderboard, and print the rows of these runs next to the paper's.

    With a limit, their figures are those of the first samples of each dataset.
    """
    from pii_bench.ranking.render import summarise

    rows, _ = update_leaderboard(arguments.results, datasets, as_json=arguments.json)
    if arguments.limit is not None:
        rows = _of_first_samples(rows, arguments.limit, arguments.results, datasets, keys)
    tasks = [*Task] if arguments.task == ALL_TASKS else [Task(arguments.task)]
    shown = [row for row in rows if row.task in tasks and _is_shown(row, keys)]
    if arguments.json:
        echo_rows([row for row in shown if row.source.is_system], as_json=True)
    elif arguments.all:
        echo_rows(shown, as_json=False)
    else:
        echo(f"\n{summarise(rows, keys, tasks)}", end="")


def _of_first_samples(
    rows: Iterable[Row],
    limit: int,
    results: Path,
    datasets: Iterable[Dataset],
    keys: Iterable[tuple[str, str, str]],
) -> list[Row]:
    """Return the rows, those of these runs with the figures of the first `limit` samples."""
    from pii_bench.ranking.html import address
    from pii_bench.ranking.stored import score_runs

    by_name = {dataset.name: dataset for dataset in datasets}
    stored = []
    for model, prompt, name in dict.fromkeys(keys):
        path = RunFiles.at(results / "runs", model, prompt, name).manifest
        if path.exists():
            stored.append((path, by_name[name]))
    limited = {address(row): row for row in score_runs(stored, limit)}
    result = []
    for row in rows:
        first = limited.get(address(row))
        if first is None or first.gold == row.gold:
            result.append(row)
        else:
            # The row says how many of all samples its figures are of.
            result.append(replace(first, gold=row.gold))
    return result


def _is_shown(row: Row, keys: Collection[tuple[str, str, str]]) -> bool:
    """Return True for a row of these runs, or a published one on a dataset of the same name."""
    if not row.source.is_system:
        return row.dataset in {dataset for _, _, dataset in keys}
    return row.source is Source.RUN and (row.model, row.strategy, row.dataset) in keys


def _announce_model(name: str, base_url: str | None) -> ModelCard | None:
    """Log the full name of an alias's model, and when it will be retired."""
    full_name = resolve(name)
    if full_name != name:
        log(f"model {name} is {full_name}")
    provider, _, model_id = full_name.partition("/")
    card = find_card(provider, model_id)
    if card is not None and card.status is ModelStatus.DEPRECATED and base_url is None:
        log(
            f"model {full_name} will be retired on {card.retirement}: use {card.substitute} "
            "after that"
        )
    return card


def _options(arguments: argparse.Namespace, concurrency: int) -> SystemOptions:
    shared = system_options(arguments)
    strategy = shared.strategy
    if strategy is None and arguments.task == Task.REWRITE and is_prompted(arguments.model):
        strategy = str(Task.REWRITE)
    return replace(
        shared,
        strategy=strategy,
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


def _shots(arguments: argparse.Namespace) -> Shots | None:
    details = {
        "source": arguments.shots_source,
        "by": arguments.shots_by,
        "seed": arguments.shots_seed,
    }
    details = {name: value for name, value in details.items() if value is not None}
    if arguments.shots is not None:
        from pii_bench.prompting.labelled import Shots

        return Shots(arguments.shots, **details)
    if details:
        raise PiiBenchError("--shots-from, --shots-by and --shots-seed need --shots")
    return None


def _add_labelled(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--taxonomy",
        metavar="NAME",
        help="the taxonomy whose labels it asks for: paper (the seven types, the default), "
        "ai4privacy, datafog, nemotron, presidio, spacy...",
    )
    group.add_argument(
        "--shots", type=positive, metavar="N", help="number of examples in the prompt (default: 0)"
    )
    group.add_argument(
        "--shots-from",
        dest="shots_source",
        metavar="DATASET",
        help="the dataset of the examples: train-single (the default), train-multi, or the train "
        "split of ai4privacy:PATH...",
    )
    group.add_argument(
        "--shots-by",
        choices=("seed", "similarity"),
        help="the same examples for every text (seed, the default), or those most like the text",
    )
    group.add_argument(
        "--shots-seed", type=int, metavar="SEED", help="random seed of the examples (default: 0)"
    )
    group.add_argument(
        "--chunk",
        type=positive,
        metavar="CHARACTERS",
        help="split longer texts into pieces (default: whole texts)",
    )


def _add_money(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--rpm", type=positive, metavar="N", help="requests per minute that the provider allows"
    )
    group.add_argument(
        "--tpm", type=positive, metavar="N", help="tokens per minute that the provider allows"
    )
    group.add_argument(
        "--batch",
        nargs="?",
        choices=("wait", "submit"),
        const="wait",
        help="use the provider's batch API at a lower price and wait (the default), or `submit` "
        "and exit: run again to collect the answers",
    )
    group.add_argument(
        "--dry-run", action="store_true", help="print calls, tokens and cost, and make no call"
    )
    add_options(group, "--max-usd", "--price")
