"""The interface of systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import Completion, Draws, Finish
from pii_bench.systems.predictions import Prediction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.datasets.sample import Sample
    from pii_bench.prompting.strategies import Output
    from pii_bench.tasks import Task

THIS_MACHINE: Final = "this machine"
UNKNOWN_RECIPIENT: Final = "unknown"

Response: TypeAlias = Completion | Draws | Prediction
"""What is stored for an answered sample: a chat model's output, or a prediction."""

GOLD: Final = "gold"
"""The name of a detector or relevance system that copies the gold annotation."""


@dataclass(frozen=True, slots=True)
class SystemCard:
    """The description of a system that is stored with its runs.

    Attributes:
        model: `provider/name`, or the name of the detector.
        prompt: `detection`, the name of a strategy, or `system` if there is no prompt.
        prompt_sha256: hash of the prompt's texts; empty without a prompt.
        oracle: whether it sees gold annotations.
        settings: everything else that changes its answers (endpoint, weights, sampling).
        names_subjects: whether its detection assigns entities to subjects. If not, metrics that
            depend on subjects are hidden.
        unmasked_text_to: recipient of the unmasked texts, `provider (URL)`, or `THIS_MACHINE`.
        output: the form of its responses, which decides how they are parsed.
        taxonomy: the taxonomy of its detection labels (`pii_bench.taxonomy`); None for the
            seven types.
    """

    model: str
    prompt: str
    prompt_sha256: str
    task: Task
    oracle: bool
    settings: Mapping[str, Any]
    names_subjects: bool = True
    unmasked_text_to: str = UNKNOWN_RECIPIENT
    output: Output = "text"
    taxonomy: str | None = None


@runtime_checkable
class System(Protocol):
    """An object that turns a sample into a prediction.

    `respond` returns what is stored: a prediction, or the raw output of a chat model, which
    `pii_bench.runs.responses.read_response` parses, so that a better parser needs no new calls.
    """

    @property
    def card(self) -> SystemCard:
        """The description of the system."""

    def request_hash(self, sample: Sample) -> str:
        """Return the SHA-256 of everything that the response to a sample depends on.

        An answer is stored with it, and asked again when it changes.
        """

    async def respond(self, sample: Sample) -> Response:
        """Answer one sample.

        A prediction has the fields that the task asks for and the status `ok`. Only query-related
        systems and detection in the labels of a taxonomy may return `Draws`; masking has no raw
        output, only a prediction.

        Raises:
            CallError: this sample got no answer; a later run asks again.
            ProviderRefusedError: no sample will get an answer.
        """

    async def close(self) -> None:
        """Release the system's resources; it may be used again, in another event loop."""


_FAULT: Final = "error: the plug-in "


class FaultError(ValueError):
    """A wrong result of foreign code; the message quotes no text of a sample."""


def fault(what: str) -> Completion:
    """Return the answer to store for a sample; `what` is a fact without any text of the sample."""
    return Completion(f"{_FAULT}{what}", Finish.STOP)


def fault_of(response: object) -> str | None:
    """Return the error that a plug-in made instead of answering; None if it answered."""
    if isinstance(response, Completion) and response.text.startswith(_FAULT):
        return response.text.removeprefix("error: ")
    return None


async def close_all(systems: Iterable[System]) -> None:
    """Release the resources of systems, one after another."""
    for system in systems:
        await system.close()


def require_local(systems: Iterable[System]) -> None:
    """Refuse systems that send unmasked text to another machine.

    This trusts the cards: a local server may still forward the text (a gateway or a tunnel).

    Raises:
        PiiBenchError: a card names another recipient, or none.
    """
    for system in systems:
        card = system.card
        if card.unmasked_text_to != THIS_MACHINE:
            raise PiiBenchError(
                f"--local-only: system {card.model!r} ({card.prompt}) {sending_of(card)}"
            )


def sending_of(card: SystemCard) -> str:
    """Say where a system that is not of this machine sends unmasked text, as a predicate."""
    if card.unmasked_text_to == UNKNOWN_RECIPIENT:
        return (
            "does not say where it sends unmasked text; if nowhere, set its card's "
            f"unmasked_text_to to {THIS_MACHINE!r}"
        )
    return f"sends unmasked text to {card.unmasked_text_to}, which is not this machine"
