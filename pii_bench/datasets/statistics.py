"""Statistics of a dataset, compared with those that the paper prints for its sets."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from pii_bench.escaping import markdown_table
from pii_bench.files import DATA
from pii_bench.taxonomy import TYPE_OF_CATEGORY, PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.sample import Sample


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts and means over the samples of a dataset.

    Means are per sample, and lengths are in code points. An entity with several spans counts once.
    Means of queries are over the samples with a query, 0 if none has one. `categories` is how many
    of the 55 occur; None if unknown.
    """

    samples: int
    subjects: float
    description_chars: float
    description_entities: float
    query_chars: float
    query_entities: float
    types: Mapping[PiiType, int]
    categories: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A statistic of ours, and that of the paper if it prints one."""

    name: str
    ours: float
    paper: float | None

    @property
    def difference(self) -> float | None:
        """Difference relative to the paper: 0.03 is 3 % more; None if there is no ratio."""
        return self.ours / self.paper - 1 if self.paper else None


def measure(samples: Sequence[Sample]) -> Statistics:
    """Compute the statistics of at least one sample."""
    asked = [sample for sample in samples if sample.query is not None]
    entities = [entity for sample in samples for entity in sample.entities]
    types = Counter(PiiType(entity.type) for entity in entities)
    return Statistics(
        samples=len(samples),
        subjects=fmean(len(sample.subjects) for sample in samples),
        description_chars=fmean(len(sample.description) for sample in samples),
        description_entities=len(entities) / len(samples),
        query_chars=fmean(len(sample.query or "") for sample in asked) if asked else 0,
        query_entities=fmean(len(sample.related) for sample in asked) if asked else 0,
        types={pii_type: types[pii_type] for pii_type in PiiType},
        categories=len({entity.category for entity in entities} & TYPE_OF_CATEGORY.keys()),
    )


def published_statistics() -> dict[str, Statistics]:
    """Load the statistics of the paper's sets as printed.

    The printed mean number of entities of hard, 10.60, contradicts the printed counts of types,
    which give 9.17.
    """
    types: dict[str, dict[PiiType, int]] = {}
    for row in _rows("paper_type_distribution.csv"):
        types.setdefault(row["dataset"], {})[PiiType(row["type"])] = int(row["count"])
    return {
        row["dataset"]: Statistics(
            samples=int(row["samples"]),
            subjects=float(row["mean_subjects"]),
            description_chars=float(row["mean_description_chars"]),
            description_entities=float(row["mean_description_entities"]),
            query_chars=float(row["mean_query_chars"]),
            query_entities=float(row["mean_query_entities"]),
            types=types[row["dataset"]],
        )
        for row in _rows("paper_dataset_statistics.csv")
        if row["dataset"] in types
    }


def compare(ours: Statistics, paper: Statistics | None) -> dict[str, list[Comparison]]:
    """Compare the means `per sample`, and the `entities` of each type, with those of the paper."""
    return {
        "per sample": [
            Comparison(label, getattr(ours, name), getattr(paper, name) if paper else None)
            for name, label in _MEANS.items()
        ],
        "entities": [
            Comparison(pii_type, count, paper.types[pii_type] if paper else None)
            for pii_type, count in ours.types.items()
        ],
    }


def to_markdown(ours: Statistics, paper: Statistics | None) -> str:
    """Format a table of means, a table of types, and the number of categories."""
    compared = compare(ours, paper)
    means = [
        [row.name, _figure(row.ours), _figure(row.paper), _percentage(row.difference)]
        for row in compared["per sample"]
    ]
    types = [
        [
            row.name,
            _with_share(row.ours, ours),
            _with_share(row.paper, paper),
            _percentage(row.difference),
        ]
        for row in compared["entities"]
    ]
    columns = ("ours", "paper", "difference") if paper else ("ours",)
    return "\n\n".join(
        [
            _table(means, ("per sample", *columns)),
            _table(types, ("entities", *columns)),
            f"{ours.categories} of the {len(TYPE_OF_CATEGORY)} categories occur.",
        ]
    )


_MEANS: Final = {
    "samples": "samples",
    "subjects": "subjects",
    "description_chars": "description, characters",
    "description_entities": "description, entities",
    "query_chars": "query, characters",
    "query_entities": "query, entities",
}


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / "published" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    cells = [row[: len(header)] for row in rows]
    return markdown_table(header, cells, ["left", *["right"] * (len(header) - 1)])


def _figure(value: float | None) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else f"{value:,.2f}"


def _with_share(count: float | None, statistics: Statistics | None) -> str:
    if count is None or statistics is None:
        return ""
    total = sum(statistics.types.values())
    return f"{count:,} ({count / max(total, 1):.1%})"


def _percentage(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}"
