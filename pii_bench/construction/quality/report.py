"""All measures of single and multi, and how they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.construction.quality.embeddings import CategoryNames
from pii_bench.construction.quality.linear import QueryWords
from pii_bench.construction.quality.measure import Measure, Unit
from pii_bench.construction.quality.shortcuts import (
    AllEntities,
    KeywordRules,
    RandomChoice,
    macro_f1,
    questions,
)
from pii_bench.construction.quality.texts import text_measures
from pii_bench.construction.quality.threshold import AboveThreshold
from pii_bench.datasets.native import read_native
from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pii_bench.construction.quality.shortcuts import Question, Shortcut
    from pii_bench.datasets.sample import Sample

_SETS: Final = ("single", "multi")
_SHORTCUT_GOAL: Final = 0.75


def measure_quality(data: Path) -> list[Measure]:
    """Measure single and multi: their texts, and every shortcut.

    Args:
        data: the folder that holds the two, and in `built/` train and dev of both, on which
            shortcuts are fitted.

    Raises:
        InputFileError: a set is missing or broken.
        MissingExtraError: what a shortcut needs is not installed.
    """
    shortcuts: list[Shortcut] = [
        AllEntities(),
        RandomChoice(),
        KeywordRules(),
        AboveThreshold("nearest category by embeddings", CategoryNames()),
        AboveThreshold("linear classifier on words", QueryWords()),
    ]
    sets = {name: _read(data / f"{name}.jsonl") for name in _SETS}
    train, dev = (
        questions(
            sample for name in _SETS for sample in _read(data / "built" / f"{part}-{name}.jsonl")
        )
        for part in ("train", "dev")
    )
    asked = {name: questions(samples) for name, samples in sets.items()}
    measures = text_measures(sets)
    for shortcut in shortcuts:
        shortcut.fit(train, dev)
        measures.append(shortcut_measure(shortcut, asked))
    return measures


def shortcut_measure(shortcut: Shortcut, asked: Mapping[str, Sequence[Question]]) -> Measure:
    """How far a fitted shortcut gets on the questions of each set: macro F1 on exact texts."""
    return Measure(
        f"F1 of a shortcut: {shortcut.name}",
        Unit.SCORE,
        {
            name: macro_f1(own, [shortcut.predict(each.query, each.choices) for each in own])
            for name, own in asked.items()
        },
        goal=_SHORTCUT_GOAL,
    )


def render(measures: Sequence[Measure]) -> str:
    """A Markdown table of at least one measure, and below it the texts they are about."""
    names = [*measures[0].values]
    rows = [
        [
            measure.name,
            *(measure.unit.value.format(measure.values[name]) for name in names),
            "" if measure.goal is None else f"< {measure.unit.value.format(measure.goal)}",
            {None: "", True: "yes", False: "no"}[measure.is_met],
        ]
        for measure in measures
    ]
    table = tabulate(
        rows,
        headers=["Measure", *names, "Goal", "Met"],
        tablefmt="pipe",
        colalign=("left", *("right" for _ in names), "right", "left"),
        disable_numparse=True,
    )
    examples = [
        f"- {measure.name}, {name}: `{example}`"
        for measure in measures
        for name, example in measure.examples.items()
        if example
    ]
    return "\n".join([table, *(["", *examples] if examples else [])])


def _read(path: Path) -> Sequence[Sample]:
    if not path.exists():
        raise InputFileError(path, "is not there; `pii-bench data build` makes it")
    return read_native(path)
