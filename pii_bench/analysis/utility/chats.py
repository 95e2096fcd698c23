"""What the answerer and the judge are asked, and the systems that ask it.

What a request's hash is made of is in the manifest of its run, so stored responses are
held against what would be asked today without the model that gave them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from pii_bench.files import PROMPTS
from pii_bench.models.base import Draws, Message, Request
from pii_bench.prompting.strategies import content_hash, load_template
from pii_bench.systems.base import SystemCard
from pii_bench.systems.prompted import recipient
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Completion, Model, ModelResponse, Sampling
    from pii_bench.prompting.strategies import Template

ANSWER: Final = "utility.answer"
JUDGE: Final = "utility.judge"
TEXTS: Final = "utility.texts"

MASKED_BY: Final = "masked_by"
"""The setting of an answerer's card that names the runs by which its texts were masked."""

_FOLDER: Final = PROMPTS / "utility"
_ANSWER_FIELDS: Final = frozenset({"description", "query"})
_JUDGE_FIELDS: Final = _ANSWER_FIELDS | {"answer_a", "answer_b"}
_TEXTS_FIELDS: Final = _ANSWER_FIELDS | {"text_a", "text_b"}


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


class Questions(Protocol):
    """What is asked about a sample, one user message or more."""

    @property
    def prompt(self) -> str:
        """How results name it."""
        ...

    @property
    def sha256(self) -> str:
        """Hash of the prompt's text."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the card says of it in addition."""
        ...

    @property
    def about(self) -> Collection[str]:
        """Ids of the samples that there is something to ask about."""
        ...

    def messages(self, sample: Sample) -> tuple[Message, ...]:
        """Each begins a chat of its own; the sample is one of those."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerQuestions:
    """The query of a sample over a masked text (`Questions`).

    Attributes:
        texts: sample id to the description as the answerer sees it.
        masked_by: model, detection prompt and query-related prompt of the runs that it is
            masked by; of those that were written anew, model and prompt; empty where gold tells
            what is masked, or nothing is.
        template: the prompt.
    """

    texts: Mapping[str, str]
    masked_by: tuple[str, ...] = ()
    template: Template = field(
        default_factory=lambda: load_template(_FOLDER / "answer.txt", _ANSWER_FIELDS)
    )

    @property
    def prompt(self) -> str:
        """`ANSWER`."""
        return ANSWER

    @property
    def sha256(self) -> str:
        """Hash of the prompt's text."""
        return content_hash(self.template.text)

    @property
    def settings(self) -> Mapping[str, Any]:
        """`MASKED_BY`, where there are such runs."""
        return {MASKED_BY: list(self.masked_by)} if self.masked_by else {}

    @property
    def about(self) -> Collection[str]:
        """Those that have a text."""
        return self.texts.keys()

    def messages(self, sample: Sample) -> tuple[Message, ...]:
        """One message."""
        values = {"description": self.texts[sample.id], "query": sample.query or ""}
        return (Message("user", self.template.render(values)),)


@dataclass(frozen=True, slots=True)
class JudgeQuestions:
    """Which ratings two answers get, asked in both orders (`Questions`).

    The first message shows the answer to the unmasked text as A, the second as B.

    Attributes:
        pairs: sample id to the answers.
        template: the prompt.
    """

    pairs: Mapping[str, AnswerPair]
    template: Template = field(
        default_factory=lambda: load_template(_FOLDER / "judge.txt", _JUDGE_FIELDS)
    )

    @property
    def prompt(self) -> str:
        """`JUDGE`."""
        return JUDGE

    @property
    def sha256(self) -> str:
        """Hash of the prompt's text."""
        return content_hash(self.template.text)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Nothing more."""
        return {}

    @property
    def about(self) -> Collection[str]:
        """Those that have answers."""
        return self.pairs.keys()

    def messages(self, sample: Sample) -> tuple[Message, ...]:
        """Two messages, one for each order."""
        pair = self.pairs[sample.id]
        common = {"description": sample.description, "query": sample.query or ""}
        orders = (pair.unmasked, pair.masked), (pair.masked, pair.unmasked)
        return tuple(
            Message("user", self.template.render({**common, "answer_a": a, "answer_b": b}))
            for a, b in orders
        )


@dataclass(frozen=True, slots=True)
class TextQuestions:
    """Which of two versions of a text is better, asked in both orders (`Questions`).

    The first message shows the rewritten text as A, the second as B.

    Attributes:
        pairs: sample id to the versions.
        rewritten_by: model and prompt of the run in which the texts were written.
        template: the prompt.
    """

    pairs: Mapping[str, TextPair]
    rewritten_by: tuple[str, ...]
    template: Template = field(
        default_factory=lambda: load_template(_FOLDER / "texts.txt", _TEXTS_FIELDS)
    )

    @property
    def prompt(self) -> str:
        """`TEXTS`."""
        return TEXTS

    @property
    def sha256(self) -> str:
        """Hash of the prompt's text."""
        return content_hash(self.template.text)

    @property
    def settings(self) -> Mapping[str, Any]:
        """`MASKED_BY`."""
        return {MASKED_BY: list(self.rewritten_by)}

    @property
    def about(self) -> Collection[str]:
        """Those that have both versions."""
        return self.pairs.keys()

    def messages(self, sample: Sample) -> tuple[Message, ...]:
        """Two messages, one for each order."""
        pair = self.pairs[sample.id]
        common = {"description": sample.description, "query": sample.query or ""}
        orders = (pair.rewritten, pair.masked), (pair.masked, pair.rewritten)
        return tuple(
            Message("user", self.template.render({**common, "text_a": a, "text_b": b}))
            for a, b in orders
        )


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
