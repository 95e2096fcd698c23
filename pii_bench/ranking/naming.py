"""Which rows a user means by the name of a system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.models.table import MODELS
from pii_bench.prompting.strategies import STRATEGIES
from pii_bench.ranking.source import Source
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pii_bench.ranking.rows import Row


def system_name(model: str, strategy: str) -> str:
    """The name of one model and strategy: `MODEL:STRATEGY` for prompts, else `MODEL+STRATEGY`.

    What is submitted has no strategy: its name is all.
    """
    if not strategy:
        return model
    sign = ":" if strategy.partition("+")[0] in STRATEGIES else "+"
    return f"{model}{sign}{strategy}"


def find_rows(rows: Sequence[Row], name: str) -> dict[tuple[str, Task], Row]:
    """The rows of the system that a name stands for, by dataset and task.

    A name is `MODEL+STRATEGY` or `MODEL:STRATEGY`, both as in the leaderboard (of a system
    without a chat model, the relevance counts as its strategy), or `MODEL` where it has one
    strategy only; an alias will do for a model. With `run:`, `reference:` or `submitted:` before
    it, only rows of that source are meant; else runs go before references. The model's detection in
    the same form of answer belongs to the system, for no strategy has one of its own.

    Args:
        rows: of ours, those that may be meant.
        name: as the user wrote it.

    Raises:
        UnknownNameError: no row has that name; near ones are offered.
        PiiBenchError: there are no rows, or the model has several strategies.
    """
    prefix, colon, rest = name.partition(":")
    sources = [source for source in Source if colon and source == prefix]
    wanted = rest if sources else name
    among = [row for row in rows if not sources or row.source in sources]
    if not among:
        raise PiiBenchError(f"there are no stored runs among which {name!r} could be")
    model, strategy = _system(among, wanted)
    found: dict[tuple[str, Task], Row] = {}
    # A stable sort: the first of its dataset and task is the user's own run.
    for row in sorted(among, key=lambda row: row.source is not Source.RUN):
        if row.model == model and _belongs(row, strategy):
            found.setdefault((row.dataset, row.task), row)
    return found


def _system(rows: Iterable[Row], name: str) -> tuple[str, str]:
    """The model and the strategy of a name."""
    strategies: dict[str, list[str]] = {}
    for row in rows:
        names = strategies.setdefault(row.model, [])
        if row.strategy not in names:
            names.append(row.strategy)
    for model, names in strategies.items():
        spelled = {model, *(alias for alias, card in MODELS.items() if card.full_name == model)}
        for each in names:
            if name in {f"{other}{sign}{each}" for other in spelled for sign in "+:"}:
                return model, each
        if name in spelled:
            return model, _only(model, rows)
    systems = [system_name(model, each) for model, names in strategies.items() for each in names]
    raise UnknownNameError("system among the stored runs", name, [*strategies, *systems])


def _only(model: str, rows: Iterable[Row]) -> str:
    own = [row for row in rows if row.model == model]
    # Detection belongs to every strategy; where there is none, it is what is meant.
    asked = [row.strategy for row in own if row.task is not Task.DETECTION]
    names = list(dict.fromkeys(asked or [row.strategy for row in own]))
    if len(names) > 1:
        choice = ", ".join(system_name(model, each) for each in names)
        raise PiiBenchError(f"{model!r} has several strategies: name one ({choice})")
    return names[0]


def _belongs(row: Row, strategy: str) -> bool:
    if row.task is not Task.DETECTION or row.strategy == strategy:
        return row.strategy == strategy
    if row.strategy.partition("+")[0] in STRATEGIES:
        # Detection by a strategy of its own belongs to that alone.
        return False
    # `detection+schema` next to `naive+schema`, `detection` next to `naive`.
    return row.strategy.partition("+")[2] == strategy.partition("+")[2]
