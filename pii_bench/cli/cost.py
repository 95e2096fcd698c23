"""`pii-bench cost`."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.cli.options import add_json, add_results, amount, number, positive
from pii_bench.cli.terminal import say, say_json, tell_left_out
from pii_bench.datasets.sample import applicable
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.escaping import markdown_table
from pii_bench.prompting.strategies import STRATEGIES
from pii_bench.ranking.costs import (
    Assumptions,
    Bill,
    bill,
    failed_share,
    price_of,
    seconds_per_document,
    usd_per_document,
)
from pii_bench.ranking.rows import rank, system_name
from pii_bench.ranking.stored import read_runs, rows_of
from pii_bench.runs.store import read_lines
from pii_bench.systems import ENCODER
from pii_bench.systems.base import THIS_MACHINE
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.ranking.rows import Row, Source
    from pii_bench.ranking.stored import Run

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


@dataclass(frozen=True, slots=True, eq=False)
class _System:
    """A row of the leaderboard, and what one document takes: each with where that is from."""

    row: Row
    usd: float | None
    usd_from: str
    seconds: float | None
    seconds_from: str
    review_share: float

    @property
    def name(self) -> str:
        return system_name(self.row.model, self.row.strategy)


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
    tell_left_out(found.left_out)
    systems = _systems(found.runs, task, arguments)
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
        say_json([_record(each, taken, assumed, arguments.machine) for each, taken in billed])
    else:
        _print(billed, assumed, arguments.machine)
    return not found.left_out


def _systems(runs: Sequence[Run], task: Task, arguments: argparse.Namespace) -> list[_System]:
    """The rows of a dataset and task as the leaderboard ranks them, with what each takes."""
    behind: dict[tuple[Source, str], tuple[Run, ...]] = {}
    rows, sets = [], set[str]()
    for each in runs:
        reference = each.manifest.dataset
        sets |= {reference.name, reference.source}
        if arguments.dataset not in {reference.name, reference.source} or (
            each.manifest.system.oracle
        ):
            continue
        for row in rows_of(each):
            if row.task is task:
                asked = (each.detection, each) if task is Task.MASKING else (each,)
                behind[row.source, row.signature] = tuple(part for part in asked if part)
                rows.append(row)
    if not runs:
        raise PiiBenchError(f"{arguments.results}: no run is stored; `pii-bench run` makes one")
    if not rows:
        if arguments.dataset not in sets:
            raise UnknownNameError("dataset among the stored runs", arguments.dataset, sets)
        raise PiiBenchError(
            f"{arguments.results}: no {task} on {arguments.dataset} is stored there"
        )
    ranked = rank(rows)
    _require_known([*arguments.usd, *arguments.seconds, *arguments.review_share], ranked)
    result = []
    for row in ranked:
        own = behind[row.source, row.signature]
        time, time_from = _time(row, own, _given(arguments.seconds, row), arguments.measure)
        money, money_from = _money(own, _given(arguments.usd, row), time, arguments.machine)
        share = _given(arguments.review_share, row)
        share = 1.0 if share is None else share
        result.append(_System(row, money, money_from, time, time_from, share))
    return result


def _money(
    runs: Sequence[Run], given: float | None, seconds: float | None, machine: float
) -> tuple[float | None, str]:
    """USD per document, and where that is from."""
    if given is not None:
        return given, "--usd"
    if all(_is_local(run) for run in runs):
        if machine and seconds is None:
            return None, "unknown: --machine needs its time"
        return machine * (seconds or 0.0) / 3600, "its time at --machine"
    parts, sources = [], []
    for run in runs:
        price = price_of(run.manifest.system.model)
        records = [] if run.files is None else read_lines(run.files.responses, unreadable=[])
        parts.append(usd_per_document((record for _, record in records), price))
        if price is not None:
            sources.append(
                f"{price.input:g} in, {price.output:g} out per million tokens, {price.date}, "
                f"{price.source}"
            )
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None, "unknown: no price or no counted tokens; give --usd"
    return sum(known), "stored tokens at " + "; ".join(dict.fromkeys(sources))


def _is_local(run: Run) -> bool:
    return run.manifest.system.unmasked_text_to == THIS_MACHINE


def _time(
    row: Row, runs: Sequence[Run], given: float | None, measured: int | None
) -> tuple[float | None, str]:
    """Seconds per document, and where that is from."""
    if given is not None:
        return given, "--seconds"
    if measured is None or not all(_is_local(run) for run in runs):
        return None, "unknown: stored runs hold no times; give --seconds or --measure"
    prompted = row.strategy in STRATEGIES
    alone = prompted or row.task is Task.DETECTION or row.model.partition(":")[0] == ENCODER
    name = row.model if alone else f"{row.model}+{row.strategy}"
    options = SystemOptions(strategy=row.strategy if prompted else None)
    try:
        built = {(each.card.model, each.card.prompt): each for each in build_systems(name, options)}
    except PiiBenchError as error:
        return None, f"not measured: {error}"
    cards = [run.manifest.system for run in runs]
    systems = [built[key] for card in cards if (key := (card.model, card.prompt)) in built]
    if len(systems) < len(cards):
        return None, "not measured: today its name means another system"
    samples = applicable(row.task, runs[-1].dataset.samples)[: measured + 1]
    seconds = asyncio.run(seconds_per_document(systems, samples))
    if seconds is None:
        return None, "not measured: too few samples, or one without an answer"
    return seconds, f"measured now on this machine, {len(samples) - 1} samples of {row.dataset}"


def _print(billed: Sequence[tuple[_System, Bill]], assumed: Assumptions, machine: float) -> None:
    row, by_hand = billed[0][0].row, billed[0][1].by_hand_usd
    hours = assumed.documents * assumed.hand_seconds / 3600
    say(f"{assumed.documents:,} documents, {row.task} on {row.dataset}\n")
    say(f"All by hand: {hours:,.0f} h, {by_hand:,.0f} USD\n")
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
    say(markdown_table(_HEADER, cells, ("left",) * 3 + ("right",) * 8))
    say(
        f"\nAssumed: --documents {assumed.documents} --wage {assumed.wage:g} "
        f"--hand-seconds {assumed.hand_seconds:g} --review-seconds {assumed.review_seconds:g} "
        f"--machine {machine:g}; --review-share as under `checked`"
    )
    say(_RULES.format(metric=row.headline_name, dataset=row.dataset))
    for title, sources in (
        ("model USD", {each: each.usd_from for each, _ in billed}),
        ("model h", {each: each.seconds_from for each, _ in billed}),
    ):
        for source in dict.fromkeys(sources.values()):
            names = ", ".join(each.name for each, own in sources.items() if own == source)
            say(f"- {title}, {source}: {names}")


def _record(
    each: _System, taken: Bill, assumed: Assumptions, machine: float
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


def _given(pairs: Sequence[tuple[str, float]], row: Row) -> float | None:
    """What was given last for a system, else for its model, else for all."""
    numbers = dict(pairs)
    names = (system_name(row.model, row.strategy), row.model, "")
    return next((numbers[name] for name in names if name in numbers), None)


def _require_known(pairs: Sequence[tuple[str, float]], rows: Sequence[Row]) -> None:
    known = {name for row in rows for name in (system_name(row.model, row.strategy), row.model)}
    for name, _ in pairs:
        if name and name not in known:
            raise UnknownNameError("system among the rows", name, sorted(known))


_of_one = number("a share from 0 to 1", lambda found: 0 <= found <= 1)


def _of_system(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"must be SYSTEM=NUMBER, not {text!r}")
    return name, amount(number)


def _share(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    return name, _of_one(number)
