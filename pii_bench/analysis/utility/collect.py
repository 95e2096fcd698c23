"""Figures of stored answers and verdicts, as CSV and Markdown. No chat model is called.

None of the files contains a text of a sample or an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pii_bench.analysis.utility.chats import Ratings, judge_questions, read_verdict
from pii_bench.analysis.utility.figures import (
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
    load_answers,
    read_answerers,
    read_judges,
    run_name,
)
from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.escaping import csv_text, markdown, markdown_code, markdown_table
from pii_bench.files import write_whole
from pii_bench.ranking.rows import Source, source_marks
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pii_bench.analysis.utility.stored import Maskings, StoredChat
    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.relevance.embedding import Encoder

_INTRODUCTION: Final = """\
# Privacy and utility

P is privacy: the share of PII occurrences that are not in the masked text; one that is masked in
part is not. U is utility, 0 to 1: how much the answer to the masked text is worth compared with the
answer to the unmasked text. By `cosine`, U is the cosine of the embedded answers, at least 0; it
measures similarity, not correctness. By a `judge`, U is (m - 1) / (u - 1), at most 1, where m and u
are the ratings from 1 to 10 of the masked and the unmasked answer, each the mean over both orders.
B is the weighted mean of P and U of each sample. Figures are means over the samples that have one,
followed by their number. A failed answer or verdict is missing and never counts as 0.

`oracle` rows use gold for masking. `incomplete` rows lack samples. `published` rows are from the
paper, on data that was never released and with an unspecified measure of utility: they are for
orientation, not for comparison.
"""

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

_Utilities: TypeAlias = "Mapping[str, float | Ratings | Missing]"
"""Utility by the id of each sample that has both answers."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """The encoder of answers, its name, and the weight of privacy in the balance, 0 to 1."""

    embedder: str
    encoder: Encoder
    weight: float


def collect_utility(results: Path, measuring: Measuring, left_out: list[str]) -> list[UtilityRow]:
    """Compute the figures of every run of an answerer in a results folder.

    `left_out` receives a message for each run or line that cannot be used; some more than once.

    Returns:
        Rows sorted by dataset, answerer, measure and condition.
    """
    runs = read_answerers(results, left_out)
    bases = {(run.model, run.dataset): run for run in runs if run.condition == NO_MASK}
    load = cache(load_dataset)
    rows: list[UtilityRow] = []
    for run in runs:
        try:
            base = bases.get((run.model, run.dataset))
            if base is None:
                raise PiiBenchError(f"there is no run under {NO_MASK} to compare with")
            answers = load_answers(results, load(run.manifest.dataset.source), run, base)
        except PiiBenchError as error:
            left_out.append(run.left_out(error))
        else:
            rows.append(_measure_by_cosine(answers, measuring))
            rows += _measure_by_judges(results, answers, measuring.weight, left_out)
    return sorted(rows, key=_place)


def _measure_by_cosine(answers: ConditionAnswers, measuring: Measuring) -> UtilityRow:
    encoder = measuring.encoder
    utilities = {
        sample_id: similarity(encoder, pair.masked, pair.unmasked)
        for sample_id, pair in answers.pairs.items()
    }
    settings = {f"embedder.{key}": value for key, value in encoder.identity.items()}
    measure = f"cosine {measuring.embedder}"
    return _row(answers, measure, measuring.weight, utilities, {}, settings)


def _measure_by_judges(
    results: Path, answers: ConditionAnswers, weight: float, left_out: list[str]
) -> list[UtilityRow]:
    run = answers.run
    # Without masking, an answer is compared with itself: there is nothing to ask a judge.
    unmasked = run.condition == NO_MASK
    judged = run_name(run.dataset, MASK_ALL if unmasked else run.condition)
    rows = []
    for judge in read_judges(results, run.model, judged, left_out):
        card = judge.manifest.system
        utilities = dict.fromkeys(answers.pairs, 1.0) if unmasked else _verdicts(judge, answers)
        prompts = {card.prompt: card.prompt_sha256}
        judge_settings = {**card.settings, "returned": "+".join(judge.returned)}
        settings = {f"judge.{key}": value for key, value in judge_settings.items()}
        measure = f"judge {card.model}"
        rows.append(_row(answers, measure, weight, utilities, prompts, settings))
    return rows


def _verdicts(judge: StoredChat, answers: ConditionAnswers) -> _Utilities:
    responses = judge.responses(judge_questions(answers.pairs), answers.asked)
    verdicts: dict[str, Ratings | Missing] = {}
    for sample_id in answers.pairs:
        response = responses.get(sample_id)
        if response is None:
            verdicts[sample_id] = Missing.NO_VERDICT
        else:
            verdicts[sample_id] = read_verdict(response) or Missing.UNPARSED
    return verdicts


def _row(
    answers: ConditionAnswers,
    measure: str,
    weight: float,
    utilities: _Utilities,
    prompts: Mapping[str, str],
    settings: Mapping[str, Any],
) -> UtilityRow:
    """Make a row; `prompts` and `settings` are what its measure adds to the signature."""
    figures = tuple(
        _sample_figures(sample, answers.maskings, utilities.get(sample.id, Missing.NO_ANSWER))
        for sample in answers.asked
    )
    settings = {**settings, "weight": weight, "utility": measure}
    return UtilityRow(
        source=Source.RUN,
        dataset=answers.run.dataset,
        condition=answers.run.condition,
        oracle=answers.oracle,
        answerer=answers.run.model,
        measure=measure,
        means=Means.of(figures, weight),
        samples=len(answers.samples),
        asked=len(answers.asked),
        weight=weight,
        signature=answers.run.signature(Task.MASKING, prompts, settings),
        figures=figures,
    )


def _sample_figures(
    sample: Sample, maskings: Maskings, utility: float | Ratings | Missing
) -> SampleFigures:
    masked = maskings.get(sample.id)
    if masked is None:
        return SampleFigures(sample.id, None, None, Missing.NO_MASKING)
    entities = [entity.text for entity in sample.entities]
    if isinstance(masked, Rewritten):
        protected = privacy_of_rewriting(entities, sample.description, masked.text)
    else:
        spans = [(span.start, span.end) for span in masked.spans]
        protected = privacy(entities, sample.description, spans)
    if isinstance(utility, Missing):
        return SampleFigures(sample.id, protected, None, utility)
    if isinstance(utility, Ratings):
        return SampleFigures(sample.id, protected, utility.utility, ratings=utility)
    return SampleFigures(sample.id, protected, utility)


def _place(row: UtilityRow) -> tuple[object, ...]:
    conditions = [*GOLD_CONDITIONS, row.condition]
    place = conditions.index(row.condition)
    return row.dataset, row.answerer, row.measure, place, row.condition


def record_of(row: UtilityRow) -> dict[str, object]:
    """Return the values of a row by CSV column."""
    means = row.means
    masked, unmasked = means.ratings or (None, None)
    return {
        "source": row.source,
        "dataset": row.dataset,
        "condition": row.condition,
        "oracle": row.oracle,
        "answerer": row.answerer,
        "measure": row.measure,
        "weight": row.weight,
        "privacy": means.privacy.value,
        "utility": means.utility.value,
        "balanced": means.balanced.value,
        "n_privacy": means.privacy.samples,
        "n_utility": means.utility.samples,
        "n_balanced": means.balanced.samples,
        "samples": row.samples,
        "asked": row.asked,
        **{why: None if row.asked is None else means.missing.get(why, 0) for why in Missing},
        "rating_masked": masked,
        "rating_unmasked": unmasked,
        "signature": row.signature,
        "note": row.note,
    }


def to_csv(rows: Sequence[UtilityRow]) -> str:
    """Return CSV with one line for each of at least one row; unknown values are empty."""
    records = [record_of(row) for row in rows]
    return csv_text(list(records[0]), (record.values() for record in records))


def samples_to_csv(rows: Sequence[UtilityRow]) -> str:
    """Return CSV with one line per row and sample."""
    lines = (
        [
            *(row.dataset, row.condition, row.answerer, row.measure, each.id),
            *(each.privacy, each.utility, each.balanced(row.weight), each.missing),
            *((each.ratings.masked, each.ratings.unmasked) if each.ratings else (None, None)),
        ]
        for row in rows
        for each in row.figures
    )
    return csv_text(_SAMPLE_COLUMNS, lines)


def to_markdown(rows: Sequence[UtilityRow]) -> str:
    """Return one table per dataset in the order of rows, then the signatures."""
    parts = [_INTRODUCTION]
    for dataset, group in groupby(rows, key=lambda row: row.dataset):
        parts.append(f"## {markdown(dataset)}\n\n{to_table(list(group))}\n")
    signatures = [f"- {markdown_code(row.signature)}\n" for row in rows if row.signature]
    if signatures:
        parts.append("## Signatures\n\n" + "".join(signatures))
    return "\n".join(parts)


def to_table(rows: Sequence[UtilityRow]) -> str:
    """Return rows as a Markdown table."""
    header = ("Masked", "Answerer", "U by", "P", "U", "B", "Asked", "Missing", "Source")
    lines = [
        (
            row.condition,
            row.answerer,
            row.measure,
            _figure(row.means.privacy),
            _figure(row.means.utility),
            _figure(row.means.balanced),
            "" if row.asked is None else f"{row.asked}/{row.samples}",
            ", ".join(f"{n} {_REASONS[why]}" for why, n in sorted(row.means.missing.items())),
            ", ".join(source_marks(row.source, oracle=row.oracle, complete=row.complete)),
        )
        for row in rows
    ]
    return markdown_table(header, lines)


def write_utility(rows: Sequence[UtilityRow], results: Path) -> tuple[Path, ...]:
    """Write `utility.csv`, `utility.md` and `samples.csv` into `<results>/utility`.

    Raises:
        ResultsError: a file cannot be written.
    """
    folder = results / FOLDER
    table, page, samples = folder / "utility.csv", folder / "utility.md", folder / "samples.csv"
    write_whole(table, to_csv(rows))
    write_whole(page, to_markdown(rows))
    write_whole(samples, samples_to_csv(rows))
    return table, page, samples


def _figure(mean: Mean) -> str:
    if mean.value is None:
        return "-"
    return f"{mean.value:.3f}" + ("" if mean.samples is None else f" ({mean.samples})")
