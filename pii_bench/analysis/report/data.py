"""The content of a report: rows, figures, and all samples of stored runs with their calls."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.diagnosis.errors import ErrorClass
from pii_bench.analysis.figures import Figures, draw_svgs
from pii_bench.analysis.report.samples import (
    Answers,
    Record,
    Vocabulary,
    calls_of,
    encode_sample,
    prompt_of,
)
from pii_bench.analysis.runs import evaluated
from pii_bench.datasets.catalog import ALL, DATASETS, load_dataset
from pii_bench.masking.masked import plan_of
from pii_bench.ranking.external import human_rows, published_rows, reading_rows
from pii_bench.ranking.html import address, leaders, merged, system_of
from pii_bench.ranking.rows import Row, Source, find_rows, rank, system_name
from pii_bench.ranking.stored import read_runs, rows_of
from pii_bench.runs.evaluation import gold_texts
from pii_bench.scorer import normalise
from pii_bench.scorer.masked_text import Trace
from pii_bench.tasks import Status, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.ranking.html import Address
    from pii_bench.ranking.stored import Run
    from pii_bench.systems.predictions import Prediction


_CATEGORIES: Final = 6
"""Largest number of categories in `Leaks`."""


class Texts(StrEnum):
    """The texts to include: those of our synthetic datasets, all, or none."""

    OURS = "ours"
    ALL = "all"
    NONE = "none"

    def include(self, dataset: Dataset) -> bool:
        """Return True if the texts of a dataset are included; ours must match their pinned hash."""
        return self is Texts.ALL or (self is Texts.OURS and dataset.source in DATASETS)


@dataclass(frozen=True, slots=True)
class Leaks:
    """The values that stay readable after a system has masked a dataset.

    Attributes:
        system: name of the system in the record.
        title: name of the system in headings.
        categories: those with most readable texts that no query needs.
        examples: sample ids by title.
    """

    system: str
    title: str
    dataset: str
    categories: tuple[LeakedCategory, ...]
    examples: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LeakedCategory:
    """The texts of a category, or of a type if there is none, that no query needs.

    Attributes:
        readable: number of those that stay readable.
        unneeded: number of all.
    """

    name: str
    readable: int
    unneeded: int


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a report page.

    Attributes:
        rows: ranked rows of the leaderboard.
        record: samples and runs as the page reads them. `datasets`: name, whether texts are
            included, samples. `runs`: index of the dataset, name, whether it is an oracle, who
            receives unmasked text, answers in the order of the samples. And the lists of names
            that their numbers index (`samples.encode_sample`).
        names: names of runs in the record by the address of a row.
        left_out: runs and lines that could not be scored, each with the reason.
        leaks: leaks of the best system on the first dataset; None if no masking run is ranked.
    """

    rows: tuple[Row, ...]
    figures: Figures
    record: Record
    names: Mapping[Address, str]
    left_out: tuple[str, ...]
    leaks: Leaks | None = None

    @property
    def without_texts(self) -> list[str]:
        """The datasets whose texts are not included."""
        return [dataset["name"] for dataset in self.record["datasets"] if not dataset["texts"]]

    @property
    def foreign_texts(self) -> list[str]:
        """The third-party datasets whose texts are included."""
        with_texts = [dataset["name"] for dataset in self.record["datasets"] if dataset["texts"]]
        return [name for name in with_texts if name not in DATASETS]


def collect_report(
    results: Path,
    *,
    dataset: str = ALL,
    systems: Sequence[str] = (),
    texts: Texts = Texts.OURS,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Collect the report of a results folder.

    Args:
        results: results folder.
        dataset: dataset to show, as in the leaderboard or as `run` takes it.
        systems: systems whose samples to include, as `find_rows` takes them; empty: all. Rows
            of other systems are included in any case, because ranks are among all rows.
        texts: datasets whose texts to include.
        progress: called with a description of the next step.

    Raises:
        UnknownNameError: there is no such dataset, or no stored run of such a system.
        PiiBenchError: a name matches several systems, or a stored file cannot be read.
    """
    stored = read_runs(results)
    published = published_rows()
    people, broken = human_rows(results)
    name = _dataset_name(dataset, {run.dataset.name for run in stored.runs})
    runs = [run for run in stored.runs if name in {None, run.dataset.name}]
    scored = []
    for number, run in enumerate(runs, start=1):
        progress(f"scoring run {number} of {len(runs)}")
        scored.append((run, rows_of(run)))
    ours = [row for _, rows in scored for row in rows]
    progress("ranking")
    rows = rank(
        [
            *ours,
            *reading_rows({row.dataset for row in ours}),
            *(row for row in people if name in {None, row.dataset}),
            *(row for row in published if name in {None, row.dataset}),
        ]
    )
    merged_rows = [line.row for line in merged(rows)]
    wanted = {address(row) for system in systems for row in find_rows(ours, system).values()}
    wanted = wanted or {address(row) for row in merged_rows}
    included = [
        (run, rows_of_run)
        for run, rows_of_run in scored
        if any(address(row) in wanted for row in rows_of_run)
    ]
    shown = _shown(included)
    names: dict[Address, str] = {}
    for item in shown:
        for row in item.rows:
            # Several runs may have the same detection; its row leads to the first.
            names.setdefault(address(row), _name(item.run))
    progress("drawing figures")
    figures = draw_svgs([pair for run in runs for pair in evaluated(run)], published)
    leaks = _leaks(leaders(merged_rows), included)
    return Report(
        rows=tuple(rows),
        figures=figures,
        record=_record(shown, texts, leaks, progress),
        leaks=leaks,
        names=names,
        left_out=(*stored.left_out, *broken),
    )


def _leaks(best: Sequence[Row], scored: Sequence[tuple[Run, list[Row]]]) -> Leaks | None:
    """Return the leaks of the best system on the first dataset."""
    if not best:
        return None
    place = address(best[0])
    for run, rows in scored:
        if run.masking is not None and any(address(row) == place for row in rows):
            return _leaks_of(run, run.masking, system_of(best[0]))
    return None


def _leaks_of(run: Run, masking: Mapping[str, Prediction], title: str) -> Leaks:
    """Judge the masked texts of a run as the scorer does."""
    leaked, unneeded = Counter[str](), Counter[str]()
    right: list[tuple[int, Sample]] = []
    leaking: list[tuple[int, Sample]] = []
    hiding: list[tuple[int, Sample]] = []
    for sample in run.dataset.samples:
        answer = masking.get(sample.id)
        plan = answer and plan_of(sample.description, answer.subjects, answer.related)
        if not plan:
            continue
        gold = gold_texts(sample)
        judgement = gold.judge(plan.spans)
        categories = {
            normalise(entity.text): entity.category or entity.type for entity in sample.entities
        }
        leaks = hidden = 0
        for text, masked_spans, readable in zip(
            gold.texts, judgement.hidden, judgement.readable, strict=True
        ):
            if not text.spans:
                continue
            if text.needed:
                hidden += readable == 0
                continue
            unneeded[categories[text.text]] += 1
            if masked_spans < len(text.spans):
                leaked[categories[text.text]] += 1
                leaks += 1
        if leaks and not hidden:
            leaking.append((leaks, sample))
        elif hidden and not leaks:
            hiding.append((hidden, sample))
        elif sample.related and not leaks:
            right.append((len(sample.related), sample))
    examples = {
        "Masked as it should be": right,
        "Leaks what the query does not need": leaking,
        "Hides what the query needs": hiding,
    }
    return Leaks(
        system=_name(run),
        title=title,
        dataset=run.dataset.name,
        categories=tuple(
            LeakedCategory(name, readable=count, unneeded=unneeded[name])
            for name, count in leaked.most_common(_CATEGORIES)
        ),
        examples={name: _clearest(counted) for name, counted in examples.items() if counted},
    )


def _clearest(counted: Sequence[tuple[int, Sample]]) -> str:
    """Return the id of a sample with two counted texts or more, and a short description."""
    _, sample = min(counted, key=lambda pair: (-min(pair[0], 2), len(pair[1].description)))
    return sample.id


def _dataset_name(requested: str, stored: Iterable[str]) -> str | None:
    """Return the name in the leaderboard of a requested dataset; None for all."""
    if requested == ALL:
        return None
    return requested if requested in stored else load_dataset(requested).name


@dataclass(frozen=True, slots=True)
class _Shown:
    """A run in the report: with its detection run, or a detection run on its own.

    Attributes:
        rows: rows of the leaderboard, including those of the detection run.
    """

    run: Run
    rows: tuple[Row, ...]
    answers: Answers

    @property
    def runs(self) -> list[Run | None]:
        """The runs for detection and for query-related, or the run for rewriting alone."""
        match self.run.task:
            case Task.REWRITE:
                return [self.run]
            case Task.DETECTION:
                return [self.run, None]
            case _:
                return [self.run.detection, self.run]


def _name(run: Run) -> str:
    card = run.manifest.system
    # A submission may have a run for queries and another for rewriting.
    if card.task is Task.REWRITE and not card.prompt:
        return f"{run.source}:{card.model} ({card.task})"
    if card.task is Task.DETECTION and card.prompt:
        name = f"{card.model} ({card.prompt})"
    else:
        name = system_name(card.model, card.prompt)
    # The same prefix as in `pii-bench compare`.
    return name if run.source is Source.RUN else f"{run.source}:{name}"


def _shown(scored: Sequence[tuple[Run, list[Row]]]) -> list[_Shown]:
    """Return query-related and rewriting runs, then detection runs that belong to none of them."""
    rows_of: dict[Run | None, list[Row]] = dict(scored)
    others = [run for run, rows in scored if run.task is not Task.DETECTION and rows]
    used = {run.detection for run in others}
    alone = [run for run, _ in scored if run.task is Task.DETECTION and run not in used]
    return [
        _Shown(run, (*rows_of[run], *rows_of.get(run.detection, ())), _answers(run))
        for run in (*others, *alone)
    ]


def _answers(run: Run) -> Answers:
    by_task = run.by_task
    detection = run if run.task is Task.DETECTION else run.detection
    if detection is not None:
        by_task[Task.DETECTION] = detection.predictions
    if run.task is Task.QUERY_RELATED:
        by_task[Task.QUERY_RELATED] = run.with_subjects
    return Answers(
        names_subjects=detection is not None and detection.names_subjects, by_task=by_task
    )


def _record(
    shown: Sequence[_Shown], texts: Texts, leaks: Leaks | None, progress: Callable[[str], None]
) -> Record:
    vocabulary = Vocabulary()
    by_name = {item.run.dataset.name: item.run.dataset for item in shown}
    # Ours in the order of the catalog, then others.
    names = [name for name in DATASETS if name in by_name]
    names += [name for name in by_name if name not in DATASETS]
    datasets: list[Record] = []
    runs: list[Record] = []
    for dataset_index, name in enumerate(names):
        members = [item for item in shown if item.run.dataset.name == name]
        with_texts = texts.include(by_name[name])
        progress(f"writing {len(members)} {'run' if len(members) == 1 else 'runs'} on {name}")
        encoded = [
            encode_sample(
                sample, [item.answers for item in members], vocabulary if with_texts else None
            )
            for sample in by_name[name].samples
        ]
        samples = [sample for sample, _ in encoded]
        datasets.append({"name": name, "texts": with_texts, "samples": samples})
        for index, item in enumerate(members):
            prompts: list[str] = []
            if with_texts:
                prompts = ["" if r is None else prompt_of(r.manifest.system) for r in item.runs]
            runs.append(
                {
                    "dataset": dataset_index,
                    "name": _name(item.run),
                    "oracle": item.run.manifest.system.oracle,
                    "recipients": item.rows[0].unmasked_text_to,
                    "prompts": prompts,
                    "answers": [answers[index] for _, answers in encoded],
                }
            )
        if with_texts:
            _add_calls(members, encoded)
    examples: list[Record] = []
    if leaks is not None and texts.include(by_name[leaks.dataset]):
        examples = [
            {"set": leaks.dataset, "run": leaks.system, "sample": sample_id, "title": title}
            for title, sample_id in leaks.examples.items()
        ]
    return {
        "types": list(vocabulary.types),
        "categories": list(vocabulary.categories),
        "tags": list(vocabulary.tags),
        "tasks": list(Task),
        "statuses": list(Status),
        "classes": list(ErrorClass),
        "traces": list(Trace),
        "datasets": datasets,
        "runs": runs,
        "examples": examples,
    }


def _add_calls(
    members: Sequence[_Shown], encoded: Sequence[tuple[Record, list[Record | None]]]
) -> None:
    """Add the calls of a chat model to each answer as `x`: one per run, or None."""
    for index, item in enumerate(members):
        calls_by_run = [{} if run is None else calls_of(run) for run in item.runs]
        for sample, answers in encoded:
            calls = [by_id.get(sample["id"]) for by_id in calls_by_run]
            answer = answers[index]
            if any(calls) and answer is not None:
                answer["x"] = calls
