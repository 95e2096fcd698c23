"""Publish built datasets: pins, Croissant 1.1 metadata, checksums and blocks of README files.

A JSON path of Croissant (https://docs.mlcommons.org/croissant/) reaches one list deep, but the
entities of a subject are two lists deep. So `entities` is one field, whose description names the
keys.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.catalog import DATASETS, Pin, read_card
from pii_bench.errors import InputFileError
from pii_bench.files import DATA, sha256_of, write_json, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pii_bench.datasets.catalog import DatasetCard

README: Final = DATA / "README.md"
"""The dataset card of our data, in the format of Hugging Face."""


def replace_block(name: str, markdown: str, path: Path) -> None:
    """Replace the text between the two marks of a block in a file.

    Raises:
        InputFileError: the file cannot be read, or lacks one of the marks or has it twice.
        ResultsError: the file cannot be written.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(path, "cannot be read as text") from error
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    if (text.count(begin), text.count(end), rest.count(end)) != (1, 1, 1):
        raise InputFileError(path, f"must have {begin} and after it {end}, each once")
    write_whole(path, f"{before}{begin}\n{markdown.strip()}\n{end}{after}")


def croissant(cards: Sequence[DatasetCard]) -> dict[str, Any]:
    """Return the Croissant metadata (JSON-LD) of the datasets of at least one card."""
    newest = max(cards, key=lambda card: (card.released, [*map(int, card.version.split("."))]))
    pins = {name: pin for card in cards for name, pin in card.pins.items()}
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": "pii_bench",
        "description": _DESCRIPTION,
        "conformsTo": [
            "http://mlcommons.org/croissant/1.1",
            "http://mlcommons.org/croissant/RAI/1.0",
        ],
        "license": sorted({f"https://spdx.org/licenses/{card.licence}" for card in cards}),
        "version": newest.version,
        "datePublished": newest.released,
        "creator": {"@type": "sc:Organization", "name": "The pii_bench authors"},
        "inLanguage": "en",
        "keywords": ["PII", "privacy", "masking", "benchmark", "synthetic"],
        "isLiveDataset": False,
        "citeAs": _CITATION,
        "rai:dataCollection": "\n".join(f"{card.name}: {card.construction}" for card in cards),
        "rai:dataLimitations": [
            f"{card.name}: {limit}" for card in cards for limit in card.known_limits
        ],
        "rai:personalSensitiveInformation": _PRIVACY,
        "rai:dataUseCases": _USE,
        "distribution": [_file(name, pin) for name, pin in pins.items()],
        "recordSet": [_record_set(name, card.summary) for card in cards for name in card.pins],
    }


_DESCRIPTION: Final = (
    "Texts about one or more people, every piece of personal information in them by person, "
    "type and category, and for each text a query with the pieces that it needs. For measuring "
    "query-aware masking of personal information: mask all that the query does not need."
)

_CITATION: Final = """\
@misc{shen2025piibench,
  title = {PII-Bench: Evaluating Query-Aware Privacy Protection Systems},
  author = {Shen, Hao and Gu, Zhouhong and Hong, Haokai and Han, Weili},
  year = {2025},
  eprint = {2502.18545},
  archivePrefix = {arXiv}
}"""

_PRIVACY: Final = (
    "Every person is invented and every value is drawn at random. Where ranges exist that are "
    "reserved for documentation or never issued, numbers and addresses are drawn from them."
)

_USE: Final = (
    "Evaluation of systems that find personal information in prompts, decide which of it a "
    "query needs, and mask the rest. Not for training: there are sets of their own for that."
)

_ENTITIES: Final = (
    "The personal information of the subject: a list of objects with text, type, category and "
    "spans, which are the code-point offsets [start, end) of every occurrence. To be read from "
    "the file."
)

_CONTEXT: Final[dict[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        term: f"cr:{term}"
        for term in (
            *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract"),
            *("field", "fileObject", "fileProperty", "fileSet", "format", "includes", "isArray"),
            *("isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet"),
            *("references", "regex", "repeated", "replace", "samplingRate", "separator"),
            *("source", "subField", "transform"),
        )
    },
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}


def _file(name: str, pin: Pin) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": f"{name}.jsonl",
        "name": f"{name}.jsonl",
        "description": f"{pin.samples} samples, one a line.",
        "contentUrl": f"{name}.jsonl",
        "encodingFormat": "application/jsonlines",
        "sha256": pin.sha256,
    }


def _record_set(name: str, summary: str) -> dict[str, Any]:
    descriptions = {
        "id": "Identifier, unique in the set.",
        "description": "The text about one or more people.",
        "query": "The question asked with the text.",
    }
    texts = [_text(name, key, what, key) for key, what in descriptions.items()]
    subjects = _field(name, "subjects", "The people of the text.") | {
        "isArray": True,
        "arrayShape": "-1",
        "subField": [
            _text(name, "subjects/id", "A letter.", "subjects", "id"),
            # No source, as mlcroissant 1.1.1 cannot load objects in nested lists.
            _field(name, "subjects/entities", _ENTITIES) | {"dataType": "sc:Text"},
        ],
    }
    related = _field(name, "related", "The entities that the query needs.") | {
        "isArray": True,
        "arrayShape": "-1",
        "subField": [
            _text(name, "related/subject", "The id of the subject.", "related", "subject"),
            _text(name, "related/text", "The text of the entity.", "related", "text"),
        ],
    }
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": summary,
        "key": {"@id": f"{name}/id"},
        "field": [*texts, subjects, related],
    }


def _field(name: str, path: str, what: str) -> dict[str, Any]:
    return {"@type": "cr:Field", "@id": f"{name}/{path}", "name": path, "description": what}


def _text(
    name: str, path: str, what: str, column: str, json_path: str | None = None
) -> dict[str, Any]:
    source: dict[str, Any] = {
        "fileObject": {"@id": f"{name}.jsonl"},
        "extract": {"column": column},
    }
    if json_path:
        source["transform"] = {"jsonPath": json_path}
    return _field(name, path, what) | {"dataType": "sc:Text", "source": source}


def publish(data: Path = DATA) -> None:
    """Update the pins in the cards of all datasets, then write metadata and checksums.

    Raises:
        InputFileError: a dataset or card is missing or broken.
        ResultsError: a file cannot be written.
    """
    cards = []
    for name, group in groupby(DATASETS.values(), key=lambda entry: entry.card):
        path = data / f"{name}.card.json"
        pins = {entry.name: Pin.of(entry.path_in(data)) for entry in group}
        card = replace(read_card(path), pins=pins)
        write_json(path, card)
        cards.append(card)
    metadata = json.dumps(croissant(cards), indent=2, ensure_ascii=False)
    write_whole(data / "croissant.json", metadata + "\n")
    files = ["croissant.json", *(f"{name}.jsonl" for card in cards for name in card.pins)]
    files += [path.name for path in data.glob("*.card.json")]
    # In the format of `sha256sum --check`.
    lines = [f"{sha256_of(data / name)}  {name}\n" for name in sorted(files)]
    write_whole(data / "SHA256SUMS", "".join(lines))
