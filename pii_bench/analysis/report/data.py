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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.ranking.html import Address
    from pii_bench.ranking.stored import Run
    from pii_bench.systems.predictions import Prediction


_CATEGORIES: Final = 6
"""Of what leaks, at most."""


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
        system: its name as the samples have it.
        title: its name in words.
        dataset: likewise.
        categories: name, how many of its texts that no query needs can be read, and of how
            many; those with the most first.
        examples: what a sample shows, and its id.
    """

    system: str
    title: str
    dataset: str
    categories: tuple[tuple[str, int, int], ...]
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a report page.

    Attributes:
        rows: of the leaderboard, ranked.
        figures: drawn, or why not.
        record: samples and runs as the page reads them. `datasets`: name, whether texts are
            there, samples. `runs`: dataset (its number), name, whether it is an oracle, who is
            sent unmasked text, answers in the order of the samples. And the names that these
            number (`samples.encode_sample`).
        names: which row is of which run of the record.
        left_out: runs that could not be read, each with the reason.
        leaks: of the best system on the first dataset; None where no run of masking is ranked.
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
        return [each["name"] for each in self.record["datasets"] if not each["texts"]]

    @property
    def foreign_texts(self) -> list[str]:
        """The third-party datasets whose texts are included."""
        named = [each["name"] for each in self.record["datasets"] if each["texts"]]
        # The name of a file ends in digits of its hash.
        return [name for name in named if name not in DATASETS]


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
        results: the folder.
        dataset: the only one that is of interest, as in the leaderboard or as `run` takes it.
        systems: those whose samples go in, as `find_rows` takes them; all if empty. Rows are
            all there in any case: ranks are among all of them.
        texts: whose texts go in.
        progress: is told what is done next.

    Raises:
        UnknownNameError: there is no such dataset, or no stored run of such a system.
        PiiBenchError: a name that stands for several systems, or the other errors of reading
            what is stored and of drawing it.
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
    wanted = {address(row) for each in systems for row in find_rows(ours, each).values()}
    wanted = wanted or {address(each.row) for each in merged(rows)}
    kept = [pair for pair in scored if any(address(row) in wanted for row in pair[1])]
    shown = _shown(kept)
    progress("drawing figures")
    figures = draw_svgs([each for run in runs for each in evaluated(run)], published)
    leaks = _leaks(leaders([each.row for each in merged(rows)]), kept)
    return Report(
        rows=tuple(rows),
        figures=figures,
        record=_record(shown, texts, leaks, progress),
        leaks=leaks,
        # Of several runs with one detection the first shows it.
        names={address(row): each.name for each in reversed(shown) for row in each.rows},
        left_out=(*stored.left_out, *broken),
    )


def _leaks(best: Sequence[Row], scored: Sequence[tuple[Run, list[Row]]]) -> Leaks | None:
    """Return the leaks of the best system on the first dataset."""
    for row in best[:1]:
        for run, rows in scored:
            if run.masking is not None and address(row) in map(address, rows):
                categories, examples = _judge(run.dataset.samples, run.masking)
                return Leaks(_name(run), system_of(row), row.dataset, categories, examples)
    return None


def _judge(
    samples: Iterable[Sample], masking: Mapping[str, Prediction]
) -> tuple[tuple[tuple[str, int, int], ...], tuple[tuple[str, str], ...]]:
    """Return categories and examples for `Leaks`, judged by the masked text like the scorer."""
    unneeded, leaked = Counter[str](), Counter[str]()
    cases: list[tuple[Sample, int, int]] = []
    for sample in samples:
        answer = masking.get(sample.id)
        plan = answer and plan_of(sample.description, answer.subjects, answer.related)
        if not plan:
            continue
        gold = gold_texts(sample)
        judgement = gold.judge(plan.spans)
        categories = {normalise(each.text): each.category or each.type for each in sample.entities}
        leaks = hides = 0
        for each, masked, readable in zip(
            gold.texts, judgement.hidden, judgement.readable, strict=True
        ):
            if each.needed:
                hides += bool(each.spans) and readable == 0
            elif each.spans:
                unneeded[categories[each.text]] += 1
                if masked < len(each.spans):
                    leaked[categories[each.text]] += 1
                    leaks += 1
        cases.append((sample, leaks, hides))
    most = tuple((name, many, unneeded[name]) for name, many in leaked.most_common(_CATEGORIES))
    return most, tuple(_telling(cases))


def _telling(cases: Sequence[tuple[Sample, int, int]]) -> Iterator[tuple[str, str]]:
    """Return (title, id) of a correct sample, one that leaks, and one that hides a needed value.

    Args:
        cases: samples, each with how many texts leak and how many are hidden in vain.
    """
    found = {
        "Masked as it should be": [(len(s.related), s) for s, *faults in cases if not any(faults)],
        "Leaks what the query does not need": [(leak, s) for s, leak, hide in cases if not hide],
        "Hides what the query needs": [(hide, s) for s, leak, hide in cases if not leak],
    }
    for title, counted in found.items():
        fitting = [(count, sample) for count, sample in counted if count]
        if fitting:
            # The clearest, then the shortest.
            _, sample = min(fitting, key=lambda pair: (-min(pair[0], 2), len(pair[1].description)))
            yield title, sample.id


def _dataset_name(given: str, stored: Iterable[str]) -> str | None:
    if given == ALL:
        return None
    return given if given in stored else load_dataset(given).name


@dataclass(frozen=True, slots=True)
class _Shown:
    """A run in the report: with its detection run, or a detection run on its own.

    Attributes:
        rows: of the leaderboard, those of the detection too.
    """

    run: Run
    rows: tuple[Row, ...]
    answers: Answers

    @property
    def name(self) -> str:
        return _name(self.run)

    @property
    def asked(self) -> list[Run | None]:
        """The runs for detection and for query-related, or the run that rewrote the texts."""
        if self.run.task is Task.REWRITE:
            return [self.run]
        alone = self.run.task is Task.DETECTION
        return [self.run, None] if alone else [self.run.detection, self.run]


def _name(run: Run) -> str:
    card = run.manifest.system
    # Of a submission, rewritten texts are not of the run that answers queries.
    if card.task is Task.REWRITE and not card.prompt:
        return f"{run.source}:{card.model} ({card.task})"
    alone = card.task is Task.DETECTION and card.prompt
    name = f"{card.model} ({card.prompt})" if alone else system_name(card.model, card.prompt)
    # As `pii-bench compare` tells them apart.
    return name if run.source is Source.RUN else f"{run.source}:{name}"


def _shown(scored: Iterable[tuple[Run, list[Row]]]) -> list[_Shown]:
    """Return query-related and rewriting runs, then detection runs that belong to none of them."""
    detections: dict[int, tuple[Run, list[Row]]] = {}
    related = []
    for run, rows in scored:
        if run.manifest.system.task is Task.DETECTION:
            detections[id(run)] = run, rows
        elif rows:
            related.append((run, rows))
    shown = [
        _Shown(run, (*rows, *detections.get(id(run.detection), (run, ()))[1]), _answers(run))
        for run, rows in related
    ]
    used = {id(run.detection) for run, _ in related}
    return shown + [
        _Shown(run, tuple(rows), _answers(run))
        for number, (run, rows) in detections.items()
        if number not in used
    ]


def _answers(run: Run) -> Answers:
    detection = run.detection
    if run.manifest.system.task is Task.REWRITE:
        return Answers(names_subjects=False, by_task={Task.REWRITE: run.predictions})
    if run.manifest.system.task is Task.DETECTION:
        detection = run
    by_task: dict[Task, Mapping[str, Prediction]] = {}
    if detection is not None:
        by_task[Task.DETECTION] = detection.predictions
    if detection is not run:
        by_task[Task.QUERY_RELATED] = run.with_subjects
    if (masking := run.masking) is not None:
        by_task[Task.MASKING] = masking
    return Answers(
        names_subjects=detection is not None and detection.names_subjects,
        by_task=by_task,
    )


def _record(
    shown: Sequence[_Shown], texts: Texts, leaks: Leaks | None, progress: Callable[[str], None]
) -> Record:
    vocabulary = Vocabulary()
    found = {each.run.dataset.name: each.run.dataset for each in shown}
    # In the order of the catalog; others as they come.
    names = [
        *(name for name in DATASETS if name in found),
        *(n for n in found if n not in DATASETS),
    ]
    datasets: list[Record] = []
    runs: list[Record] = []
    for number, name in enumerate(names):
        members = [each for each in shown if each.run.dataset.name == name]
        with_texts = texts.include(found[name])
        progress(f"writing {len(members)} {'run' if len(members) == 1 else 'runs'} on {name}")
        encoded = [
            encode_sample(
                sample, [each.answers for each in members], vocabulary if with_texts else None
            )
            for sample in found[name].samples
        ]
        samples = [sample for sample, _ in encoded]
        datasets.append({"name": name, "texts": with_texts, "samples": samples})
        runs += [
            {
                "dataset": number,
                "name": each.name,
                "oracle": each.run.manifest.system.oracle,
                "recipients": each.rows[0].unmasked_text_to,
                "prompts": _prompts(each) if with_texts else [],
                "answers": [answers[place] for _, answers in encoded],
            }
            for place, each in enumerate(members)
        ]
        if with_texts:
            _add_calls(members, encoded)
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
        "examples": [] if leaks is None else _examples(leaks, datasets, runs),
    }


def _prompts(shown: _Shown) -> list[str]:
    return ["" if run is None else prompt_of(run.manifest.system) for run in shown.asked]


def _add_calls(
    members: Sequence[_Shown], encoded: Sequence[tuple[Record, list[Record | None]]]
) -> None:
    """Add `x` to each answer of a chat model: the raw answer per task, or None."""
    for place, each in enumerate(members):
        calls = [{} if run is None else calls_of(run) for run in each.asked]
        for sample, answers in encoded:
            said = [own.get(sample["id"]) for own in calls]
            if any(said) and (answer := answers[place]) is not None:
                answer["x"] = said


def _examples(leaks: Leaks, datasets: Sequence[Record], runs: Sequence[Record]) -> list[Record]:
    """Return (dataset, run, sample, title) of the examples; none without texts."""
    for number, dataset in enumerate(datasets):
        named = [run for run in runs if (run["dataset"], run["name"]) == (number, leaks.system)]
        if dataset["name"] == leaks.dataset and dataset["texts"] and named:
            return [
                {"set": leaks.dataset, "run": leaks.system, "sample": sample_id, "title": title}
                for title, sample_id in leaks.examples
            ]
    return []
