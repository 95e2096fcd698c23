from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli import main
from tests.builders import read_csv, write_lines

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys

TEXT = "Rosalind Achebe lives in Gothenburg; write to rosalind@example.com."
ROW = {
    "full_text": TEXT,
    "spans": [
        {"entity_type": kind, "entity_value": TEXT[a:b], "start_position": a, "end_position": b}
        for kind, a, b in (("PERSON", 0, 15), ("EMAIL_ADDRESS", 46, 66))
    ],
}
BROKEN = {"full_text": "Zebedee", "spans": [{"start_position": 99}]}


def written() -> str:
    Path("synth.json").write_text(json.dumps([ROW, BROKEN, ROW]), encoding="utf-8")
    return "presidio-research:synth.json"


def test_detectors_are_scored_and_written(capsys: Capsys) -> None:
    source, out = written(), Path("spans.csv")

    code = main(
        ["spans", "--model", "bilstm-crf", "encoder", "--dataset", source, "--out", str(out)]
    )

    assert code == 0
    printed = capsys.readouterr()
    assert printed.out.count("| slice") == 2
    assert "1 left out: span: 'end_position' is missing (first at synth.json:1)" in printed.err
    whole = {row["model"]: row for row in read_csv(out) if row["slice"] == "all"}
    assert [*whole] == ["bilstm-crf", "encoder"]
    assert whole["encoder"]["documents"] == "2"
    assert whole["encoder"]["gold"] == "4"
    assert whole["encoder"]["signature"].startswith("data:presidio-research-synth-")
    # Scores, not texts.
    assert not any(word in out.read_text() for word in ("Rosalind", "Gothenburg", "Zebedee"))
    assert "Zebedee" not in printed.out + printed.err


def test_a_dataset_without_known_subjects_has_no_strict_f1() -> None:
    source = written()
    answer = {"subjects": [[{"text": "Rosalind Achebe", "type": "PER"}]]}
    ids = ["presidio-research-000001", "presidio-research-000003"]
    predictions = write_lines(Path("own.jsonl"), [{"id": each, **answer} for each in ids])

    assert main(["run", "--model", "encoder", "--dataset", source]) == 0
    assert main(["score", str(predictions), "--dataset", source, "--name", "own"]) == 0
    assert main(["score", str(predictions), "--dataset", source]) == 0

    board = read_csv(Path("results/leaderboard.csv"))
    rows = {row["model"]: row for row in board if row["dataset"].startswith("pres")}
    assert rows["own"]["ent_f1"] == "0.6667"
    assert {row["strict_f1"] for row in rows.values()} == {""}
    assert {row["rank"] for row in rows.values()} == {""}


def test_filters_are_for_datasets_of_spans(capsys: Capsys) -> None:
    asked = ["spans", "--model", "bilstm-crf", "--dataset", written(), "--language"]

    assert main([*asked, "en"]) == 0
    assert main([*asked, "fr"]) == 2

    error = capsys.readouterr().err
    assert "no row fits presidio-research language 'fr'" in error
