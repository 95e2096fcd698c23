from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main
from tests.builders import sample_record, write_lines

if TYPE_CHECKING:
    from pathlib import Path

DESCRIPTION = "Ann Lee, 32, lives in Leeds."
ENTITIES = [
    {"text": "Ann Lee", "type": "PER", "category": "Full Name", "spans": [[0, 7]]},
    {"text": "32", "type": "DEM", "category": "Age", "spans": [[9, 11]]},
    {"text": "Leeds", "type": "LOC", "category": "City/Region", "spans": [[22, 27]]},
]


@pytest.fixture
def data(own_folder: Path) -> Path:
    """Small sets: Ann asks about her age in one query, about her city in the other."""
    records = [
        sample_record(
            f"s-{text}",
            description=DESCRIPTION,
            query=query,
            subjects=[{"id": "A", "entities": ENTITIES}],
            related=[{"subject": "A", "text": text}],
        )
        for query, text in (("Am I too old?", "32"), ("Is the town far off?", "Leeds"))
    ]
    for name in ("single", "multi"):
        write_lines(own_folder / "data" / f"{name}.jsonl", records)
    readme = own_folder / "data" / "README.md"
    readme.write_text("# Data\n<!-- quality:begin --><!-- quality:end -->\n", encoding="utf-8")
    return own_folder / "data"


def test_the_figures_are_printed_and_stand_in_the_readme(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "quality"]) == 0

    printed = capsys.readouterr().out
    assert (data / "README.md").read_text(encoding="utf-8") == (
        f"# Data\n<!-- quality:begin -->\n{printed}<!-- quality:end -->\n"
    )
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in printed.splitlines()[2:12]
    ]
    figures = {row[0]: row[1:] for row in rows}
    # Each query needs one of two choices: all of them have precision 1/2 and recall 1.
    assert figures["F1 of `all` on gold entities"] == ["0.667", "0.667", "≤ 0.750", "yes"]
    # lives, in, and what stands for name, age and town
    assert figures["distinct words"][:2] == ["5", "5"]


def test_the_most_frequent_words_beside_those_of_another_dataset(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "quality", "--compare", str(data / "single.jsonl")]) == 0

    assert capsys.readouterr().out.splitlines()[-1].split() == ["lives", "100.0%"] * 3


def test_a_second_run_changes_nothing(data: Path) -> None:
    main(["data", "quality"])
    first = (data / "README.md").read_bytes()

    main(["data", "quality", "--data", str(data)])

    assert (data / "README.md").read_bytes() == first


def test_sets_that_are_not_there_are_built_first(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = {path.name: path.read_bytes() for path in data.glob("*.jsonl")}
    for name in sets:
        (data / name).unlink()

    def build(folder: Path) -> None:
        for name, content in sets.items():
            (folder / name).write_bytes(content)

    monkeypatch.setattr("pii_bench.cli.data._build_all", build)

    assert main(["data", "quality"]) == 0

    output = capsys.readouterr()
    assert output.err == "data: the sets are not there and are built first\n"
    assert "| distinct words" in output.out
