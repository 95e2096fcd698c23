from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.utility.chats import Ratings
from pii_bench.analysis.utility.collect import (
    Measuring,
    collect_utility,
    samples_to_csv,
    to_csv,
    to_markdown,
    write_utility,
)
from pii_bench.analysis.utility.figures import (
    Mean,
    Means,
    Missing,
    SampleFigures,
    UtilityRow,
    published_figures,
)
from pii_bench.datasets.catalog import Dataset, load_dataset
from pii_bench.models.base import CallError
from pii_bench.ranking.rows import Source
from tests.analysis.utility.runs import ANSWERER, Vectors, run_answerer, run_judge, run_masker
from tests.builders import read_folder, sample_record, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Directions with simple cosines.
ENCODER = Vectors({"east": (1.0, 0.0), "north": (0.0, 1.0), "between": (0.6, 0.8)})
MEASURING = Measuring("vectors", ENCODER, weight=0.5)
SYSTEM = "fake/masker+naive"
UNMASKED = {"s1": "east", "s2": "east", "s3": "east"}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Four equal samples about Ann Lee, 32; most tests ask about the first three."""
    records = [sample_record(f"s{number}") for number in (1, 2, 3, 4)]
    return load_dataset(str(write_lines(tmp_path / "set.jsonl", records)))


def collected(results: Path) -> dict[tuple[str, str], UtilityRow]:
    """Return rows by condition and measure."""
    left_out: list[str] = []
    rows = collect_utility(results, MEASURING, left_out)
    assert left_out == []
    return {(row.condition, row.measure): row for row in rows}


def test_no_mask_has_privacy_0_and_utility_1(tmp_path: Path, dataset: Dataset) -> None:
    run_answerer(tmp_path, dataset, "no-mask", UNMASKED)

    (row,) = collected(tmp_path).values()

    assert (row.source, row.condition, row.oracle) == (Source.RUN, "no-mask", False)
    assert (row.dataset, row.answerer, row.measure) == (dataset.name, ANSWERER, "cosine vectors")
    assert (row.asked, row.samples, row.complete) == (3, 4, False)
    assert [(each.id, each.privacy, each.utility) for each in row.figures] == [
        ("s1", 0.0, 1.0),
        ("s2", 0.0, 1.0),
        ("s3", 0.0, 1.0),
    ]
    assert row.means.balanced == Mean(0.5, 3)


def test_privacy_and_cosine_of_gold_maskings(tmp_path: Path, dataset: Dataset) -> None:
    run_answerer(tmp_path, dataset, "no-mask", UNMASKED)
    run_answerer(tmp_path, dataset, "mask-all", dict.fromkeys(UNMASKED, "north"))
    run_answerer(tmp_path, dataset, "mask-query-unrelated", dict.fromkeys(UNMASKED, "between"))

    rows = collected(tmp_path)

    everything = rows["mask-all", "cosine vectors"]
    assert everything.oracle
    assert everything.means.privacy == Mean(1.0, 3)
    assert everything.means.utility == Mean(0.0, 3)
    assert everything.means.balanced == Mean(0.5, 3)
    # The name is masked, the age is not: one of two occurrences.
    ideal = rows["mask-query-unrelated", "cosine vectors"]
    assert ideal.means.privacy == Mean(0.5, 3)
    assert ideal.means.utility.value == pytest.approx(0.6)
    assert ideal.figures[0].balanced(0.5) == pytest.approx(0.55)


def test_missing_utilities_are_counted_by_reason(tmp_path: Path, dataset: Dataset) -> None:
    unmasked: dict[str, str | CallError] = {**UNMASKED, "s4": CallError("timeout")}
    outputs = dict.fromkeys(unmasked, ('Subject1{"Ann Lee": "PER"}', "### Answer: []"))
    run_masker(tmp_path, dataset, {**outputs, "s1": ("", "### Answer: []")})
    run_answerer(tmp_path, dataset, "no-mask", unmasked)
    answers = {"s2": " ", "s3": "between", "s4": "east"}
    run_answerer(tmp_path, dataset, SYSTEM, answers)

    row = collected(tmp_path)[SYSTEM, "cosine vectors"]

    assert [(each.id, each.privacy, each.missing) for each in row.figures] == [
        ("s1", None, Missing.NO_MASKING),
        ("s2", 0.5, Missing.NO_ANSWER),
        ("s3", 0.5, None),
        ("s4", 0.5, Missing.NO_ANSWER),
    ]
    assert row.means.missing == {Missing.NO_MASKING: 1, Missing.NO_ANSWER: 2}
    assert row.means.privacy == Mean(0.5, 3)
    assert row.means.utility.value == pytest.approx(0.6)
    assert row.means.utility.samples == 1
    assert (row.asked, row.samples, row.complete, row.oracle) == (4, 4, False, False)


def test_each_judge_has_its_own_rows(tmp_path: Path, dataset: Dataset) -> None:
    unmasked = {**UNMASKED, "s4": "east"}
    run_answerer(tmp_path, dataset, "no-mask", unmasked)
    run_answerer(tmp_path, dataset, "mask-all", dict.fromkeys(unmasked, "north"))
    # The unmasked answer is A in the first order, B in the second; of s4 no judge was asked.
    verdicts: dict[str, tuple[str, str] | CallError] = {
        "s1": ("A=9, B=4", "A=6, B=9"),
        "s2": ("A=9, B=4", "both are fine"),
        "s3": CallError("timeout"),
    }
    run_judge(tmp_path, dataset, "mask-all", verdicts)

    rows = collected(tmp_path)

    row = rows["mask-all", "judge fake/judge"]
    # The masked answer is rated 5 of 9: (5 - 1) / (9 - 1).
    assert [(each.id, each.utility, each.missing, each.ratings) for each in row.figures] == [
        ("s1", 0.5, None, Ratings(masked=5.0, unmasked=9.0)),
        ("s2", None, Missing.UNPARSED, None),
        ("s3", None, Missing.NO_VERDICT, None),
        ("s4", None, Missing.NO_VERDICT, None),
    ]
    assert row.means.balanced == Mean(0.75, 1)
    assert row.means.ratings == (5.0, 9.0)
    assert rows["mask-all", "cosine vectors"].means.ratings is None
    nothing_masked = rows["no-mask", "judge fake/judge"]
    assert nothing_masked.means.utility == Mean(1.0, 4)
    assert nothing_masked.means.ratings is None


def test_a_sample_without_pii_has_no_privacy(tmp_path: Path) -> None:
    record = sample_record("s1", description="It rains.", subjects=[], related=[])
    dataset = load_dataset(str(write_lines(tmp_path / "set.jsonl", [record])))
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "east"})
    run_answerer(tmp_path, dataset, "mask-all", {"s1": "between"})

    row = collected(tmp_path)["mask-all", "cosine vectors"]

    assert row.means.privacy == row.means.balanced == Mean(None, 0)
    assert row.means.utility.samples == 1
    assert row.complete


def test_rows_are_sorted_by_measure_and_condition(tmp_path: Path, dataset: Dataset) -> None:
    run_masker(tmp_path, dataset, {"s1": ("Subject1{}", "### Answer: []")})
    conditions = ["no-mask", "mask-all", "mask-query-unrelated", SYSTEM]
    for condition in reversed(conditions):
        run_answerer(tmp_path, dataset, condition, {"s1": "east"})
    run_judge(tmp_path, dataset, "mask-all", {"s1": ("", "")})

    assert [*collected(tmp_path)] == [
        *((condition, "cosine vectors") for condition in conditions),
        ("no-mask", "judge fake/judge"),
        ("mask-all", "judge fake/judge"),
    ]


def test_a_signature_names_data_prompts_models_and_settings(
    tmp_path: Path, dataset: Dataset
) -> None:
    run_masker(tmp_path, dataset, {"s1": ("Subject1{}", "### Answer: []")})
    run_answerer(tmp_path, dataset, "no-mask", {"s1": "east"})
    run_answerer(tmp_path, dataset, SYSTEM, {"s1": "east"})
    run_judge(tmp_path, dataset, SYSTEM, {"s1": ("", "")})

    rows = collected(tmp_path)
    cosine, judged = (
        rows[SYSTEM, measure].signature.split("|")
        for measure in ("cosine vectors", "judge fake/judge")
    )

    assert cosine[0] == f"data:{dataset.name}@{dataset.sha256[:12]}"
    assert {
        f"strategy:{SYSTEM}",
        f"model:{ANSWERER}",
        "max_tokens:99",
        "masked_by:['fake/masker', 'detection', 'naive']",
        "embedder.encoder:vectors 1",
        "utility:cosine vectors",
        "weight:0.5",
    } <= set(cosine)
    assert {"utility:judge fake/judge", "judge.max_tokens:2048"} <= set(judged)
    (prompts,) = (part for part in judged if part.startswith("prompt:"))
    assert "utility.answer@" in prompts
    assert "utility.judge@" in prompts


@pytest.mark.parametrize(
    ("condition", "deleted", "reason"),
    [
        ("mask-all", False, "there is no run under no-mask to compare with"),
        ("no-mask", True, "No such file"),
    ],
)
def test_runs_that_cannot_be_compared_are_left_out(
    condition: str, deleted: bool, reason: str, tmp_path: Path, dataset: Dataset
) -> None:
    run_answerer(tmp_path, dataset, condition, {"s1": "east"})
    if deleted:
        (tmp_path / "set.jsonl").unlink()
    left_out: list[str] = []

    assert collect_utility(tmp_path, MEASURING, left_out) == []
    (message,) = left_out
    assert message.startswith(f"utility: {ANSWERER} on {dataset.name}@{condition}: ")
    assert reason in message


FIGURES = (
    SampleFigures("s1", 0.75, 0.5, ratings=Ratings(masked=5.0, unmasked=9.0)),
    SampleFigures("s2", 0.25, None, Missing.UNPARSED),
    SampleFigures("s3", None, None, Missing.NO_MASKING),
)


def measured(condition: str, measure: str, *figures: SampleFigures) -> UtilityRow:
    return UtilityRow(
        source=Source.RUN,
        dataset="demo",
        condition=condition,
        oracle=condition == "mask-query-unrelated",
        answerer="local/small",
        measure=measure,
        means=Means.of(figures, 0.5),
        samples=3,
        asked=len(figures),
        signature=f"data:demo@0123|strategy:{condition}|utility:{measure}",
        figures=figures,
    )


MEASURED = (
    measured("no-mask", "cosine wordllama", *(SampleFigures(n, 0, 1) for n in ("s1", "s2"))),
    measured("mask-all", "cosine wordllama", SampleFigures("s1", 1.0, None, Missing.NO_ANSWER)),
    measured("mask-query-unrelated", "judge fake/judge", *FIGURES),
    measured(
        "words+keyword", "cosine wordllama", *(SampleFigures(f"s{n}", 0.5, 0.25) for n in (1, 2, 3))
    ),
)
ROWS = [*MEASURED, *published_figures()]


def test_utility_csv(assert_golden: Callable[[str, str], None]) -> None:
    assert_golden("utility.csv", to_csv(ROWS))


def test_utility_markdown(assert_golden: Callable[[str, str], None]) -> None:
    assert_golden("utility.md", to_markdown(ROWS))


def test_samples_csv() -> None:
    keys, key = "condition,answerer,measure", "mask-query-unrelated,local/small,judge fake/judge"
    figures = "privacy,utility,balanced,missing,rating_masked,rating_unmasked"
    assert samples_to_csv(MEASURED[2:3]).splitlines() == [
        f"dataset,{keys},id,{figures}",
        f"demo,{key},s1,0.7500,0.5000,0.6250,,5.0000,9.0000",
        f"demo,{key},s2,0.2500,,,unparsed,,",
        f"demo,{key},s3,,,,no_masking,,",
    ]


def test_utility_files_are_written(tmp_path: Path) -> None:
    paths = write_utility(ROWS, tmp_path)

    assert list(paths) == [
        tmp_path / "utility" / name for name in ("utility.csv", "utility.md", "samples.csv")
    ]
    assert read_folder(tmp_path) == {
        "utility/utility.csv": to_csv(ROWS).encode(),
        "utility/utility.md": to_markdown(ROWS).encode(),
        "utility/samples.csv": samples_to_csv(MEASURED).encode(),
    }
