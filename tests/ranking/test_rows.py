from __future__ import annotations

from dataclasses import replace

import pytest

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.ranking.rows import (
    HEADLINE_NAMES,
    METRICS,
    Row,
    Source,
    find_rows,
    metrics_of,
    rank,
    row_of,
    system_name,
    with_intervals,
)
from pii_bench.ranking.scores import Interval, Scores
from pii_bench.runs.evaluation import evaluate
from pii_bench.runs.records import Signature
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from tests.builders import make_sample
from tests.ranking.of_values import parted, scores


def row(
    headline: float | None,
    *,
    model: str = "m",
    source: Source = Source.RUN,
    dataset: str = "demo",
    task: Task = Task.DETECTION,
    oracle: bool = False,
    scored: int | None = 12,
    gold: int | None = 12,
) -> Row:
    """A row with the same figure on each sample, so that any difference is shown."""
    name = HEADLINE_NAMES[task]
    by_sample = {}
    if headline is not None and scored is not None:
        values = (headline,) * scored
        by_sample[name] = parted(values, values) if task is Task.MASKING else scores(values)
    return Row(
        source=source,
        model=model,
        strategy="naive",
        dataset=dataset,
        task=task,
        oracle=oracle,
        metrics={} if headline is None else {name: headline},
        scored=scored,
        gold=gold,
        by_sample=by_sample,
    )


def ranks(*rows: Row) -> list[tuple[str, int | None]]:
    return [(ranked.model, ranked.rank) for ranked in rank(rows)]


def test_equal_headlines_share_a_rank_and_the_next_one_is_free() -> None:
    rows = [row(f1, model=m) for f1, m in [(0.5, "c"), (0.9, "a"), (0.5, "b"), (0.1, "d")]]

    assert ranks(*rows) == [("a", 1), ("b", 2), ("c", 2), ("d", 4)]
    assert rank(rows) == rank(reversed(rows))


@pytest.mark.parametrize(
    "unranked",
    [
        row(1.0, oracle=True),
        row(1.0, scored=11),
        row(1.0, source=Source.PUBLISHED, scored=None, gold=None),
        row(None, scored=0),
    ],
    ids=["oracle", "incomplete", "published", "nothing scored"],
)
def test_what_is_not_ranked_stands_below_and_takes_no_rank(unranked: Row) -> None:
    assert ranks(unranked, row(0.2, model="ours")) == [("ours", 1), ("m", None)]


def test_a_run_and_the_reference_that_it_repeats_count_once() -> None:
    both = [row(0.9, model="a", source=source) for source in (Source.RUN, Source.REFERENCE)]
    others = [row(0.5, model="b"), row(0.5, model="c", source=Source.REFERENCE)]
    changed = row(0.2, model="b", source=Source.REFERENCE)

    assert ranks(*both, *others, changed) == [("a", 1), ("a", 1), ("b", 2), ("c", 2), ("b", 4)]
    # No difference is to be detected between the two.
    assert [each.detectable for each in rank(both)] == [None, None]


def test_each_dataset_and_task_has_its_own_ranks() -> None:
    rows = [
        row(0.1, model="a", dataset="hard"),
        row(0.9, model="b", task=Task.MASKING),
        row(0.5, model="c"),
        row(0.7, model="d", task=Task.QUERY_RELATED),
    ]

    assert ranks(*rows) == [("c", 1), ("d", 1), ("b", 1), ("a", 1)]


def evaluated(task: Task, *predictions: Prediction, names_subjects: bool = True) -> Row:
    """The row of predictions for s0, s1, ..., in which Ann Lee is 32; all in one cluster."""
    answers = {f"s{number}": prediction for number, prediction in enumerate(predictions)}
    return row_of(
        evaluate(task, [make_sample(name) for name in answers], answers),
        Signature("demo", "a" * 64, task, strategy="naive", model="fake/one"),
        dict.fromkeys(answers, "s0"),
        source=Source.RUN,
        oracle=False,
        names_subjects=names_subjects,
    )


def test_an_evaluation_becomes_a_row() -> None:
    found_row = evaluated(
        Task.DETECTION,
        # Ann Lee, not 32: P = 1, R = 1/2.
        Prediction(Status.REPAIRED, subjects=((("Ann Lee", "DEM"), ("Bo", "PER")),)),
        Prediction(Status.INFRA_ERROR),
    )

    identity = (found_row.model, found_row.strategy, found_row.dataset)
    assert identity == ("fake/one", "naive", "demo")
    assert found_row.metrics == {
        "strict_f1": 0.0,  # the type is wrong
        "ent_f1": 1 / 2,  # one of two on either side
        "rouge_l_f": 0.0,
        "precision": 0.0,
        "recall": 0.0,
        "ent_matched_f1": 1 / 2,
        "micro_f1": 0.0,
        "micro_ent_f1": 1 / 2,
        "hallucination_rate": 1 / 2,  # Bo
    }
    assert (found_row.scored, found_row.gold) == (1, 2)
    assert found_row.rates == dict.fromkeys(Status, 0) | {
        Status.REPAIRED: 1 / 2,
        Status.INFRA_ERROR: 1 / 2,
    }
    assert found_row.signature.startswith(f"data:demo@{'a' * 12}|task:detection|strategy:naive|")
    assert found_row.by_sample == {
        "strict_f1": Scores(("s0",), ("s0",), (0.0,)),
        "ent_f1": Scores(("s0",), ("s0",), (1 / 2,)),
    }


@pytest.mark.parametrize("task", Task)
def test_the_metrics_of_a_task_are_columns_in_their_order(task: Task) -> None:
    found = Prediction(Status.OK, subjects=((("Ann Lee", "PER"),),), related=("32",))

    names = list(metrics_of(evaluate(task, [make_sample()], {"s1": found})))

    assert names == [name for name in METRICS if name in names]
    assert ("strict_f1" in names) == (task is Task.DETECTION)
    assert ("f1" in names) == (task is not Task.DETECTION)


def test_failed_are_those_that_the_system_caused() -> None:
    rates = {Status.OK: 0.5, Status.REPAIRED: 0.1, Status.REFUSED: 0.2, Status.INFRA_ERROR: 0.2}

    assert replace(row(0.5), rates=rates).failed == pytest.approx(0.25)  # 0.2 of 0.8
    assert replace(row(0.5), rates={Status.INFRA_ERROR: 1.0}).failed == 0
    assert replace(row(0.5), rates=None).failed == 0


def test_what_is_unknown_is_no_metric() -> None:
    assert metrics_of(evaluate(Task.DETECTION, [make_sample()], {})) == {}


def test_who_names_no_subjects_has_only_figures_that_need_none() -> None:
    found = Prediction(Status.OK, subjects=((("Ann Lee", "PER"), ("33", "DEM")),), related=("32",))

    detection = evaluated(Task.DETECTION, found, names_subjects=False)
    query_related = evaluated(Task.QUERY_RELATED, found, names_subjects=False)

    assert detection.metrics == {
        "ent_f1": 1 / 2,
        "micro_ent_f1": 1 / 2,
        "hallucination_rate": 1 / 2,
    }
    assert detection.headline is None
    assert detection.by_sample == {"ent_f1": Scores(("s0",), ("s0",), (1 / 2,))}
    assert query_related.headline == 1.0


def test_rows_without_a_headline_come_after_those_with_one_by_their_ent_f1() -> None:
    without = [
        replace(row(None, model=model), metrics={"ent_f1": ent_f1})
        for model, ent_f1 in [("low", 0.8), ("high", 0.9)]
    ]

    assert ranks(*without, row(0.2, model="ours")) == [("ours", 1), ("high", None), ("low", None)]


def test_rows_that_are_not_shown_to_differ_share_a_rank() -> None:
    # On three samples of twelve, so that p is at least 2 / 2^3; against 0 all twelve differ.
    differing = {"strict_f1": scores((0.5,) * 9 + (0.8,) * 3)}
    higher = replace(row(0.575, model="higher"), by_sample=differing)

    found = rank([row(0.5, model="lower"), row(0.0, model="none"), higher])

    named = [(each.model, each.rank) for each in found]
    assert named == [("higher", 1), ("lower", 1), ("none", 3)]
    # The spread is of the difference: none to speak of where it is the same in every sample.
    assert [each.detectable for each in found[1:]] == [found[0].detectable, found[2].detectable]
    assert found[0].detectable is not None
    assert found[0].detectable > 0.1


def test_rows_that_do_not_compete_have_intervals_if_they_have_figures_by_sample() -> None:
    oracle, incomplete = row(0.9, oracle=True), row(0.9, scored=11)
    published = row(0.9, source=Source.PUBLISHED, scored=None, gold=None)

    found = with_intervals([oracle, published, incomplete, row(None, scored=0)])

    flat = Interval(0.9, 0.9)
    assert [each.interval for each in found] == [flat, None, flat, None]
    assert {each.rank for each in rank(found)} == {None}


GPT = "openai/gpt-4o-2024-08-06"


def rows_of(
    model: str, strategy: str, *, source: Source = Source.RUN, detection: str = "detection"
) -> list[Row]:
    """What a run of all tasks leaves of demo."""
    tasks = {Task.DETECTION: detection, Task.QUERY_RELATED: strategy, Task.MASKING: strategy}
    return [
        Row(source, model, each, "demo", task, oracle=False, metrics={})
        for task, each in tasks.items()
    ]


TAGGED = rows_of("bilstm-crf", "embedding")
KEYWORD = rows_of("bilstm-crf", "keyword")[1:]
PROMPTED = rows_of(GPT, "self-cot")
SCHEMA = rows_of(GPT, "naive+schema", detection="detection+schema")
OURS = [*TAGGED, *KEYWORD, *PROMPTED]


def found(rows: list[Row], name: str) -> list[Row]:
    by_key = find_rows(rows, name)
    assert list(by_key) == [(row.dataset, row.task) for row in by_key.values()]
    return list(by_key.values())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bilstm-crf+embedding", TAGGED),
        ("bilstm-crf:embedding", TAGGED),
        ("bilstm-crf+keyword", [TAGGED[0], *KEYWORD]),
        (f"{GPT}:self-cot", PROMPTED),
        (f"{GPT}+self-cot", PROMPTED),
        (GPT, PROMPTED),  # its only strategy
        ("gpt4o", PROMPTED),
        ("gpt4o:self-cot", PROMPTED),
        ("bilstm-crf:detection", TAGGED[:1]),
        ("run:bilstm-crf+embedding", TAGGED),
    ],
)
def test_a_name_is_of_a_model_and_its_strategy(name: str, expected: list[Row]) -> None:
    assert found(OURS, name) == expected


def test_a_model_of_several_strategies_needs_one() -> None:
    message = (
        r"'bilstm-crf' has several .*: name one \(bilstm-crf\+embedding, bilstm-crf\+keyword\)"
    )
    with pytest.raises(PiiBenchError, match=message):
        find_rows(OURS, "bilstm-crf")


def test_where_only_detection_is_asked_about_a_model_is_enough() -> None:
    assert found([row for row in OURS if row.task is Task.DETECTION], "bilstm-crf") == TAGGED[:1]


def test_detection_belongs_to_the_strategies_with_the_same_form_of_answer() -> None:
    rows = [*PROMPTED, *SCHEMA]

    assert found(rows, f"{GPT}:self-cot") == PROMPTED
    assert found(rows, f"{GPT}:naive+schema") == SCHEMA


def test_detection_by_a_strategy_of_its_own_belongs_to_no_other() -> None:
    (own,) = rows_of(GPT, "self-cot", detection="json+3-shot")[:1]
    rows = [own, *PROMPTED]

    assert found(rows, f"{GPT}:self-cot") == PROMPTED
    assert found(rows, f"{GPT}:json+3-shot") == [own]


def test_a_run_goes_before_a_reference_and_a_source_can_be_named() -> None:
    reference = rows_of("bilstm-crf", "embedding", source=Source.REFERENCE)
    # Masking was not run, so there the reference is all there is.
    rows = [*reference, *TAGGED[:2]]

    assert found(rows, "bilstm-crf+embedding") == [*TAGGED[:2], reference[2]]
    assert found(rows, "reference:bilstm-crf+embedding") == reference
    assert found(rows, "run:bilstm-crf") == TAGGED[:2]


def test_a_misspelt_name_is_answered_with_a_near_one() -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_rows(OURS, "bilstm-crf+embeding")

    assert "did you mean 'bilstm-crf+embedding'?" in str(caught.value)
    assert f"{GPT}:self-cot" in str(caught.value)
    assert "among the stored runs; did you mean" in str(caught.value)


def test_a_system_with_one_name_is_listed_once() -> None:
    submitted = rows_of("our-filter", "", source=Source.SUBMITTED, detection="")
    with pytest.raises(UnknownNameError) as caught:
        find_rows(submitted, "encoder")

    assert caught.value.allowed == ("our-filter",)


@pytest.mark.parametrize(
    ("rows", "name"), [([], "bilstm-crf"), (OURS, "reference:bilstm-crf+embedding")]
)
def test_without_rows_there_is_nothing_to_name(rows: list[Row], name: str) -> None:
    with pytest.raises(
        PiiBenchError, match=f"no stored runs among which '{name.partition('+')[0]}"
    ):
        find_rows(rows, name)


@pytest.mark.parametrize(
    ("model", "strategy", "name"),
    [
        ("acme", "", "acme"),
        ("bilstm-crf", "embedding", "bilstm-crf+embedding"),
        (GPT, "self-cot", f"{GPT}:self-cot"),
        (GPT, "naive+schema", f"{GPT}:naive+schema"),
        (GPT, "json+3-shot", f"{GPT}:json+3-shot"),
    ],
)
def test_a_system_is_called_as_its_users_call_it(model: str, strategy: str, name: str) -> None:
    assert system_name(model, strategy) == name
