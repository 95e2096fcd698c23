"""Label definitions and worked examples for the strategy `json`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from rapidfuzz import fuzz, process

from pii_bench.datasets.catalog import open_documents
from pii_bench.datasets.span_files import Misfits, span_source
from pii_bench.errors import PiiBenchError
from pii_bench.taxonomy import CATEGORIES, PAPER, PiiType, name_in, taxonomy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.span_files import Document
    from pii_bench.taxonomy import Meaning

_TYPE_DEFINITIONS: Final[Mapping[PiiType, str]] = {
    PiiType.PER: "Name",
    PiiType.CODE: "Number or string that identifies somebody",
    PiiType.LOC: "Place",
    PiiType.ORG: "Organization",
    PiiType.DEM: "Attribute of a person",
    PiiType.DATETIME: "Date or time",
    PiiType.QUANTITY: "Sum of money or share",
}


def definitions(name: str) -> Mapping[str, str]:
    """Return the definition of each label of a taxonomy, empty if the table has none.

    The labels of the paper's taxonomy are the seven types. Labels that differ from another only in
    a number (`LASTNAME1`) are left out: some releases of a dataset number repeated labels.

    Raises:
        UnknownNameError: there is no such taxonomy.
    """
    labels = taxonomy(name)
    if name == PAPER:
        return {pii_type.value: ", ".join(CATEGORIES[pii_type]) for pii_type in PiiType}
    return {
        label: _definition(label, meaning)
        for label, meaning in labels.items()
        if name_in({key: labels[key] for key in labels if key != label}, label) is None
    }


def asked_as(asked: Mapping[str, str], meaning: Meaning | None, label: str) -> str | None:
    """Return the requested label that a label of a dataset corresponds to, if any."""
    if label in asked:
        return label
    if meaning is not None and meaning.type in asked:
        return meaning.type
    bare = label.rstrip("0123456789").removesuffix("_")
    return bare if bare in asked else None


def _definition(label: str, meaning: Meaning) -> str:
    if meaning.category is not None:
        return f"Part of: {meaning.category}" if meaning.part else meaning.category
    datafog = (meaning.datafog or "").replace("_", " ").capitalize()
    if datafog and datafog.lower() != label.replace("_", " ").lower():
        return datafog
    return "" if meaning.type is None else _TYPE_DEFINITIONS[meaning.type]


TRAIN: Final = ("train-single", "train-multi")
"""Our datasets that examples may come from."""

_POOL_SIZE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Shots:
    """The settings of the examples in a prompt.

    Attributes:
        number: per text, at least 1.
        source: a name in `TRAIN`, or `format:PATH` of a dataset of spans, whose train split is
            used.
        by: `seed` for the same random examples for every text; `similarity` for the examples
            most similar to the text.
        seed: seed of the examples, or of the pool that similar examples are chosen from.
    """

    number: int
    source: str = TRAIN[0]
    by: Literal["seed", "similarity"] = "seed"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Example:
    """A text and its values by label."""

    text: str
    values: Mapping[str, Sequence[str]]


def draw_examples(shots: Shots, name: str, asked: Mapping[str, str]) -> tuple[Example, ...]:
    """Draw the pool of examples for a taxonomy, of which some labels are asked for.

    The same settings draw the same pool.

    Raises:
        PiiBenchError: the source is not a train split, has another taxonomy, or is too small.
        InputFileError: the source cannot be read.
    """
    stream = open_documents(_train_split(shots.source))
    if stream.labels != taxonomy(name):
        what = f"examples from {shots.source!r} are not marked with the labels of {name!r}"
        raise PiiBenchError(f"{what}: choose another --taxonomy or --shots-from")
    # One more than needed: a text is never its own example.
    size = shots.number + 1 if shots.by == "seed" else max(_POOL_SIZE, shots.number + 1)
    documents: dict[bytes, Document] = {}
    for document in stream.read(Misfits()):
        # A hash is random, but the same each time.
        text = document.text.encode("utf-8", "surrogatepass")
        key = hashlib.sha256(b"%d %s" % (shots.seed, text)).digest()
        # Datasets repeat a text for each query.
        documents.setdefault(key, document)
        # The source may be larger than the memory.
        if len(documents) >= 2 * size:
            documents = {key: documents[key] for key in sorted(documents)[:size]}
    drawn = [documents[key] for key in sorted(documents)[:size]]
    if len(drawn) <= shots.number:
        what = f"{shots.number} examples of {shots.source!r}"
        raise PiiBenchError(f"{what}: it has {len(drawn)} texts, of which one may be asked about")
    return tuple(_example(document, stream.labels, asked) for document in drawn)


def choose(examples: Sequence[Example], shots: Shots, text: str) -> list[Example]:
    """Choose the examples for a text among those that do not contain it."""
    others = [example for example in examples if text not in example.text]
    if shots.by == "seed":
        return others[: shots.number]
    texts = [example.text for example in others]
    similar = process.extract(text, texts, scorer=fuzz.token_sort_ratio, limit=shots.number)
    # The most similar one comes last, next to the text.
    return [others[place] for _, _, place in reversed(similar)]


def _train_split(source: str) -> str:
    if source in TRAIN:
        return source
    if (spans := span_source(source)) is None or spans.split not in {None, "train"}:
        allowed = f"{', '.join(TRAIN)}, or FORMAT:PATH of a dataset of spans"
        raise PiiBenchError(f"{source!r} is no train split to take examples from: {allowed}")
    if spans.split is not None:
        return source
    return f"{source}{'&' if '#' in source else '#'}split=train"


def _example(
    document: Document, labels: Mapping[str, Meaning], asked: Mapping[str, str]
) -> Example:
    values: dict[str, list[str]] = {label: [] for label in asked}
    for start, end, label in document.spans:
        requested = asked_as(asked, labels.get(label), label)
        value = document.text[start:end]
        if requested is not None and value not in values[requested]:
            values[requested].append(value)
    return Example(document.text, values)
