from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pii_bench.analysis.diagnosis.errors import ErrorClass, Side
from pii_bench.analysis.diagnosis.exposure import ScoredCandidates
from pii_bench.analysis.diagnosis.tables import (
    RUN,
    curve_table,
    error_table,
    leak_table,
    query_runs,
    system_of,
    twin_table,
)
from pii_bench.datasets.catalog import load_dataset
from pii_bench.ranking.stored import read_runs
from pii_bench.systems.relevance.base import Constant, gold_candidates
from pii_bench.tasks import Status
from tests.analysis.diagnosis.samples import EVERYONE, couple, query_run
from tests.builders import sample_record, write_lines
from tests.ranking.stored_runs import store_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd


SAMPLES = [couple(), couple(sample_id="s2"), couple(sample_id="s3")]
DETECTED = {sample.id: EVERYONE for sample in SAMPLES}
CHOSEN: dict[str, tuple[str, ...] | Status] = {
    "s1": ("Acme Tools", "Lima"),
    "s2": Status.REFUSED,
    "s3": Status.INFRA_ERROR,
}


def test_a_dataset_without_queries_has_none(tmp_path: Path) -> None:
    write_lines(tmp_path / "silent.jsonl", [sample_record(query=None, related=[])])
    dataset = load_dataset(str(tmp_path / "silent.jsonl"))
    store_run(tmp_path / "runs", dataset, "naive", {})

    assert query_runs(read_runs(tmp_path).runs) == ()


def test_one_system_is_told_from_another_by_all_but_the_dataset() -> None:
    samples, chosen = [couple()], {"s1": ()}
    run = system_of(query_run(samples, chosen))

    assert run == system_of(query_run(samples, chosen, {"s1": EVERYONE}, dataset="other"))
    assert run != system_of(query_run(samples, chosen, settings={"weights": "0"}))
    assert run != system_of(query_run(samples, chosen, prompt_sha256="0"))
    assert run != system_of(query_run(samples, chosen, relevance="random"))


def named(table: pd.DataFrame) -> Sequence[object]:
    assert list(table.columns[: len(RUN)]) == list(RUN)
    (names,) = {tuple(line) for line in table[list(RUN)].to_numpy().tolist()}
    return names


def test_errors_are_counted_by_task_class_and_side() -> None:
    table = error_table([query_run(SAMPLES, CHOSEN, DETECTED)])

    assert named(table) == ("run", "gold", "keyword", "tiny", True)
    assert len(table) == 2 * len(ErrorClass) * len(Side)
    assert set(table["scored"]) == {2}
    assert set(table["gold"]) == {3}
    found = table[table["errors"] > 0][["task", "class", "side", "errors"]]
    assert found.to_numpy().tolist() == [
        ["query-related", "not-chosen", "false-negative", 1],
        ["query-related", "wrong-person", "false-positive", 1],
        ["query-related", "failed", "false-negative", 2],
        ["masking", "not-chosen", "false-positive", 1],
        ["masking", "wrong-person", "false-negative", 1],
        ["masking", "failed", "false-negative", 6],
    ]


def test_leak_is_told_for_each_thing_that_a_failure_may_mean() -> None:
    samples = [*SAMPLES, couple(sample_id="unasked"), couple((), sample_id="s4", query=None)]

    table = leak_table([query_run(samples, CHOSEN, DETECTED)])

    assert named(table) == ("run", "gold", "keyword", "tiny", True)
    assert set(zip(table["gold"], table["answered"], table["failed"], strict=True)) == {(4, 1, 1)}
    columns = ["on_failure", "leaked", "unneeded", "needed_masked", "needed", "plain_leak"]
    assert table[columns].to_numpy().tolist() == [
        ["answered", 1, 6, 1, 2, 1 / 6],
        ["open", 7, 12, 1, 4, 7 / 12],
        ["closed", 1, 12, 3, 4, 1 / 12],
    ]
    assert table["text_over_masking"].tolist() == [0, 0, 1 / 2]
    assert table["leak"].tolist() == [2 / 14, 16 / 28, 2 / 28]
    assert table["leak_tier_1"].isna().all()
    assert table["leak_tier_3"].tolist() == [0, 2 / 4, 0]


def test_a_curve_has_a_row_for_each_threshold() -> None:
    run = query_run(SAMPLES[:1], CHOSEN, DETECTED)
    system = ScoredCandidates(Constant("all", 1.0), gold_candidates)

    table = curve_table([(run, system)])

    assert named(table) == ("run", "gold", "keyword", "tiny", True)
    assert table[["threshold", "own", "leak", "over_masking"]].to_numpy().tolist() == [
        [math.inf, False, 0, 1],
        [1, False, 1, 0],
        [0.5, True, 1, 0],
    ]


def test_twins_are_compared_with_the_run_of_the_same_system() -> None:
    second = couple((("A", "32"),), sample_id="s1-second", meta={"twin": "second", "twin_of": "s1"})
    twins = query_run([second], {"s1-second": ("32",)}, dataset="twins")
    own = query_run(SAMPLES, CHOSEN)
    foreign = query_run(SAMPLES, {"s1": ("32",)}, model="other")

    table = twin_table([own, foreign, twins])

    assert named(table) == ("run", "gold", "keyword", "twins", True)
    columns = ["reaction", "against", "pairs", "failed", "undefined", "done", "rate"]
    assert table[[*columns, "both_right", "right_rate"]].to_numpy().tolist() == [
        ["changes", "original", 1, 0, 0, 1, 1, 0, 0]
    ]
    assert twin_table([own]).empty


def test_tables_of_nothing_have_their_columns() -> None:
    for table in (error_table([]), leak_table([]), curve_table([]), twin_table([])):
        assert table.empty
        assert list(table.columns[: len(RUN)]) == list(RUN)
