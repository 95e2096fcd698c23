from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.commissions import ORDERS
from pii_bench.construction.model_writer import ROUNDS, WriterReport, write_with_model
from pii_bench.datasets.check.run import sample_problems
from pii_bench.datasets.sample import read_native
from pii_bench.errors import ProviderRefusedError
from pii_bench.models.base import CallError, Completion, Finish
from tests.construction.writers import good, written
from tests.fakes import FakeModel, RecordingProgress

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pii_bench.models.base import Request

    Writer = Callable[[Request], Completion]


def forgetful(request: Request) -> Completion:
    """Leaves a mark out."""
    return Completion(written(request).replace("{A2|", "").replace("}", "", 1), Finish.STOP)


def write(model: FakeModel, folder: Path) -> WriterReport:
    order, progress = ORDERS["single"], RecordingProgress()
    return asyncio.run(write_with_model(model, order, 3, folder, concurrency=2, progress=progress))


def test_what_a_good_writer_writes_is_accepted_and_a_second_run_asks_nothing(
    tmp_path: Path,
) -> None:
    model, again = FakeModel(good), FakeModel(good)

    report = write(model, tmp_path)

    assert report.accepted == ("single-0001", "single-0002", "single-0003")
    assert report.refused == {}
    assert report.path == tmp_path / "fake--one" / "single.jsonl"
    assert not [p for sample in read_native(report.path) for p in sample_problems(sample)]
    assert sorted(model.asked) == list(report.accepted)
    answers = tmp_path / "fake--one" / "answers" / "round-1" / "single.jsonl"
    assert len(answers.read_text(encoding="utf-8").splitlines()) == 3

    assert write(again, tmp_path) == report
    assert again.asked == []


def test_a_fault_is_told_and_mended(tmp_path: Path) -> None:
    told: list[str] = []

    def answer(request: Request) -> Completion:
        told.extend(message.content for message in request.messages[2:])
        return good(request) if len(request.messages) > 1 else forgetful(request)

    report = write(FakeModel(answer), tmp_path)

    assert len(report.accepted) == 3
    assert len(told) == 3
    assert all("A2" in text and "is marked nowhere" in text for text in told)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda _: Completion("I would rather not.", Finish.REFUSAL), "has no line '=== single-"),
        (lambda _: Completion("=== single-0009\n--- text\nHi.", Finish.STOP), "must hold one text"),
        (lambda _: Completion("=== x\nHi.", Finish.STOP), "has no line '--- text'"),
        (forgetful, "is marked nowhere"),
    ],
    ids=["refusal", "another id", "no text", "a mark left out"],
)
def test_a_fault_that_is_never_mended_is_reported(
    tmp_path: Path, answer: Writer, reason: str
) -> None:
    model = FakeModel(answer)

    report = write(model, tmp_path)

    assert report.accepted == ()
    assert not report.path.exists()
    assert len(model.asked) == 3 * ROUNDS
    assert all(any(reason in line for line in lines) for lines in report.refused.values())


def test_a_call_that_fails_leaves_its_commission_for_the_next_run(tmp_path: Path) -> None:
    def failing(request: Request) -> Completion:
        if request.sample_id == "single-0002":
            raise CallError("timeout", "no answer in time")
        return good(request)

    first = write(FakeModel(failing), tmp_path)
    second = write(FakeModel(good), tmp_path)

    assert first.accepted == ("single-0001", "single-0003")
    assert first.refused == {"single-0002": ()}
    assert len(second.accepted) == 3


def test_a_refusal_of_the_provider_stops_and_keeps_what_arrived(tmp_path: Path) -> None:
    def refusing(request: Request) -> Completion:
        if request.sample_id == "single-0003":
            raise ProviderRefusedError("fake/one", "no credit")
        return good(request)

    with pytest.raises(ProviderRefusedError):
        write(FakeModel(refusing), tmp_path)

    asked_again = FakeModel(good)
    assert len(write(asked_again, tmp_path).accepted) == 3
    assert asked_again.asked == ["single-0003"]
