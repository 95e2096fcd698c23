"""The configuration file of `pii-bench run --config`: models x strategies x datasets."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError, PiiBenchError, UnknownNameError
from pii_bench.models.calls import MOST_CALLS
from pii_bench.models.catalog import has_provider
from pii_bench.prompting.strategies import get_strategy
from pii_bench.systems.catalog import DEFAULT_STRATEGY, check_name, is_prompted
from pii_bench.tasks import ALL_TASKS, TASK_CHOICES, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Cell:
    """One model with one strategy, on all datasets of the matrix.

    Attributes:
        model: a name as for `--model`.
        strategy: the strategy of a chat model; None for detection only, and for other systems.
    """

    model: str
    strategy: str | None

    @property
    def name(self) -> str:
        """The name shown to the user."""
        return f"{self.model}+{self.strategy}" if self.strategy else self.model

    @property
    def is_chat(self) -> bool:
        """True for a chat model."""
        return is_prompted(self.model)

    @property
    def is_labelled(self) -> bool:
        """True if the strategy asks for the labels of a taxonomy."""
        return self.strategy is not None and get_strategy(self.strategy).labelled

    @property
    def is_called(self) -> bool:
        """True for a chat model behind an endpoint, whose calls may cost money."""
        return self.is_chat and has_provider(self.model)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The content of the file; paths are relative to the working directory.

    Attributes:
        models: names as for `--model`, at least one.
        datasets: names as for `--dataset`, at least one.
        strategies: of the chat models, at least one.
        concurrency: None for the model's default.
        max_usd: cap on the cost of all calls of one command.
    """

    models: tuple[str, ...]
    datasets: tuple[str, ...]
    strategies: tuple[str, ...] = (DEFAULT_STRATEGY,)
    task: str = ALL_TASKS
    limit: int | None = None
    concurrency: int | None = None
    max_usd: float | None = None
    results: Path = Path("results")

    def cells(self) -> list[Cell]:
        """Return every model with every applicable strategy, model by model."""
        return [
            Cell(model, strategy)
            for model in self.models
            for strategy in (self._applicable_strategies() if is_prompted(model) else [None])
        ]

    def _applicable_strategies(self) -> list[str | None]:
        """Return the strategies for the task; None is the default prompt of detection."""
        if self.task == Task.REWRITE:
            return [str(Task.REWRITE)]
        if self.task != Task.DETECTION:
            return [*self.strategies]
        detecting = {
            name if get_strategy(name).task is Task.DETECTION else None for name in self.strategies
        }
        return sorted(detecting, key=lambda name: name or "")


def read_matrix(path: Path) -> Matrix:
    """Read a configuration file; the datasets are not loaded.

    Raises:
        InputFileError: the file cannot be read or is not TOML; a key is unknown, missing or of a
            wrong type; a model, strategy or task is unknown.
    """
    try:
        return _matrix(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputFileError(path, f"not valid TOML: {error}") from error
    except PiiBenchError as error:
        raise InputFileError(path, str(error)) from None


def _matrix(values: dict[str, Any]) -> Matrix:
    for key, value in values.items():
        if key not in _RULES:
            raise UnknownNameError("key", key, _RULES)
        wanted, is_right = _RULES[key]
        if not is_right(value):
            raise PiiBenchError(f"{key!r} must be {wanted}, not {value!r}")
    for key in ("models", "datasets"):
        if key not in values:
            raise PiiBenchError(f"{key!r} is missing: it must be {_NAMES}")
    fields: dict[str, Any] = {
        key: tuple(dict.fromkeys(value)) if isinstance(value, list) else value
        for key, value in values.items()
    }
    matrix = Matrix(**fields | {"results": Path(fields.get("results", "results"))})
    for model in matrix.models:
        check_name(model)
    for strategy in matrix.strategies:
        get_strategy(strategy)
    if matrix.task not in TASK_CHOICES:
        raise UnknownNameError("task", matrix.task, TASK_CHOICES)
    return matrix


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_names(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


_NAMES: Final = "a list of at least one name"
# Not isinstance: bool is a subclass of int.
_RULES: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "models": (_NAMES, _are_names),
    "strategies": (_NAMES, _are_names),
    "datasets": (_NAMES, _are_names),
    "task": ("a name", _is_text),
    "limit": ("a whole number from 1", lambda value: type(value) is int and value > 0),
    "concurrency": (
        f"a whole number from 1 to {MOST_CALLS}",
        lambda value: type(value) is int and 0 < value <= MOST_CALLS,
    ),
    "max_usd": (
        "a sum above 0 in USD",
        lambda value: type(value) in {int, float} and 0 < value < math.inf,
    ),
    "results": ("the path of a folder", _is_text),
}
"""Key of the file to (allowed values in words, predicate)."""
