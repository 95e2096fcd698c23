"""`pii-bench cost`."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_json, add_results, amount, number, positive
from pii_bench.cli.terminal import echo, echo_json, log_left_out
from pii_bench.errors import PiiBenchError
from pii_bench.escaping import markdown_table
from pii_bench.ranking.costs import Assumptions, Given, bill, costed_systems, failed_share
from pii_bench.ranking.stored import read_runs
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.ranking.costs import Bill, CostedSystem
    from pii_bench.ranking.rows import Row

DESCRIPTION: Final = (
    "What masking many documents takes with each system of the leaderboard and people who check, "
    "next to people who mask all of it. Makes no call. The defaults are assumptions: set your own."
)

_HEADER: Final = (
    *("system", "source", "quality", "failed", "checked", "model h", "model USD"),
    *("people h", "people USD", "total USD", "saved USD"),
)
_RULES: Final = """\
Empty: not known here. Failed documents (share of the samples without an answer) are masked by
hand. Model hours: one document after another. Quality: {metric} on {dataset} with its 95 %
interval, before any check. Systems that are told gold, readers and published figures are
left out."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--documents", type=positive, default=100_000, metavar="N", help="default: %(default)s"
    )
    parser.add_argument(
        "--dataset", default="single", help="a name or a path, of the rows (default: %(default)s)"
    )
    parser.add_argument(
        "--task",
        default=str(Task.MASKING),
        choices=[str(task) for task in Task],
        help="of the rows; masking takes detection and the query's answer (default: %(default)s)",
    )
    people = parser.add_argument_group("people")
    systems = parser.add_argument_group("systems")
    for group, name, default, unit, what in (
        (people, "--wage", 20.0, "USD", "per hour"),
        (people, "--hand-seconds", 60.0, "S", "to mask a document by hand"),
        (people, "--review-seconds", 20.0, "S", "to check a document that a system masked"),
        (systems, "--machine", 0.0, "USD", "per hour of this machine, for systems that run on it"),
    ):
        said = f"{what} (default: %(default)g)"
        group.add_argument(name, type=amount, default=default, metavar=unit, help=said)
    people.add_argument(
        "--review-share",
        type=_share,
        action="append",
        default=[],
        metavar="[SYSTEM=]SHARE",
        help="of the answered documents, those that people check because the system's confidence "
        "is too low, 0 to 1; for all systems or one, several times (default: 1, all of them)",
    )
    for name, unit, what in (
        ("--usd", "USD", "per document, instead of what the stored tokens cost"),
        ("--seconds", "S", "per document, which stored runs do not hold"),
    ):
        systems.add_argument(
            name,
            type=_of_system,
            action="append",
            default=[],
            metavar=f"SYSTEM={unit}",
            help=f"{what}; may be given several times",
        )
    systems.add_argument(
        "--measure",
        type=positive,
        metavar="N",
        help="time the systems that run on this machine on N samples, now",
    )
    add_json(parser)
    add_results(parser, stored=True)


def run(arguments: argparse.Namespace) -> bool:
    """Print what each system takes, and what it is reckoned from.

    Returns:
        Whether every stored run could be scored.

    Raises:
        PiiBenchError: no row is of that dataset and task.
        UnknownNameError: an option names a system that has no row.
    """
    task = Task(arguments.task)
    found = read_runs(arguments.results)
    log_left_out(found.left_out)
    if not found.runs:
        raise PiiBenchError(f"{arguments.results}: no run is stored; `pii-bench run` makes one")
    given = Given(
        usd=arguments.usd,
        seconds=arguments.seconds,
        review_share=arguments.review_share,
        machine=arguments.machine,
        measure=arguments.measure,
    )
    systems = costed_systems(found.runs, arguments.dataset, task, given)
    assumed = Assumptions(
        documents=arguments.documents,
        wage=arguments.wage,
        hand_seconds=arguments.hand_seconds,
        review_seconds=arguments.review_seconds,
        review_share=1.0,
    )
    billed = [
        (
            each,
            bill(
                replace(assumed, review_share=each.review_share),
                usd_per_document=each.usd,
                seconds_per_document=each.seconds,
                failed=failed_share(each.row.rates),
            ),
        )
        for each in systems
    ]
    if arguments.json:
        echo_json([_record(each, taken, assumed, arguments.machine) for each, taken in billed])
    else:
        _print(billed, assumed, arguments.machine)
    return not found.left_out


def _print(
    billed: Sequence[tuple[CostedSystem, Bill]], assumed: Assumptions, machine: float
) -> None:
    row, by_hand = billed[0][0].row, billed[0][1].by_hand_usd
    hours = assumed.documents * assumed.hand_seconds / 3600
    echo(f"{assumed.documents:,} documents, {row.task} on {row.dataset}\n")
    echo(f"All by hand: {hours:,.0f} h, {by_hand:,.0f} USD\n")
    cells = [
        (
            each.name,
            str(each.row.source),
            _quality(each.row),
            f"{failed_share(each.row.rates):.1%}",
            f"{each.review_share:.1%}",
            _number(taken.model_hours, 1),
            _number(taken.model_usd),
            _number(taken.people_hours),
            _number(taken.people_usd),
            _number(taken.total_usd),
            _number(taken.saved_usd),
        )
        for each, taken in billed
    ]
    echo(markdown_table(_HEADER, cells, ("left",) * 3 + ("right",) * 8))
    echo(
        f"\nAssumed: --documents {assumed.documents} --wage {assumed.wage:g} "
        f"--hand-seconds {assumed.hand_seconds:g} --review-seconds {assumed.review_seconds:g} "
        f"--machine {machine:g}; --review-share as under `checked`"
    )
    echo(_RULES.format(metric=row.headline_name, dataset=row.dataset))
    for title, sources in (
        ("model USD", {each: each.usd_from for each, _ in billed}),
        ("model h", {each: each.seconds_from for each, _ in billed}),
    ):
        for source in dict.fromkeys(sources.values()):
            names = ", ".join(each.name for each, own in sources.items() if own == source)
            echo(f"- {title}, {source}: {names}")


def _record(
    each: CostedSystem, taken: Bill, assumed: Assumptions, machine: float
) -> Mapping[str, object]:
    row = each.row
    return {
        "system": each.name,
        "model": row.model,
        "strategy": row.strategy,
        "source": row.source,
        "dataset": row.dataset,
        "task": row.task,
        "metric": row.headline_name,
        "quality": row.headline,
        "interval": None if row.interval is None else [row.interval.low, row.interval.high],
        "failed": failed_share(row.rates),
        **asdict(taken),
        "usd_per_document": each.usd,
        "usd_from": each.usd_from,
        "seconds_per_document": each.seconds,
        "seconds_from": each.seconds_from,
        "assumed": {
            **asdict(assumed),
            "review_share": each.review_share,
            "machine": machine,
        },
    }


def _quality(row: Row) -> str:
    if row.headline is None:
        return ""
    text = f"{row.headline:.3f}"
    if row.interval is not None:
        text += f" [{row.interval.low:.3f}, {row.interval.high:.3f}]"
    return text if row.complete else f"{text} ({row.scored}/{row.gold})"


def _number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


_of_one = number("a share from 0 to 1", lambda found: 0 <= found <= 1)


def _of_system(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"must be SYSTEM=NUMBER, not {text!r}")
    return name, amount(number)


def _share(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    return name, _of_one(number)
