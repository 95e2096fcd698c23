from __future__ import annotations

import pytest

from pii_bench.analysis.headlines import headlines, published_headlines
from pii_bench.ranking.published import published_rows
from pii_bench.ranking.rows import Row
from pii_bench.ranking.source import Source
from pii_bench.tasks import Task
from tests.analysis.evaluated import UNASKED, answer, asked, evaluated, run_name


def published(dataset: str, f1: float, *, model: str = "gpt-5", task: Task = Task.MASKING) -> Row:
    return Row(Source.PUBLISHED, model, "naive", dataset, task, False, {"f1": f1, "rouge_l_f": f1})


def test_a_headline_is_the_mean_of_a_run() -> None:
    samples = [asked("a", "32"), asked("b", "32"), asked("c", "32"), asked("d", "32")]
    answers = {"a": answer("32"), "b": answer("33"), "c": answer("32"), "d": UNASKED}

    (found,) = headlines([evaluated(run_name(complete=False), samples, answers)])

    assert (found.run, found.metric, found.samples) == (run_name(complete=False), "f1", 3)
    assert found.value == pytest.approx(2 / 3)
    assert found.interval_low is not None
    assert found.interval_high is not None
    assert found.interval_low <= found.value <= found.interval_high


def test_without_a_scored_sample_there_is_none() -> None:
    assert headlines([evaluated(run_name(), [asked("a", "32")], {"a": UNASKED})]) == []


def test_a_published_figure_has_neither_samples_nor_interval() -> None:
    (found,) = published_headlines([published("single", 0.5)])

    assert (found.run.source, found.run.complete, found.value) == (Source.PUBLISHED, True, 0.5)
    assert (found.samples, found.interval_low, found.interval_high) == (None, None, None)


def test_published_single_and_multi_are_joined_by_the_papers_samples() -> None:
    found = published_headlines([published("single", 1.0), published("multi", 0.0)])

    (both,) = [each for each in found if each.run.dataset == "single+multi"]
    assert both.value == pytest.approx(1214 / (1214 + 1228))


def test_what_is_published_of_both_together_is_taken_as_it_is() -> None:
    rows = [published("single", 1.0), published("multi", 0.0), published("single+multi", 0.7)]

    (both,) = [e for e in published_headlines(rows) if e.run.dataset == "single+multi"]

    assert both.value == 0.7


def test_every_published_headline_is_there_once() -> None:
    found = published_headlines(published_rows())

    assert len({(each.run, each.metric) for each in found}) == len(found)
    assert {each.metric for each in found} == {"strict_f1", "ent_f1", "f1"}
