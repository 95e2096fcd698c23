"""Third-party systems: objects that a user made, or that a factory named by `--model` returns."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_args

import pii_bench
from pii_bench.errors import (
    InputFileError,
    MissingExtraError,
    MissingKeyError,
    PiiBenchError,
    ProviderRefusedError,
    UnknownNameError,
)
from pii_bench.files import RecordError, sha256_of
from pii_bench.models.base import (
    CallError,
    Completion,
    Draws,
    Finish,
    decode_response,
    encode_response,
)
from pii_bench.prompting.strategies import Output
from pii_bench.systems.base import FaultError, System, SystemCard, fault
from pii_bench.systems.predictions import Prediction, decode_prediction, encode_prediction
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import taxonomy

if TYPE_CHECKING:
    from enum import StrEnum

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import Response

ENTRY_POINTS: Final = "pii_bench.systems"
"""The entry point group; each entry point is a callable without arguments that returns systems."""

PYTHON: Final = "python"
"""The start of a name that gives a factory: `python:MODULE:FACTORY`."""

_CARD: Final[Mapping[str, type]] = {
    "model": str,
    "prompt": str,
    "prompt_sha256": str,
    "task": str,
    "oracle": bool,
    "settings": Mapping,
    "names_subjects": bool,
    "unmasked_text_to": str,
    "output": str,
}
"""The types of the parts of a card."""

_PARTS: Final = (
    "subjects are tuples of (text, type) pairs, related is a tuple of texts, draws are Completions"
)

# What says nothing about the system's answer, and is asked again.
_NO_ANSWERS: Final = (
    CallError,
    ProviderRefusedError,
    MissingKeyError,
    MissingExtraError,
    InputFileError,
)

_PACKAGE: Final = Path(pii_bench.__file__).parent
_STANDARD_LIBRARY: Final = Path(json.__file__).parents[1]

_OBJECTS: Final = "a list of objects with the members of System"


@dataclass(frozen=True, eq=False)
class PlugIn:
    """A third-party system: what its code returns is checked, and its exceptions are named.

    Exceptions of `respond` count as malformed answers. Their messages, which may quote the sample,
    are dropped. The SHA-256 of the source of the factory and its package is part of the system's
    identity; it is empty without a factory or a file.
    """

    system: System
    source: str

    @cached_property
    def card(self) -> SystemCard:
        """The system's card with its source hash; an empty prompt becomes the task's name.

        Raises:
            PiiBenchError: the system's card raises, is no `SystemCard`, or has a wrong part.
        """
        owner = f"the card of {_kind(self.system)}"
        try:
            card: object = self.system.card
        except Exception as error:  # noqa: BLE001 - foreign code must not end a run of other systems
            raise PiiBenchError(f"{owner} raised {_class_and_line(error)}") from None
        if not isinstance(card, SystemCard):
            raise PiiBenchError(f"{owner} came with {_kind(card)}; allowed: SystemCard")
        _check_card(card, owner)
        task = Task(card.task)
        source = {"source": self.source} if self.source else {}
        settings = {**card.settings, **source}
        return replace(card, task=task, prompt=card.prompt or str(task), settings=settings)

    def request_hash(self, sample: Sample) -> str:
        """Return the SHA-256 of the source hash, the system's own hash and the text and query.

        Systems of this package hash what they read. Without a factory their own hash is kept, so
        that they share answers with runs by name.

        Raises:
            PiiBenchError: the system's own hash is no string, or its code raises.
        """
        try:
            own: object = self.system.request_hash(sample)
        except Exception as error:  # noqa: BLE001 - its message may quote the sample
            raise PiiBenchError(
                f"{self._name}: request_hash raised {_class_and_line(error)}"
            ) from None
        if not isinstance(own, str):
            raise PiiBenchError(f"{self._name}: request_hash came with {_kind(own)}; allowed: str")
        if type(self.system).__module__.partition(".")[0] != pii_bench.__name__:
            # Else a hash of the id, or a constant, would give a sample the answer to another text.
            query = None if self.card.task is Task.DETECTION else sample.query
            own = json.dumps([own, sample.description, query])
        elif not self.source:
            return own
        return hashlib.sha256(f"{self.source} {own}".encode()).hexdigest()

    async def respond(self, sample: Sample) -> Response:
        """Return the system's answer, or a malformed one if its code raises or returns no answer.

        Raises:
            CallError: this sample got no answer; a later run asks again.
            ProviderRefusedError: no sample will get an answer.
            MissingKeyError, MissingExtraError, InputFileError: a key, a package or a file is
                missing, and no sample will get an answer.
        """
        try:
            answer: object = self.system.respond(sample)
            if not inspect.isawaitable(answer):
                raise FaultError(f"came with {_kind(answer)} from a respond that is not async")
            return _checked(await answer, self.card)
        except _NO_ANSWERS:
            raise
        except FaultError as error:
            return fault(str(error))
        except Exception as error:  # noqa: BLE001 - foreign code must not end a run of hours
            # Without its folder, which may name a person: the answer is stored.
            return fault(f"raised {_class_and_line(error, in_folder=False)}")

    async def close(self) -> None:
        """Close the system; warn if its code raises, since the answers are not affected."""
        try:
            closing: object = self.system.close()
            # One that is not async has ended.
            if inspect.isawaitable(closing):
                await closing
        except Exception as error:  # noqa: BLE001 - foreign code must not lose finished work
            message = f"{self._name}: close raised {_class_and_line(error)}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    @property
    def _name(self) -> str:
        return f"system {self.card.model!r} ({self.card.prompt})"


def _kind(value: object) -> str:
    return type(value).__name__


def _check_card(card: SystemCard, owner: str) -> None:
    """Check that the manifest of a run can hold a card."""
    for part, kind in _CARD.items():
        value = getattr(card, part)
        if not isinstance(value, kind):
            what = f"{part} of type {_kind(value)}"
            raise PiiBenchError(f"{owner} came with {what}; allowed: {kind.__name__}")
    if not card.model:
        raise PiiBenchError(f"{owner} came with an empty model; allowed: a name")
    for part, allowed in {"task": [*Task], "output": get_args(Output)}.items():
        value = getattr(card, part)
        if value not in allowed:
            raise PiiBenchError(f"{owner}: {UnknownNameError(part, value, allowed)}")
    try:
        if card.taxonomy is not None:
            taxonomy(str(card.taxonomy))
        json.dumps(dict(card.settings))
    except UnknownNameError as error:
        raise PiiBenchError(f"{owner}: {error}") from None
    except (TypeError, ValueError) as error:
        raise PiiBenchError(f"{owner} came with settings that are no JSON: {error}") from None


def _checked(response: object, card: SystemCard) -> Response:
    """Return a response as it will be read from its stored line, if the task has such ones."""
    allowed: tuple[type[Response], ...] = (Prediction, Completion)
    if card.task is Task.MASKING:
        allowed = (Prediction,)
    elif card.task is Task.QUERY_RELATED or card.taxonomy is not None:
        allowed = (Prediction, Completion, Draws)
    kind = _kind(response)
    if not isinstance(response, allowed):
        names = " or ".join(each.__name__ for each in allowed)
        raise FaultError(f"returned {kind}, not {names}")
    try:
        return _read_again(response, card.task)
    except RecordError as error:
        raise FaultError(f"returned a wrong {kind}: {error}") from None
    except (AttributeError, TypeError, ValueError):
        # The messages of Python quote values, and say little about the form.
        raise FaultError(f"returned a wrong {kind} (allowed: {_PARTS})") from None


def _read_again(response: Response, task: Task) -> Response:
    if isinstance(response, Prediction):
        _check_word("status", response.status, Status)
        if isinstance(response.related, str):
            # JSON would have its letters.
            raise RecordError("'related' must be a tuple of texts, not one text")
        record = json.loads(json.dumps(encode_prediction(response)))
        prediction = decode_prediction(record, "prediction")
        if prediction.status.answered and not prediction.answers(task):
            raise RecordError(f"it lacks what {task} asks for")
        return replace(prediction, cut=bool(response.cut))
    for completion in response.completions if isinstance(response, Draws) else (response,):
        _check_word("finish", completion.finish, Finish)
    return decode_response(json.loads(json.dumps(encode_response(response))))


def _check_word(name: str, value: object, allowed: type[StrEnum]) -> None:
    # Without the value: it may be a text, given in the wrong place.
    if not isinstance(value, str) or value not in set(allowed):
        raise RecordError(f"{name!r} must be one of {', '.join(allowed)}")


def plug_ins(objects: object, source: str = "", *, owner: str = "systems") -> tuple[PlugIn, ...]:
    """Return objects that a user made as plug-ins; errors call their origin `owner`.

    `source` is the SHA-256 of the source of their factory, if they have one.

    Raises:
        PiiBenchError: there are no objects, one is no `System` or has a wrong card, or two answer
            the same task.
    """
    if not isinstance(objects, Iterable):
        what = f"{_kind(objects)}, which is no list"
        raise PiiBenchError(f"{owner} came with {what}; allowed: {_OBJECTS}")
    plugged = tuple(PlugIn(cast("System", each), source) for each in objects)
    if not plugged:
        raise PiiBenchError(f"{owner} came with no objects; allowed: {_OBJECTS}")
    for each in plugged:
        if lacking := _lacking(each.system):
            what = f"{_kind(each.system)}, which lacks {', '.join(lacking)}"
            raise PiiBenchError(f"{owner} came with {what}; allowed: {_OBJECTS}")
    try:
        tasks = [each.card.task for each in plugged]
    except PiiBenchError as error:
        raise PiiBenchError(f"{owner}: {error}") from None
    if len(set(tasks)) < len(tasks):
        raise PiiBenchError(f"{owner} came for {', '.join(tasks)}; allowed: at most one per task")
    return plugged


def _lacking(given: object) -> list[str]:
    """Return the members of `System` that an object lacks."""
    absent = object()
    return [
        name
        for name in ("card", "request_hash", "respond", "close")
        # A property is there even if its code raises an AttributeError.
        if inspect.getattr_static(given, name, absent) is absent and not hasattr(given, name)
    ]


def load_plug_in(name: str, target: str) -> tuple[PlugIn, ...]:
    """Call the factory `MODULE:FACTORY`; `name` is for error messages.

    Raises:
        PiiBenchError: the target has another form, cannot be loaded, raises, or returns no systems.
    """
    if not re.fullmatch(r"[\w.]+:[\w.]+", target):
        raise PiiBenchError(f"system {name!r} must be {PYTHON}:MODULE:FACTORY")
    # Unlike `python -m`, the installed command does not import from the working directory.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    must = (
        f"system {name!r}: {target} must be a callable without arguments that returns a sequence "
        "of Systems"
    )
    try:
        factory = _import(name, target)
        products = factory() if callable(factory) else None
    except PiiBenchError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code must not end a run of other systems
        # Not its message, which may quote a text.
        raise PiiBenchError(f"{must}, but raised {_class_and_line(error)}") from None
    if not isinstance(products, Sequence):
        raise PiiBenchError(must)
    source = _source_hash(target.partition(":")[0], factory)
    return plug_ins(products, source, owner=f"system {name!r}")


def _import(name: str, target: str) -> object:
    try:
        return EntryPoint(name, target, ENTRY_POINTS).load()
    except (ImportError, AttributeError) as error:
        raise PiiBenchError(f"system {name!r} cannot be loaded: {error}") from error


def _class_and_line(error: Exception, *, in_folder: bool = True) -> str:
    """Return the class of an error, and the last line of the author's code that led to it.

    Without one it is the last line of a library, or else of this package. There is none if the
    call itself failed, such as for its arguments.
    """
    # The first is the call in this module.
    _, *frames = traceback.extract_tb(error.__traceback__)
    places = [(Path(frame.filename), frame.lineno) for frame in frames]
    if isinstance(error, SyntaxError) and error.filename is not None:
        places.append((Path(error.filename), error.lineno))
    if not places:
        return f"{_kind(error)} when it was called"
    foreign = [place for place in places if not place[0].is_relative_to(_PACKAGE)]
    own = [place for place in foreign if not _is_library(place[0])]
    path, line = (own or foreign or places)[-1]
    return f"{_kind(error)} at {path if in_folder else path.name}:{line}"


def _is_library(path: Path) -> bool:
    return (
        path.is_relative_to(_STANDARD_LIBRARY)
        or not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
        or path.name.startswith("<frozen ")
    )


def _source_hash(module: str, factory: object) -> str:
    """Return the SHA-256 of a plug-in's source file, or of its files; empty if it has none.

    They are the files of the module that is named and of the one that defines the factory, each
    with the other Python files of its package.
    """
    spec = find_spec(module)
    origins = [spec.origin if spec is not None else None]
    with suppress(TypeError):  # Not a function or class: the named module defines it.
        origins.append(inspect.getsourcefile(inspect.unwrap(cast("Any", factory))))
    files = [Path(origin).resolve() for origin in origins if origin is not None]
    paths = {path for file in files if file.is_file() for path in _package(file)}
    hashes = [sha256_of(path) for path in sorted(paths)]
    if len(hashes) == 1:
        return hashes[0]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest() if hashes else ""


def _package(file: Path) -> list[Path]:
    """Return all Python files of the outermost package of a file; the file if it is in none."""
    folder = file.parent
    if not (folder / "__init__.py").exists():
        return [file]
    while (folder.parent / "__init__.py").exists():
        folder = folder.parent
    return [*folder.rglob("*.py")]
