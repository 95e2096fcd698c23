"""`<dataset>.run.json`: what was run, next to its responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pii_bench
from pii_bench.errors import UnknownNameError
from pii_bench.files import RecordError, get, read_object, write_json
from pii_bench.systems.base import UNKNOWN_RECIPIENT, SystemCard
from pii_bench.tasks import Task
from pii_bench.taxonomy import taxonomy

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.datasets.catalog import Dataset
    from pii_bench.prompting.strategies import Output
    from pii_bench.runs.records import Totals


@dataclass(frozen=True, slots=True)
class DatasetRef:
    """Which dataset was run: enough to load it again and to see that it is the same."""

    name: str
    source: str
    sha256: str
    samples: int

    @classmethod
    def of(cls, dataset: Dataset) -> DatasetRef:
        """Refer to a loaded dataset."""
        return cls(dataset.name, dataset.source, dataset.sha256, len(dataset.samples))


@dataclass(frozen=True, slots=True)
class Manifest:
    """A system, a dataset and the version of the suite that brought them together.

    Attributes:
        totals: what the responses took; None until a run has ended. Never read back: it
            follows from the responses.
    """

    system: SystemCard
    dataset: DatasetRef
    version: str = pii_bench.__version__
    totals: Totals | None = None


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write it, whole or not at all.

    Raises:
        ResultsError: it cannot be written.
    """
    write_json(path, manifest)


def read_manifest(path: Path) -> Manifest:
    """Read it back.

    Raises:
        InputFileError: it is absent or not of its format.
    """
    return read_object(path, "manifest of a run", _manifest)


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
            # Manifests of version 0.1 lack it: only prompts were run then.
            names_subjects="names_subjects" not in system
            or get(system, "names_subjects", bool, "system"),
            unmasked_text_to=get(system, "unmasked_text_to", str, "system")
            if "unmasked_text_to" in system
            else UNKNOWN_RECIPIENT,
            output=_output(system),
            taxonomy=_taxonomy(system),
        ),
        dataset=DatasetRef(
            name=get(dataset, "name", str, "dataset"),
            source=get(dataset, "source", str, "dataset"),
            sha256=get(dataset, "sha256", str, "dataset"),
            samples=get(dataset, "samples", int, "dataset"),
        ),
        version=get(record, "version", str),
    )


def _taxonomy(system: dict[str, Any]) -> str | None:
    # Older manifests lack it: there were only the seven types then.
    if system.get("taxonomy") is None:
        return None
    name = get(system, "taxonomy", str, "system")
    try:
        taxonomy(name)
    except UnknownNameError as error:
        raise RecordError(f"system: {error}") from None
    return name


def _output(system: dict[str, Any]) -> Output:
    # Older manifests lack it: there was only text then.
    match get(system, "output", str, "system") if "output" in system else "text":
        case "text" | "schema" as output:
            return output
        case other:
            raise RecordError(f"system: 'output' is {other!r} (allowed: text, schema)")
