"""Systems by name: builds what `--model` names.

A name is resolved in this order: `python:MODULE:FACTORY`, `DETECTOR` or `DETECTOR+RELEVANCE`, the
encoder, a chat model, an entry point. So no installed package can change the meaning of a
built-in name. Modules that only one kind of system needs are imported on demand.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.models.calls import CallPolicy
from pii_bench.models.catalog import (
    REPLAY,
    TIMEOUT,
    ModelOptions,
    check_model,
    model_names,
    resolve,
)
from pii_bench.systems import BALANCED, ENCODER
from pii_bench.systems.base import GOLD
from pii_bench.systems.detectors import DETECTORS, detector_names
from pii_bench.systems.plug_ins import ENTRY_POINTS, PYTHON, load_plug_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.prompting.labelled import Shots
    from pii_bench.prompting.strategies import Output
    from pii_bench.systems.base import System

Kind = Literal["python", "composed", "encoder", "prompted", "entry point"]
"""The kinds of system that `--model` can name."""

DEFAULT_STRATEGY: Final = "naive"


@dataclass(frozen=True, slots=True)
class SystemOptions:
    """The user's options besides the name; None for the default.

    Attributes:
        temperature: temperature of a chat model; `default` to send none; None for 0
            (`VOTE_TEMPERATURE` for strategies that vote), or to send none if the model accepts
            none.
        output: whether the prompt or a schema sets the form of a chat model's answers.
        label_map: file that replaces a detector's label map.
        keep: how much the encoder leaves readable, one of `KEEP`.
        taxonomy: taxonomy whose labels the strategy `json` asks for.
        chunk: characters per request of `json`; None for whole texts.
    """

    strategy: str | None = None
    max_tokens: int | None = None
    temperature: Literal["default"] | float | None = None
    output: Output = "text"
    votes: int | None = None
    model: ModelOptions = field(default_factory=ModelOptions)
    calls: CallPolicy = field(default_factory=CallPolicy)
    label_map: Path | None = None
    keep: str | None = None
    taxonomy: str | None = None
    shots: Shots | None = None
    chunk: int | None = None

    @property
    def label_options(self) -> dict[str, object]:
        """The options that only detection in the labels of a taxonomy uses."""
        return {"--taxonomy": self.taxonomy, "--shots": self.shots, "--chunk": self.chunk}


def build_systems(name: str, options: SystemOptions) -> tuple[System, ...]:
    """Build the systems that `--model` names, at most one per task.

    Raises:
        UnknownNameError: the name is unknown.
        MissingExtraError: a dependency of the system is not installed.
        MissingKeyError: the provider's API key is not set.
        InputFileError: a file of the system is missing or broken.
        PiiBenchError: an option does not apply to the system, or a plug-in returns no systems.
    """
    match _kind(name):
        case "python":
            _refuse_all_options(name, options)
            return load_plug_in(name, name.removeprefix(f"{PYTHON}:"))
        case "composed":
            from pii_bench.systems.composed import build_composed

            _refuse_all_options(name, replace(options, label_map=None))
            return build_composed(name, options.label_map)
        case "encoder":
            from pii_bench.systems.encoder import encoder_systems
            from pii_bench.systems.encoder.reader import SHIPPED

            _refuse_all_options(name, replace(options, keep=None))
            folder = name.partition(":")[2]
            return encoder_systems(Path(folder) if folder else SHIPPED, options.keep or BALANCED)
        case "prompted":
            from pii_bench.systems.prompted import build_prompted

            return build_prompted(name, options)
        case "entry point":
            _refuse_all_options(name, options)
            return load_plug_in(name, entry_points(group=ENTRY_POINTS)[name].value)
        case None:
            raise _unknown_name(name)


def _kind(name: str) -> Kind | None:
    """Return the kind of system of a name; None if the name is unknown."""
    head = name.partition("+")[0].partition(":")[0]
    if name.startswith(f"{PYTHON}:"):
        return "python"
    if head in {*DETECTORS, GOLD}:
        return "composed"
    if name.partition(":")[0] == ENCODER:
        return "encoder"
    if head not in {PYTHON, ENCODER} and ("/" in resolve(name) or name.startswith(f"{REPLAY}:")):
        return "prompted"
    return "entry point" if name in entry_points(group=ENTRY_POINTS).names else None


def is_prompted(name: str) -> bool:
    """Return True if the name is that of a chat model, which needs a prompting strategy."""
    return _kind(name) == "prompted"


def is_system(name: str) -> bool:
    """Return True if `--model` takes the name."""
    return _kind(name) is not None


def check_name(name: str) -> None:
    """Check a name without loading anything.

    Raises:
        UnknownNameError: the name is unknown.
        PiiBenchError: the name is a provider without a model.
    """
    match _kind(name):
        case "prompted":
            check_model(name)
        case "composed":
            from pii_bench.systems.composed import check_composed

            check_composed(name)
        case None:
            raise _unknown_name(name)


def _unknown_name(name: str) -> UnknownNameError:
    detector, plus, _ = name.rpartition("+")
    if plus:
        return UnknownNameError("detector", detector, [*detector_names(), GOLD])
    allowed = [
        *model_names(),
        *detector_names(),
        "DETECTOR+RELEVANCE",
        ENCODER,
        f"{ENCODER}:DIR",
        *sorted(entry_points(group=ENTRY_POINTS).names),
        f"{PYTHON}:MODULE:FACTORY",
    ]
    return UnknownNameError("model", name, allowed)


def refuse_options(owner: str, options: Mapping[str, object]) -> None:
    """Raise a `PiiBenchError` for an option that is not None: the owner does not use it."""
    for option, value in options.items():
        if value is not None:
            raise PiiBenchError(f"{owner} does not use {option}: leave it out")


def refuse_call_limits(name: str, calls: CallPolicy) -> None:
    """Refuse call limits for a system that makes no calls, or whose calls a plug-in makes.

    Raises:
        PiiBenchError: a limit is set.
    """
    limits = {
        "--rpm": calls.requests_per_minute,
        "--tpm": calls.tokens_per_minute,
        "--max-usd": calls.max_usd,
        "--price": calls.price,
    }
    for option, value in limits.items():
        if value is not None:
            raise PiiBenchError(
                f"system {name!r} makes no calls that this limits: leave {option} out"
            )


def _refuse_all_options(name: str, options: SystemOptions) -> None:
    unused = {
        "--strategy": options.strategy,
        "--max-tokens": options.max_tokens,
        "--temperature": options.temperature,
        "--output": None if options.output == "text" else options.output,
        "--votes": options.votes,
        "--base-url": options.model.base_url,
        "--timeout": None if options.model.timeout == TIMEOUT else options.model.timeout,
        "--label-map": options.label_map,
        "--keep": options.keep,
        **options.label_options,
    }
    refuse_options(f"system {name!r}", unused)
    refuse_call_limits(name, options.calls)
