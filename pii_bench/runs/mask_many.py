"""Masking many texts, or writing them anew, here or in the processes of a Ray cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from pii_bench.errors import PiiBenchError
from pii_bench.masking import mask
from pii_bench.runs.mask_text import Counts, ask, find_in_query, masking_systems
from pii_bench.systems.catalog import SystemOptions, build_systems

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence

    from pii_bench.runs.mask_text import OnFailure, Rewriting
    from pii_bench.systems.base import System

    Asked = tuple[str | None, str]
    """A text, where there is one, and what will be asked about it."""
    Work = Callable[[str, str], Coroutine[Any, Any, "MaskedText"]]


@dataclass(frozen=True, slots=True)
class MaskedText:
    """What became of a text.

    Attributes:
        text: it is masked; None where there was none, and where the system failed.
        counts: what was masked in it.
        failure: why it could not be masked, without a word of it; empty where it could.
    """

    text: str | None = field(repr=False)
    counts: Counts = field(default_factory=Counts)
    failure: str = ""


class TextMasker:
    """Works on one text after the other; a context manager, at whose end the systems are closed.

    Args:
        systems: those that are asked.
        work: masks a text for a query.
    """

    def __init__(self, systems: Iterable[System], work: Work) -> None:
        self._systems, self._work = tuple(systems), work
        # One loop for all texts: the clients of chat models keep their connections in it.
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._runner:
            for system in self._systems:
                self._runner.run(system.close())

    def __call__(self, asked: Asked) -> MaskedText:
        """Mask a text; one that is empty or blank stays as it is."""
        text, query = asked
        if text is None or not text.strip():
            return MaskedText(text)
        try:
            return self._runner.run(self._work(text, query))
        except PiiBenchError as error:
            return MaskedText(None, failure=str(error))


def mask_each(
    systems: Sequence[System], on_failure: OnFailure, texts: Iterable[Asked]
) -> Iterator[MaskedText]:
    """Mask texts in this process, one after the other; the systems are closed at the end.

    Args:
        systems: those of one name, for detection and for what a query needs.
        on_failure: see `ask`.
        texts: read as they are needed.
    """
    with TextMasker(systems, partial(_mask, systems, on_failure)) as masker:
        yield from map(masker, texts)


def rewrite_each(
    systems: Sequence[System],
    rewriting: Callable[[str, str], Coroutine[Any, Any, Rewriting]],
    texts: Iterable[Asked],
) -> Iterator[MaskedText]:
    """Let texts be written anew, one after the other; the systems are closed at the end.

    Args:
        systems: those that `rewriting` asks.
        rewriting: writes a text anew for a query.
        texts: read as they are needed.
    """

    async def rewritten(text: str, query: str) -> MaskedText:
        return MaskedText((await rewriting(text, query)).text)

    with TextMasker(systems, rewritten) as masker:
        yield from map(masker, texts)


async def _mask(
    systems: Sequence[System], on_failure: OnFailure, text: str, query: str
) -> MaskedText:
    answers = await ask(text, query, systems, on_failure=on_failure)
    masked = mask(text, answers.entities, answers.needed or ())
    counts = Counts()
    counts.add(answers, masked, query, await find_in_query(query, systems))
    return MaskedText(masked.text, counts)


def mask_each_on_ray(
    name: str,
    options: SystemOptions,
    on_failure: OnFailure,
    workers: int,
    texts: Iterable[Asked],
) -> Iterator[MaskedText]:
    """Mask texts in the processes of a Ray cluster; the same results, in the same order.

    Args:
        name: of the system, which each process builds for itself.
        options: of the system.
        on_failure: see `ask`.
        workers: how many processes.
        texts: read as they are needed.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    from pii_bench.runs.on_ray import map_on_ray

    return map_on_ray(partial(_build, name, options, on_failure), texts, workers)


def _build(name: str, options: SystemOptions, on_failure: OnFailure) -> TextMasker:
    systems = masking_systems(build_systems(name, options))
    return TextMasker(systems, partial(_mask, systems, on_failure))
