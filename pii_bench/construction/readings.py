"""Blind readings: sheets for readers, their answers, and agreement.

A reader sees the text, the query and the entities in random order, without types or gold.
Readings are kept raw in `data/readings/<set>.jsonl`, each with the version of the sample that
was read; agreement is reported on the first reading, before anything was mended.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from filelock import FileLock

from pii_bench.analysis.kappa import cohen_kappa
from pii_bench.datasets.readings import (
    READINGS,
    Reading,
    load_readings,
    needed_texts,
    options,
    version_of,
)
from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample

LEAST_NATURAL: Final = 3
"""A sample that a reader finds less natural than this is mended."""

_FIELDS: Final = 6


def shuffled(sample: Sample, reader: str) -> list[str]:
    """Return the options in the order in which a reader sees them."""
    found = sorted(options(sample))
    Random(f"{sample.id}/{version_of(sample)}/{reader}").shuffle(found)
    return found


def sheet(samples: Sequence[Sample], reader: str) -> str:
    """Return a sheet for a reader: text, query and numbered options, without gold."""
    order = list(samples)
    Random(f"{[sample.id for sample in samples]}/{reader}").shuffle(order)
    return "\n".join(_item(sample, reader) for sample in order)


def _item(sample: Sample, reader: str) -> str:
    listed = "\n".join(f"{n}. {text}" for n, text in enumerate(shuffled(sample, reader), start=1))
    parts = (f"=== {_shown_id(sample)}", sample.description, "--- query", sample.query or "")
    return "\n".join([*parts, "--- entities", listed, ""])


def _shown_id(sample: Sample) -> str:
    """Return the id and the start of the version, which determines the numbers of the options."""
    return f"{sample.id}.{version_of(sample)[:6]}"


def parse_answers(
    path: Path, samples: Mapping[str, Sample], known: Iterable[Reading], reader: str
) -> list[Reading]:
    """Read a reader's answers: `single-0001.5acb5d | 2, 5 | - | no | 4 | 5 | remark` a line.

    The fields: id as the sheet shows it, numbers of the needed entities, what is personal and not
    listed (separated by semicolons, `-` for nothing), whether it is ambiguous, naturalness of text
    and of query.

    Args:
        path: of the answers.
        samples: by id, those that may be answered.
        known: earlier readings, from which the round follows.
        reader: "a", "b" or "c".

    Raises:
        InputFileError: a line is not of this form, names no such sample, or one that has changed
            since the sheet was written.
    """
    versions: dict[str, set[str]] = {}
    for reading in known:
        versions.setdefault(reading.id, set()).add(reading.version)
    found = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputFileError(path, error.strerror or "cannot be read") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        fields = [part.strip() for part in line.split("|", _FIELDS)]
        sample_id = fields[0].partition(".")[0]
        if len(fields) < _FIELDS or sample_id not in samples:
            raise InputFileError(path, "no answer to a sample of the sheet", line=number)
        sample = samples[sample_id]
        if fields[0] != _shown_id(sample):
            what = f"{sample_id} is not the version of today: write the sheet again"
            raise InputFileError(path, what, line=number)
        try:
            found.append(_reading(sample, fields, versions.get(sample.id, set()), reader))
        except (ValueError, IndexError) as error:
            raise InputFileError(path, f"not of the form: {error}", line=number) from error
    return found


def _reading(sample: Sample, fields: Sequence[str], earlier: set[str], reader: str) -> Reading:
    listed = shuffled(sample, reader)
    chosen = [int(part) for part in fields[1].replace("-", "").split(",") if part.strip()]
    if any(not 1 <= n <= len(listed) for n in chosen):
        raise ValueError(f"the sheet lists 1 to {len(listed)}")
    if fields[3].lower() not in {"yes", "no"}:
        raise ValueError(f"{fields[3]!r} is neither yes nor no")
    scores = [int(field) for field in fields[4:6]]
    if any(not 1 <= score <= 5 for score in scores):
        raise ValueError("naturalness is 1 to 5")
    version = version_of(sample)
    unlisted = tuple(p.strip() for p in fields[2].split(";") if p.strip() not in ("", "-"))
    return Reading(
        id=sample.id,
        version=version,
        reader=reader,
        round=len(earlier - {version}) + 1,
        options=tuple(sorted(listed)),
        gold=tuple(sorted(needed_texts(sample))),
        needed=tuple(sorted(listed[n - 1] for n in set(chosen))),
        unlisted=unlisted,
        ambiguous=fields[3].lower() == "yes",
        text=scores[0],
        query=scores[1],
        remark=fields[6] if len(fields) > _FIELDS else "",
    )


def record_readings(name: str, readings: Sequence[Reading], folder: Path = READINGS) -> int:
    """Append readings, without duplicates of sample, version and reader.

    Returns:
        How many were new.

    Raises:
        ResultsError: the file cannot be written.
    """
    path = folder / f"{name}.jsonl"
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            kept = {(r.id, r.version, r.reader) for r in load_readings(name, folder)}
            new = [r for r in readings if (r.id, r.version, r.reader) not in kept]
            with path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(asdict(r), ensure_ascii=False) + "\n" for r in new)
    return len(new)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of readers with gold and with each other, on first readings.

    Attributes:
        readings: how many.
        f1: mean over readings of a reader's F1 against gold.
        exact: share of readings that choose the related entities exactly.
        kappa_gold: Cohen's kappa of readers against gold, over all options pooled; None without
            an option.
        kappa_readers: of the two readers of a version, likewise; None where none has two.
        ambiguous: share of readings.
        unlisted: per 100 readings.
        text: mean naturalness of the description, 1 to 5; `query` likewise.
    """

    readings: int
    f1: float
    exact: float
    kappa_gold: float | None
    kappa_readers: float | None
    ambiguous: float
    unlisted: float
    text: float
    query: float


def agreement(readings: Sequence[Reading]) -> Agreement:
    """Compute the agreement of readings.

    Raises:
        PiiBenchError: there is none.
    """
    if not readings:
        raise PiiBenchError("no readings")
    count = len(readings)
    cells = Counter(
        (text in reading.needed, text in reading.gold)
        for reading in readings
        for text in reading.options
    )
    pairs: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        pairs.setdefault((reading.id, reading.version), []).append(reading)
    both = Counter(
        (text in one.needed, text in other.needed)
        for one, *others in pairs.values()
        for other in others
        for text in one.options
    )
    return Agreement(
        readings=count,
        f1=sum(_f1(r) for r in readings) / count,
        exact=sum(set(r.needed) == set(r.gold) for r in readings) / count,
        kappa_gold=cohen_kappa(cells),
        kappa_readers=cohen_kappa(both),
        ambiguous=sum(r.ambiguous for r in readings) / count,
        unlisted=100 * sum(len(r.unlisted) for r in readings) / count,
        text=sum(r.text for r in readings) / count,
        query=sum(r.query for r in readings) / count,
    )


def faults(reading: Reading) -> list[str]:
    """Return the reasons why a reading does not pass its sample; empty if it does."""
    gold, chosen = set(reading.gold), set(reading.needed)
    return [
        *(f"reader {reading.reader} needs {text!r} too" for text in sorted(chosen - gold)),
        *(f"reader {reading.reader} does not need {text!r}" for text in sorted(gold - chosen)),
        *(f"reader {reading.reader} finds {text!r} unlisted" for text in reading.unlisted),
        *(
            f"reader {reading.reader} gives the {what} {score} of 5"
            for what, score in (("text", reading.text), ("query", reading.query))
            if score < LEAST_NATURAL
        ),
    ]


def _f1(reading: Reading) -> float:
    one, other = set(reading.needed), set(reading.gold)
    if not one and not other:
        return 1.0
    return 2 * len(one & other) / (len(one) + len(other))
