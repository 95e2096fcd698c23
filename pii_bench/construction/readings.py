"""Blind readings: sheets for readers, their answers, and agreement.

A reader sees the text, the query and the entities in random order, without types or gold.
Readings are kept raw in `data/readings/<set>.jsonl`, each with the version of the sample that
was read. Agreement is reported on first readings, before disputed samples were corrected.
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
from pii_bench.files import read_text, writing
from pii_bench.scorer import score_query_related

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample

# A sample whose text or query a reader finds less natural is corrected.
_MIN_NATURAL: Final = 3
# Fields of an answer, without the remark.
_FIELDS: Final = 6


def listed_options(sample: Sample, reader: str) -> list[str]:
    """Return the options in the order in which the sheet of a reader lists them."""
    listed = sorted(options(sample))
    Random(f"{sample.id}/{version_of(sample)}/{reader}").shuffle(listed)
    return listed


def reading_sheet(samples: Sequence[Sample], reader: str) -> str:
    """Return a sheet for a reader: text, query and numbered options, without gold."""
    shuffled = list(samples)
    Random(f"{[sample.id for sample in samples]}/{reader}").shuffle(shuffled)
    lines: list[str] = []
    for sample in shuffled:
        numbered = [f"{n}. {text}" for n, text in enumerate(listed_options(sample, reader), 1)]
        lines += [f"=== {_shown_id(sample)}", sample.description]
        lines += ["--- query", sample.query or "", "--- entities", "\n".join(numbered), ""]
    return "\n".join(lines)


def _shown_id(sample: Sample) -> str:
    """Return the id and the start of the version, which determines the numbers of the options."""
    return f"{sample.id}.{version_of(sample)[:6]}"


def parse_answers(
    path: Path, samples: Mapping[str, Sample], known: Iterable[Reading], reader: str
) -> list[Reading]:
    """Read a reader's answers, one per line: `single-0001.5acb5d | 2, 5 | - | no | 4 | 5 | remark`.

    The fields are the id that the sheet shows, the numbers of the needed entities, personal
    information that is not listed (separated by semicolons; `-` for none), whether the answer is
    ambiguous, how natural the text and the query are (1 to 5), and an optional remark. The
    `known` earlier readings determine the round.

    Raises:
        InputFileError: the file cannot be read, or a line is invalid, names an unknown sample,
            or names a sample that has changed since the sheet was written.
    """
    versions: dict[str, set[str]] = {}
    for reading in known:
        versions.setdefault(reading.id, set()).add(reading.version)
    readings = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("|", _FIELDS)]
        sample_id = fields[0].partition(".")[0]
        if len(fields) < _FIELDS or sample_id not in samples:
            raise InputFileError(path, "no answer to a sample of the sheet", line=number)
        sample = samples[sample_id]
        if fields[0] != _shown_id(sample):
            reason = f"{sample_id} is not the version of today: write the sheet again"
            raise InputFileError(path, reason, line=number)
        earlier = versions.get(sample_id, set()) - {version_of(sample)}
        try:
            readings.append(_parse_answer(fields, sample, reader, 1 + len(earlier)))
        except ValueError as error:
            raise InputFileError(path, f"not of the form: {error}", line=number) from error
    return readings


def _parse_answer(
    fields: Sequence[str], sample: Sample, reader: str, reading_round: int
) -> Reading:
    """Parse the fields of an answer, or raise a ValueError for an invalid one."""
    _, needed, unlisted, ambiguous, text, query, *remark = fields
    listed = listed_options(sample, reader)
    numbers = {int(part) for part in needed.replace("-", "").split(",") if part.strip()}
    if not all(1 <= number <= len(listed) for number in numbers):
        raise ValueError(f"the sheet lists 1 to {len(listed)}")
    if ambiguous.lower() not in {"yes", "no"}:
        raise ValueError(f"{ambiguous!r} is neither yes nor no")
    text_score, query_score = int(text), int(query)
    if not (1 <= text_score <= 5 and 1 <= query_score <= 5):
        raise ValueError("naturalness is 1 to 5")
    unlisted_texts = [part.strip() for part in unlisted.split(";")]
    return Reading(
        id=sample.id,
        version=version_of(sample),
        reader=reader,
        round=reading_round,
        options=tuple(sorted(listed)),
        gold=tuple(sorted(needed_texts(sample))),
        needed=tuple(sorted(listed[number - 1] for number in numbers)),
        unlisted=tuple(part for part in unlisted_texts if part not in {"", "-"}),
        ambiguous=ambiguous.lower() == "yes",
        text=text_score,
        query=query_score,
        remark="".join(remark),
    )


def record_readings(name: str, readings: Sequence[Reading], folder: Path = READINGS) -> int:
    """Append the readings of a sample, version and reader not recorded yet; return how many."""
    path = folder / f"{name}.jsonl"
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            recorded = set(map(_key, load_readings(name, folder)))
            new = [reading for reading in readings if _key(reading) not in recorded]
            with path.open("a", encoding="utf-8") as file:
                for reading in new:
                    file.write(json.dumps(asdict(reading), ensure_ascii=False) + "\n")
    return len(new)


def _key(reading: Reading) -> tuple[str, str, str]:
    return reading.id, reading.version, reading.reader


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of readers with gold and with each other.

    Attributes:
        readings: number of readings.
        f1: mean F1 of a reading against gold.
        exact: share of readings that choose exactly the related entities.
        kappa_gold: Cohen's kappa of readers and gold over the options of all readings; None
            without options.
        kappa_readers: Cohen's kappa of two readers of the same version; None without such pairs.
        ambiguous: share of readings that call the sample ambiguous.
        unlisted: number of unlisted pieces of personal information in 100 readings.
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
        PiiBenchError: there are no readings.
    """
    if not readings:
        raise PiiBenchError("no readings")
    count = len(readings)
    with_gold = Counter(
        (text in reading.needed, text in reading.gold)
        for reading in readings
        for text in reading.options
    )
    between_readers: Counter[tuple[bool, bool]] = Counter()
    first_readings: dict[tuple[str, str], Reading] = {}
    for reading in readings:
        first = first_readings.setdefault((reading.id, reading.version), reading)
        if first is not reading:
            between_readers.update(
                (text in first.needed, text in reading.needed) for text in first.options
            )
    return Agreement(
        readings=count,
        f1=sum(score_query_related(r.needed, r.gold).exact.f1 for r in readings) / count,
        exact=sum(set(reading.needed) == set(reading.gold) for reading in readings) / count,
        kappa_gold=cohen_kappa(with_gold),
        kappa_readers=cohen_kappa(between_readers),
        ambiguous=sum(reading.ambiguous for reading in readings) / count,
        unlisted=100 * sum(len(reading.unlisted) for reading in readings) / count,
        text=sum(reading.text for reading in readings) / count,
        query=sum(reading.query for reading in readings) / count,
    )


def disputes(reading: Reading) -> list[str]:
    """Return the reasons why a reading does not confirm its sample; empty if it does."""
    gold, needed = set(reading.gold), set(reading.needed)
    reasons = [f"needs {text!r} too" for text in sorted(needed - gold)]
    reasons += [f"does not need {text!r}" for text in sorted(gold - needed)]
    reasons += [f"finds {text!r} unlisted" for text in reading.unlisted]
    for part, score in (("text", reading.text), ("query", reading.query)):
        if score < _MIN_NATURAL:
            reasons.append(f"gives the {part} {score} of 5")
    return [f"reader {reading.reader} {reason}" for reason in reasons]
