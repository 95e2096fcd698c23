from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.analysis.diagnosis.runs import query_runs, system_of
from pii_bench.datasets.catalog import load_dataset
from pii_bench.ranking.stored import read_runs
from tests.analysis.diagnosis.samples import EVERYONE, couple
from tests.analysis.diagnosis.stored import query_run
from tests.builders import sample_record, write_lines
from tests.ranking.stored_runs import store_run

if TYPE_CHECKING:
    from pathlib import Path


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
