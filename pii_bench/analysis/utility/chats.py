"""Prompts for the answerer and the judges, the system that sends them, and parsing of replies.

A manifest stores everything that enters a request's hash, so stored responses can be compared
with the current requests without the model. Unparsable replies give None, never an exception.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pii_bench.files import PROMPTS, sha256_of_value
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
"""Setting of an answerer's card that names the runs that masked its texts."""

LOWEST: Final = 1
HIGHEST: Final = 10

_RATING: Final = r"[ \t]*[=:][ \t]*(\d{1,2})(?:[ \t]*/[ \t]*10)?"
_RATINGS: Final = re.compile(
    rf"\b(?:answer[ \t]+)?A{_RATING}[\s,;]+(?:and[ \t]+)?(?:answer[ \t]+)?B{_RATING}(?![.,/]?\d)",
    re.IGNORECASE,
)
_BETTER: Final = re.compile(r"\bbetter[ \t]*[:=][ \t]*(?:version[ \t]+)?(A|B|tie)\b", re.IGNORECASE)
_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """The answers to the masked and to the unmasked text of a sample."""

    masked: str
    unmasked: str


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two versions of a text: rewritten by a model, and masked according to gold."""

    rewritten: str
    masked: str


@dataclass(frozen=True, slots=True)
class Questions:
    """A prompt and the values that fill it: one user message or more per sample.

    Attributes:
        prompt: its name in results.
        fields: sample id to the template fields of each of its messages, in addition to its
            query and, unless given here, its description.
        settings: additional settings of the card.
    """

    prompt: str
    template: Template
    fields: Mapping[str, Sequence[Mapping[str, str]]]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Hash of the prompt's text."""
        return content_hash(self.template.text)

    def messages(self, sample: Sample) -> tuple[Message, ...]:
        """Return the messages about a sample of `fields`, each the start of its own chat."""
        common = {"description": sample.description, "query": sample.query or ""}
        return tuple(
            Message("user", self.template.render({**common, **values}))
            for values in self.fields[sample.id]
        )


def answer_questions(texts: Mapping[str, str], masked_by: Sequence[str] = ()) -> Questions:
    """Ask the query of each sample about a text, in one message.

    Args:
        texts: sample id to the description that the answerer sees.
        masked_by: model, detection prompt and query-related prompt of the runs that masked the
            texts; model and prompt if a model rewrote them; empty if gold decided or nothing
            is masked.
    """
    return Questions(
        ANSWER,
        _template("answer.txt"),
        {sample_id: [{"description": text}] for sample_id, text in texts.items()},
        {MASKED_BY: list(masked_by)} if masked_by else {},
    )


def judge_questions(pairs: Mapping[str, AnswerPair]) -> Questions:
    """Ask for ratings of the two answers to each sample, in both orders.

    The first message shows the answer to the unmasked text as A, the second as B.
    """
    fields = {
        sample_id: [
            {"answer_a": pair.unmasked, "answer_b": pair.masked},
            {"answer_a": pair.masked, "answer_b": pair.unmasked},
        ]
        for sample_id, pair in pairs.items()
    }
    return Questions(JUDGE, _template("judge.txt", "answer_a", "answer_b"), fields)


def text_questions(pairs: Mapping[str, TextPair], rewritten_by: Sequence[str]) -> Questions:
    """Ask which of two versions of each text is better, in both orders.

    The first message shows the rewritten text as A, the second as B. `rewritten_by` is the model
    and prompt of the run that rewrote the texts.
    """
    fields = {
        sample_id: [
            {"text_a": pair.rewritten, "text_b": pair.masked},
            {"text_a": pair.masked, "text_b": pair.rewritten},
        ]
        for sample_id, pair in pairs.items()
    }
    template = _template("texts.txt", "text_a", "text_b")
    return Questions(TEXTS, template, fields, {MASKED_BY: [*rewritten_by]})


def _template(file: str, *fields: str) -> Template:
    return load_template(PROMPTS / "utility" / file, frozenset({"description", "query", *fields}))


@dataclass(frozen=True, slots=True)
class ChatSystem:
    """A System that asks a chat model the questions about each sample."""

    model: Model
    sampling: Sampling
    questions: Questions

    @property
    def card(self) -> SystemCard:
        """The card; its task is masking, which the responses evaluate."""
        return SystemCard(
            model=self.model.name,
            prompt=self.questions.prompt,
            prompt_sha256=self.questions.sha256,
            task=Task.MASKING,
            oracle=False,
            settings={**self.model.identity, **asdict(self.sampling), **self.questions.settings},
            unmasked_text_to=recipient(self.model),
        )

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the card's model and settings, and the messages."""
        return request_hash(self.card, self.questions.messages(sample))

    async def respond(self, sample: Sample) -> ModelResponse:
        """Ask the questions one by one; several completions are returned as Draws, in order.

        Raises:
            CallError: a question got no answer; all questions about the sample are asked again.
            ProviderRefusedError: the provider refuses every request.
        """
        answers: list[Completion] = []
        for draw, message in enumerate(self.questions.messages(sample)):
            request = Request(
                sample.id, self.questions.prompt, (message,), self.sampling, draw=draw
            )
            answers.append(await self.model.complete(request))
        return answers[0] if len(answers) == 1 else Draws(tuple(answers))

    async def close(self) -> None:
        """Close the model. Systems of one run may share it: closing it twice is harmless."""
        await self.model.close()


def request_hash(card: SystemCard, messages: Sequence[Message]) -> str:
    """Return the hash under which the response to all messages about a sample is stored."""
    identity = {
        "model": card.model,
        "settings": dict(card.settings),
        "messages": [asdict(message) for message in messages],
    }
    return sha256_of_value(identity)


class Preference(StrEnum):
    """A judge's choice between a rewritten and a masked text, asked in both orders."""

    WIN = "win"
    """The rewritten text is better in both orders."""

    LOSS = "loss"
    """The masked text is better in both orders."""

    TIE = "tie"
    """Neither is better in either order."""

    FLIP = "flip"
    """The orders disagree."""


_PREFERENCES: Final = {
    ("A", "B"): Preference.WIN,
    ("B", "A"): Preference.LOSS,
    ("TIE", "TIE"): Preference.TIE,
}


@dataclass(frozen=True, slots=True)
class Ratings:
    """A judge's ratings of two answers, 1 to 10, each the mean over both orders."""

    masked: float
    unmasked: float

    @property
    def utility(self) -> float:
        """The share of the unmasked answer's rating that the masked answer keeps, 0 to 1.

        (masked - 1) / (unmasked - 1), since a rating of 1 means useless. It is 1 where the
        masked answer is rated as high or higher, so an answer compared with itself has 1, as in
        the paper, however good it is.
        """
        if self.masked >= self.unmasked:
            return 1.0
        return (self.masked - LOWEST) / (self.unmasked - LOWEST)


def read_answer(response: ModelResponse) -> str | None:
    """Return the answer without thought and surrounding white space.

    None if it is blank, filtered or refused by the provider, and for draws. Truncated answers and
    answers that decline in words count: masking may cause them.
    """
    if isinstance(response, Draws) or response.finish in {Finish.FILTER, Finish.REFUSAL}:
        return None
    return (without_thought(response.text) or "").strip() or None


def read_verdict(response: ModelResponse) -> Ratings | None:
    """Parse ratings in both orders; the first order has the unmasked answer as A.

    The last `A=..., B=...` of each completion counts, with whole numbers from 1 to 10. `:` for
    `=`, `/10` and emphasis are accepted. None unless both orders have ratings.
    """
    both = _parse_both(response, _parse_ratings)
    if both is None:
        return None
    (unmasked_as_a, masked_as_b), (masked_as_a, unmasked_as_b) = both
    return Ratings(
        masked=(masked_as_a + masked_as_b) / 2, unmasked=(unmasked_as_a + unmasked_as_b) / 2
    )


def read_preference(response: ModelResponse) -> Preference | None:
    """Parse the preferred version in both orders; the first has the rewritten text as A.

    The last `Better: A`, `B` or `tie` of each completion counts. Emphasis is accepted. None unless
    both orders have one.
    """
    both = _parse_both(response, _parse_better)
    return None if both is None else _PREFERENCES.get(both, Preference.FLIP)


def _parse_both(
    response: ModelResponse, parse: Callable[[str], _Parsed | None]
) -> tuple[_Parsed, _Parsed] | None:
    """Parse the completions for both orders; None unless both can be parsed."""
    if isinstance(response, Completion) or len(response.completions) != 2:
        return None
    parsed = []
    for completion in response.completions:
        verdict = parse(re.sub(r"[*_`]+", "", without_thought(completion.text) or ""))
        if verdict is None:
            return None
        parsed.append(verdict)
    return parsed[0], parsed[1]


def _parse_better(text: str) -> str | None:
    """Return `A`, `B` or `TIE`."""
    matches = _BETTER.findall(text)
    return matches[-1].upper() if matches else None


def _parse_ratings(text: str) -> tuple[int, int] | None:
    matches = _RATINGS.findall(text)
    if not matches:
        return None
    a, b = int(matches[-1][0]), int(matches[-1][1])
    return (a, b) if LOWEST <= a <= HIGHEST and LOWEST <= b <= HIGHEST else None
