"""The jobs of a study of how masking changes a chat model's answers, and its figures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.utility.chats import (
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
    chats_folder,
    condition_of,
    read_maskings,
    read_rewritings,
    run_name,
    split_name,
    texts,
)
from pii_bench.datasets.sample import applicable
from pii_bench.runs.jobs import Job
from pii_bench.runs.records import RequestHashes, read_manifest
from pii_bench.runs.store import RunFiles, locked, read_responses
from pii_bench.systems.base import close_all
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.analysis.utility.chats import Questions
    from pii_bench.analysis.utility.collect import Measuring
    from pii_bench.analysis.utility.figures import UtilityRow
    from pii_bench.analysis.utility.preferences import PreferenceRow
    from pii_bench.datasets.catalog import Dataset
    from pii_bench.models.base import ModelResponse
    from pii_bench.systems.base import System, SystemCard
    from pii_bench.systems.prompted import PromptedSystem

_LONGEST_WAIT: Final = 300.0


@dataclass(frozen=True, slots=True)
class Study:
    """The systems, answerer and judge of a study.

    Attributes:
        limit: number of samples per dataset; None for all.
        maskers: the detection and the query-related system, or the one that rewrites texts;
            empty if only gold masks.
        answerer, judge: their model and sampling are used, their prompt is not.
        calls: concurrent calls to the maskers, to the answerer and to the judge.
    """

    results: Path
    datasets: Sequence[Dataset]
    limit: int | None
    maskers: tuple[System, ...]
    answerer: PromptedSystem
    judge: PromptedSystem | None
    calls: tuple[int, int, int]

    def stages(self) -> Iterator[tuple[list[Job], int]]:
        """Yield jobs and their concurrent calls; each stage reads results of those before it."""
        yield self._masking(), self.calls[0]
        answers = [
            self._job(self.answerer, self._questions(dataset, condition), dataset, condition)
            for dataset in self.datasets
            for condition in self._conditions
        ]
        yield answers, self.calls[1]
        if self.judge is not None:
            # One stage for both, since the judge is closed at its end.
            jobs = self._verdicts(self.judge, answers)
            if len(self.maskers) == 1:
                jobs += self._comparisons(self.judge, self.maskers[0].card)
            yield jobs, self.calls[2]

    async def close(self) -> None:
        """Close all systems, also those that were never asked."""
        systems = (*self.maskers, self.answerer, self.judge)
        await close_all(system for system in systems if system is not None)

    def _masking(self) -> list[Job]:
        root = self.results / "runs"
        jobs: list[Job] = []
        for dataset in self.datasets:
            masking = [Job.of(system, dataset, self.limit, root) for system in self.maskers]
            # Complete runs are reused, even if made with other options.
            if not all(_is_answered(job) for job in masking):
                jobs += masking
        return jobs

    @property
    def _conditions(self) -> list[str]:
        if not self.maskers:
            return list(GOLD_CONDITIONS)
        related = self.maskers[-1].card
        return [*GOLD_CONDITIONS, condition_of(related.model, related.prompt)]

    def _questions(self, dataset: Dataset, condition: str) -> Questions:
        masked_by: tuple[str, ...] = ()
        if condition not in GOLD_CONDITIONS:
            cards = [system.card for system in self.maskers]
            masked_by = (cards[-1].model, *(card.prompt for card in cards))
        samples = applicable(Task.MASKING, dataset.samples)
        _, maskings = read_maskings(self.results, dataset, condition, masked_by, samples)
        return answer_questions(texts(maskings), masked_by)

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
            dataset = replace(job.dataset, name=name)
            jobs.append(self._job(judge, questions, dataset, condition))
        return jobs

    def _comparisons(self, judge: PromptedSystem, card: SystemCard) -> list[Job]:
        """Return the jobs that compare a system's rewritten texts with those that gold masks."""
        jobs = []
        for dataset in self.datasets:
            rewritings = read_rewritings(self.results, card.model, card.prompt, dataset)
            pairs = text_pairs(applicable(Task.REWRITE, dataset.samples), rewritings)
            questions = text_questions(pairs, (card.model, card.prompt))
            condition = condition_of(card.model, card.prompt)
            jobs.append(self._job(judge, questions, dataset, condition))
        return jobs

    def _job(
        self, chat: PromptedSystem, questions: Questions, dataset: Dataset, condition: str
    ) -> Job:
        """Return the job for the samples that have questions, the first `limit` of the dataset."""
        system = ChatSystem(chat.model, chat.sampling, questions)
        card, fields = system.card, questions.fields
        root = chats_folder(self.results, card.prompt, self.answerer.model.name)
        named = replace(dataset, name=run_name(dataset.name, condition))
        return Job(
            system=system,
            dataset=named,
            samples=tuple(each for each in dataset.samples[: self.limit] if each.id in fields),
            requests=RequestHashes(system, [each for each in dataset.samples if each.id in fields]),
            files=RunFiles.at(root, card.model, card.prompt, named.name),
        )


def _is_answered(job: Job) -> bool:
    """True if each sample has a response, made with any options on the current dataset."""
    if not job.files.manifest.exists():
        return False
    if read_manifest(job.files.manifest).dataset.sha256 != job.dataset.sha256:
        return False
    return {sample.id for sample in job.samples} <= _responses(job).keys()


def _responses(job: Job) -> dict[str, ModelResponse]:
    """Return the stored responses of a job by sample id."""
    return {
        record.id: record.written
        for record in read_responses(job.files.responses, unreadable=[])
        if record.written is not None
    }


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of a results folder, and a message for each run or line left out."""

    rows: tuple[UtilityRow, ...]
    published: tuple[UtilityRow, ...]
    preferences: tuple[PreferenceRow, ...]
    paths: tuple[Path, ...]
    left_out: tuple[str, ...]


def update_figures(results: Path, measuring: Measuring) -> Figures:
    """Compute the figures of every stored run and write them into `<results>/utility`.

    Raises:
        PiiBenchError: a file cannot be written.
    """
    # Locked, so that an older collection never overwrites a newer one.
    with locked(results / FOLDER, wait=_LONGEST_WAIT):
        left_out: list[str] = []
        rows = collect_utility(results, measuring, left_out)
        # The verdicts for no-mask are read twice: they are those for mask-all.
        left_out = list(dict.fromkeys(left_out))
        preferences = collect_preferences(results, left_out)
        published = published_figures()
        paths = write_utility([*rows, *published], results)
        paths += write_preferences(preferences, results)
    return Figures(
        rows=tuple(rows),
        published=tuple(published),
        preferences=tuple(preferences),
        paths=paths,
        left_out=tuple(left_out),
    )
