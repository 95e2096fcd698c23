from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.prompting.targets import detection_answer, related_answer
from tests.cli.conftest import table_lines
from tests.ranking.stored_runs import ANN, BO, FAILED, store_run, tiny_dataset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pii_bench.runs.records import Failure
    from tests.cli.conftest import Capsys

RUNS = Path("results") / "runs"
WRONG = '### Answer: ["x"]'


def compare(*arguments: str) -> int:
    return main(["compare", *arguments])


def right(wrong: int = 0) -> dict[str, str | list[str] | Failure]:
    """Return answers to the queries of demo, the first `wrong` of them wrong."""
    samples = load_dataset("demo").samples
    return {s.id: WRONG if n < wrong else related_answer(s) for n, s in enumerate(samples)}


def store(answers: Mapping[str, str | list[str] | Failure], model: str, prompt: str) -> None:
    store_run(RUNS, load_dataset("demo"), prompt, answers, model=model)


def store_right_detection() -> None:
    """Let both models detect rightly."""
    detection = {s.id: detection_answer(s) for s in load_dataset("demo").samples}
    for model in ("fake/one", "fake/two"):
        store(detection, model, "detection")


def tables(output: str) -> list[list[list[str]]]:
    """Return the cells of each table without its header."""
    return [table_lines(block)[1:] for block in output.split("\n\n") if block.startswith("|")]


@pytest.fixture(autouse=True)
def two_models() -> None:
    """One model is right on all 12 queries of demo, the other on the last 4."""
    store(right(), "fake/one", "naive")
    store(right(wrong=8), "fake/two", "naive")


def test_a_line_has_both_scores_and_their_difference(capsys: Capsys) -> None:
    assert compare("fake/one", "fake/two:naive", "--samples", "2") == 0

    output = capsys.readouterr()
    assert output.err == ""
    assert output.out.startswith("A: fake/one\nB: fake/two:naive\n\n| Dataset ")
    # Of a binomial of 12 with chance 1/3, 0 and 8 or more make 2.7 %; 1 and 7 each pass 2.5 %.
    # p: 2 of 2^8 flips. Detectable: sqrt(2/9 * 12/11 / 12) * (2.2010 + 0.8755).
    assert tables(output.out)[0] == [
        [
            *("demo", "query-related", "F1", "12/12"),
            "1.000 [1.000, 1.000]",
            "0.333 [0.083, 0.583]",
            "+0.667 [+0.417, +0.917]",
            *("0.008", "0.437"),
        ]
    ]
    # The samples where they differ most are shown by id alone.
    title = "demo: query-related, F1: A is higher on 8 samples, B on 0; 4 are equal"
    assert f"\n{title}; where they differ most:\n" in output.out
    assert tables(output.out)[1] == [
        ["demo-0001", "1.000", "0.000", "+1.000"],
        ["demo-0002", "1.000", "0.000", "+1.000"],
    ]
    entities = [entity.text for each in load_dataset("demo").samples for entity in each.entities]
    assert not [text for text in entities if len(text) > 4 and text in output.out]


def test_the_lines_as_json_have_all_digits(capsys: Capsys) -> None:
    assert compare("fake/one", "fake/two", "--json") == 0

    (line,) = json.loads(capsys.readouterr().out)
    assert line == {
        "dataset": "demo",
        "task": "query-related",
        "figure": "f1",
        "samples": 12,
        "of": 12,
        "a_system": "fake/one",
        "a_source": "run",
        "a_oracle": False,
        "b_system": "fake/two",
        "b_source": "run",
        "b_oracle": False,
        "a": 1.0,
        "a_interval": [1.0, 1.0],
        "b": pytest.approx(4 / 12),
        "b_interval": pytest.approx([1 / 12, 7 / 12]),
        "difference": pytest.approx(8 / 12),
        "difference_interval": pytest.approx([5 / 12, 11 / 12]),
        "p": pytest.approx(2 / 2**8),
        "detectable": pytest.approx((2 / 9 / 11) ** 0.5 * (2.2010 + 0.8755), abs=1e-4),
    }


def test_p_is_corrected_for_the_lines_printed(capsys: Capsys) -> None:
    store_right_detection()

    assert compare("fake/one", "fake/two") == 0

    table, *_ = tables(capsys.readouterr().out)
    # Of three lines two have 2 / 2^8: three times that. Detection is equal.
    assert [(line[1], line[2], line[7]) for line in table] == [
        ("detection", "Strict-F1", "1.000"),
        ("query-related", "F1", "0.023"),
        ("masking", "H", "0.023"),
    ]


def test_lines_are_limited_to_a_dataset_or_task(capsys: Capsys) -> None:
    for dataset, task in [("demo", "all"), ("all", "query-related"), ("demo", "query-related")]:
        assert compare("fake/one", "fake/two", "--dataset", dataset, "--task", task) == 0
        assert len(tables(capsys.readouterr().out)[0]) == 1


def test_a_file_is_named_by_its_path_or_as_in_the_leaderboard(capsys: Capsys) -> None:
    dataset = tiny_dataset(Path("tiny.jsonl"))
    for model, answer in (("fake/one", ANN), ("fake/two", BO)):
        store_run(RUNS, dataset, "detection", {"s1": answer, "s2": BO}, model=model)

    for name in (dataset.source, dataset.name):
        assert compare("fake/one", "fake/two", "--dataset", name) == 0
        assert tables(capsys.readouterr().out)[0][0][0] == dataset.name


def test_samples_without_both_answers_are_left_out_and_make_it_incomplete(capsys: Capsys) -> None:
    store(right() | {"demo-0001": FAILED}, "fake/three", "naive")

    assert compare("fake/two", "fake/three") == 1
    assert tables(capsys.readouterr().out)[0][0][3:5] == ["11/12", "0.364 [0.091, 0.636]"]


def test_sources_and_oracles_are_marked(capsys: Capsys) -> None:
    store(right(), "fake/one", "naive-choice")
    reference = RUNS.parent / "reference"
    store_run(reference, load_dataset("demo"), "naive", right(), model="fake/two")

    for first, second, marks in (
        ("fake/one:naive", "fake/one:naive-choice", "B: oracle"),
        ("fake/two", "reference:fake/two", "A: run; B: reference"),
    ):
        assert compare(first, second) == 0
        assert tables(capsys.readouterr().out)[0][0][3] == f"12/12; {marks}"


def test_equal_answers_leave_no_sample_to_show(capsys: Capsys) -> None:
    store(right(), "fake/one", "self-cot")

    compare("fake/one:naive", "fake/one:self-cot")

    out = capsys.readouterr().out
    assert out.endswith("A is higher on 0 samples, B on 0; 12 are equal\n")
    assert tables(out)[0][0][6:] == ["+0.000 [+0.000, +0.000]", "1.000", "0.000"]


def test_a_detector_that_names_no_subjects_is_compared_by_ent_f1(capsys: Capsys) -> None:
    store_right_detection()
    manifest = RUNS / "fake--two" / "detection" / "demo.run.json"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace('"names_subjects": true', '"names_subjects": false'))

    compare("fake/one", "fake/two", "--task", "detection")

    assert tables(capsys.readouterr().out)[0][0][1:3] == ["detection", "Ent-F1"]


def test_the_error_without_common_samples_lists_the_rows(capsys: Capsys) -> None:
    dataset = tiny_dataset(Path("tiny.jsonl"))
    store_run(RUNS, dataset, "naive", {"s1": WRONG}, model="fake/three")

    assert compare("fake/one", "fake/three") == 2
    assert capsys.readouterr().err == (
        "pii-bench: no sample in common: 'fake/one' has query-related on demo; "
        f"'fake/three' has query-related on {dataset.name}\n"
    )
    # Nor is there one where each answered other samples of the same dataset.
    answers = right()
    store({"demo-0012": answers.pop("demo-0012")}, "fake/last", "naive")
    store(answers, "fake/most", "naive")
    assert compare("fake/most", "fake/last") == 2
    assert "no sample in common" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["fake/one", "fake/one:naive"], "'fake/one' and 'fake/one:naive' are the same rows"),
        (["fake/one", "fake/tow"], "did you mean 'fake/two'?"),
        (["fake/one", "fake/two", "--dataset", "dmeo"], "unknown dataset 'dmeo'; did you mean"),
    ],
)
def test_systems_that_cannot_be_compared_are_errors(
    capsys: Capsys, arguments: list[str], what: str
) -> None:
    assert compare(*arguments) == 2
    assert what in capsys.readouterr().err
