from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import data_stats, main
from pii_bench.construction.recorded import Recorded
from pii_bench.datasets.catalog import DATASETS
from pii_bench.datasets.readings import load_readings, version_of
from pii_bench.datasets.sample import read_native
from pii_bench.files import DATA
from pii_bench.models import catalog
from tests.builders import read_folder, read_lines, sample_record, write_lines
from tests.cli.conftest import table_lines
from tests.construction.writers import good
from tests.fakes import FakeModel

if TYPE_CHECKING:
    from pii_bench.models.catalog import ModelOptions
    from tests.cli.conftest import Capsys


def test_a_file_without_problems(capsys: Capsys) -> None:
    assert main(["data", "check", str(DATASETS["demo"].path)]) == 0

    assert capsys.readouterr() == ("no problems in 12 samples\n", "")


def test_problems_with_file_id_rule_and_reason(capsys: Capsys) -> None:
    first = write_lines(Path("one.jsonl"), [sample_record(query="Is 32 old, Ann?")])
    second = write_lines(
        Path("two.jsonl"),
        [
            sample_record("s2", description="Ann Lee is 32. Is 32 old?"),
            sample_record("s3", related=[]),
        ],
    )

    assert main(["data", "check", str(first), str(second)]) == 2

    output = capsys.readouterr()
    assert output.out.splitlines() == [
        f"{first}: s1: query-value: the query holds '32'",
        f"{first}: s1: query-name: the query holds 'Ann', of a name",
        f"{second}: s2: span-complete: '32' at [18, 20] is not annotated",
        f"{second}: s3: related-count: 0 entities are needed, not 1 to 3",
        f"{second}: s3: duplicate: the description is that of s1",
        "",
        "query-value: 1",
        "query-name: 1",
        "span-complete: 1",
        "related-count: 1",
        "duplicate: 1",
    ]
    assert output.err == "pii-bench: the check found 5 problems in 3 samples\n"


def test_every_row_of_the_statistics_as_json(capsys: Capsys) -> None:
    path = write_lines(Path("mine.jsonl"), [sample_record()])

    assert main(["data", "stats", "--dataset", str(path), "--json"]) == 0

    first, *others = json.loads(capsys.readouterr().out)
    assert first.pop("dataset").startswith("mine-")
    assert first == {
        "table": "per sample",
        "name": "samples",
        "ours": 1,
        "paper": None,
        "difference": None,
    }
    assert [row["table"] for row in others].count("per sample") == 5
    assert sum(row["ours"] for row in others if row["table"] == "entities") == 2
    assert (others[-1]["name"], others[-1]["ours"]) == ("categories", 2)


def test_the_dataset_card_is_written_where_asked(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Path("README.md")
    card.write_text("<!-- statistics:begin -->\n<!-- statistics:end -->\n")
    monkeypatch.setattr(data_stats, "README", card)

    assert main(["data", "stats"]) == 0
    printed = capsys.readouterr().out
    assert "single" not in card.read_text()

    assert main(["data", "stats", "--write"]) == 0
    assert capsys.readouterr().out == f"{printed}\nwritten: {card}\n"
    assert printed in card.read_text()

    assert main(["data", "stats", "--dataset", "demo", "--write"]) == 2
    assert printed in card.read_text()


DESCRIPTION = "Ann Lee, 32, lives in Leeds."
ENTITIES = [
    {"text": "Ann Lee", "type": "PER", "category": "Full Name", "spans": [[0, 7]]},
    {"text": "32", "type": "DEM", "category": "Age", "spans": [[9, 11]]},
    {"text": "Leeds", "type": "LOC", "category": "City/Region", "spans": [[22, 27]]},
]


@pytest.fixture
def data() -> Path:
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
        write_lines(Path(f"data/{name}.jsonl"), records)
    readme = Path("data/README.md")
    readme.write_text("# Data\n<!-- quality:begin --><!-- quality:end -->\n", encoding="utf-8")
    return Path("data")


def test_the_measures_are_printed_and_written_into_the_readme(data: Path, capsys: Capsys) -> None:
    assert main(["data", "quality"]) == 0

    printed = capsys.readouterr().out
    assert (data / "README.md").read_text(encoding="utf-8") == (
        f"# Data\n<!-- quality:begin -->\n{printed}<!-- quality:end -->\n"
    )
    figures = {name: row for name, *row in table_lines(printed)}
    # Each query needs one of two choices: all of them have precision 1/2 and recall 1.
    expected = ["0.667", "0.667", "≤ 0.750", "yes"]
    assert figures["F1 of `all` on gold entities without names"] == expected
    # lives, in, and the placeholders of name, age and town
    assert figures["distinct words"][:2] == ["5", "5"]


def test_frequent_words_are_compared_with_another_dataset(data: Path, capsys: Capsys) -> None:
    assert main(["data", "quality", "--compare", str(data / "single.jsonl")]) == 0

    assert capsys.readouterr().out.splitlines()[-1].split() == ["lives", "100.0%"] * 3


ALL_SETS = (
    "single multi distract twins frontier train-single train-multi train-more-single "
    "train-more-multi train-twins train-other dev-single dev-multi dev-twins"
)


@pytest.mark.parametrize(
    ("block", "command"),
    [
        ("statistics", "stats"),
        ("quality", "quality --data copied"),
        ("agreement", f"agreement {ALL_SETS}"),
        ("finished", "agreement single multi twins frontier distract --finished"),
    ],
)
def test_the_data_card_has_what_the_command_prints(
    capsys: Capsys, block: str, command: str
) -> None:
    # `quality` writes the card of its folder.
    Path("copied").mkdir()
    for name in ("single", "multi"):
        Path(f"copied/{name}.jsonl").symlink_to(DATA / f"{name}.jsonl")
    card = (DATA / "README.md").read_text(encoding="utf-8")
    _, begin, rest = card.partition(f"<!-- {block}:begin -->\n")
    table, end, _ = rest.partition(f"<!-- {block}:end -->")
    assert begin
    assert end

    assert main(["data", *command.split()]) == 0

    assert capsys.readouterr().out.strip() == table.strip()


def test_missing_sets_are_built_first(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    sets = {path.name: path.read_bytes() for path in data.glob("*.jsonl")}
    for name in sets:
        (data / name).unlink()

    def build(folder: Path) -> None:
        for name, content in sets.items():
            (folder / name).write_bytes(content)

    monkeypatch.setattr("pii_bench.cli.data_quality.build_all", build)

    assert main(["data", "quality"]) == 0

    output = capsys.readouterr()
    assert output.err == "data: the sets do not exist and are built first\n"
    assert "| distinct words" in output.out


def test_versions_pass_the_check(capsys: Capsys) -> None:
    out = Path("versions.jsonl")
    options = ["--kind", "typos,lower-case", "--rate", "0.5", "--seed", "1", "--limit", "5"]

    assert main(["data", "perturb", "demo", *options, "--out", str(out)]) == 0

    output = capsys.readouterr()
    assert output.out.splitlines()[2:] == [
        "| typos      | 5          | 0                   | 0               |",
        "| lower-case | 5          | 0                   | 0               |",
        "",
        f"10 samples: {out}",
    ]
    marks = [record["meta"]["perturbation"] for record in read_lines(out)]
    assert {(mark["kind"], mark["rate"], mark["seed"], mark["dataset"]) for mark in marks} == {
        ("typos", 0.5, 1, "demo"),
        ("lower-case", 0.5, 1, "demo"),
    }
    assert main(["data", "check", str(out)]) == 0


def test_versions_run_and_are_compared_with_their_originals(capsys: Capsys) -> None:
    out, results = Path("versions.jsonl"), "results"
    arguments = ["--kind", "lower-case", "--out", str(out)]
    assert main(["data", "perturb", "demo", *arguments]) == 0
    for dataset in ("demo", str(out)):
        command = ["run", "--model", "gold+keyword", "--dataset", dataset, "--results", results]
        assert main(command) == 0
    capsys.readouterr()

    assert main(["analyse", "--results", results]) == 0

    assert "+0.000 (0.00 to 0.00) | 1.00 (1.00 to 1.00)" in capsys.readouterr().out
    table = Path("results/analysis/robustness.csv").read_text(encoding="utf-8")
    assert "gold,detection,versions-" in table


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["demo", "--kind", "tyops"], "unknown kind 'tyops'; did you mean 'typos'?"),
        (["demmo"], "unknown dataset 'demmo'; did you mean 'demo'?"),
        (["one.jsonl", "--kind", "dates"], "dates: nothing to change in one-"),
        (["one.jsonl", "--out", "./one.jsonl"], "is the dataset itself"),
        (
            ["two.jsonl", "--kind", "names,dates,foreign-words"],
            "3 would break a rule or have annotations that cannot follow the text, 0 have",
        ),
    ],
)
def test_versions_that_cannot_be_written_are_errors(
    options: list[str], message: str, capsys: Capsys
) -> None:
    name = {"text": "Ann Lee", "type": "PER", "category": "Full Name"}
    subjects = [{"id": "A", "entities": [name]}]
    twice = sample_record(description="Ann Lee is ANN LEE.", subjects=subjects, related=[])
    write_lines(Path("one.jsonl"), [sample_record()])
    write_lines(Path("two.jsonl"), [twice])
    before = read_folder(Path())

    assert main(["data", "perturb", "--out", "out.jsonl", *options]) == 2

    assert message in capsys.readouterr().err
    assert read_folder(Path()) == before


def test_agreement_is_over_first_readings_by_the_version_that_was_read(capsys: Capsys) -> None:
    interviews = {
        (sample.id, version_of(sample))
        for sample in Recorded.load().versions("multi")
        if sample.meta["register"] == "interview"
    }
    firsts = {
        name: [reading for reading in load_readings(name) if reading.round == 1]
        for name in ("single", "multi")
    }

    assert main(["data", "agreement", "single", "multi"]) == 0

    header, *lines = table_lines(capsys.readouterr().out)
    assert header[:3] == ["set", "group", "readings"]
    readings = {(line[0], line[1]): line[2] for line in lines}
    assert readings["single", "all"] == f"{len(firsts['single']):,}"
    assert {("single", way) for way in ("explicit", "implied", "contrast")} < readings.keys()
    assert readings["multi", "interview"] == str(
        sum((reading.id, reading.version) in interviews for reading in firsts["multi"])
    )


@pytest.mark.parametrize(
    ("name", "size", "sentence"),
    [
        ("single", 1214, None),
        ("multi", 1228, r"All but (\d+) samples of `multi`"),
        ("twins", 992, r"and (\d+)\sof `twins` pass"),
    ],
)
def test_the_data_card_says_how_many_samples_do_not_pass(
    capsys: Capsys, name: str, size: int, sentence: str | None
) -> None:
    card = (DATA / "README.md").read_text(encoding="utf-8")
    disputed = 0
    if sentence is not None:
        match = re.search(sentence, card)
        assert match is not None
        disputed = int(match[1])

    assert main(["data", "agreement", name, "--disputed"]) == 0

    *_, summary = capsys.readouterr().out.splitlines()
    assert summary == f"{size} recorded, {size - disputed} passed, 0 lack readings"


def test_the_table_goes_into_the_readme(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("<!-- finished:begin -->\n<!-- finished:end -->\n", encoding="utf-8")
    monkeypatch.setattr("pii_bench.cli.data_agreement.README", readme)

    assert main(["data", "agreement", "single", "--write", "--finished"]) == 2
    sets = ["single", "multi", "twins", "frontier", "distract"]
    assert main(["data", "agreement", *sets, "--write", "--finished"]) == 0

    assert "| single   | all " in readme.read_text(encoding="utf-8")


def test_a_chat_model_writes_the_first_texts_of_a_set(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    asked = []

    def build(name: str, options: ModelOptions) -> FakeModel:
        asked.append((name, options.timeout))
        return FakeModel(good)

    monkeypatch.setattr(catalog, "build_model", build)
    options = ["--set", "train-single", "--limit", "2", "--data", "mine"]

    assert main(["data", "build", "--writer", "openai/m", *options]) == 0

    path = Path("mine/built/fake--one/train-single.jsonl")
    assert asked == [("openai/m", 120.0)]
    assert capsys.readouterr().out == f"accepted 2, refused 0: {path}\n"
    assert {sample.id[:17] for sample in read_native(path)} == {
        "train-single-0001",
        "train-single-0002",
    }
