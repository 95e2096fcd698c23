"""Writing texts with a chat model, from commissions; its texts are accepted like any other.

Responses go through the runner's store: every answer is recorded, and a run can be resumed.
Refused texts are returned to the model with the reasons, at most twice.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.construction.accept import accept
from pii_bench.construction.commissions import commission, format_commission
from pii_bench.construction.marked import parse_marked
from pii_bench.construction.pools import load_voices
from pii_bench.construction.recorded import Recorded
from pii_bench.datasets.sample import Sample, write_native
from pii_bench.errors import InputFileError
from pii_bench.files import PROMPTS, encodable
from pii_bench.models.base import Completion, Message, Request, Sampling
from pii_bench.prompting.parsing.answers import without_thought
from pii_bench.prompting.strategies import content_hash, load_template
from pii_bench.runs.run import run_system
from pii_bench.runs.store import RunFiles, RunStore, read_responses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.construction.commissions import Commission, Order
    from pii_bench.models.base import Model
    from pii_bench.prompting.strategies import Template
    from pii_bench.runs.progress import Progress

ROUNDS: Final = 3
"""Maximum number of answers to a commission."""

# Not 0: a second answer to the same commission should differ from the first.
_SAMPLING: Final = Sampling(temperature=0.8, max_tokens=4096)
_FENCE: Final = re.compile(r"^[ \t]*`{3,}\w*[ \t]*$\n?", re.MULTILINE)
_START: Final = re.compile(r"^=== ", re.MULTILINE)
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class WriterReport:
    """The result of writing with a model.

    Attributes:
        path: dataset file of the accepted texts.
        accepted: ids of the accepted texts, in order.
        refused: id of each other commission to the problems of its last answer; empty if the
            call failed.
    """

    path: Path
    accepted: tuple[str, ...]
    refused: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Writer:
    """Asks a model for the texts of commissions; a sample represents each commission.

    `refused` are the earlier answers by id, each with its problems.
    """

    model: Model
    brief: Template
    commissions: Mapping[str, Commission]
    refused: Mapping[str, tuple[Message, ...]]

    def request(self, sample_id: str) -> Request:
        """Return the request: the commission, then each earlier answer with its problems."""
        voices = load_voices()
        values = {
            "id": sample_id,
            "commission": format_commission(self.commissions[sample_id]).strip(),
            "registers": ", ".join(voices.registers),
            "domains": ", ".join(voices.domains),
        }
        brief = Message("user", self.brief.render(values))
        messages = (brief, *self.refused.get(sample_id, ()))
        return Request(sample_id, "writer", messages, _SAMPLING)

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over model, identity, brief and messages."""
        request = self.request(sample.id)
        identity = {
            "model": self.model.name,
            "identity": dict(self.model.identity),
            "messages": [asdict(message) for message in request.messages],
            "sampling": asdict(request.sampling),
        }
        return content_hash(json.dumps(identity, sort_keys=True))

    async def respond(self, sample: Sample) -> Completion:
        """Ask the model."""
        return await self.model.complete(self.request(sample.id))


async def write_with_model(
    model: Model,
    order: Order,
    limit: int,
    folder: Path,
    *,
    concurrency: int,
    progress: Progress,
) -> WriterReport:
    """Write the first `limit` descriptions of a set with a model, and close the model.

    In the folder, `<model>/answers` has every answer, `<model>/texts` the accepted texts as
    written, and `<model>/<set>.jsonl` the same as a dataset.

    Raises:
        PromptError: a prompt file is invalid.
        ProviderRefusedError: no call can succeed; earlier answers are saved.
        ResultsError: a file cannot be written.
    """
    own = folder / _UNSAFE.sub("--", model.name)
    asked = [commission(order, number) for number in range(1, limit + 1)]
    commissions = {each.id: each for each in asked}
    keys = frozenset({"id", "commission", "registers", "domains"})
    brief = load_template(PROMPTS / "construction/writer.txt", keys)
    repair = load_template(PROMPTS / "construction/repair.txt", frozenset({"problems"}))
    refused: dict[str, tuple[Message, ...]] = {}
    reasons: dict[str, tuple[str, ...]] = dict.fromkeys(commissions, ())
    try:
        for number in range(1, ROUNDS + 1):
            writer = Writer(model, brief, commissions, dict(refused))
            answers = await _ask(writer, sorted(reasons), own, number, concurrency, progress)
            for sample_id, answer in answers.items():
                found = _accept(sample_id, answer, own / "texts")
                if not found:
                    del reasons[sample_id]
                    continue
                reasons[sample_id] = found
                # An empty turn is refused by some providers, and tells the model nothing.
                if answer.strip():
                    problems = "\n".join(f"- {reason}" for reason in found)
                    refused[sample_id] = (
                        *refused.get(sample_id, ()),
                        Message("assistant", answer),
                        Message("user", repair.render({"problems": problems})),
                    )
            if not reasons:
                break
    finally:
        await model.close()
        path = own / f"{order.name}.jsonl"
        recorded = Recorded.load(own / "texts")
        samples = recorded.samples(order.name)
        if samples:
            write_native(path, samples)
    return WriterReport(path, tuple(sorted(recorded.sets[order.name])), reasons)


async def _ask(
    writer: Writer,
    sample_ids: Sequence[str],
    folder: Path,
    number: int,
    concurrency: int,
    progress: Progress,
) -> dict[str, str]:
    """The texts of a round's answers by id; a call that failed has none."""
    samples = [Sample(sample_id, "", None, (), ()) for sample_id in sample_ids]
    requests = {sample.id: writer.request_hash(sample) for sample in samples}
    files = RunFiles.at(folder, "answers", f"round-{number}", sample_ids[0].rpartition("-")[0])
    with RunStore(files, requests) as store:
        await run_system(writer, samples, store, concurrency=concurrency, progress=progress)
    return {
        record.id: completion.text
        for record in read_responses(files.responses)
        for completion in record.completions
        if record.id in requests
    }


def _accept(sample_id: str, answer: str, folder: Path) -> tuple[str, ...]:
    """Why an answer is refused; nothing where it was recorded."""
    said = _FENCE.sub("", without_thought(encodable(answer)) or "")
    start = _START.search(said)
    if start is None:
        return (f"the answer has no line '=== {sample_id}'",)
    try:
        written = parse_marked(said[start.start() :].strip(), Path("answer"))
    except InputFileError as error:
        return (str(error),)
    if [marked.id for marked in written] != [sample_id]:
        return (f"the answer must hold one text, {sample_id}",)
    (verdict,) = accept(written, folder)
    return tuple(f"{problem.rule}: {problem.reason}" for problem in verdict.problems)
