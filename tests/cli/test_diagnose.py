from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli import main
from pii_bench.datasets.sample import write_native
from tests.analysis.diagnosis.samples import PEOPLE, couple
from tests.builders import read_folder
from tests.cli.conftest import table_lines
from tests.ranking.stored_runs import ANN, BO, FAILED, store_run, tiny_dataset

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys

TABLES = ["errors.csv", "leak-curve.csv", "leak.csv", "twins.csv"]


def cells(output: str, title: str) -> list[list[str]]:
    """Return the cells of the table under a title."""
    _, _, after = output.partition(f"\n{title}\n\n")
    return table_lines(after.partition("\n\n")[0])


def test_errors_and_leaks_of_a_prompted_model(capsys: Capsys) -> None:
    dataset = tiny_dataset(Path("tiny.jsonl"))
    runs = Path("results/runs")
    # Of Ann the name is kept, of Bo nothing is known.
    answers = {"s1": '### Answer: ["32", "Ann Lee"]', "s2": "I will not."}
    store_run(runs, dataset, "naive", answers)
    store_run(runs, dataset, "detection", {"s1": ANN, "s2": BO})

    assert main(["diagnose"]) == 0

    output = capsys.readouterr()
    assert output.err == ""
    header, line = cells(output.out, f"{dataset.name}: query-related")
    found = dict(zip(header, line, strict=True))
    assert [found[name] for name in ("Model", "Strategy", "Source", "Scored")] == [
        "fake/one",
        "naive",
        "run",
        "2/2",
    ]
    assert (found["not-relevant"], found["failed"], found["missed"]) == ("1", "1", "0")
    assert found["all"] == "2"
    _, line = cells(output.out, f"{dataset.name}: masking")
    assert line[-1] == "2"
    # Ann's name of tier 3 leaks, and Bo's where the guard is open.
    _, line = cells(output.out, dataset.name)
    assert line[3:11] == ["1/2", "1", "1.000", "1.000", "0.500", "0.000", "0.000", "0.500"]
    assert sorted(read_folder(Path("results/diagnosis"))) == TABLES


def test_without_detection_some_classes_cannot_occur(capsys: Capsys) -> None:
    dataset = tiny_dataset(Path("tiny.jsonl"))
    runs = Path("results/runs")
    store_run(runs, dataset, "naive-choice", {"s1": "### Answer: []", "s2": FAILED})

    assert main(["diagnose"]) == 0

    output = capsys.readouterr().out
    header, line = cells(output, f"{dataset.name}: query-related")
    found = dict(zip(header, line, strict=True))
    assert (found["Source"], found["Scored"]) == ("run, oracle", "1/2")
    assert (found["missed"], found["wrong-type"], found["not-chosen"]) == ("-", "-", "1")
    assert "Leak" not in output
    assert "Twins" not in output


def test_output_has_curves_and_twins_is_reproducible_and_quotes_no_sample(capsys: Capsys) -> None:
    paraphrase = couple(sample_id="s1-paraphrase", meta={"twin": "paraphrase", "twin_of": "s1"})
    for name, sample in (("first", couple()), ("twins", paraphrase)):
        write_native(Path(f"{name}.jsonl"), [sample])
        assert main(["run", "--model", "gold+keyword", "--dataset", f"{name}.jsonl"]) == 0
    capsys.readouterr()

    assert main(["diagnose"]) == 0

    shown, files = capsys.readouterr().out, read_folder(Path("results/diagnosis"))
    twins = shown.split("\nTwins: ")[1]
    assert (
        "| stays      | original  | 1       | 0        | 0           | 1       | 1.000  |" in twins
    )
    curve = files["leak-curve.csv"].decode()
    assert curve.startswith("source,model,strategy,dataset,oracle,threshold,own,leak,")
    assert curve.count(",inf,False,0,0,1,0\n") == 2

    main(["diagnose"])

    assert (capsys.readouterr().out, read_folder(Path("results/diagnosis"))) == (shown, files)
    output = shown + "".join(map(bytes.decode, files.values()))
    texts = [text for held in PEOPLE.values() for text, _, _ in held if not text.isdigit()]
    assert not [text for text in texts if text in output]


def test_without_answers_to_queries_there_is_nothing_to_diagnose(capsys: Capsys) -> None:
    dataset = tiny_dataset(Path("tiny.jsonl"))
    store_run(Path("results/runs"), dataset, "detection", {"s1": ANN})

    assert main(["diagnose"]) == 2
    message = "pii-bench: results: no answers to queries are stored there\n"
    assert capsys.readouterr().err == message


def test_the_threshold_that_keeps_nothing_is_null_in_json_and_inf_in_the_table(
    capsys: Capsys,
) -> None:
    assert main(["run", "--model", "gold+embedding", "--dataset", "demo"]) == 0
    capsys.readouterr()

    assert main(["diagnose", "--json"]) == 0

    points = [line for line in json.loads(capsys.readouterr().out) if line["table"] == "leak-curve"]
    assert [line["threshold"] for line in points].count(None) == 1
    assert points[0]["threshold"] is None
    first = Path("results/diagnosis/leak-curve.csv").read_text(encoding="utf-8").splitlines()[1]
    assert "inf" in first.split(",")
