"""What the answerer and the judges are asked, the systems that ask it, and what is said.

What a request's hash is made of is in the manifest of its run, so stored responses are
held against what would be asked today without the model that gave them. No response raises.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pii_bench.files import PROMPTS
from pii_bench.models.base import Completion, Draws, Finish, Message, Request
from pii_bench.prompting.parsing.answers import without_thought
from pii_bench.prompting.strategies import content_hash, load_template
from pii_bench.systems.base import SystemCard
from pii_bench.systems.prompted import recipient
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Model, ModelResponse, Sampling
    from pii_bench.prompting.strategies import Template

ANSWER: Final = "utility.answer"
JUDGE: Final = "utility.judge"
TEXTS: Final = "utility.texts"

MASKED_BY: Final = "masked_by"
"""The setting of an answerer's card that names the runs by which its texts were masked."""

LOWEST: Final = 1
HIGHEST: Final = 10

_RATING: Final = r"[ \t]*[=:][ \t]*(\d{1,2})(?:[ \t]*/[ \t]*10)?"
_RATINGS: Final = re.compile(
    rf"\b(?:answer[ \t]+)?A{_RATING}[\s,;]+(?:and[ \t]+)?(?:answer[ \t]+)?B{_RATING}(?![.,/]?\d)",
    re.IGNORECASE,
)
_BETTER: Final = re.compile(r"\bbetter[ \t]*[:=][ \t]*(?:version[ \t]+)?(A|B|tie)\b", re.IGNORECASE)
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """Two answers to one request: to the masked text, and to the text as it was."""

    masked: str
    unmasked: str


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two versions of one text: written anew, and masked as gold tells."""

    rewritten: str
    masked: str


@dataclass(frozen=True, slots=True)
class Questions:
    """What is asked about samples, one user message or more about each.

    Attributes:
        prompt: how results name it.
        template: its text.
        about: id of a sample to what fills the template for each of its messages, beside its
            query and (unless it is there) its description.
        settings: what the card says of it in addition.
    """

    prompt: str
    template: Template
    about: Mapping[str, Sequence[Mapping[str, str]]]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Hash of the prompt's text."""
        return content_hash(self.template.text)

    def messages(self, sample: Sample) -> tuple[Message, ...]:
        """Each begins a chat of its own; the sample is one of those in `about`."""
        common = {"description": sample.description, "query": sample.query or ""}
        return tuple(
            Message("user", self.template.render({**common, **values}))
            for values in self.about[sample.id]
        )


def answer_questions(texts: Mapping[str, str], masked_by: Sequence[str] = ()) -> Questions:
    """The query of each sample over a masked text, in one message.

    Args:
        texts: sample id to the description as the answerer sees it.
        masked_by: model, detection prompt and query-related prompt of the runs that it is
            masked by; of those that were written anew, model and prompt; empty where gold tells
            what is masked, or nothing is.
    """
    return Questions(
        ANSWER,
        _template("answer.txt"),
        {sample_id: [{"description": text}] for sample_id, text in texts.items()},
        {MASKED_BY: list(masked_by)} if masked_by else {},
    )


def judge_questions(pairs: Mapping[str, AnswerPair]) -> Questions:
    """Which ratings the answers to each sample get, asked in both orders.

    The first message shows the answer to the unmasked text as A, the second as B.
    """
    names = "answer_a", "answer_b"
    about = {key: _both_orders(names, pair.unmasked, pair.masked) for key, pair in pairs.items()}
    return Questions(JUDGE, _template("judge.txt", *names), about)


def text_questions(pairs: Mapping[str, TextPair], rewritten_by: Sequence[str]) -> Questions:
    """Which of two versions of each text is better, asked in both orders.

    The first message shows the rewritten text as A, the second as B.

    Args:
        pairs: sample id to the versions.
        rewritten_by: model and prompt of the run in which the texts were written.
    """
    names = "text_a", "text_b"
    about = {key: _both_orders(names, pair.rewritten, pair.masked) for key, pair in pairs.items()}
    return Questions(TEXTS, _template("texts.txt", *names), about, {MASKED_BY: list(rewritten_by)})


def _template(file: str, *fields: str) -> Template:
    return load_template(PROMPTS / "utility" / file, frozenset({"description", "query", *fields}))


def _both_orders(names: tuple[str, str], one: str, other: str) -> list[dict[str, str]]:
    a, b = names
    return [{a: one, b: other}, {a: other, b: one}]


@dataclass(frozen=True, slots=True)
class ChatSystem:
    """A chat model that is asked some questions about each sample (`System`)."""

    model: Model
    sampling: Sampling
    questions: Questions

    @property
    def card(self) -> SystemCard:
        """Its task is masking: that is what its responses tell about."""
        return SystemCard(
            model=self.model.name,
            prompt=self.questions.prompt,
            prompt_sha256=self.questions.sha256,
            task=Task.MASKING,
            oracle=False,
            settings={
                **self.model.identity,
                **asdict(self.sampling),
                **self.questions.settings,
            },
            unmasked_text_to=recipient(self.model),
        )

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """What the model is asked about a sample: one request per question."""
        return tuple(
            Request(sample.id, self.questions.prompt, (message,), self.sampling, draw=draw)
            for draw, message in enumerate(self.questions.messages(sample))
        )

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the card's model and settings, and the messages."""
        return request_hash(self.card, self.questions.messages(sample))

    async def respond(self, sample: Sample) -> ModelResponse:
        """Ask one question after the other; several answers are draws, in their order.

        Raises:
            CallError: a question got no answer: the sample is asked again whole.
            ProviderRefusedError: no question about any sample will get an answer.
        """
        answers: list[Completion] = [
            await self.model.complete(request) for request in self.requests(sample)
        ]
        return answers[0] if len(answers) == 1 else Draws(tuple(answers))

    async def close(self) -> None:
        """Close the model; systems of one run share it, closing twice is harmless."""
        await self.model.close()


def request_hash(card: SystemCard, messages: Sequence[Message]) -> str:
    """The hash under which the response to some messages is stored.

    Args:
        card: of the system that asks, as it is or as a manifest keeps it.
        messages: of its questions about one sample.
    """
    identity = {
        "model": card.model,
        "settings": dict(card.settings),
        "messages": [asdict(message) for message in messages],
    }
    canonical = json.dumps(identity, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


class Preference(StrEnum):
    """What a judge says of a rewritten and a masked text, asked in both orders."""

    WIN = "win"
    """The rewritten one is better, in both."""

    LOSS = "loss"
    """The masked one is, in both."""

    TIE = "tie"
    """Neither, in both."""

    FLIP = "flip"
    """The orders disagree."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """What a judge gives two answers, each the mean over both orders, 1 to 10."""

    masked: float
    unmasked: float

    @property
    def utility(self) -> float:
        """The share that the masked answer keeps of what the unmasked one is worth, 0 to 1.

        (masked - 1) / (unmasked - 1), for 1 is of no use; 1 where the masked answer is rated
        as high or higher. So an answer compared with itself has 1, as in the paper's figures,
        however good it is.
        """
        if self.masked >= self.unmasked:
            return 1.0
        return (self.masked - LOWEST) / (self.unmasked - LOWEST)


def read_answer(response: ModelResponse) -> str | None:
    """What the answerer said, without thought and white space around it.

    An answer that was cut off at the longest one allowed is an answer, and so is one that
    says that it cannot be given: those are what masking may lead to.

    Returns:
        None for one that is blank or that the provider filtered or refused, and for draws.
    """
    if isinstance(response, Draws) or response.finish in {Finish.FILTER, Finish.REFUSAL}:
        return None
    said = without_thought(response.text)
    return (said or "").strip() or None


def read_verdict(response: ModelResponse) -> Ratings | None:
    """The ratings of both orders, the first with the unmasked answer as A.

    Read is the last `A=..., B=...` of each, with two whole numbers from 1 to 10; `:` for `=`,
    `/10` and emphasis are let pass.

    Returns:
        None unless both orders have one.
    """
    both = _of_both(response, _ratings)
    if both is None:
        return None
    (unmasked, masked), (masked_first, unmasked_last) = both
    return Ratings(masked=(masked + masked_first) / 2, unmasked=(unmasked + unmasked_last) / 2)


def read_preference(response: ModelResponse) -> Preference | None:
    """Which version a judge prefers in both orders, the first with the rewritten text as A.

    Read is the last `Better: A`, `B` or `tie` of each; emphasis is let pass.

    Returns:
        None unless both orders have one.
    """
    match _of_both(response, _better):
        case None:
            return None
        case ("A", "B"):
            return Preference.WIN
        case ("B", "A"):
            return Preference.LOSS
        case ("TIE", "TIE"):
            return Preference.TIE
        case _:
            return Preference.FLIP


def _of_both(
    response: ModelResponse, read: Callable[[str], _Read | None]
) -> tuple[_Read, _Read] | None:
    """What is read of what was said to each of two orders; None unless both say it."""
    if isinstance(response, Completion) or len(response.completions) != 2:
        return None
    said = (without_thought(each.text) or "" for each in response.completions)
    first, second = (read(re.sub(r"[*_`]+", "", each)) for each in said)
    return None if first is None or second is None else (first, second)


def _better(said: str) -> str | None:
    """`A`, `B` or `TIE`."""
    found = _BETTER.findall(said)
    return found[-1].upper() if found else None


def _ratings(said: str) -> tuple[int, int] | None:
    found = _RATINGS.findall(said)
    if not found:
        return None
    a, b = map(int, found[-1])
    return (a, b) if all(LOWEST <= rating <= HIGHEST for rating in (a, b)) else None
