"""The types between the suite and a provider's batch API.

A batch is answered within a day at half the price. It is submitted as a job; its results
are read when the job has ended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard, TypeVar

import httpx2

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import CallError, Completion, is_count
from pii_bench.models.service import LARGEST_BODY, connection_failure, parse_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

    from pii_bench.errors import ProviderRefusedError
    from pii_bench.models.base import Outcome, Request


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


TAG_KEY: Final = "pii_bench"
"""The key of a job's metadata that holds its tag."""

CHAT_COMPLETIONS: Final = "/v1/chat/completions"
"""The endpoint that the requests of a job are for, as OpenAI and Mistral name it."""


_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,254}")


class UnknownJobError(PiiBenchError):
    """The provider knows no job of that id."""

    def __init__(self, provider: str, job: str) -> None:
        super().__init__(f"provider {provider!r} knows no batch {job!r}")


class Absence(Enum):
    """Why no job of a tag was found."""

    SURE = "there is none"
    UNDECIDED = "one that still runs may be it"


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The largest job.

    Attributes:
        requests: how many it may hold.
        size: their bytes.
    """

    requests: int
    size: int


@dataclass(frozen=True, slots=True)
class BatchState:
    """How far a job is.

    Attributes:
        ended: whether its results can be read.
        finished: requests that are done, whatever came of them.
        total: all its requests; 0 while the provider has not counted them.
        absent: what became of the requests that the results do not name.
    """

    ended: bool
    finished: int
    total: int
    absent: CallError | ProviderRefusedError


RESULTS_GONE: Final = "results_gone"
"""The kind of a failure to read results that the provider does not have, or no longer."""

LIMITS: Final = BatchLimits(requests=5000, size=50_000_000)
"""Less than any provider allows: the requests of a job are held in memory whole."""


class BatchService(Protocol):
    """A provider's batch API for one model.

    Every method raises:
        CallError: this call failed; it may be made again.
        ProviderRefusedError: every call would fail.
    """

    @property
    def limits(self) -> BatchLimits:
        """The largest job that may be submitted."""
        ...

    def size(self, request: Request) -> int:
        """The bytes of one request in a job, at most."""
        ...

    async def submit(self, requests: Sequence[Request], tag: str) -> str:
        """Submit a job.

        Args:
            requests: at least one, all sampled alike; their custom ids are made by `custom_id`.
            tag: by which `find` finds the job.

        Returns:
            The job's id.

        Raises:
            CallError: of the kinds `rate_limit` and `bad_request` there is no job; of any
                other there may be one.
            ProviderRefusedError: there is no job.
        """
        ...

    async def find(self, tag: str, *, since: float, requests: int) -> str | Absence:
        """The id of a job whose submission brought no answer.

        Args:
            tag: of the job.
            since: Unix time at which it was submitted.
            requests: how many it holds.
        """
        ...

    async def poll(self, job: str) -> BatchState:
        """How far a job is.

        Raises:
            UnknownJobError: there is none of that id.
        """
        ...

    def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        """The custom ids and outcomes of a job that has ended, in any order.

        Raises:
            CallError: among others of the kind `RESULTS_GONE`.
        """
        ...


def custom_id(tag: str, number: int) -> str:
    """The custom id of the n-th request of a job, from 0: unique among all jobs.

    Letters, digits and a hyphen, at most 64: what every provider takes (Anthropic asks for
    `^[a-zA-Z0-9_-]{1,64}$`, the others for no form). Nothing of a sample is in it.
    """
    return f"{tag}-{number}"


def batched(outcome: Outcome) -> Outcome:
    """Mark a completion as one that a batch brought."""
    return replace(outcome, batched=True) if isinstance(outcome, Completion) else outcome


def raised(outcome: Outcome) -> CallError | ProviderRefusedError:
    """The error that a failed call of the batch API itself raises."""
    # A filter stops requests, not calls about them.
    return CallError("bad_request", "filtered") if isinstance(outcome, Completion) else outcome


def is_id(value: object) -> TypeGuard[str]:
    """Whether a value can be an id of a provider, which becomes a part of a URL."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def id_of(described: object) -> str:
    """The id of what was made.

    Raises:
        CallError: bad_response: there is none.
    """
    found = described.get("id") if isinstance(described, dict) else None
    if not is_id(found):
        raise CallError("bad_response", "an answer without an id")
    return found


async def find_tagged(jobs: AsyncIterator[object], tag: str) -> str | Absence:
    """The id of the first job whose metadata hold a tag.

    Raises:
        CallError: bad_response: it has no id.
    """
    async for job in jobs:
        match job:
            case {"metadata": dict() as metadata} if metadata.get(TAG_KEY) == tag:
                return id_of(job)
    return Absence.SURE


def count_of(value: object) -> int:
    """A count that a provider gives of requests; 0 where it is none."""
    return value if is_count(value) else 0


def absent_from_results() -> CallError:
    """What became of a request that the results of its batch do not name."""
    return CallError("bad_response", "not among the results of its batch")
