"""Calls of a batch API, and files of results: JSON Lines, one for each request of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import httpx2

from pii_bench.models.base import CallError
from pii_bench.models.service import LARGEST_BODY, connection_failure, parse_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


class RawAnswer(Protocol):
    """An answer that an SDK did not read."""

    @property
    def http_response(self) -> httpx2.Response:
        """What came."""
        ...


async def answer_of(
    call: Awaitable[T],
    errors: type[E] | tuple[type[E], ...],
    failure_of: Callable[[E], Exception],
) -> T:
    """Make a call of an SDK.

    What an SDK raises holds the request, with its key and its texts: what it means is raised
    outside of the handler, so that no `__context__` keeps it alive.

    Args:
        call: to await.
        errors: what it may raise.
        failure_of: what one of them means for the run, to be raised in its place.
    """
    try:
        return await call
    except errors as error:
        failure = failure_of(error)
    raise failure


async def read_results(
    response: httpx2.Response,
) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
    """The custom ids and lines of a file of results.

    Args:
        response: streamed; who opened it closes it.

    Raises:
        CallError: bad_response for a line that is longer than `LARGEST_BODY`, or no JSON object
            with a custom id; timeout or connection where the file breaks off.
    """
    parts: list[bytes] = []
    try:
        # Not as lines of text: JSON may hold line separators of Unicode.
        async for chunk in response.aiter_bytes():
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                for item in _item(b"".join([*parts, end])):
                    yield item
                parts = []
            parts.append(rest)
            if sum(map(len, parts)) > LARGEST_BODY:
                raise CallError("bad_response", "a line of the results is too long")
    except httpx2.RequestError as error:
        failure = connection_failure(error)
    else:
        for item in _item(b"".join(parts)):
            yield item
        return
    raise failure


def _item(raw: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The custom id and the object of a line; none for a blank one."""
    if not raw.strip():
        return []
    line: Any = parse_json(raw)
    match line:
        case {"custom_id": str() as name}:
            return [(name, line)]
    raise CallError("bad_response", "a line of the results has no custom id")
