"""The types between the suite and a provider's batch API.

A batch is answered within a day at half the price. It is submitted as a job, whose results are
read when it has ended.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeGuard

import httpx2

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import CallError, Completion, is_count
from pii_bench.models.service import LARGEST_BODY, Client, connection_failure, parse_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from pii_bench.errors import ProviderRefusedError
    from pii_bench.models.base import Outcome, Request
    from pii_bench.models.service import ServiceModel


RESULTS_GONE: Final = "results_gone"
"""The kind of CallError for results that the provider does not have, or no longer."""

_TAG_KEY: Final = "pii_bench"

CHAT_COMPLETIONS: Final = "/v1/chat/completions"
"""The endpoint that a job's requests are for, as OpenAI and Mistral name it."""


class UnknownJobError(PiiBenchError):
    """The provider knows no job with this id."""

    def __init__(self, provider: str, job: str) -> None:
        super().__init__(f"provider {provider!r} knows no batch {job!r}")


class Absence(Enum):
    """Why no job with a tag was found."""

    SURE = auto()
    """No batch has the tag."""
    UNDECIDED = auto()
    """A batch that still runs may have it."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The largest job: number of requests, and their bytes."""

    requests: int
    size: int


LIMITS: Final = BatchLimits(requests=5000, size=50_000_000)
"""Below the limits of every provider: a job's requests are held in memory together."""


@dataclass(frozen=True, slots=True)
class BatchState:
    """The progress of a job.

    Attributes:
        finished: requests that are done, with or without success.
        total: 0 while the provider has not counted them.
        absent: the error of the requests that are missing from the results.
    """

    ended: bool
    finished: int
    total: int
    absent: CallError | ProviderRefusedError


class BatchService(Protocol):
    """A provider's batch API for one model.

    Every method may raise:
        CallError: this call failed; it may be repeated.
        ProviderRefusedError: every call would fail.
    """

    @property
    def limits(self) -> BatchLimits:
        """The largest job that may be submitted."""
        ...

    def size(self, request: Request) -> int:
        """Return the largest number of bytes that a request takes in a job."""
        ...

    async def submit(self, requests: Sequence[Request], tag: str) -> str:
        """Submit at least one request, all with the same sampling, and return the job's id.

        `find` finds the job by its tag.

        Raises:
            CallError: there is no job for the kinds `rate_limit` and `bad_request`, and if it is
                `unsent`; else there may be one.
            ProviderRefusedError: there is no job.
        """
        ...

    async def find(self, tag: str, *, since: float, requests: int) -> str | Absence:
        """Return the id of a job whose submission, at the Unix time `since`, got no response.

        `requests`: number of the job's requests.
        """
        ...

    async def poll(self, job: str) -> BatchState:
        """Return the progress of a job.

        Raises:
            UnknownJobError: there is no job with this id.
        """
        ...

    def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        """Yield the custom ids and outcomes of a job that has ended, in any order.

        Raises:
            CallError: also of the kind `RESULTS_GONE`.
        """
        ...


class FileBatchService(ABC, Generic[Client]):
    """The common part of the batch services of OpenAI and Mistral (`BatchService`).

    Requests are uploaded as a file of JSON Lines. Results are downloaded as two such files, one
    of answers and one of errors.
    """

    # OpenAI allows 50,000 requests and 200 MB, Mistral 1,000,000 requests and 512 MB.
    limits = LIMITS

    file_keys: ClassVar[tuple[str, str]]
    """The keys of a job with the ids of the files of answers and of errors."""

    def __init__(self, model: ServiceModel[Client]) -> None:
        self._model, self._client = model, model.client

    def size(self, request: Request) -> int:
        """Return the bytes of a request's line; see `BatchService`."""
        return len(self._line("x" * 64, request))

    async def submit(self, requests: Sequence[Request], tag: str) -> str:
        """Upload the requests as a file, and create a job for it; see `BatchService`."""
        content = b"".join(
            self._line(custom_id(tag, number), request) for number, request in enumerate(requests)
        )
        try:
            file = id_of(await self._model.call_json(self._upload(f"{tag}.jsonl", content)))
        except CallError as error:
            # There is no job yet.
            error.unsent = True
            raise
        return id_of(await self._model.call_json(self._create(file, {_TAG_KEY: tag})))

    async def find(self, tag: str, *, since: float, requests: int) -> str | Absence:  # noqa: ARG002 - of the protocol
        """Search the metadata of all jobs for the tag; see `BatchService`."""
        async for job in self._jobs():
            match job:
                case {"metadata": dict() as metadata} if metadata.get(_TAG_KEY) == tag:
                    return id_of(job)
        return Absence.SURE

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        """Read the files of answers and of errors; see `BatchService`."""
        described = await self._job(job)
        for key in self.file_keys:
            file = described.get(key)
            if is_id(file):
                async with (
                    self._download(file) as response,
                    aclosing(read_results(response)) as lines,
                ):
                    async for name, line in lines:
                        yield name, batch_outcome(self._read_result, line)

    async def _job(self, job: str) -> dict[str, Any]:
        missing = UnknownJobError(self._model.provider, job)
        described = await self._model.call_json(self._retrieve(job), missing=missing)
        if not isinstance(described, dict):
            raise CallError("bad_response", "no batch")
        return described

    def _line(self, name: str, request: Request) -> bytes:
        return json.dumps({"custom_id": name, **self._line_fields(request)}).encode() + b"\n"

    @abstractmethod
    def _line_fields(self, request: Request) -> dict[str, Any]:
        """Return the keys of a request's line, without its custom id."""

    @abstractmethod
    def _upload(self, name: str, content: bytes) -> Awaitable[Any]:
        """Upload a file of requests."""

    @abstractmethod
    def _create(self, file: str, metadata: dict[str, str]) -> Awaitable[Any]:
        """Create a job for an uploaded file."""

    @abstractmethod
    def _retrieve(self, job: str) -> Awaitable[Any]:
        """Get the description of a job."""

    @abstractmethod
    def _jobs(self) -> AsyncIterator[object]:
        """Yield all jobs of the account."""

    @abstractmethod
    def _download(self, file: str) -> AbstractAsyncContextManager[httpx2.Response]:
        """Open a file as a streamed response."""

    @abstractmethod
    def _read_result(self, line: dict[str, Any]) -> Outcome:
        """Read a line of results; may raise CallError."""


def custom_id(tag: str, number: int) -> str:
    """Return the custom id of a job's n-th request, from 0: unique among all jobs.

    Letters, digits and a hyphen, at most 64, which every provider accepts (Anthropic requires
    `^[a-zA-Z0-9_-]{1,64}$`, the others no form). It contains nothing of a sample.
    """
    return f"{tag}-{number}"


async def read_results(
    response: httpx2.Response,
) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
    """Yield the custom ids and objects of a streamed file of results; the caller closes it.

    Raises:
        CallError: bad_response for a line that is longer than `LARGEST_BODY`, or not a JSON
            object with a custom id; timeout or connection for an incomplete file.
    """
    pending = bytearray()
    try:
        # Not `aiter_lines`: JSON strings may contain Unicode's line separators.
        async for chunk in response.aiter_bytes():
            end, *starts = chunk.split(b"\n")
            pending += end
            for start in starts:
                if pending.strip():
                    yield _parse_result(pending)
                pending = bytearray(start)
            if len(pending) > LARGEST_BODY:
                raise CallError("bad_response", "a line of the results is too long")
    except httpx2.RequestError as error:
        failure = connection_failure(error)
    else:
        if pending.strip():
            yield _parse_result(pending)
        return
    raise failure


def _parse_result(line: bytes | bytearray) -> tuple[str, dict[str, Any]]:
    record: Any = parse_json(line)
    match record:
        case {"custom_id": str() as name}:
            return name, record
    raise CallError("bad_response", "a line of the results has no custom id")


def batch_outcome(read: Callable[[dict[str, Any]], Outcome], line: dict[str, Any]) -> Outcome:
    """Read a line of results with an adapter's function, and mark a completion as batched."""
    try:
        outcome = read(line)
    except CallError as error:
        return error
    return replace(outcome, batched=True) if isinstance(outcome, Completion) else outcome


def is_id(value: object) -> TypeGuard[str]:
    """Return True if a value can be a provider's id, which becomes part of a URL."""
    pattern = r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,254}"
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


def id_of(described: object) -> str:
    """Return the id of what a call created.

    Raises:
        CallError: bad_response: there is no id.
    """
    name = described.get("id") if isinstance(described, dict) else None
    if not is_id(name):
        raise CallError("bad_response", "an answer without an id")
    return name


def count_of(value: object) -> int:
    """Return a provider's count of requests; 0 if it is not valid."""
    return value if is_count(value) else 0


def absent_from_results() -> CallError:
    """Return the error of a request that is missing from its batch's results."""
    return CallError("bad_response", "not among the results of its batch")
