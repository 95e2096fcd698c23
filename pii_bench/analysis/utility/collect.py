"""From stored answers and verdicts to figures, as CSV and Markdown, without any chat model.

None of the files holds a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pii_bench.analysis.utility.chats import Ratings, judge_questions, read_verdict
from pii_bench.analysis.utility.figures import (
    DEFAULT_WEIGHT,
    Mean,
    Means,
    Missing,
    SampleFigures,
    UtilityRow,
    privacy,
    privacy_of_rewriting,
    similarity,
)
from pii_bench.analysis.utility.stored import (
    FOLDER,
    GOLD_CONDITIONS,
    MASK_ALL,
    NO_MASK,
    ConditionAnswers,
    Rewritten,
    StaleAnswersError,
    hold_answers,
    read_answerers,
    read_judges,
    run_name,
)
from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.escaping import csv_text, markdown, markdown_code, markdown_table
from pii_bench.files import write_whole
from pii_bench.ranking.rows import Source, source_marks
from pii_bench.runs.records import Signature
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.analysis.utility.chats import AnswerPair
    from pii_bench.analysis.utility.stored import StoredChat
    from pii_bench.datasets.catalog import Dataset
    from pii_bench.systems.relevance.embedding import Encoder

_INTRODUCTION: Final = """\
# Privacy and utility

P: the share of the occurrences of E that the masked text no longer holds; one that is masked in
part is gone. U: how much of the answer to the text as it is the answer to the masked text keeps, 0
to 1. By cosine: that of the embedded answers, below 0 taken as 0; it tells how alike answers are,
not whether they are right. By a judge: (m - 1) / (u - 1) of its ratings from 1 to 10, m of the
masked and u of the unmasked answer, each the mean over both orders, and 1 where m is not below u.
B: the weighted mean of both, per sample. Figures are means over the samples that have them, whose
number follows; a failed answer or verdict is missing and never 0.

`oracle` rows are told gold by what masks. `incomplete` rows lack samples. `published` rows are the
paper's, on data that was never released and by a utility that it does not name: for orientation,
not for comparison.
"""

_COLUMNS: Final = (
    *("source", "dataset", "condition", "oracle", "answerer", "measure", "weight"),
    *("privacy", "utility", "balanced", "n_privacy", "n_utility", "n_balanced"),
    *("samples", "asked", *Missing, "rating_masked", "rating_unmasked", "signature", "note"),
)
_SAMPLE_COLUMNS: Final = (
    *("dataset", "condition", "answerer", "measure", "id", "privacy", "utility", "balanced"),
    *("missing", "rating_masked", "rating_unmasked"),
)
_REASONS: Final = {
    Missing.NO_MASKING: "without masking",
    Missing.NO_ANSWER: "without answer",
    Missing.NO_VERDICT: "without verdict",
    Missing.UNPARSED: "verdict unparsed",
}


Measured: TypeAlias = tuple[UtilityRow, tuple[SampleFigures, ...]]
"""A row with the samples that its means are over."""

_Utility: TypeAlias = "Callable[[str, AnswerPair], float | Ratings | Missing]"
"""Of a sample's id and its answers."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """How figures are made of what is stored.

    Attributes:
        embedder: the encoder's name.
        encoder: embeds answers.
        weight: of privacy in the balance, 0 to 1.
    """

    embedder: str
    encoder: Encoder
    weight: float = DEFAULT_WEIGHT


@dataclass(frozen=True, slots=True)
class UtilityCollection:
    """All figures of a results folder.

    Attributes:
        measured: by dataset, answerer, measure and condition.
        left_out: runs and lines that could not be used, each with the reason.
    """

    measured: tuple[Measured, ...]
    left_out: tuple[str, ...]


def collect_utility(results: Path, measuring: Measuring) -> UtilityCollection:
    """Make the figures of every run of an answerer in a results folder."""
    left_out: list[str] = []
    runs = read_answerers(results, left_out)
    by_condition = {(run.manifest.system.model, *run.about): run for run in runs}
    load = cache(load_dataset)
    measured: list[Measured] = []
    for run in runs:
        try:
            base = by_condition.get((run.manifest.system.model, run.about[0], NO_MASK))
            if base is None:
                raise StaleAnswersError(f"there is no run under {NO_MASK} to compare with")
            dataset = load(run.manifest.dataset.source)
            answers = hold_answers(results, dataset, run, base)
        except PiiBenchError as error:
            about = run.manifest
            left_out.append(f"{FOLDER}: {about.system.model} on {about.dataset.name}: {error}")
        else:
            measured += _measure(results, answers, dataset, measuring, left_out)
    # The verdicts on no mask are those on mask-all too.
    told = tuple(dict.fromkeys(left_out))
    return UtilityCollection(tuple(sorted(measured, key=_place)), told)


def _measure(
    results: Path,
    answers: ConditionAnswers,
    dataset: Dataset,
    measuring: Measuring,
    left_out: list[str],
) -> Iterator[Measured]:
    """A row by embeddings, and one for each judge."""

    def by_embedding(_: str, pair: AnswerPair) -> float:
        return similarity(measuring.encoder, pair.masked, pair.unmasked)

    def row(
        measure: str, utility: _Utility, prompts: Mapping[str, str], settings: Mapping[str, Any]
    ) -> Measured:
        figures = tuple(_figures(answers, utility))
        card = answers.run.manifest.system
        signature = Signature(
            dataset=dataset.name,
            dataset_sha256=dataset.sha256,
            task=Task.MASKING,
            strategy=answers.condition,
            prompts={card.prompt: card.prompt_sha256, **prompts},
            model=card.model,
            returned=sorted(answers.run.returned),
            settings={**card.settings, **settings, "weight": measuring.weight, "utility": measure},
        )
        return (
            UtilityRow(
                source=Source.RUN,
                dataset=dataset.name,
                condition=answers.condition,
                oracle=answers.oracle,
                answerer=card.model,
                measure=measure,
                means=Means.of(figures, measuring.weight),
                samples=len(answers.samples),
                asked=len(answers.asked),
                weight=measuring.weight,
                signature=str(signature),
            ),
            figures,
        )

    embedder = {f"embedder.{key}": value for key, value in measuring.encoder.identity.items()}
    yield row(f"cosine {measuring.embedder}", by_embedding, {}, embedder)
    about = MASK_ALL if answers.condition == NO_MASK else answers.condition
    judged = run_name(dataset.name, about)
    for judge in read_judges(results, answers.run.manifest.system.model, judged, left_out):
        card = judge.manifest.system
        told = {**card.settings, "returned": "+".join(sorted(judge.returned))}
        settings = {f"judge.{key}": value for key, value in told.items()}
        # Of an answer compared with itself there is nothing to ask a judge.
        by_judge = (lambda *_: 1.0) if answers.condition == NO_MASK else _verdicts(judge, answers)
        yield row(f"judge {card.model}", by_judge, {card.prompt: card.prompt_sha256}, settings)


def _verdicts(judge: StoredChat, answers: ConditionAnswers) -> _Utility:
    responses = judge.responses(judge_questions(answers.pairs), answers.asked)

    def by_judge(sample_id: str, _: AnswerPair) -> Ratings | Missing:
        response = responses.get(sample_id)
        if response is None:
            return Missing.NO_VERDICT
        return read_verdict(response) or Missing.UNPARSED

    return by_judge


def _figures(answers: ConditionAnswers, utility: _Utility) -> Iterator[SampleFigures]:
    for sample in answers.asked:
        masked = answers.maskings.get(sample.id)
        if masked is None:
            yield SampleFigures(sample.id, None, None, Missing.NO_MASKING)
            continue
        entities = [entity.text for entity in sample.entities]
        if isinstance(masked, Rewritten):
            protected = privacy_of_rewriting(entities, sample.description, masked.text)
        else:
            hidden = [(span.start, span.end) for span in masked.spans]
            protected = privacy(entities, sample.description, hidden)
        pair = answers.pairs.get(sample.id)
        match Missing.NO_ANSWER if pair is None else utility(sample.id, pair):
            case Missing() as why:
                yield SampleFigures(sample.id, protected, None, why)
            case Ratings() as ratings:
                yield SampleFigures(sample.id, protected, ratings.utility, ratings=ratings)
            case value:
                yield SampleFigures(sample.id, protected, value)


def _place(measured: Measured) -> tuple[object, ...]:
    row, _ = measured
    conditions = [*GOLD_CONDITIONS, row.condition]
    place = conditions.index(row.condition)
    return row.dataset, row.answerer, row.measure, place, row.condition


def record_of(row: UtilityRow) -> dict[str, object]:
    """A row as one record, the columns of the CSV file by name."""
    means = row.means
    three = means.privacy, means.utility, means.balanced
    values = (
        *(row.source, row.dataset, row.condition, row.oracle, row.answerer, row.measure),
        *(row.weight, *(mean.value for mean in three), *(mean.samples for mean in three)),
        *(row.samples, row.asked),
        *(None if row.asked is None else means.missing.get(why, 0) for why in Missing),
        *(means.ratings or (None, None)),
        *(row.signature, row.note),
    )
    return dict(zip(_COLUMNS, values, strict=True))


def to_csv(rows: Sequence[UtilityRow]) -> str:
    """One line per row, four decimals; what is unknown is empty."""
    return csv_text(_COLUMNS, (record_of(row).values() for row in rows))


def samples_to_csv(measured: Sequence[Measured]) -> str:
    """One line per row and sample."""
    lines = (
        [
            *(row.dataset, row.condition, row.answerer, row.measure, each.id),
            *(each.privacy, each.utility, each.balanced(row.weight), each.missing),
            *((each.ratings.masked, each.ratings.unmasked) if each.ratings else (None, None)),
        ]
        for row, figures in measured
        for each in figures
    )
    return csv_text(_SAMPLE_COLUMNS, lines)


def to_markdown(rows: Sequence[UtilityRow]) -> str:
    """One table per dataset, the paper's last, then the signatures."""
    parts = [_INTRODUCTION]
    for dataset, group in groupby(rows, key=lambda row: row.dataset):
        parts.append(f"## {markdown(dataset)}\n\n{to_table(list(group))}\n")
    if signed := [row.signature for row in rows if row.signature]:
        parts.append(
            "## Signatures\n\n" + "\n".join(f"- {markdown_code(line)}" for line in signed) + "\n"
        )
    return "\n".join(parts)


def to_table(rows: Sequence[UtilityRow]) -> str:
    """The Markdown table of some rows."""
    header = ("Masked", "Answerer", "U by", "P", "U", "B", "Asked", "Missing", "Source")
    lines = [
        (
            row.condition,
            row.answerer,
            row.measure,
            *map(_figure, (row.means.privacy, row.means.utility, row.means.balanced)),
            "" if row.asked is None else f"{row.asked}/{row.samples}",
            ", ".join(f"{n} {_REASONS[why]}" for why, n in sorted(row.means.missing.items())),
            ", ".join(source_marks(row)),
        )
        for row in rows
    ]
    return markdown_table(header, lines)


def write_utility(
    measured: Sequence[Measured], published: Sequence[UtilityRow], results: Path
) -> tuple[Path, ...]:
    """Write `utility.csv`, `utility.md` and `samples.csv` into `<results>/utility`.

    Raises:
        ResultsError: they cannot be written.
    """
    folder = results / FOLDER
    table, page, samples = (folder / name for name in ("utility.csv", "utility.md", "samples.csv"))
    rows = [*(row for row, _ in measured), *published]
    write_whole(table, to_csv(rows))
    write_whole(page, to_markdown(rows))
    write_whole(samples, samples_to_csv(measured))
    return table, page, samples


def _figure(mean: Mean) -> str:
    if mean.value is None:
        return "-"
    return f"{mean.value:.3f}" + ("" if mean.samples is None else f" ({mean.samples})")
