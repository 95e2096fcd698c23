"""Systems by name: how `--model` becomes what is run.

A name is one of four things, tried in this order: `python:MODULE:FACTORY`, a composition
`DETECTOR` or `DETECTOR+RELEVANCE`, a chat model, or a plug-in's entry point. So no package
that is installed changes what a name of ours means.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.models.base import Sampling
from pii_bench.models.calls import CallPolicy
from pii_bench.models.catalog import (
    LOCAL,
    REPLAY,
    ModelOptions,
    build_model,
    check_model,
    find_card,
    model_names,
    resolve,
)
from pii_bench.prompting.labelled import PAPER
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, get_strategy, load_prompt
from pii_bench.systems import BALANCED, ENCODER
from pii_bench.systems.base import GOLD, System
from pii_bench.systems.detectors import DETECTORS, detector_names
from pii_bench.systems.plug_in import ENTRY_POINTS, PYTHON, plug_in
from pii_bench.systems.prompted import (
    DEFAULT_VOTES,
    VOTE_TEMPERATURE,
    ChunkedSystem,
    PromptedSystem,
    VotedSystem,
)
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from pii_bench.models.base import Model
    from pii_bench.models.catalog import ModelCard
    from pii_bench.prompting.labelled import Shots
    from pii_bench.prompting.strategies import Output, Strategy

Kind = Literal["python", "composed", "encoder", "prompted", "entry point"]
"""What a name of `--model` can be."""

DEFAULT_STRATEGY: Final = "naive"

_REMOTE_TOKENS: Final = 2048
# A small model that has lost the thread writes to the limit.
_LOCAL_TOKENS: Final = 512
# Reasoning counts as part of the answer.
_REASONING_TOKENS: Final = 16384


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
            _refuse_options(name, options, takes_label_map=False)
            return plug_in(name, name.removeprefix(f"{PYTHON}:"))
        case "composed":
            from pii_bench.systems.composed import build_composed

            _refuse_options(name, options, takes_label_map=True)
            return build_composed(name, options.label_map)
        case "encoder":
            from pii_bench.systems.encoder import encoder_systems
            from pii_bench.systems.encoder.reader import SHIPPED

            _refuse_options(name, replace(options, keep=None), takes_label_map=False)
            folder = name.partition(":")[2]
            return encoder_systems(Path(folder) if folder else SHIPPED, options.keep or BALANCED)
        case "prompted":
            return _prompt(name, options)
        case "entry point":
            _refuse_options(name, options, takes_label_map=False)
            return plug_in(name, entry_points(group=ENTRY_POINTS)[name].value)
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


def _prompt(name: str, options: SystemOptions) -> tuple[System, ...]:
    strategy = get_strategy(options.strategy or DEFAULT_STRATEGY)
    if options.label_map is not None:
        raise PiiBenchError(f"model {name!r} is no detector: --label-map does not apply to it")
    if options.keep is not None:
        raise PiiBenchError(f"model {name!r} has no dial: --keep does not apply to it")
    if options.votes is not None and not strategy.voted:
        voted = ", ".join(each.name for each in STRATEGIES.values() if each.voted)
        what = f"strategy {strategy.name!r} has no vote"
        raise PiiBenchError(f"{what}: leave --votes out (allowed with: {voted})")
    if strategy.labelled:
        return (_labelled(name, strategy, options),)
    _refuse_labelled(f"strategy {strategy.name!r}", options)
    if strategy.task is Task.REWRITE:
        return (_rewriter(name, strategy, options),)
    prompts = [load_prompt(each, output=options.output) for each in (DETECTION, strategy)]
    model = _guarded(name, options)
    sampling = _sampling(name, options)
    detection, related = (PromptedSystem(model, prompt, sampling) for prompt in prompts)
    return detection, _vote(related, options) if strategy.voted else related


def _labelled(name: str, strategy: Strategy, options: SystemOptions) -> System:
    """Detection in the labels of a taxonomy."""
    labels = options.taxonomy or PAPER
    prompt = load_prompt(strategy, output=options.output, taxonomy=labels, shots=options.shots)
    system = PromptedSystem(_guarded(name, options), prompt, _sampling(name, options))
    return system if options.chunk is None else ChunkedSystem(system, options.chunk)


def _rewriter(name: str, strategy: Strategy, options: SystemOptions) -> System:
    """Texts written anew."""
    prompt = load_prompt(strategy, output=options.output)
    return PromptedSystem(_guarded(name, options), prompt, _sampling(name, options))


def _refuse_labelled(who: str, options: SystemOptions) -> None:
    given = {
        "--taxonomy": options.taxonomy,
        "--shots": options.shots,
        "--chunk": options.chunk,
    }
    for option, value in given.items():
        if value is not None:
            raise PiiBenchError(f"{who} has no use for {option}: leave it out")


def _guarded(name: str, options: SystemOptions) -> Model:
    model = build_model(name, options.model)
    if model.endpoint is None:
        _refuse_caps(name, options.calls)
        return model
    provider, _, model_id = resolve(name).partition("/")
    card = find_card(provider, model_id)
    # What another server takes is not what the provider does.
    listed = card.price if card is not None and options.model.base_url is None else None
    return options.calls.guard(model, listed)


def _refuse_caps(name: str, calls: CallPolicy) -> None:
    given = {
        "--rpm": calls.requests_per_minute,
        "--tpm": calls.tokens_per_minute,
        "--max-usd": calls.max_usd,
        "--price": calls.price,
    }
    for option, value in given.items():
        if value is not None:
            raise PiiBenchError(f"system {name!r} makes no calls: leave {option} out")


def _vote(prompted: PromptedSystem, options: SystemOptions) -> VotedSystem:
    if options.temperature is None and prompted.sampling.temperature is not None:
        sampling = replace(prompted.sampling, temperature=VOTE_TEMPERATURE)
        prompted = replace(prompted, sampling=sampling)
    return VotedSystem(prompted, DEFAULT_VOTES if options.votes is None else options.votes)


def _sampling(name: str, options: SystemOptions) -> Sampling:
    provider, _, model_id = resolve(name).partition("/")
    card = find_card(provider, model_id)
    most = card.max_output if card is not None else None
    if most is not None and options.max_tokens is not None and options.max_tokens > most:
        what = f"model {name!r} writes at most {most:,} tokens"
        raise PiiBenchError(f"{what}, and --max-tokens came as {options.max_tokens:,}")
    return Sampling(
        temperature=_temperature(name, options.temperature, card),
        max_tokens=options.max_tokens or _default_tokens(provider, card),
    )


def _temperature(
    name: str, asked: Literal["default"] | float | None, card: ModelCard | None
) -> float | None:
    refuses = card is not None and not card.accepts_temperature
    if asked == "default" or (asked is None and refuses):
        return None
    if refuses:
        raise PiiBenchError(f"model {name!r} takes no temperature: leave --temperature out")
    return asked or 0.0


def _default_tokens(provider: str, card: ModelCard | None) -> int:
    if provider == LOCAL:
        return _LOCAL_TOKENS
    default = _REASONING_TOKENS if card is not None and card.reasons else _REMOTE_TOKENS
    return min(default, card.max_output or default) if card is not None else default


def _refuse_options(name: str, options: SystemOptions, *, takes_label_map: bool) -> None:
    given = {
        "--strategy": options.strategy,
        "--max-tokens": options.max_tokens,
        "--temperature": options.temperature,
        "--output": None if options.output == "text" else options.output,
        "--votes": options.votes,
        "--base-url": options.model.base_url,
        "--label-map": None if takes_label_map else options.label_map,
        "--keep": options.keep,
    }
    for option, value in given.items():
        if value is not None:
            raise PiiBenchError(f"system {name!r} has no use for {option}: leave it out")
    _refuse_labelled(f"system {name!r}", options)
    _refuse_caps(name, options.calls)
