from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.ranking.rows import Row
from pii_bench.ranking.source import Source
from pii_bench.ranking.summary import summarise
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping

RAN = {("m", "naive", "single"), ("m", "naive", "multi"), ("m", "detection", "single")}


def row(
    source: Source,
    model: str,
    strategy: str,
    task: Task,
    metrics: Mapping[str, float],
    *,
    dataset: str = "single",
    scored: int = 10,
    oracle: bool = False,
) -> Row:
    return Row(
        source=source,
        model=model,
        strategy=strategy,
        dataset=dataset,
        task=task,
        oracle=oracle,
        metrics=metrics,
        scored=scored,
        gold=10,
    )


def masking(source: Source, model: str, strategy: str, h: float, dataset: str = "single") -> Row:
    metrics = {"h": h, "protection": 0.6, "retention": 0.75, "f1": 0.5}
    return row(source, model, strategy, Task.MASKING, metrics, dataset=dataset)


def test_a_run_stands_above_the_ladder_and_the_best_published_figure() -> None:
    rows = [
        masking(Source.RUN, "m", "naive", 0.7),
        masking(Source.RUN, "m", "naive", 0.5, dataset="multi"),
        masking(Source.REFERENCE, "gold", "random", 0.4),
        masking(Source.REFERENCE, "bilstm-crf", "gold", 0.9),
        masking(Source.REFERENCE, "spacy", "embedding", 0.3),
        row(Source.PUBLISHED, "a", "naive", Task.MASKING, {"f1": 0.8}),
        row(Source.PUBLISHED, "b", "naive", Task.MASKING, {"f1": 0.85}),
        row(Source.PUBLISHED, "told", "naive-choice", Task.MASKING, {"f1": 0.99}, oracle=True),
        # Another run, of somebody who shares the folder.
        masking(Source.RUN, "other", "naive", 0.99),
    ]

    assert summarise(rows, dict.fromkeys(sorted(RAN, reverse=True)), [Task.MASKING]) == (
        "masking (H; published: F1 in brackets)\n"
        "\n"
        "                                         single    multi\n"
        "-------------------------------------  --------  -------\n"
        "m+naive                                   0.700    0.500\n"
        "choose at random (gold+random)            0.400\n"
        "told what is needed (bilstm-crf+gold)     0.900\n"
        "best published, on the paper's data     (0.850)\n"
        "\n"
        "Of the values that a query does not need, 40% can still be read.\n"
        "Of those that it needs, 25% are hidden.\n"
        "H on single is 0.700: choosing at random gives 0.400, and being told what is needed "
        "0.900.\n"
    )


def test_nothing_is_said_of_a_mean_over_several_systems() -> None:
    rows = [masking(Source.RUN, "m", strategy, 0.7) for strategy in ("naive", "self-cot")]

    shown = summarise(rows, {("m", row.strategy, "single") for row in rows}, [Task.MASKING])

    assert [line.split() for line in shown.splitlines()[-2:]] == [
        ["m+naive", "0.700"],
        ["m+self-cot", "0.700"],
    ]


def test_a_detector_that_names_no_subjects_has_ent_f1_in_brackets() -> None:
    rows = [row(Source.RUN, "m", "detection", Task.DETECTION, {"ent_f1": 0.65}, scored=4)]

    shown = summarise(rows, RAN, [Task.DETECTION])

    assert shown.splitlines()[-1].split() == ["m", "(0.650)", "4/10"]


def test_blind_readers_stand_beside_queries() -> None:
    rows = [
        row(Source.RUN, "m", "naive", Task.QUERY_RELATED, {"f1": 0.5}),
        row(Source.READING, "readers", "blind", Task.QUERY_RELATED, {"f1": 0.99}),
    ]

    lines = summarise(rows, {("m", "naive", "single")}, [Task.QUERY_RELATED]).splitlines()

    assert lines[-1] == "blind readers (a large language model)     0.990"


def test_no_line_is_wider_than_a_terminal() -> None:
    long = "provider/a-model-with-a-name-that-goes-on-and-on-2026-11-22-preview"
    sets = ("single", "multi", "hard", "distract")
    rows = [masking(Source.RUN, long, "self-consistency", 0.5, dataset=name) for name in sets]
    ran = {(long, "self-consistency", name): None for name in sets}

    assert max(map(len, summarise(rows, ran, [Task.MASKING]).splitlines())) <= 100
