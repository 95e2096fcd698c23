from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.spans import COLUMNS, SpanTally, build_local
from pii_bench.datasets.span_files import Document
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.taxonomy import PiiType, taxonomy
from tests.systems.fakes import WordDetector

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TEXT = "Dr. Ann Lee, 58 years old, of Ulm: card 4111, site a.de, $5."
SPANS = (
    (0, 3, "PREFIX"),
    (4, 7, "FIRSTNAME"),
    (8, 11, "LASTNAME"),
    (13, 25, "AGE"),
    (30, 33, "CITY"),
    (40, 44, "CREDITCARDNUMBER"),
    (51, 55, "URL"),
    (57, 59, "NOVELTY"),
)


def rows_of(
    detector: WordDetector, *, count: int = 1, labels: str = "ai4privacy"
) -> dict[str, Mapping[str, str]]:
    """The rows by slice as they are shown, without empty cells."""
    tally = SpanTally(taxonomy(labels), detector)
    for number in range(count):
        tally.add(Document(f"x-{number}", TEXT, SPANS))
    rows = tally.rows("x", "signature")
    assert all([*row] == [*COLUMNS] for row in rows)
    return {
        str(row["slice"]): {
            key: f"{value:.4f}" if isinstance(value, float) else str(value)
            for key, value in row.items()
            if value is not None and key not in {"model", "dataset", "slice"}
        }
        for row in rows
    }


def test_figures_of_all_documents() -> None:
    found = WordDetector({"Ann Lee": PiiType.PER, "58": PiiType.DEM, "4111": PiiType.LOC})

    whole = rows_of(found, count=2)["all"]

    # Gold is the whole name, the age, the city and the card. The name is right, the card has
    # another type, of the age there is a piece.
    assert (whole["documents"], whole["gold"], whole["predicted"]) == ("2", "8", "6")
    assert (whole["precision"], whole["recall"]) == ("0.3333", "0.2500")
    assert whole["f1"] == whole["f1_low"] == whole["f1_high"] == whole["semeval_strict_f1"]
    assert whole["f1"] == "0.2857"  # 2 * 1 / 7
    assert whole["semeval_exact_f1"] == "0.5714"  # 2 * 2 / 7
    assert whole["semeval_partial_f1"] == "0.7143"  # 2 * 2.5 / 7
    assert whole["semeval_type_f1"] == "0.5714"
    assert whole["overlap_f1"] == "0.8571"  # 2 * 3 / 7
    # Ann, Lee and 58, of these and 4111, and of Ann, Lee, 58, years, old, Ulm, 4111.
    assert (whole["token_precision"], whole["token_recall"]) == ("0.7500", "0.4286")
    # PER 1; DEM, LOC and CODE 0.
    assert whole["macro_f1"] == "0.2500"
    assert whole["signature"] == "signature"


def test_rows_of_types_tiers_and_labels() -> None:
    rows = rows_of(WordDetector({"Ann Lee": PiiType.PER, "58": PiiType.DEM}))

    assert rows["type PER"] == {
        "gold": "1",
        "predicted": "1",
        "precision": "1.0000",
        "recall": "1.0000",
        "f1": "1.0000",
    }
    assert rows["tier 1"] == {
        "gold": "1",
        "recall": "0.0000",
        "overlap_recall": "0.0000",
        "target_recall": "0.9800",
    }
    assert rows["tier 2"]["recall"] == "1.0000"
    # The age by a piece, the city not at all.
    assert (rows["tier 3"]["gold"], rows["tier 3"]["overlap_recall"]) == ("2", "0.5000")
    assert "tier 4" not in rows
    assert rows["label AGE"] == {"gold": "1", "recall": "0.0000", "overlap_recall": "1.0000"}
    assert "label LASTNAME" not in rows  # a part of the name


def test_what_a_taxonomy_cannot_express_is_listed_and_not_scored() -> None:
    found = WordDetector(
        {
            "Dr": PiiType.PER,  # only where gold has no type
            "a.de": PiiType.LOC,  # likewise
            "Dr. Ann Lee": PiiType.PER,  # where gold has one too
            "Ulm": PiiType.LOC,
        },
        types=frozenset({PiiType.PER, PiiType.LOC}),
    )

    rows = rows_of(found)

    # The detector has no DEM and no CODE: left are the name and the city.
    assert (rows["all"]["gold"], rows["all"]["predicted"]) == ("2", "2")
    assert {key[12:]: value for key, value in rows.items() if key.startswith("not scored")} == {
        "gold AGE (the detector has no DEM)": {"gold": "1"},
        "gold CREDITCARDNUMBER (the detector has no CODE)": {"gold": "1"},
        "gold NOVELTY (no such type)": {"gold": "1"},
        "gold PREFIX (no such type)": {"gold": "1"},
        "gold URL (no such type)": {"gold": "1"},
        "predicted LOC (where gold has no type)": {"predicted": "1"},
        "predicted PER (where gold has no type)": {"predicted": "1"},
    }


def test_a_type_that_the_dataset_does_not_have_is_no_error() -> None:
    rows = rows_of(WordDetector({"$5": PiiType.QUANTITY}), labels="presidio-research")

    assert rows["not scored: predicted QUANTITY (the dataset has none)"] == {"predicted": "1"}
    assert rows["all"].get("f1") != "1.0000"


def test_nothing_scored_has_no_figures() -> None:
    tally = SpanTally(taxonomy("spacy"), WordDetector({}))
    tally.add(Document("x-1", TEXT, ()))

    (row,) = tally.rows("x", "s")

    assert row["documents"] == 1
    figures = [column for column in COLUMNS if column.endswith(("f1", "low", "recall"))]
    assert {row[column] for column in figures} == {None}


def test_a_local_detector_by_name(tmp_path: Path) -> None:
    assert build_local("bilstm-crf").name == "bilstm-crf"
    encoder = build_local("encoder")
    assert "Ann Lee" in {TEXT[span.start : span.end] for span in encoder.detect(TEXT)}
    assert (encoder.name, *encoder.identity, encoder.types) == (
        *("encoder", "weights"),
        frozenset(PiiType),
    )
    with pytest.raises(UnknownNameError, match="did you mean 'encoder'"):
        build_local("encodr")
    with pytest.raises(PiiBenchError, match="takes no map of labels"):
        build_local("encoder", tmp_path / "map.json")
