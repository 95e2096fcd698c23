"""A study of what masking does to a chat model's answers: who is asked about what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.utility.chats import (
    ANSWER,
    JUDGE,
    TEXTS,
    ChatSystem,
    answer_questions,
    judge_questions,
    text_questions,
)
from pii_bench.analysis.utility.collect import collect_utility, write_utility
from pii_bench.analysis.utility.figures import published_figures
from pii_bench.analysis.utility.preferences import (
    collect_preferences,
    text_pairs,
    write_preferences,
)
from pii_bench.analysis.utility.stored import (
    FOLDER,
    GOLD_CONDITIONS,
    NO_MASK,
    answer_pairs,
    answers_folder,
    condition_of,
    mask_by_gold,
    mask_by_system,
    read_masker,
    read_rewritings,
    run_name,
    split_name,
    texts,
    texts_folder,
    verdicts_folder,
)
from pii_bench.datasets.sample import applicable
from pii_bench.runs.jobs import Job
from pii_bench.runs.records import RequestHashes, read_manifest
from pii_bench.runs.store import RunFiles, locked, read_lines
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.analysis.utility.collect import Measuring
    from pii_bench.analysis.utility.figures import UtilityRow
    from pii_bench.analysis.utility.preferences import PreferenceRow
    from pii_bench.datasets.catalog import Dataset
    from pii_bench.models.base import ModelResponse
    from pii_bench.systems.base import System
    from pii_bench.systems.prompted import PromptedSystem

_LONGEST_WAIT: Final = 300.0


@dataclass(frozen=True, slots=True)
class Study:
    """Who is asked about what.

    Attributes:
        maskers: the detection and the query-related system, or the one that writes texts anew;
            empty for gold's conditions alone.
        answerer: a chat model with its sampling, and no more of its prompt.
        judge: likewise.
        calls: at a time, to what masks, to the answerer and to the judge.
    """

    results: Path
    datasets: Sequence[Dataset]
    limit: int | None
    maskers: tuple[System, ...]
    answerer: PromptedSystem
    judge: PromptedSystem | None
    calls: tuple[int, int, int]

    def stages(self) -> Iterator[tuple[list[Job], int]]:
        """Jobs, and how many calls at a time; each stage reads what those before have stored."""
        yield self._masking(), self.calls[0]
        answers = [
            self._job(self._answering(dataset, condition), dataset, condition)
            for dataset in self.datasets
            for condition in self._conditions
        ]
        yield answers, self.calls[1]
        if self.judge is not None:
            # In one stage, at the end of which the judge is closed.
            compared = self._comparisons(self.judge, self._rewriter) if self._rewriter else []
            yield [*self._verdicts(self.judge, answers), *compared], self.calls[2]

    async def close(self) -> None:
        """Close all of them; some may not have been asked anything."""
        for system in (*self.maskers, self.answerer, self.judge):
            if system is not None:
                await system.close()

    def _masking(self) -> list[Job]:
        root = self.results / "runs"
        jobs: list[Job] = []
        for dataset in self.datasets:
            both = [Job.of(system, dataset, self.limit, root) for system in self.maskers]
            # Runs that have all answers stay as they are, also if made with other options.
            if not all(_is_answered(job) for job in both):
                jobs += both
        return jobs

    @property
    def _conditions(self) -> list[str]:
        if not self.maskers:
            return [*GOLD_CONDITIONS]
        related = self.maskers[-1].card
        return [*GOLD_CONDITIONS, condition_of(related.model, related.prompt)]

    def _answering(self, dataset: Dataset, condition: str) -> ChatSystem:
        samples = applicable(Task.MASKING, dataset.samples)
        if condition in GOLD_CONDITIONS:
            questions = answer_questions(texts(mask_by_gold(condition, samples)))
        elif self._rewriter is not None:
            card = self._rewriter.card
            written = read_rewritings(self.results, card.model, card.prompt, dataset)
            questions = answer_questions(texts(written), (card.model, card.prompt))
        else:
            detection, related = (system.card for system in self.maskers)
            prompts = detection.prompt, related.prompt
            masker = read_masker(self.results, related.model, prompts, dataset)
            masked = texts(mask_by_system(masker, samples))
            questions = answer_questions(masked, (related.model, *prompts))
        return ChatSystem(self.answerer.model, self.answerer.sampling, questions)

    def _verdicts(self, judge: PromptedSystem, answers: Sequence[Job]) -> list[Job]:
        unmasked: dict[str, Mapping[str, ModelResponse]] = {}
        jobs = []
        for job in answers:
            name, condition = split_name(job.dataset.name)
            responses = _responses(job)
            if condition == NO_MASK:
                unmasked[name] = responses
                continue
            questions = judge_questions(answer_pairs(responses, unmasked[name]))
            system = ChatSystem(judge.model, judge.sampling, questions)
            jobs.append(self._job(system, replace(job.dataset, name=name), condition))
        return jobs

    @property
    def _rewriter(self) -> System | None:
        """What writes texts anew, if that is what masks."""
        return self.maskers[0] if len(self.maskers) == 1 else None

    def _comparisons(self, judge: PromptedSystem, rewriter: System) -> list[Job]:
        card = rewriter.card
        jobs = []
        for dataset in self.datasets:
            written = read_rewritings(self.results, card.model, card.prompt, dataset)
            pairs = text_pairs(applicable(Task.REWRITE, dataset.samples), written)
            questions = text_questions(pairs, (card.model, card.prompt))
            system = ChatSystem(judge.model, judge.sampling, questions)
            jobs.append(self._job(system, dataset, condition_of(card.model, card.prompt)))
        return jobs

    def _job(self, system: ChatSystem, dataset: Dataset, condition: str) -> Job:
        """What there is to ask about a dataset under a condition, and of it the first samples."""
        card, about = system.card, system.questions.fields
        root = {
            ANSWER: answers_folder(self.results),
            JUDGE: verdicts_folder(self.results, self.answerer.model.name),
            TEXTS: texts_folder(self.results),
        }[card.prompt]
        named = replace(dataset, name=run_name(dataset.name, condition))
        return Job(
            system=system,
            dataset=named,
            samples=tuple(each for each in dataset.samples[: self.limit] if each.id in about),
            requests=RequestHashes(system, [each for each in dataset.samples if each.id in about]),
            files=RunFiles.at(root, card.model, card.prompt, named.name),
        )


def _is_answered(job: Job) -> bool:
    """Whether each sample has a response, to whatever was asked about it as it is today."""
    if not job.files.manifest.exists():
        return False
    asked_about = read_manifest(job.files.manifest).dataset.sha256
    answered = _responses(job).keys()
    return asked_about == job.dataset.sha256 and {each.id for each in job.samples} <= answered


def _responses(job: Job) -> dict[str, ModelResponse]:
    """What is stored of a job, by sample."""
    return {
        record.id: record.written
        for _, record in read_lines(job.files.responses, unreadable=[])
        if record.written is not None
    }


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures that were made of what a results folder holds.

    Attributes:
        rows: ours.
        published: the paper's.
        preferences: which text judges prefer.
        paths: of the files that were written.
        left_out: runs and lines that could not be used, each with the reason.
    """

    rows: tuple[UtilityRow, ...]
    published: tuple[UtilityRow, ...]
    preferences: tuple[PreferenceRow, ...]
    paths: tuple[Path, ...]
    left_out: tuple[str, ...]


def update_figures(results: Path, measuring: Measuring) -> Figures:
    """Make the figures of every stored run, and write them into `<results>/utility`.

    Raises:
        PiiBenchError: they cannot be written.
    """
    # Who collects last must write last, as with the leaderboard.
    with locked(results / FOLDER, wait=_LONGEST_WAIT):
        collection = collect_utility(results, measuring)
        told: list[str] = []
        preferences = collect_preferences(results, told)
        published = published_figures()
        paths = write_utility(collection.measured, published, results)
        paths += write_preferences(preferences, results)
    return Figures(
        rows=tuple(row for row, _ in collection.measured),
        published=tuple(published),
        preferences=tuple(preferences),
        paths=paths,
        left_out=(*collection.left_out, *told),
    )
