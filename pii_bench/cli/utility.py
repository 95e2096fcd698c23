"""`pii-bench utility`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from types import MappingProxyType
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
from pii_bench.analysis.utility.collect import (
    Measuring,
    UtilityCollection,
    collect_utility,
    record_of,
    to_table,
    write_utility,
)
from pii_bench.analysis.utility.figures import published_figures
from pii_bench.analysis.utility.preferences import (
    EXPLANATION,
    collect_preferences,
    preferences_to_table,
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
from pii_bench.cli.options import (
    DATASET_HELP,
    add_calls,
    add_json,
    add_limit,
    add_local_only,
    add_max_usd,
    add_results,
    built,
    calls_at_a_time,
    positive,
    weight,
)
from pii_bench.cli.run import for_task, tell_missing
from pii_bench.cli.terminal import RunProgress, say, say_json, tell, tell_left_out
from pii_bench.datasets.catalog import load_datasets
from pii_bench.datasets.sample import applicable
from pii_bench.errors import PiiBenchError
from pii_bench.models.calls import CallPolicy
from pii_bench.models.catalog import PROVIDERS, ModelOptions, resolve
from pii_bench.runs.jobs import Job, refuse_uncollected, reserved, run_jobs
from pii_bench.runs.mask_text import rewriting_system
from pii_bench.runs.records import RequestHashes, read_manifest
from pii_bench.runs.store import RunFiles, locked, read_lines
from pii_bench.systems.catalog import SystemOptions, is_prompted
from pii_bench.systems.prompted import PromptedSystem
from pii_bench.systems.relevance.embedding import MiniLmEncoder, WordLlamaEncoder
from pii_bench.tasks import Task

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.models.base import ModelResponse
    from pii_bench.systems.base import System
    from pii_bench.systems.relevance.embedding import Encoder

EMBEDDERS: Final[Mapping[str, Callable[[], Encoder]]] = MappingProxyType(
    {"wordllama": WordLlamaEncoder, "minilm": MiniLmEncoder}
)

_LONGEST_WAIT: Final = 300.0
DESCRIPTION: Final = (
    "Let a chat model answer queries over texts as they are, masked whole, masked but for "
    "what the query needs, and masked by a system; compare the answers. Answers and verdicts "
    "are saved as they come; run again to go on. Without --answerer nothing is asked, and the "
    "figures are made again of what is stored."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--model",
        metavar="SYSTEM",
        help="what masks, any that `pii-bench run` takes for both tasks; its answers are those "
        "of `run`, which has all options (default: gold's conditions alone)",
    )
    parser.add_argument(
        "--strategy", help="of --model, a chat model's prompt for query-related PII (naive)"
    )
    parser.add_argument(
        "--rewrite",
        action="store_true",
        help="let --model write the texts anew; a --judge then also compares these texts with "
        "those that gold masks",
    )
    parser.add_argument("--answerer", metavar="MODEL", help="the chat model that answers")
    parser.add_argument(
        "--judge", metavar="MODEL", help="a chat model that rates the answers (default: none)"
    )
    parser.add_argument(
        "--dataset", default="demo", help=f"all, {DATASET_HELP} (default: %(default)s)"
    )
    add_limit(parser)
    parser.add_argument(
        "--embedder",
        choices=list(EMBEDDERS),
        default="wordllama",
        help="of the answers, for their cosine (default: %(default)s)",
    )
    parser.add_argument(
        "--weight",
        type=weight,
        default=0.5,
        metavar="A",
        help="of privacy in the balance, 0 to 1 (default: %(default)s)",
    )
    add_local_only(parser, "model that is sent the texts on")
    calls = parser.add_argument_group("how chat models are called")
    calls.add_argument(
        "--answer-tokens",
        type=positive,
        metavar="N",
        help="longest answer, reasoning included (default: 2048; a model that reasons: 16384; "
        "local: 512)",
    )
    calls.add_argument(
        "--verdict-tokens", type=positive, metavar="N", help="longest verdict (default: likewise)"
    )
    add_calls(calls)
    calls.add_argument("--answerer-base-url", metavar="URL", help="as --base-url, the answerer's")
    calls.add_argument("--judge-base-url", metavar="URL", help="as --base-url, the judge's")
    add_max_usd(
        calls,
        "make no call to a provider's model that might pass this sum; each model has its own",
    )
    add_json(parser)
    add_results(parser)


def run(arguments: argparse.Namespace) -> bool:
    """Mask, answer, judge, and write the figures of all that is stored.

    Without an answerer nothing is asked: the figures are made again of what is stored.

    Returns:
        Whether every sample asked for has its answers and verdicts; without an answerer,
        whether every stored run has its rows.

    Raises:
        PiiBenchError: wrong arguments or input, found before anything is asked; or a provider
            refuses, after which what arrived is saved.
    """
    measuring = Measuring(arguments.embedder, EMBEDDERS[arguments.embedder](), arguments.weight)
    if arguments.answerer is None:
        if arguments.model is not None or arguments.judge is not None or arguments.rewrite:
            raise PiiBenchError("--model, --rewrite and --judge need an --answerer")
        return not _write(arguments, measuring, None).left_out
    study = _Study.of(arguments)
    try:
        complete = [_run(jobs, calls) for jobs, calls in study.stages()]
    except KeyboardInterrupt:
        tell("interrupted")
        return False
    finally:
        asyncio.run(study.close())
    _write(arguments, measuring, {dataset.name for dataset in study.datasets})
    return all(complete)


@dataclass(frozen=True, slots=True)
class _Study:
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

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> _Study:
        return cls(
            results=arguments.results,
            datasets=load_datasets(arguments.dataset),
            limit=arguments.limit,
            maskers=_maskers(arguments),
            answerer=_chat("answerer", arguments, arguments.answer_tokens),
            judge=_chat("judge", arguments, arguments.verdict_tokens) if arguments.judge else None,
            calls=(
                calls_at_a_time(arguments, arguments.model),
                calls_at_a_time(arguments, arguments.answerer),
                calls_at_a_time(arguments, arguments.judge),
            ),
        )

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
        card, about = system.card, system.questions.about
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


def _maskers(arguments: argparse.Namespace) -> tuple[System, ...]:
    """The detection and the query-related system, or the one that writes texts anew."""
    name, strategy = arguments.model, arguments.strategy
    options = _options(arguments, name, arguments.base_url)
    if arguments.rewrite:
        if name is None or not is_prompted(name):
            raise PiiBenchError("--rewrite needs a chat model, --model")
        if strategy not in {None, Task.REWRITE}:
            raise PiiBenchError("--rewrite has no use for --strategy: leave it out")
        options = replace(options, strategy=str(Task.REWRITE))
        return (rewriting_system(built(name, options, local_only=arguments.local_only)),)
    if name is None:
        if strategy is not None:
            raise PiiBenchError("--strategy is that of --model: name one")
        return ()
    found = built(name, replace(options, strategy=strategy), local_only=arguments.local_only)
    by_task = {system.card.task: system for system in for_task(Task.MASKING, name, found)}
    return by_task[Task.DETECTION], by_task[Task.QUERY_RELATED]


def _chat(role: str, arguments: argparse.Namespace, tokens: int | None) -> PromptedSystem:
    """A chat model with what it is sampled by; its prompt is another's."""
    name = getattr(arguments, role)
    options = _options(arguments, name, getattr(arguments, f"{role}_base_url"))
    limited = replace(options, max_tokens=tokens)
    system, *_ = built(name, limited, local_only=arguments.local_only)
    if not isinstance(system, PromptedSystem):
        raise PiiBenchError(f"{role} {name!r} is no chat model (see `pii-bench models`)")
    return system


def _options(
    arguments: argparse.Namespace, name: str | None, base_url: str | None
) -> SystemOptions:
    # Only a provider's model may cost: a cap on any other would be refused.
    called = name is not None and resolve(name).partition("/")[0] in PROVIDERS
    return SystemOptions(
        model=ModelOptions(base_url=base_url, timeout=float(arguments.timeout)),
        calls=CallPolicy(
            concurrency=calls_at_a_time(arguments, name),
            max_usd=arguments.max_usd if called else None,
        ),
    )


def _run(jobs: Sequence[Job], calls: int) -> bool:
    """Ask what is missing; whether nothing is then."""
    if not jobs:
        return True
    with reserved(jobs):
        refuse_uncollected(jobs)
        try:
            with RunProgress() as progress:
                asyncio.run(run_jobs(jobs, calls, None, progress))
        except (KeyboardInterrupt, PiiBenchError):
            tell_missing(jobs)
            raise
        return tell_missing(jobs)


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


def _write(
    arguments: argparse.Namespace, measuring: Measuring, datasets: set[str] | None
) -> UtilityCollection:
    """Write the figures, and print those of some datasets; None for all."""
    results: Path = arguments.results
    # Who collects last must write last, as with the leaderboard.
    with locked(results / FOLDER, wait=_LONGEST_WAIT):
        collection = collect_utility(results, measuring)
        told: list[str] = []
        preferences = collect_preferences(results, told)
        collection = replace(collection, left_out=(*collection.left_out, *told))
        published = published_figures()
        paths = [*write_utility(collection.measured, published, results)]
        paths += write_preferences(preferences, results)
    tell_left_out(collection.left_out)
    rows = [row for row, _ in collection.measured if datasets is None or row.dataset in datasets]
    (tell if arguments.json else say)(f"figures: {', '.join(map(str, paths))}")
    shown = [row for row in preferences if datasets is None or row.dataset in datasets]
    if arguments.json:
        say_json([record_of(row) for row in (*rows, *published)])
        return collection
    say(f"\n{to_table([*rows, *published])}")
    if shown:
        say(f"\n{EXPLANATION}\n{preferences_to_table(shown)}")
    return collection
