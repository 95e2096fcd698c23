"""A chat model as writer: descriptions and queries, each checked before it is kept.

People, their conflicts and E_q are drawn as for the grammar (paper, construction steps 1, 2
and 4); the model writes the description (step 3), then scenario, abstractions and query
(step 4). What the checker finds goes back to the model a bounded number of times.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from pii_bench.check import Problem, sample_problems
from pii_bench.check.duplicates import duplicate_problems
from pii_bench.construction.brief import load_briefs
from pii_bench.construction.build import annotate
from pii_bench.construction.commission import draw_commissions
from pii_bench.construction.manuscript import (
    answer_problem,
    description_problems,
    find_mentions,
    query_length_problems,
    read_part,
    value_problems,
)
from pii_bench.datasets.native import write_native
from pii_bench.datasets.sample import Related, Sample
from pii_bench.errors import PiiBenchError
from pii_bench.models.base import CallError, Message, Request, Sampling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pii_bench.construction.brief import Briefs
    from pii_bench.construction.build import Plan
    from pii_bench.construction.commission import Commission
    from pii_bench.models.base import Model
    from pii_bench.runner.run import Observer

Stage = Literal["description", "query", "set"]
Judged = tuple[Sample | None, list[Problem]]

TRIES: Final = 3
"""Answers that the model may give to one prompt."""

# Not 0: a second answer to the same request should differ from the first.
_SAMPLING: Final = Sampling(temperature=0.8, max_tokens=4096)
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Rejection:
    """A commission that brought no sample.

    Attributes:
        id: of the commission.
        stage: what failed: the description, the query, or the set, in which it stood twice.
        problems: of the last answer.
    """

    id: str
    stage: Stage
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class WriterReport:
    """What a model's writing came to.

    Attributes:
        path: the file of the accepted samples; it is written only where there are any.
        accepted: samples that passed every check, in the order of their ids.
        rejected: the rest, in the order of their ids.
    """

    path: Path
    accepted: tuple[Sample, ...]
    rejected: tuple[Rejection, ...]


def build_with_writer(
    model: Model, plan: Plan, seed: str, folder: Path, *, concurrency: int, observer: Observer
) -> WriterReport:
    """Let a model write a set to `<folder>/<model>-<set>.jsonl`.

    Where the provider refuses or the user interrupts, what was accepted before is written.

    Args:
        model: who writes; closed at the end.
        plan: what the set is to be; its `size` is the number of commissions.
        seed: draws people and E_q; what the model makes of them differs from run to run.
        folder: where the file goes.
        concurrency: commissions in work at a time, at least 1.
        observer: is told of each commission; a rejected one counts as failed.

    Raises:
        PromptError: a prompt's file is broken.
        ProviderRefusedError: no call can succeed.
        ResultsError: the file cannot be written.
    """
    briefs = load_briefs()
    stem = f"{_UNSAFE.sub('--', model.name)}-{plan.name}"
    commissions = list(draw_commissions(plan, seed, stem))
    desk = _Desk(model, briefs)
    try:
        asyncio.run(desk.run(commissions, concurrency, observer))
    finally:
        report = _report(folder / f"{stem}.jsonl", desk)
        if report.accepted:
            write_native(report.path, report.accepted)
    return report


class _RejectedError(Exception):
    """A commission that is given up."""

    def __init__(self, stage: Stage, problems: Sequence[Problem]) -> None:
        self.stage: Stage = stage
        self.problems = tuple(problems)
        super().__init__(stage)


class _Desk:
    """Asks one model, and keeps what it wrote."""

    def __init__(self, model: Model, briefs: Briefs) -> None:
        self.model, self.briefs = model, briefs
        self.accepted: list[Sample] = []
        self.rejected: list[Rejection] = []

    async def run(
        self, commissions: Sequence[Commission], concurrency: int, observer: Observer
    ) -> None:
        observer.started(0, len(commissions))
        waiting = iter(commissions)
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(concurrency):
                    workers.create_task(self._work(waiting, observer))
        except ExceptionGroup as group:
            # Every worker meets the same refusal; one is enough to tell.
            ours = group.subgroup(PiiBenchError)
            raise (ours.exceptions[0] if ours else group) from None
        finally:
            await self.model.close()

    async def _work(self, waiting: Iterator[Commission], observer: Observer) -> None:
        for commission in waiting:
            try:
                described = await self._describe(commission)
                self.accepted.append(await self._ask(commission, described))
            except _RejectedError as given_up:
                self.rejected.append(Rejection(commission.id, given_up.stage, given_up.problems))
                observer.advanced(failed=True)
            else:
                observer.advanced(failed=False)

    async def _describe(self, commission: Commission) -> Sample:
        def judge(text: str) -> Judged:
            return _judge_description(commission, text, self._meta(commission))

        return await self._write(
            commission, "description", self.briefs.description(commission), judge
        )

    async def _ask(self, commission: Commission, described: Sample) -> Sample:
        def judge(text: str) -> Judged:
            related = tuple(Related(subject, fact.value) for subject, fact in commission.needs)
            sample = replace(described, query=text, related=related)
            return sample, [*sample_problems(sample), *query_length_problems(sample.id, text)]

        prompt = self.briefs.query(commission, described.description)
        return await self._write(commission, "query", prompt, judge)

    async def _write(
        self,
        commission: Commission,
        stage: Literal["description", "query"],
        prompt: str,
        judge: Callable[[str], Judged],
    ) -> Sample:
        opening = Message("user", prompt)
        messages: tuple[Message, ...] = (opening,)
        problems: list[Problem] = []
        for _ in range(TRIES):
            request = Request(commission.id, f"construction/{stage}", messages, _SAMPLING)
            try:
                completion = await self.model.complete(request)
            except CallError as error:
                failed = Problem(commission.id, "call-failed", str(error))
                raise _RejectedError(stage, [failed]) from error
            text = read_part(completion, stage)
            if text is None:
                problems = [answer_problem(commission.id, completion.finish, stage)]
            else:
                sample, problems = judge(text)
                if sample and not problems:
                    return sample
            # An empty turn is refused by some providers, and tells the model nothing.
            if completion.text.strip():
                repair = Message("user", self.briefs.repair(problems))
                messages = (opening, Message("assistant", completion.text), repair)
        raise _RejectedError(stage, problems)

    def _meta(self, commission: Commission) -> dict[str, object]:
        return {
            "register": commission.register,
            **({"relation": commission.relation.name} if commission.relation else {}),
            "scenario": commission.scenario,
            "asker": commission.asker or "other",
            "writer": {"model": self.model.name, "prompts": self.briefs.sha256},
        }


def _judge_description(commission: Commission, text: str, meta: dict[str, object]) -> Judged:
    placed = find_mentions(text, commission.profiles)
    problems = [
        *description_problems(commission.id, text, commission.chars),
        *value_problems(commission.id, placed, commission.profiles),
    ]
    if any(problem.rule == "value-missing" for problem in problems):
        # What has no place cannot be annotated, so the checker has nothing to look at.
        return None, problems
    subjects = annotate(placed, commission.profiles)
    sample = Sample(commission.id, text, None, subjects, (), meta)
    return sample, [*problems, *sample_problems(sample)]


def _report(path: Path, desk: _Desk) -> WriterReport:
    """Sort, and reject what another accepted sample says already."""
    accepted = sorted(desk.accepted, key=lambda sample: sample.id)
    twice: dict[str, list[Problem]] = {}
    for _, problem in duplicate_problems([accepted]):
        twice.setdefault(problem.sample_id, []).append(problem)
    rejected = [
        *desk.rejected,
        *(Rejection(name, "set", tuple(problems)) for name, problems in twice.items()),
    ]
    return WriterReport(
        path,
        tuple(sample for sample in accepted if sample.id not in twice),
        tuple(sorted(rejected, key=lambda rejection: rejection.id)),
    )
