"""`pii-bench cost`."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_options, amount, fraction, positive, stored_results
from pii_bench.cli.terminal import bounds, echo, echo_json, formatted, log_left_out, with_interval
from pii_bench.errors import PiiBenchError
from pii_bench.escaping import markdown_table
from pii_bench.ranking.costs import Assumptions, Given, bill, costed_systems
from pii_bench.ranking.stored import read_runs
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.ranking.costs import Bill, CostedSystem
    from pii_bench.ranking.rows import Row

_HEADER: Final = (
    *("system", "source", "quality", "failed", "checked", "model h", "model USD"),
    *("people h", "people USD", "total USD", "saved USD"),
)
_RULES: Final = """\
Empty: unknown. Failed documents (share of the samples without an answer) are masked by hand.
Model hours: one document after another. Quality: {metric} on {dataset} with its 95 % interval,
before any check. Systems that use gold, readers and published figures are left out."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Estimate what it takes to mask many documents with each system of the leaderboard and "
        "people who check, compared with masking by hand. Makes no call. The defaults are "
        "assumptions: set your own."
    )
    parser.add_argument(
        "--documents",
        type=positive,
        default=100_000,
        metavar="N",
        help="number of documents (default: %(default)s)",
    )
    parser.add_argument(
        "--dataset", default="single", help="name or path of the dataset (default: %(default)s)"
    )
    parser.add_argument(
        "--task",
        default=str(Task.MASKING),
        choices=[str(task) for task in Task],
        help="masking needs both detection and query-related PII (default: %(default)s)",
    )
    people = parser.add_argument_group("people")
    for name, default, metavar, what in (
        ("--wage", 20.0, "USD", "wage per hour"),
        ("--hand-seconds", 60.0, "S", "seconds to mask a document by hand"),
        ("--review-seconds", 20.0, "S", "seconds to check a document that a system masked"),
    ):
        help_text = f"{what} (default: {default:g})"
        people.add_argument(name, type=amount, default=default, metavar=metavar, help=help_text)
    people.add_argument(
        "--review-share",
        type=_review_share,
        action="append",
        default=[],
        metavar="[SYSTEM=]SHARE",
        help="share of the answered documents that people check because the system's confidence "
        "is too low, 0 to 1, for one system or all; may be given several times (default: 1)",
    )
    systems = parser.add_argument_group("systems")
    systems.add_argument(
        "--machine",
        type=amount,
        default=0.0,
        metavar="USD",
        help="price per hour of this machine, for systems that run on it (default: %(default)g)",
    )
    systems.add_argument(
        "--usd",
        type=_system_amount,
        action="append",
        default=[],
        metavar="SYSTEM=USD",
        help="cost per document, instead of the cost of the stored tokens; may be given several "
        "times",
    )
    systems.add_argument(
        "--seconds",
        type=_system_amount,
        action="append",
        default=[],
        metavar="SYSTEM=S",
        help="seconds per document, instead of the stored durations of a chat model's calls; may "
        "be given several times",
    )
    systems.add_argument(
        "--measure",
        type=positive,
        metavar="N",
        help="measure the seconds of systems that run on this machine, on N samples",
    )
    add_options(parser, "--json")
    add_options(parser, "--results", type=stored_results)


def run(arguments: argparse.Namespace) -> bool:
    """Print the estimate for each system, and its assumptions; True if no run was left out."""
    stored = read_runs(arguments.results)
    log_left_out(stored.left_out)
    if not stored.runs:
        raise PiiBenchError(f"{arguments.results}: no run is stored; `pii-bench run` makes one")
    given = Given(
        usd=arguments.usd,
        seconds=arguments.seconds,
        review_share=arguments.review_share,
        machine=arguments.machine,
        measure=arguments.measure,
    )
    systems = costed_systems(stored.runs, arguments.dataset, Task(arguments.task), given)
    assumptions = Assumptions(
        documents=arguments.documents,
        wage=arguments.wage,
        hand_seconds=arguments.hand_seconds,
        review_seconds=arguments.review_seconds,
    )
    bills = [
        bill(
            assumptions,
            usd_per_document=system.usd,
            seconds_per_document=system.seconds,
            review_share=system.review_share,
            failed=system.row.failed,
        )
        for system in systems
    ]
    billed = list(zip(systems, bills, strict=True))
    if arguments.json:
        echo_json([_record(*each, assumptions, arguments.machine) for each in billed])
    else:
        _print(billed, assumptions, arguments.machine)
    return not stored.left_out


def _print(
    billed: Sequence[tuple[CostedSystem, Bill]], assumptions: Assumptions, machine: float
) -> None:
    first, first_costs = billed[0]
    row = first.row
    hours = assumptions.documents * assumptions.hand_seconds / 3600
    echo(f"{assumptions.documents:,} documents, {row.task} on {row.dataset}\n")
    echo(f"All by hand: {hours:,.0f} h, {first_costs.by_hand_usd:,.0f} USD\n")
    cells = [
        (
            system.name,
            str(system.row.source),
            _quality(system.row),
            f"{system.row.failed:.1%}",
            f"{system.review_share:.1%}",
            formatted(costs.model_hours, ",.1f"),
            formatted(costs.model_usd, ",.0f"),
            formatted(costs.people_hours, ",.0f"),
            formatted(costs.people_usd, ",.0f"),
            formatted(costs.total_usd, ",.0f"),
            formatted(costs.saved_usd, ",.0f"),
        )
        for system, costs in billed
    ]
    echo(markdown_table(_HEADER, cells, ("left",) * 3 + ("right",) * 8))
    echo(
        f"\nAssumed: --documents {assumptions.documents} --wage {assumptions.wage:g} "
        f"--hand-seconds {assumptions.hand_seconds:g} "
        f"--review-seconds {assumptions.review_seconds:g} --machine {machine:g}; --review-share "
        "as under `checked`"
    )
    echo(_RULES.format(metric=row.headline_name, dataset=row.dataset))
    _print_sources("model USD", [(system.name, system.usd_from) for system, _ in billed])
    _print_sources("model h", [(system.name, system.seconds_from) for system, _ in billed])


def _print_sources(title: str, sources: Sequence[tuple[str, str]]) -> None:
    """Print each source of a column, with the systems whose figures come from it."""
    names: dict[str, list[str]] = {}
    for name, source in sources:
        names.setdefault(source, []).append(name)
    for source, systems in names.items():
        echo(f"- {title}, {source}: {', '.join(systems)}")


def _record(
    system: CostedSystem, costs: Bill, assumptions: Assumptions, machine: float
) -> Mapping[str, object]:
    row = system.row
    return {
        "system": system.name,
        "model": row.model,
        "strategy": row.strategy,
        "source": row.source,
        "dataset": row.dataset,
        "task": row.task,
        "metric": row.headline_name,
        "quality": row.headline,
        "interval": bounds(row.interval),
        "failed": row.failed,
        **asdict(costs),
        "usd_per_document": system.usd,
        "usd_from": system.usd_from,
        "seconds_per_document": system.seconds,
        "seconds_from": system.seconds_from,
        "assumed": {
            **asdict(assumptions),
            "review_share": system.review_share,
            "machine": machine,
        },
    }


def _quality(row: Row) -> str:
    if row.headline is None:
        return ""
    text = with_interval(row.headline, row.interval)
    return text if row.complete else f"{text} ({row.scored}/{row.gold})"


def _system_amount(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"must be SYSTEM=NUMBER, not {text!r}")
    return name, amount(number)


def _review_share(text: str) -> tuple[str, float]:
    """Parse `SHARE` or `SYSTEM=SHARE`; the name is empty for all systems."""
    name, _, number = text.rpartition("=")
    return name, fraction(number)
