"""The lines of a run: the hash of what was asked, what came back for a sample, and what it took."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pii_bench.files import get
from pii_bench.models.base import Draws
from pii_bench.models.calls.budget import cost
from pii_bench.models.stored import decode_response, encode_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import CallError, Completion, Response
    from pii_bench.models.table import Price
    from pii_bench.systems.base import System


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


class RequestHashes(Mapping[str, str]):
    """Sample id to `System.request_hash`, each made once: a run needs them one by one.

    Args:
        system: what would be asked.
        samples: about what.
    """

    def __init__(self, system: System, samples: Iterable[Sample]) -> None:
        self._system = system
        self._samples = {sample.id: sample for sample in samples}
        self._hashes: dict[str, str] = {}

    def __getitem__(self, sample_id: str) -> str:
        if sample_id not in self._hashes:
            self._hashes[sample_id] = self._system.request_hash(self._samples[sample_id])
        return self._hashes[sample_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the completions that are stored; attempts that failed are in none of them.

    Attributes:
        completions: one per response, several where draws vote.
        uncounted: those whose tokens are unknown; they are in no sum.
        input_tokens: cached ones too.
        output_tokens: reasoning too.
        reasoning_tokens: a part of the output.
        cached_tokens: a part of the input.
        usd: of those that were counted; None where no price is known.
        price: what was reckoned with: USD per million tokens in and out, its day and source;
            None where no price is known.
    """

    completions: int = 0
    uncounted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = None
    price: str | None = None


def total(records: Iterable[RunRecord], price: Price | None) -> Totals:
    """Add up the completions of a run's records."""
    completions = [completion for record in records for completion in record.completions]
    counted = [(each.usage, each.batched) for each in completions if each.usage is not None]
    usages = [usage for usage, _ in counted]
    return Totals(
        completions=len(completions),
        uncounted=len(completions) - len(counted),
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        usd=None
        if price is None
        else round(sum(cost(usage, price, batched) for usage, batched in counted), 6),
        price=None
        if price is None
        else f"{price.input:g} in, {price.output:g} out, {price.date}, {price.source}",
    )
