"""Systems by name: how `--model` becomes what is run.

A name is one of four things, tried in this order: `python:MODULE:FACTORY`, a composition
`DETECTOR` or `DETECTOR+RELEVANCE`, a chat model, or a plug-in's entry point. So no package
that is installed changes what a name of ours means. What only one of them needs is imported when
it is made.
"""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.files import sha256_of
from pii_bench.models.base import CallError, Completion, Draws, Finish
from pii_bench.models.calls import CallPolicy
from pii_bench.models.catalog import REPLAY, ModelOptions, check_model, model_names, resolve
from pii_bench.systems import BALANCED, ENCODER
from pii_bench.systems.base import GOLD, System, SystemCard
from pii_bench.systems.detectors import DETECTORS, detector_names
from pii_bench.systems.predictions import Prediction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.prompting.labelled import Shots
    from pii_bench.prompting.strategies import Output
    from pii_bench.systems.base import Response

Kind = Literal["python", "composed", "encoder", "prompted", "entry point"]
"""What a name of `--model` can be."""

DEFAULT_STRATEGY: Final = "naive"

ENTRY_POINTS: Final = "pii_bench.systems"
"""The group of the entry points; each names a callable without arguments that makes Systems."""

PYTHON: Final = "python"

_FAULT: Final = "error: the plug-in "


@dataclass(frozen=True, slots=True)
class SystemOptions:
    """What the user set in addition to the name.

    Attributes:
        strategy: of a chat model; None for `DEFAULT_STRATEGY`.
        max_tokens: of a chat model's answers; None for what suits the model.
        temperature: of a chat model; `default` to send none, which leaves the provider's; None
            for 0 (`VOTE_TEMPERATURE` where draws vote), and for none where the model refuses
            one.
        output: what sets the form of a chat model's answers, the prompt or the provider.
        votes: draws per sample of a strategy that votes; None for `DEFAULT_VOTES`.
        model: how a chat model is reached.
        calls: how its calls are made.
        label_map: a detector's map of labels, instead of its own.
        keep: how much the encoder leaves readable, a setting of its dial; None for balanced.
        taxonomy: whose labels the strategy `json` asks for; None for the paper's.
        shots: the examples that it shows; None for none.
        chunk: the most characters that it is asked about at once; None for whole texts.
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
    def of_labels(self) -> dict[str, object]:
        """What applies to detection in the labels of a taxonomy alone."""
        return {"--taxonomy": self.taxonomy, "--shots": self.shots, "--chunk": self.chunk}


def build_systems(name: str, options: SystemOptions) -> tuple[System, ...]:
    """Make the systems of `--model`, at most one per task.

    Raises:
        UnknownNameError: a name that is in none of the tables.
        MissingExtraError: what the system needs is not installed.
        MissingKeyError: the provider's key is not set.
        InputFileError: a file that the system reads is missing or broken.
        PiiBenchError: an option that does not apply to it, or a factory that makes no systems.
    """
    match _kind(name):
        case "python":
            _refuse_options(name, options)
            return _plug_in(name, name.removeprefix(f"{PYTHON}:"))
        case "composed":
            from pii_bench.systems.composed import build_composed

            _refuse_options(name, replace(options, label_map=None))
            return build_composed(name, options.label_map)
        case "encoder":
            from pii_bench.systems.encoder import encoder_systems
            from pii_bench.systems.encoder.reader import SHIPPED

            _refuse_options(name, replace(options, keep=None))
            folder = name.partition(":")[2]
            return encoder_systems(Path(folder) if folder else SHIPPED, options.keep or BALANCED)
        case "prompted":
            from pii_bench.systems.prompted import build_prompted

            return build_prompted(name, options)
        case "entry point":
            _refuse_options(name, options)
            return _plug_in(name, entry_points(group=ENTRY_POINTS)[name].value)
        case _:
            raise _unknown(name)


def _kind(name: str) -> Kind | None:
    """What a name is, by its look and the tables; None for a name that is in none of them."""
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
    """Whether a name is that of a chat model, which is asked through the prompt of a strategy."""
    return _kind(name) == "prompted"


def check_name(name: str) -> None:
    """Refuse a name that is in none of the tables, before anything is loaded for it.

    Raises:
        UnknownNameError: a name that is in none of the tables.
        PiiBenchError: the name of a provider alone.
    """
    match _kind(name):
        case "prompted":
            check_model(name)
        case "composed":
            from pii_bench.systems.composed import check_composed

            check_composed(name)
        case None:
            raise _unknown(name)


def system_names() -> list[str]:
    """All names, as a user writes them."""
    return [
        *model_names(),
        *detector_names(),
        "DETECTOR+RELEVANCE",
        ENCODER,
        f"{ENCODER}:DIR",
        *sorted(entry_points(group=ENTRY_POINTS).names),
        f"{PYTHON}:MODULE:FACTORY",
    ]


def _unknown(name: str) -> UnknownNameError:
    detector, plus, _ = name.rpartition("+")
    if plus:
        return UnknownNameError("detector", detector, [*detector_names(), GOLD])
    return UnknownNameError("model", name, system_names())


def refuse(who: str, options: Mapping[str, object]) -> None:
    """Refuse options that are given, but that nothing comes of.

    Raises:
        PiiBenchError: one has another value than None.
    """
    for option, value in options.items():
        if value is not None:
            raise PiiBenchError(f"{who} has no use for {option}: leave it out")


def refuse_caps(name: str, calls: CallPolicy) -> None:
    """Refuse limits of calls for a system that makes none.

    Raises:
        PiiBenchError: one is given.
    """
    caps = {
        "--rpm": calls.requests_per_minute,
        "--tpm": calls.tokens_per_minute,
        "--max-usd": calls.max_usd,
        "--price": calls.price,
    }
    for option, value in caps.items():
        if value is not None:
            raise PiiBenchError(f"system {name!r} makes no calls: leave {option} out")


def _refuse_options(name: str, options: SystemOptions) -> None:
    given = {
        "--strategy": options.strategy,
        "--max-tokens": options.max_tokens,
        "--temperature": options.temperature,
        "--output": None if options.output == "text" else options.output,
        "--votes": options.votes,
        "--base-url": options.model.base_url,
        "--label-map": options.label_map,
        "--keep": options.keep,
        **options.of_labels,
    }
    refuse(f"system {name!r}", given)
    refuse_caps(name, options.calls)


@dataclass(frozen=True, slots=True)
class PlugIn:
    """Another author's system: its code is part of what it is, and its errors are its answers.

    Attributes:
        system: as its factory made it.
        source: SHA-256 of the file of its factory; empty where there is no file.
    """

    system: System
    source: str

    @property
    def card(self) -> SystemCard:
        """The system's own, with the hash of its source; without a prompt the task names it."""
        card = self.system.card
        settings = {**card.settings, "source": self.source}
        return replace(card, prompt=card.prompt or str(card.task), settings=settings)

    def request_hash(self, sample: Sample) -> str:
        """SHA-256 over the source and the system's own hash."""
        own = f"{self.source} {self.system.request_hash(sample)}"
        return hashlib.sha256(own.encode()).hexdigest()

    async def respond(self, sample: Sample) -> Response:
        """The system's answer; an error of its code makes an answer that is `malformed`.

        What may pass (`CallError`) stays an error. The text of others is not kept: it may quote
        the sample.
        """
        try:
            response: object = await self.system.respond(sample)
        except (CallError, PiiBenchError):
            raise
        except Exception as error:  # noqa: BLE001 - foreign code must not end a run of hours
            return Completion(f"{_FAULT}raised {type(error).__name__}", Finish.STOP)
        if isinstance(response, Completion | Draws | Prediction):
            return response
        kind = type(response).__name__
        return Completion(f"{_FAULT}returned {kind}, not Prediction", Finish.STOP)

    async def close(self) -> None:
        """Release what the system holds."""
        await self.system.close()


def fault_of(response: object) -> str | None:
    """What a plug-in did wrong instead of answering; None where it answered."""
    match response:
        case Completion(text=text) if text.startswith(_FAULT):
            return text.removeprefix("error: ")
        case _:
            return None


def _plug_in(name: str, target: str) -> tuple[PlugIn, ...]:
    """Load the factory `MODULE:FACTORY`, and let it make its systems; `name` is for errors.

    Raises:
        PiiBenchError: the target is not of that form, cannot be loaded, or makes no systems.
    """
    if not re.fullmatch(r"[\w.]+:[\w.]+", target):
        raise PiiBenchError(f"system {name!r} must be {PYTHON}:MODULE:FACTORY")
    # The command, other than `python -m`, does not look into the folder it is run in.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        factory = EntryPoint(name, target, ENTRY_POINTS).load()
    except (ImportError, AttributeError) as error:
        raise PiiBenchError(f"system {name!r} cannot be loaded: {error}") from error
    made: Sequence[object] = factory() if callable(factory) else ()
    systems = [each for each in made if isinstance(each, System)]
    if not systems or len(systems) != len(made):
        what = "must be a callable without arguments that returns a sequence of Systems"
        raise PiiBenchError(f"system {name!r}: {target} {what}")
    source = _source(target.partition(":")[0])
    return tuple(PlugIn(system, source) for system in systems)


def _source(module: str) -> str:
    spec = find_spec(module)
    path = Path(spec.origin) if spec is not None and spec.origin is not None else None
    return sha256_of(path) if path is not None and path.is_file() else ""
