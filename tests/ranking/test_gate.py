from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.ranking.gate import (
    Baseline,
    Least,
    partly_compared,
    read_baseline,
    shortfalls,
    write_baseline,
)
from pii_bench.ranking.rows import HEADLINE_NAMES, Row, Source
from pii_bench.ranking.scores import Scores
from pii_bench.tasks import Task
from tests.ranking.of_values import parted, scores

if TYPE_CHECKING:
    from pathlib import Path

MASKING = Task.MASKING
SCORES = parted([0.7], [0.7])
OTHER_SAMPLE = Scores(("t0",), ("t0",), (0.7,), ((0.7,), (0.7,)))


def row(h: float, task: Task = MASKING, name: str = "") -> Row:
    """Twelve samples with the same figure, so that any difference is significant."""
    values = (h,) * 12
    by_sample = {
        name or HEADLINE_NAMES[task]: parted(values, values) if task is MASKING else scores(values)
    }
    metrics = dict.fromkeys(by_sample, h)
    return Row(Source.RUN, "m", "naive", "demo", task, False, metrics, by_sample=by_sample)


def test_what_is_asked_for() -> None:
    assert Least.parse("masking.h=0.7") == Least(MASKING, "h", 0.7)
    assert Least.parse("query-related.f1=1") == Least(Task.QUERY_RELATED, "f1", 1.0)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("masking.h", "must be TASK.METRIC=FIGURE"),
        ("h=0.7", "must be TASK.METRIC=FIGURE"),
        ("masking.h=70", "a figure from 0 to 1"),
        ("masking.h=x", "a figure from 0 to 1"),
        ("maskin.h=0.7", "unknown task 'maskin'; did you mean 'masking'?"),
        ("masking.retntion=0.7", "unknown metric 'retntion'; did you mean 'retention'?"),
    ],
)
def test_what_cannot_be_asked_for(text: str, what: str) -> None:
    with pytest.raises(PiiBenchError) as caught:
        Least.parse(text)

    assert what in str(caught.value)


def test_a_figure_below_is_told() -> None:
    assert list(shortfalls([row(0.7)], [Least(MASKING, "h", 0.7)], None)) == []
    assert list(shortfalls([row(0.6995)], [Least(MASKING, "h", 0.71)], None)) == [
        "demo, masking: h is 0.700, below the minimum 0.710"
    ]


def test_a_figure_that_no_row_has_is_an_error() -> None:
    with pytest.raises(PiiBenchError, match=r"^--min detection\.ent_f1: no row has this figure$"):
        list(shortfalls([row(0.7)], [Least(Task.DETECTION, "ent_f1", 0.1)], None))


def test_only_what_is_significantly_below_the_baseline_is_told(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(path, [row(0.7), row(0.5, Task.QUERY_RELATED)])
    baseline = read_baseline(path)

    assert list(shortfalls([row(0.7), row(0.9)], [], baseline)) == []
    # Of 2^12 ways to exchange the answers two are as extreme: p is 2/4096.
    assert list(shortfalls([row(0.4, Task.QUERY_RELATED)], [], baseline)) == [
        "demo, query-related: f1 is 0.400, significantly below the baseline's 0.500 (p = 0.000)"
    ]


def test_a_detector_without_a_headline_is_compared_by_ent_f1(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    before = row(0.7, Task.DETECTION, "ent_f1")
    strict = row(0.4, Task.DETECTION).by_sample
    with_both = replace(before, by_sample={**strict, **before.by_sample})
    worse = row(0.5, Task.DETECTION, "ent_f1")
    expected = [
        "demo, detection: ent_f1 is 0.500, significantly below the baseline's 0.700 (p = 0.000)"
    ]

    for other in (before, with_both):
        write_baseline(path, [other])
        assert list(shortfalls([worse], [], read_baseline(path))) == expected
        assert list(shortfalls([before], [], read_baseline(path))) == []


def test_a_baseline_without_a_figure_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"

    with pytest.raises(PiiBenchError, match=r"baseline\.json: no row has a figure that"):
        write_baseline(path, [replace(row(0.7), by_sample={})])
    assert not path.exists()


def test_a_baseline_from_before_figures_had_names_is_of_headlines(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(path, [row(0.7)])
    records = json.loads(path.read_bytes())
    assert records[0].pop("figure") == "h"
    path.write_text(json.dumps(records), encoding="utf-8")

    assert list(shortfalls([row(0.4)], [], read_baseline(path))) == [
        "demo, masking: h is 0.400, significantly below the baseline's 0.700 (p = 0.000)"
    ]


@pytest.mark.parametrize(
    "baseline",
    [
        pytest.param({}, id="empty"),
        pytest.param({("dev", MASKING): {"h": SCORES}}, id="of another dataset"),
        pytest.param({("demo", Task.DETECTION): {"h": SCORES}}, id="of another task"),
        pytest.param({("demo", MASKING): {"h": OTHER_SAMPLE}}, id="of another sample"),
    ],
)
def test_a_row_that_the_baseline_lacks_is_an_error(baseline: Baseline) -> None:
    with pytest.raises(PiiBenchError, match=r"^the baseline has no row for demo, masking "):
        list(shortfalls([row(0.7)], [], baseline))


def test_a_baseline_of_some_samples_is_told() -> None:
    some = Scores(("s0", "t0"), ("s0", "t0"), (0.7, 0.7), ((0.7, 0.7), (0.7, 0.7)))
    (every,) = row(0.7).by_sample.values()

    assert list(partly_compared([row(0.7)], {("demo", MASKING): {"h": every}})) == []
    assert list(partly_compared([row(0.7)], {("demo", MASKING): {"h": some}})) == [
        "demo, masking: 1 of 12 samples are compared, the baseline lacks the others"
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [(None, "No such file"), ("[1]", "is not a baseline"), ("{", "is not a baseline")],
)
def test_a_file_that_is_no_baseline(tmp_path: Path, text: str | None, what: str) -> None:
    path = tmp_path / "baseline.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    with pytest.raises(InputFileError, match=what):
        read_baseline(path)
