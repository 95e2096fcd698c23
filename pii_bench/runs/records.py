"""The lines of a run: what came back for a sample, raw."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pii_bench.jsonl import get
from pii_bench.models.base import Draws
from pii_bench.models.stored import decode_response, encode_response

if TYPE_CHECKING:
    from pii_bench.models.base import CallError, Completion, Response


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that brought nothing; `detail` holds no text of a sample."""

    kind: str
    detail: str

    @classmethod
    def of(cls, error: CallError) -> Failure:
        """Keep of an error what may be stored."""
        return cls(error.kind, error.detail)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One line of `<dataset>.jsonl`.

    Attributes:
        id: the sample.
        request: hash of all that the response depends on.
        response: what came, or how the call failed.
    """

    id: str
    request: str
    response: Response | Failure

    @property
    def completions(self) -> tuple[Completion, ...]:
        """Every completion that came, one per call: what cost and returned models count."""
        match self.response:
            case Failure():
                return ()
            case Draws(completions):
                return completions
            case completion:
                return (completion,)


def encode_record(record: RunRecord) -> bytes:
    """The line, with its newline."""
    head = {"id": record.id, "request": record.request}
    if isinstance(record.response, Failure):
        body: dict[str, Any] = {"error": asdict(record.response)}
    else:
        body = encode_response(record.response)
    line = json.dumps(head | body, ensure_ascii=False)
    # A lone surrogate, which UTF-8 cannot hold, turns into its JSON escape.
    return line.encode("utf-8", "backslashreplace") + b"\n"


def decode_record(record: dict[str, Any]) -> RunRecord:
    """Read a line's object.

    Raises:
        RecordError: naming the key at fault.
    """
    sample_id, request = get(record, "id", str), get(record, "request", str)
    if "error" not in record:
        return RunRecord(sample_id, request, decode_response(record))
    error = get(record, "error", dict)
    failure = Failure(get(error, "kind", str, "error"), get(error, "detail", str, "error"))
    return RunRecord(sample_id, request, failure)
