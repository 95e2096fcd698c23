"""From stored answers and verdicts to figures, without any chat model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from pii_bench.analysis.utility.chats import Ratings, judge_questions, read_verdict
from pii_bench.analysis.utility.figures import (
    DEFAULT_WEIGHT,
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
    split_name,
)
from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError
from pii_bench.ranking.rows import Source
from pii_bench.runs.records import Signature
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pii_bench.analysis.utility.chats import AnswerPair
    from pii_bench.analysis.utility.stored import StoredChat
    from pii_bench.datasets.catalog import Dataset
    from pii_bench.systems.relevance.embedding import Encoder

Measured: TypeAlias = "tuple[UtilityRow, tuple[SampleFigures, ...]]"
"""A row with the samples that its means are over."""


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
    bases = {_key(run): run for run in runs if _condition(run) == NO_MASK}
    load = cache(load_dataset)
    measured: list[Measured] = []
    for run in runs:
        try:
            if _key(run) not in bases:
                raise StaleAnswersError(f"there is no run under {NO_MASK} to compare with")
            dataset = load(run.manifest.dataset.source)
            answers = hold_answers(results, dataset, run, bases[_key(run)])
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

    row = _Rows(answers, dataset, measuring.weight)
    embedder = {f"embedder.{key}": value for key, value in measuring.encoder.identity.items()}
    yield row.of(f"cosine {measuring.embedder}", by_embedding, {}, embedder)
    about = MASK_ALL if answers.condition == NO_MASK else answers.condition
    judged = run_name(dataset.name, about)
    for judge in read_judges(results, answers.run.manifest.system.model, judged, left_out):
        card = judge.manifest.system
        told = {**card.settings, "returned": "+".join(sorted(judge.returned))}
        settings = {f"judge.{key}": value for key, value in told.items()}
        prompts = {card.prompt: card.prompt_sha256}
        by_judge = _same if answers.condition == NO_MASK else _verdicts(judge, answers)
        yield row.of(f"judge {card.model}", by_judge, prompts, settings)


def _verdicts(
    judge: StoredChat, answers: ConditionAnswers
) -> Callable[[str, AnswerPair], Ratings | Missing]:
    responses = judge.responses(judge_questions(answers.pairs), answers.asked)

    def by_judge(sample_id: str, _: AnswerPair) -> Ratings | Missing:
        response = responses.get(sample_id)
        if response is None:
            return Missing.NO_VERDICT
        ratings = read_verdict(response)
        return Missing.UNPARSED if ratings is None else ratings

    return by_judge


def _same(_: str, __: AnswerPair) -> float:
    # An answer compared with itself: there is nothing to ask a judge.
    return 1.0


@dataclass(frozen=True, slots=True)
class _Rows:
    """Makes the rows of one condition."""

    answers: ConditionAnswers
    dataset: Dataset
    weight: float

    def of(
        self,
        measure: str,
        utility: Callable[[str, AnswerPair], float | Ratings | Missing],
        prompts: dict[str, str],
        settings: dict[str, Any],
    ) -> Measured:
        figures = tuple(self._figures(utility))
        answers, card = self.answers, self.answers.run.manifest.system
        signature = Signature(
            dataset=self.dataset.name,
            dataset_sha256=self.dataset.sha256,
            task=Task.MASKING,
            strategy=answers.condition,
            prompts={card.prompt: card.prompt_sha256, **prompts},
            model=card.model,
            returned=sorted(answers.run.returned),
            settings={**card.settings, **settings, "weight": self.weight, "utility": measure},
        )
        row = UtilityRow(
            source=Source.RUN,
            dataset=self.dataset.name,
            condition=answers.condition,
            oracle=answers.oracle,
            answerer=card.model,
            measure=measure,
            means=Means.of(figures, self.weight),
            samples=len(answers.samples),
            asked=len(answers.asked),
            weight=self.weight,
            signature=str(signature),
        )
        return row, figures

    def _figures(
        self, utility: Callable[[str, AnswerPair], float | Ratings | Missing]
    ) -> Iterator[SampleFigures]:
        for sample in self.answers.asked:
            masked = self.answers.maskings.get(sample.id)
            if masked is None:
                yield SampleFigures(sample.id, None, None, Missing.NO_MASKING)
                continue
            entities = [entity.text for entity in sample.entities]
            if isinstance(masked, Rewritten):
                protected = privacy_of_rewriting(entities, sample.description, masked.text)
            else:
                hidden = [(span.start, span.end) for span in masked.spans]
                protected = privacy(entities, sample.description, hidden)
            pair = self.answers.pairs.get(sample.id)
            match Missing.NO_ANSWER if pair is None else utility(sample.id, pair):
                case Missing() as why:
                    yield SampleFigures(sample.id, protected, None, why)
                case Ratings() as ratings:
                    yield SampleFigures(sample.id, protected, ratings.utility, ratings=ratings)
                case value:
                    yield SampleFigures(sample.id, protected, value)


def _key(run: StoredChat) -> tuple[str, str]:
    return run.manifest.system.model, split_name(run.manifest.dataset.name)[0]


def _condition(run: StoredChat) -> str:
    return split_name(run.manifest.dataset.name)[1]


def _place(measured: Measured) -> tuple[object, ...]:
    row, _ = measured
    conditions = [*GOLD_CONDITIONS, row.condition]
    place = conditions.index(row.condition)
    return row.dataset, row.answerer, row.measure, place, row.condition
