"""The diagnosis of stored runs as tidy tables, which hold no text of a sample."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Final

import pandas as pd

from pii_bench.analysis.diagnosis.errors import NEED_DETECTION, ErrorClass, Side, classify
from pii_bench.analysis.diagnosis.exposure import TIERS, Exposure, curve, judge, judge_answer
from pii_bench.analysis.diagnosis.twins import Asked, is_twin, twin_rates
from pii_bench.datasets.sample import applicable
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pii_bench.analysis.diagnosis.errors import ErrorCounts
    from pii_bench.analysis.diagnosis.exposure import ScoredCandidates
    from pii_bench.ranking.stored import Run


RUN: Final = ("source", "model", "strategy", "dataset", "oracle")
"""Columns that identify a run; every table begins with them."""

ANSWERED: Final = "answered"
OPEN: Final = "open"
CLOSED: Final = "closed"

_RATES: Final = ("leak", "plain_leak", "over_masking", "text_over_masking")


def query_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return the query-related runs on datasets that have queries."""
    return tuple(
        run
        for run in runs
        if run.task is Task.QUERY_RELATED and applicable(run.task, run.dataset.samples)
    )


def system_of(run: Run) -> tuple[object, ...]:
    """Return a key that is equal for runs of one system on different datasets."""
    card = run.manifest.system
    settings = sorted((key, repr(value)) for key, value in card.settings.items())
    return run.source, card.model, card.prompt, card.prompt_sha256, card.output, *settings


def error_table(runs: Iterable[Run]) -> pd.DataFrame:
    """Count errors by class and side.

    Returns:
        Columns of `RUN`, then task, scored and gold (samples), class, side, errors. Errors are
        missing if a class needs detection answers and there are none.
    """
    rows: list[dict[str, object]] = []
    for run in runs:
        tasks = {Task.QUERY_RELATED: run.with_subjects}
        if (masking := run.masking) is not None:
            tasks[Task.MASKING] = masking
        for task, answers in tasks.items():
            asked = applicable(task, run.dataset.samples)
            scored = [s for s in asked if s.id in answers and answers[s.id].status.scored]
            counts: ErrorCounts = Counter()
            for sample in scored:
                counts.update(classify(task, sample, answers[sample.id]))
            common = {**_named(run), "task": task, "scored": len(scored), "gold": len(asked)}
            for kind in ErrorClass:
                unknown = run.detection is None and kind in NEED_DETECTION
                for side in Side:
                    errors = None if unknown else counts[kind, side]
                    rows.append({**common, "class": kind, "side": side, "errors": errors})
    columns = [*RUN, "task", "scored", "gold", "class", "side", "errors"]
    return pd.DataFrame(rows, columns=columns).astype({"errors": "Int64"})


def leak_table(runs: Iterable[Run]) -> pd.DataFrame:
    """Return leak and over-masking of runs with detection answers.

    A guard whose model fails on a text either passes it unmasked (it fails open) or blocks it (it
    fails closed).

    Returns:
        Columns of `RUN`, then gold, answered, failed (samples; the others are not scored);
        on_failure, which is `answered` (failures left out), `open` or `closed`; rates, missing if
        undefined; and the counts that they follow from.
    """
    rows: list[dict[str, object]] = []
    for run in runs:
        if run.masking is None:
            continue
        asked = [sample for sample in run.dataset.samples if sample.query is not None]
        answered = failed = 0
        exposures = dict.fromkeys((ANSWERED, OPEN, CLOSED), Exposure())
        for sample in asked:
            answer = run.masking.get(sample.id)
            if answer is None or not answer.status.scored:
                continue
            if answer.status.answered:
                answered += 1
                exposure = judge_answer(sample, answer)
                exposures = {name: total + exposure for name, total in exposures.items()}
            else:
                failed += 1
                exposures[OPEN] += judge(sample, [])
                exposures[CLOSED] += judge(sample, [(0, len(sample.description))])
        samples = {"gold": len(asked), "answered": answered, "failed": failed}
        for on_failure, exposure in exposures.items():
            rows.append(
                {
                    **_named(run),
                    **samples,
                    "on_failure": on_failure,
                    **_rates(exposure),
                    **{f"leak_tier_{tier}": exposure.leak_of(tier) for tier in TIERS},
                    **_numbers(exposure),
                }
            )
    rates = [*_RATES, *(f"leak_tier_{tier}" for tier in TIERS)]
    first = [*RUN, "gold", "answered", "failed", "on_failure"]
    frame = pd.DataFrame(rows, columns=[*first, *rates, *_numbers(Exposure())])
    return frame.astype(dict.fromkeys(rates, "float64"))


def curve_table(scored: Iterable[tuple[Run, ScoredCandidates]]) -> pd.DataFrame:
    """Return leak and over-masking by threshold, for runs with their systems (`find_scores`).

    Returns:
        Columns of `RUN`, then threshold (infinity keeps nothing), own (whether it is the
        system's), rates.
    """
    rows = [
        {**_named(run), "threshold": point.threshold, "own": point.own, **_rates(point.exposure)}
        for run, system in scored
        for point in curve(system, run.dataset.samples)
    ]
    frame = pd.DataFrame(rows, columns=[*RUN, "threshold", "own", *_RATES])
    return frame.astype(dict.fromkeys(_RATES, "float64"))


def twin_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return reactions to twins, for the runs whose dataset has any; `runs` has the originals too.

    Returns:
        Columns of `RUN`, then reaction, against, pairs, failed, undefined, done, rate,
        both_right, right_rate.
    """
    rows: list[dict[str, object]] = []
    for run in runs:
        twins = [asked for asked in _asked(run) if is_twin(asked.sample)]
        if not twins:
            continue
        originals = {
            asked.sample.id: asked
            for other in runs
            if system_of(other) == system_of(run) and other is not run
            for asked in _asked(other)
        }
        rows += [
            {**_named(run), **asdict(each), "rate": each.rate, "right_rate": each.right_rate}
            for each in twin_rates(twins, originals)
        ]
    columns = [*RUN, "reaction", "against", "pairs", "failed", "undefined", "done", "rate"]
    columns += ["both_right", "right_rate"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.astype({"rate": "float64", "right_rate": "float64"})


def _asked(run: Run) -> list[Asked]:
    return [Asked.of(sample, run.predictions.get(sample.id)) for sample in run.dataset.samples]


def _named(run: Run) -> dict[str, object]:
    card = run.manifest.system
    values = (run.source, card.model, card.prompt, run.dataset.name, card.oracle)
    return dict(zip(RUN, values, strict=True))


def _rates(exposure: Exposure) -> dict[str, float | None]:
    return {name: getattr(exposure, name) for name in _RATES}


def _numbers(exposure: Exposure) -> dict[str, int]:
    numbers = {each.name: getattr(exposure, each.name) for each in fields(exposure)}
    return {**numbers, "unneeded": exposure.unneeded.total(), "leaked": exposure.leaked.total()}
