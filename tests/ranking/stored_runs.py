"""Results folders as runs leave them, made of literals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pii_bench.datasets.catalog import Dataset, load_dataset
from pii_bench.files import write_json
from pii_bench.models.base import Completion, Draws, Finish
from pii_bench.prompting.strategies import DETECTION, STRATEGIES
from pii_bench.runs.records import (
    DatasetRef,
    Failure,
    Manifest,
    RunRecord,
    encode_record,
)
from pii_bench.runs.store import RunFiles
from pii_bench.systems.base import THIS_MACHINE, SystemCard
from tests.builders import sample_record, write_lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pii_bench.prompting.strategies import Output
    from pii_bench.systems.base import Response

ANN = 'Subject1{"Ann Lee": "PER", "32": "DEM"}'
BO = 'Subject1{"Bo Ray": "PER", "40": "DEM"}'
FAILED = Failure("timeout", "")


def tiny_dataset(path: Path) -> Dataset:
    """Two samples: Ann Lee, 32, and Bo Ray, 40, who ask about their ages."""
    bo = {
        "description": "Bo Ray is 40.",
        "subjects": [
            {
                "id": "A",
                "entities": [{"text": "Bo Ray", "type": "PER"}, {"text": "40", "type": "DEM"}],
            }
        ],
        "related": [{"subject": "A", "text": "40"}],
    }
    write_lines(path, [sample_record("s1"), sample_record("s2", **bo)])
    return load_dataset(str(path))


def store_run(
    folder: Path,
    dataset: Dataset,
    prompt: str,
    answers: Mapping[str, str | list[str] | Failure],
    *,
    model: str = "fake/one",
    settings: Mapping[str, Any] | None = None,
    unmasked_text_to: str = THIS_MACHINE,
) -> RunFiles:
    """Leave a run under `<results>/runs` or `<results>/reference`; a list is of draws."""
    name, _, schema = prompt.partition("+")
    strategy = DETECTION if name == DETECTION.name else STRATEGIES[name]
    output: Output = "schema" if schema else "text"
    card = SystemCard(
        model=model,
        prompt=prompt,
        prompt_sha256=prompt[0] * 64,
        task=strategy.task,
        oracle=strategy.oracle,
        settings={"temperature": 0.0, **(settings or {})},
        unmasked_text_to=unmasked_text_to,
        output=output,
    )
    files = RunFiles.at(folder, model, prompt, dataset.name)
    write_json(files.manifest, Manifest(card, DatasetRef.of(dataset)))
    returned = model.partition("/")[2]
    records = [
        RunRecord(sample_id, "hash", _response(answer, returned))
        for sample_id, answer in answers.items()
    ]
    files.responses.write_bytes(b"".join(map(encode_record, records)))
    return files


def changed(dataset: Dataset) -> Dataset:
    """The same dataset as if its file had been another when it was run."""
    return replace(dataset, sha256="0" * 64)


def _response(answer: str | list[str] | Failure, model: str) -> Response | Failure:
    match answer:
        case Failure():
            return answer
        case str():
            return Completion(answer, Finish.STOP, model)
        case draws:
            return Draws(tuple(Completion(draw, Finish.STOP, model) for draw in draws))
