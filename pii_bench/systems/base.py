"""The interface of everything that can be tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import Completion, Draws
from pii_bench.systems.predictions import Prediction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pii_bench.datasets.sample import Sample
    from pii_bench.prompting.strategies import Output
    from pii_bench.tasks import Task

THIS_MACHINE: Final = "this machine"
UNKNOWN_RECIPIENT: Final = "unknown"

Response: TypeAlias = Completion | Draws | Prediction
"""What is stored of a sample that was answered: what a chat model wrote, or a prediction."""

GOLD: Final = "gold"
"""The name of a part that is told gold."""


@dataclass(frozen=True, slots=True)
class SystemCard:
    """What a system is, as runs and signatures record it.

    Attributes:
        model: `provider/name`, or what its parts are called.
        prompt: `detection`, the name of a strategy, or `system` where there is no prompt.
        prompt_sha256: hash of the prompt's texts; empty where there are none.
        task: the task that it answers.
        oracle: whether it is told gold.
        settings: all else that changes its answers (endpoint, weights, sampling).
        names_subjects: whether its detection tells whose the entities are. Where it does
            not, no figure that depends on subjects is shown.
        unmasked_text_to: recipient of the unmasked texts, `provider (URL)`, or `THIS_MACHINE`.
        output: the form of its responses, which tells how they are read.
        taxonomy: whose labels its detection answers with (`pii_bench.taxonomy`); None for the
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
    """Turns a sample into a prediction.

    `respond` brings what is stored: the prediction itself; or what a chat model wrote, of which
    `pii_bench.runs.responses.read_response` makes the prediction, so that a better parser never
    costs a call.
    """

    @property
    def card(self) -> SystemCard:
        """What it is."""

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 of everything that the response to a sample depends on."""

    async def respond(self, sample: Sample) -> Response:
        """Answer one sample.

        A prediction has the part that the task asks for, and the status `ok`. Several draws are
        for query-related alone, and for detection in the labels of a taxonomy.

        Raises:
            CallError: this sample got no answer; it may be asked again later.
            ProviderRefusedError: no sample will get an answer.
        """

    async def close(self) -> None:
        """Release what it holds."""


def require_local(systems: Iterable[System]) -> None:
    """Refuse systems that send texts as they are away from this machine.

    Cards are believed. What a server on this machine does with a text cannot be seen from
    here: a gateway, a tunnel or a runtime may pass it on.

    Raises:
        PiiBenchError: a system whose card names another recipient, or none.
    """
    for system in systems:
        card = system.card
        if card.unmasked_text_to == UNKNOWN_RECIPIENT:
            raise PiiBenchError(
                f"--local-only: system {card.model!r} ({card.prompt}) does not say who is sent "
                f"unmasked text; if none is, its card's unmasked_text_to must be {THIS_MACHINE!r}"
            )
        if card.unmasked_text_to != THIS_MACHINE:
            raise PiiBenchError(
                f"--local-only: system {card.model!r} ({card.prompt}) sends unmasked text to "
                f"{card.unmasked_text_to}, which is not this machine"
            )
