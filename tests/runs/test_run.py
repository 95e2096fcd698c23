from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import ProviderRefusedError
from pii_bench.files import ResultsError
from pii_bench.models.base import CallError, Completion, Request, Sampling
from pii_bench.runs.records import Failure, RunRecord
from pii_bench.runs.run import run_system
from pii_bench.runs.store import RunFiles, RunStore, read_responses
from tests.fakes import FakeModel, RecordingProgress, fake_system
from tests.runs.batch_bench import IDS, SAMPLES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.base import System


def echo(request: Request) -> Completion:
    return Completion(f"answer to {request.sample_id}")


def run(
    system: System,
    files: RunFiles,
    samples: Sequence[Sample] = SAMPLES,
    *,
    concurrency: int = 1,
) -> RecordingProgress:
    progress = RecordingProgress()
    requests = {sample.id: system.request_hash(sample) for sample in SAMPLES}
    with RunStore(files, requests) as store:
        asyncio.run(run_system(system, samples, store, concurrency=concurrency, progress=progress))
    return progress


def stored(files: RunFiles) -> list[RunRecord]:
    return list(read_responses(files.responses))


def fail_two(request: Request) -> Completion:
    """Answer all samples but s2 and s5."""
    if request.sample_id in {"s2", "s5"}:
        raise CallError("server_error", "HTTP 503")
    return echo(request)


def test_every_sample_is_asked_once_and_its_answer_is_stored(files: RunFiles) -> None:
    model = FakeModel(echo)
    system = fake_system(model)

    progress = run(system, files)

    assert model.asked == IDS
    assert stored(files) == [
        RunRecord(sample.id, system.request_hash(sample), Completion(f"answer to {sample.id}"))
        for sample in SAMPLES
    ]
    assert (progress.start, progress.failed) == ((0, 6), [False] * 6)


def test_only_samples_without_an_answer_are_asked(files: RunFiles) -> None:
    run(fake_system(FakeModel()), files, SAMPLES[:2])
    model = FakeModel()

    progress = run(fake_system(model), files, SAMPLES[:4])

    assert model.asked == ["s3", "s4"]
    assert progress.start == (2, 4)

    # A shorter run asks nothing, and removes no answers.
    before = files.responses.read_bytes()
    progress = run(fake_system(model), files, SAMPLES[:1])
    assert model.asked == ["s3", "s4"]
    assert (progress.start, progress.failed) == ((1, 1), [])
    assert files.responses.read_bytes() == before


@pytest.mark.parametrize("concurrency", [1, 3, 6, 100])
def test_at_most_as_many_calls_run_at_a_time_as_allowed(files: RunFiles, concurrency: int) -> None:
    model = FakeModel()

    run(fake_system(model), files, concurrency=concurrency)

    assert model.peak == min(concurrency, len(SAMPLES))


def test_a_failed_call_is_recorded_and_alone_made_again(files: RunFiles, tmp_path: Path) -> None:
    undisturbed = RunFiles.at(tmp_path, "fake/one", "naive", "undisturbed")
    run(fake_system(FakeModel(echo)), undisturbed)

    progress = run(fake_system(FakeModel(fail_two)), files)

    assert progress.failed == [False, True, False, False, True, False]
    responses = {record.id: record.response for record in stored(files)}
    assert list(responses) == IDS
    assert responses["s2"] == responses["s5"] == Failure("server_error", "HTTP 503")

    model = FakeModel(echo)
    run(fake_system(model), files)
    assert model.asked == ["s2", "s5"]
    assert files.responses.read_bytes() == undisturbed.responses.read_bytes()


@pytest.mark.parametrize("concurrency", [1, 6])
def test_a_refusal_is_raised_once_and_earlier_answers_are_kept(
    files: RunFiles, concurrency: int
) -> None:
    def answer(request: Request) -> Completion:
        if request.sample_id in IDS[:3]:
            return echo(request)
        raise ProviderRefusedError("provider 'fake' refuses: HTTP 401")

    model = FakeModel(answer)
    with pytest.raises(ProviderRefusedError, match="HTTP 401"):
        run(fake_system(model), files, concurrency=concurrency)

    assert model.asked == IDS[: max(4, concurrency)]
    assert [record.id for record in stored(files)] == ["s1", "s2", "s3"]


def test_a_response_that_cannot_be_saved_stops_the_run(
    files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise ResultsError("the disk is full")

    monkeypatch.setattr(RunStore, "append", full)
    model = FakeModel()

    with pytest.raises(ResultsError):
        run(fake_system(model), files)

    assert model.asked == ["s1"]


def test_a_bug_is_not_hidden_as_a_failed_call(files: RunFiles) -> None:
    def broken(_: Request) -> Completion:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as caught:
        run(fake_system(FakeModel(broken)), files)

    assert caught.group_contains(ZeroDivisionError)


@given(cut=st.integers(min_value=0), concurrency=st.integers(min_value=1, max_value=4))
def test_a_run_completes_a_file_that_was_cut_anywhere(
    tmp_path_factory: pytest.TempPathFactory, cut: int, concurrency: int
) -> None:
    files = RunFiles.at(tmp_path_factory.mktemp("cut"), "fake/one", "naive", "tiny")
    run(fake_system(FakeModel(echo)), files)
    whole = files.responses.read_bytes()
    kept = whole[: cut % len(whole)]
    files.responses.write_bytes(kept)
    model = FakeModel(echo)

    run(fake_system(model), files, concurrency=concurrency)

    assert model.asked == IDS[kept.count(b"\n") :]
    assert files.responses.read_bytes() == whole


def test_a_request_depends_on_all_that_an_answer_depends_on() -> None:
    sample = SAMPLES[0]
    systems = [
        fake_system(FakeModel()),
        fake_system(FakeModel(name="fake/two")),
        fake_system(FakeModel(identity={"endpoint": "http://localhost:8000/v1"})),
        fake_system(FakeModel(), sampling=Sampling(temperature=0.7)),
        fake_system(FakeModel(), sampling=Sampling(max_tokens=64)),
        fake_system(FakeModel(), "self-cot"),
    ]
    samples = [
        sample,
        replace(sample, description="Ann Lee is 32. So"),
        replace(sample, query="Am I so old?"),
    ]
    # The id and the gold do not matter.
    same = replace(sample, id="renamed", subjects=(), related=())

    assert len({system.request_hash(each) for system in systems for each in samples}) == 18
    assert systems[0].request_hash(same) == systems[0].request_hash(sample)
