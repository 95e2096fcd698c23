"""The stored form of a run: response lines, manifest, and the signature of its scores."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pii_bench
from pii_bench.errors import InputFileError, UnknownNameError
from pii_bench.escaping import visible
from pii_bench.files import RecordError, get, read_object
from pii_bench.models.base import Draws, decode_response, encode_response
from pii_bench.models.budget import cost
from pii_bench.prompting.parsing.answers import PARSER
from pii_bench.scorer import MATCHER, NORMALISER, ROUGE_L_TOKENISER
from pii_bench.scorer.masked_text import LEAKS
from pii_bench.systems.base import SystemCard
from pii_bench.systems.predictions import Prediction, decode_prediction, encode_prediction
from pii_bench.tasks import Task
from pii_bench.taxonomy import taxonomy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import CallError, Completion, ModelResponse
    from pii_bench.models.catalog import Price
    from pii_bench.prompting.strategies import Output
    from pii_bench.systems.base import Response, System


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call; `detail` contains no text of a sample."""

    kind: str
    detail: str

    @classmethod
    def of(cls, error: CallError) -> Failure:
        """Convert an error."""
        return cls(error.kind, error.detail)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One line of `<dataset>.jsonl`: sample id, `System.request_hash` and what came of the call."""

    id: str
    request: str
    response: Response | Failure

    @property
    def written(self) -> ModelResponse | None:
        """The output of a chat model; None for a prediction and for a failed call."""
        return None if isinstance(self.response, Failure | Prediction) else self.response

    @property
    def completions(self) -> tuple[Completion, ...]:
        """All completions, one per call."""
        written = self.written
        if written is None:
            return ()
        return written.completions if isinstance(written, Draws) else (written,)


def encode_record(record: RunRecord) -> bytes:
    """Return the line, with its newline."""
    head = {"id": record.id, "request": record.request}
    match record.response:
        case Failure() as failure:
            body: dict[str, Any] = {"error": asdict(failure)}
        case Prediction() as prediction:
            body = encode_prediction(prediction)
        case completions:
            body = encode_response(completions)
    line = json.dumps(head | body, ensure_ascii=False)
    # A lone surrogate, which UTF-8 cannot encode, becomes its JSON escape.
    return line.encode("utf-8", "backslashreplace") + b"\n"


def decode_record(record: dict[str, Any]) -> RunRecord:
    """Convert the JSON object of a line.

    Raises:
        RecordError: the object is in a wrong format; the message names the key.
    """
    sample_id, request = get(record, "id", str), get(record, "request", str)
    if record.keys() & {"text", "draws"}:
        return RunRecord(sample_id, request, decode_response(record))
    if "error" not in record:
        return RunRecord(sample_id, request, decode_prediction(record, "record"))
    error = get(record, "error", dict)
    failure = Failure(get(error, "kind", str, "error"), get(error, "detail", str, "error"))
    return RunRecord(sample_id, request, failure)


class RequestHashes(Mapping[str, str]):
    """A lazy mapping of sample id to `System.request_hash`; each hash is computed once."""

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
    """Sums over the stored completions; failed attempts are not included.

    Attributes:
        completions: number of completions; several per response if draws vote.
        uncounted: completions without token counts; the sums leave them out.
        input_tokens: including cached tokens.
        output_tokens: including reasoning tokens.
        reasoning_tokens: part of the output tokens.
        cached_tokens: part of the input tokens.
        usd: cost of the counted completions; None if no price is known.
        price: the price used (USD per million tokens, date, source); None if unknown.
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
    """Sum tokens and cost over the completions of a run."""
    completions = [completion for record in records for completion in record.completions]
    usages = [each.usage for each in completions if each.usage is not None]
    usd = None
    if price is not None:
        costs = [
            cost(each.usage, price, each.batched) for each in completions if each.usage is not None
        ]
        usd = round(sum(costs), 6)
    return Totals(
        completions=len(completions),
        uncounted=len(completions) - len(usages),
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        usd=usd,
        price=None if price is None else f"{price.rates}, {price.date}, {price.source}",
    )


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything needed to reproduce a score.

    Attributes:
        strategy: name of the prompt or strategy; empty for predictions made elsewhere.
        prompts: prompt name to hash, for every prompt used; the hash is empty if there is no text.
        model: the requested model; empty for predictions made elsewhere.
        returned: the model ids that the provider returned.
        settings: endpoint, weights, sampling.
    """

    dataset: str
    dataset_sha256: str
    task: Task
    strategy: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    returned: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = {
            "data": f"{self.dataset}@{self.dataset_sha256[:12]}",
            "task": str(self.task),
            "strategy": self.strategy,
            "prompt": "+".join(
                f"{name}@{sha[:12]}" if sha else name for name, sha in self.prompts.items()
            ),
            "model": self.model,
            "returned": "+".join(sorted(self.returned)),
            **{key: str(value) for key, value in sorted(self.settings.items())},
            "norm": NORMALISER,
            "match": MATCHER,
            "rougeL": ROUGE_L_TOKENISER,
            "leaks": LEAKS if self.task is Task.REWRITE else "",
            "parser": PARSER if self.prompts else "",
            "pii_bench": pii_bench.__version__,
            "scipy": version("scipy"),
            "rapidfuzz": version("rapidfuzz"),
            "python": platform.python_version(),
        }
        # A model id returned by a server may contain the separator.
        return "|".join(
            f"{key}:{visible(value).replace('|', '%7C')}" for key, value in parts.items() if value
        )


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """A reference to a dataset, with what is needed to load and verify it."""

    name: str
    source: str
    sha256: str
    samples: int

    @classmethod
    def of(cls, dataset: Dataset) -> DatasetRef:
        """Return the reference of a loaded dataset."""
        return cls(dataset.name, dataset.source, dataset.sha256, len(dataset.samples))

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> DatasetRef:
        """Read a reference from its JSON object.

        Raises:
            RecordError: a field is missing or of another type.
        """
        return cls(
            name=get(record, "name", str, "dataset"),
            source=get(record, "source", str, "dataset"),
            sha256=get(record, "sha256", str, "dataset"),
            samples=get(record, "samples", int, "dataset"),
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """The system, dataset and package version of a run.

    Attributes:
        totals: sums over the responses; None until the run has ended. `read_manifest` leaves it
            out: see `read_totals`.
    """

    system: SystemCard
    dataset: DatasetRef
    version: str = pii_bench.__version__
    totals: Totals | None = None


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        InputFileError: the file is missing or in a wrong format.
    """
    return read_object(path, "manifest of a run", _manifest)


def read_totals(path: Path) -> Totals | None:
    """Read the totals of a manifest; None if there is none, or none that this version wrote."""
    try:
        return read_object(path, "manifest of a run", lambda record: Totals(**record["totals"]))
    except (InputFileError, TypeError, KeyError):
        return None


def _manifest(record: dict[str, Any]) -> Manifest:
    system, dataset = get(record, "system", dict), get(record, "dataset", dict)
    return Manifest(
        system=SystemCard(
            model=get(system, "model", str, "system"),
            prompt=get(system, "prompt", str, "system"),
            prompt_sha256=get(system, "prompt_sha256", str, "system"),
            task=Task(get(system, "task", str, "system")),
            oracle=get(system, "oracle", bool, "system"),
            settings=get(system, "settings", dict, "system"),
            names_subjects=get(system, "names_subjects", bool, "system"),
            unmasked_text_to=get(system, "unmasked_text_to", str, "system"),
            output=_output(system),
            taxonomy=_taxonomy(system),
        ),
        dataset=DatasetRef.from_record(dataset),
        version=get(record, "version", str),
    )


def _taxonomy(system: dict[str, Any]) -> str | None:
    if system.get("taxonomy") is None:
        return None
    name = get(system, "taxonomy", str, "system")
    try:
        taxonomy(name)
    except UnknownNameError as error:
        raise RecordError(f"system: {error}") from None
    return name


def _output(system: dict[str, Any]) -> Output:
    match get(system, "output", str, "system"):
        case "text" | "schema" as output:
            return output
        case other:
            raise RecordError(f"system: 'output' is {other!r} (allowed: text, schema)")
