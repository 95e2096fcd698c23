from __future__ import annotations

import pytest

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.ranking.naming import find_rows, system_name
from pii_bench.ranking.rows import Row
from pii_bench.ranking.source import Source
from pii_bench.tasks import Task

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
    return list(find_rows(rows, name).values())


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


def test_rows_are_found_by_dataset_and_task() -> None:
    assert find_rows(OURS, GPT) == {("demo", row.task): row for row in PROMPTED}


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
    assert system_name(GPT, "json+3-shot") == f"{GPT}:json+3-shot"


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
        ("bilstm-crf", "embedding", "bilstm-crf+embedding"),
        (GPT, "self-cot", f"{GPT}:self-cot"),
        (GPT, "naive+schema", f"{GPT}:naive+schema"),
    ],
)
def test_a_system_is_called_as_its_users_call_it(model: str, strategy: str, name: str) -> None:
    assert system_name(model, strategy) == name
