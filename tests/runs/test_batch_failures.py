from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.errors import PiiBenchError, ProviderRefusedError, ProviderUnavailableError
from pii_bench.files import ResultsError
from pii_bench.models.base import CallError, Completion
from pii_bench.models.batch import RESULTS_GONE, BatchLimits
from pii_bench.models.catalog import build_batch_service
from pii_bench.runs.batch import run_batch
from pii_bench.runs.records import Failure
from pii_bench.runs.store import RunFiles, RunStore, read_responses
from tests.batch_server import Fault
from tests.fakes import FakeModel, RecordingProgress, fake_system
from tests.models.adapters import SERVICES
from tests.models.batch_cases import CASES, Case
from tests.runs.batch_bench import DAY, IDS, SAMPLES, START, Bench, Clock, Crash

if TYPE_CHECKING:
    from pathlib import Path


STEPS: Final = ["submit", "poll", "poll", *["result"] * 6]


@pytest.fixture
def undisturbed(tmp_path: Path) -> bytes:
    """The stored responses of a run without a fault."""
    bench = Bench(RunFiles.at(tmp_path, "undisturbed", "naive", "tiny"))
    bench.run()
    assert bench.service.steps == STEPS
    return bench.files.responses.read_bytes()


@pytest.mark.parametrize("step", range(len(STEPS)))
@pytest.mark.parametrize("late", [False, True], ids=["early", "late"])
@pytest.mark.parametrize("fault", [Crash(), CallError("connection")], ids=["crash", "failed call"])
def test_a_fault_at_any_step_loses_nothing_and_submits_nothing_twice(
    bench: Bench, undisturbed: bytes, fault: BaseException, late: bool, step: int
) -> None:
    bench.service.faults, bench.service.late = {step: fault}, late
    if isinstance(fault, Crash):
        with pytest.raises(Crash):
            bench.run()
        bench.run()
    else:
        # The same run tries again.
        bench.run()
        assert bench.progress.failed == [False] * 6

    assert bench.service.submitted == [IDS]
    assert bench.files.responses.read_bytes() == undisturbed
    assert not bench.files.batches.exists()


def test_results_saved_before_a_crash_or_fault_are_not_counted_again(bench: Bench) -> None:
    bench.service.faults = {5: Crash(), 9: CallError("connection")}
    with pytest.raises(Crash):
        bench.run()

    bench.run()

    assert (bench.progress.start, bench.progress.failed) == ((2, 6), [False] * 4)


def test_interrupted_failures_are_not_counted_twice(bench: Bench) -> None:
    bench.service.outcome = lambda _: CallError("expired")
    bench.service.faults = {5: CallError("connection")}

    bench.run()

    assert bench.progress.failed == [True] * 6
    assert [record.id for record in bench.stored()] == IDS


def test_a_run_survives_repeated_crashes(bench: Bench) -> None:
    bench.service.limits = BatchLimits(requests=4, size=10**6)
    bench.service.late = True
    for _ in range(9):
        bench.service.faults = {len(bench.service.steps) + 1: Crash()}
        with pytest.raises(Crash):
            bench.run()

    bench.run()

    assert bench.service.submitted == [["s1", "s2", "s3", "s4"], ["s5", "s6"]]
    assert bench.stored() == bench.expected()


def test_a_full_disk_stops_the_run_before_anything_is_submitted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ResultsError("no space left")

    monkeypatch.setattr("pii_bench.runs.store.write_whole", refuse)

    with pytest.raises(ResultsError):
        bench.run()

    assert bench.service.submitted == []


def test_a_lost_job_is_searched_for_a_minute_after_its_submission(bench: Bench) -> None:
    bench.service.faults, bench.service.late = {0: Crash()}, True
    with pytest.raises(Crash):
        bench.run()
    bench.clock.now += 20.0
    bench.service.undecided = 3

    bench.run()

    assert bench.clock.pauses[0] == 40.0
    assert bench.service.sought == [(START, 6)]
    # Nothing is submitted while a running job may be the lost one.
    assert bench.service.steps.count("find") == 4
    assert bench.service.submitted == [IDS]
    assert bench.stored() == bench.expected()


def test_a_requested_delay_is_respected_up_to_ten_minutes(bench: Bench) -> None:
    bench.service.faults = {
        0: CallError("rate_limit", retry_after=33.0),
        2: CallError("rate_limit", retry_after=86400.0),
    }

    bench.run()

    assert bench.service.steps[:4] == ["submit", "submit", "poll", "poll"]
    assert bench.clock.pauses[:2] == [33.0, 600.0]
    assert bench.stored() == bench.expected()


def test_a_rejected_job_fails_each_of_its_samples(bench: Bench) -> None:
    bench.service.faults = {0: CallError("bad_request", "HTTP 413")}

    bench.run()

    assert {record.response for record in bench.stored()} == {Failure("bad_request", "HTTP 413")}
    assert bench.service.steps == ["submit"]
    assert not bench.files.batches.exists()


def test_a_refused_submission_leaves_no_job(bench: Bench) -> None:
    bench.service.faults = {0: ProviderRefusedError("check the API key")}

    with pytest.raises(ProviderRefusedError):
        bench.run()

    assert not bench.files.batches.exists()


def test_a_run_gives_up_after_thirty_failed_calls_in_a_row(bench: Bench) -> None:
    bench.service.faults = dict.fromkeys(range(1, 1000), CallError("server_error", "HTTP 500"))

    with pytest.raises(PiiBenchError) as raised:
        bench.run()

    assert str(raised.value) == (
        "model 'fake/one': its batch API failed 30 times in a row, last with server_error: "
        "HTTP 500; results so far are saved, and the batches go on: run again to collect the rest"
    )
    assert len(bench.service.steps) == 31

    bench.service.faults = {}
    bench.run()
    assert bench.service.submitted == [IDS]


def test_an_unreachable_provider_ends_the_run_within_a_minute(bench: Bench) -> None:
    bench.service.faults = dict.fromkeys(range(1000), CallError("connection"))

    message = (
        r"its batch API was not reached in \d\d s; results so far are saved, and a batch may have "
        r"been submitted: run again to find out$"
    )
    with pytest.raises(ProviderUnavailableError, match=message):
        bench.run()

    assert 30 <= bench.clock.now - START <= 60

    bench.service.faults = {}
    bench.run()
    assert bench.service.submitted == [IDS]
    assert bench.stored() == bench.expected()


def test_a_submission_that_reached_no_provider_leaves_no_job(bench: Bench) -> None:
    fault = CallError("connection", unsent=True)
    bench.service.faults = dict.fromkeys(range(1000), fault)

    with pytest.raises(
        PiiBenchError, match=r"and no batch is left to collect: run again to submit the rest$"
    ):
        bench.run()

    assert set(bench.service.steps) == {"submit"}
    assert 30 <= bench.clock.now - START <= 60
    assert not bench.files.batches.exists()


def test_an_unknown_job_is_reported_with_the_file_that_lists_it(bench: Bench) -> None:
    bench.run(wait=False)
    bench.service.forgotten = True

    with pytest.raises(PiiBenchError, match="knows no batch 'job-1'") as raised:
        bench.run()

    assert str(bench.files.batches) in str(raised.value)
    assert bench.files.batches.exists()


@pytest.mark.parametrize(("age", "gone"), [(DAY, False), (8 * DAY, True)])
def test_missing_results_fail_only_when_the_provider_may_have_deleted_them(
    bench: Bench, age: float, gone: bool
) -> None:
    bench.run(wait=False)
    bench.clock.now += age
    bench.service.faults = {4: CallError(RESULTS_GONE)}

    bench.run()

    lost = [r.id for r in bench.stored() if r.response == Failure(RESULTS_GONE, "")]
    assert lost == (["s1", "s2", "s3", "s4", "s5"] if gone else [])
    assert not bench.files.batches.exists()


async def run_over_http(case: Case, url: str, files: RunFiles, clock: Clock) -> None:
    model = SERVICES[case.name].connect(url, 5.0)
    system = fake_system(FakeModel())
    requests = {sample.id: system.request_hash(sample) for sample in SAMPLES}
    try:
        with RunStore(files, requests) as store:
            await run_batch(
                system,
                SAMPLES,
                store,
                service=build_batch_service(model),
                progress=RecordingProgress(),
                polling=clock.polling(),
            )
    finally:
        await model.close()


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_a_broken_connection_at_any_call_loses_nothing(
    case: Case, tmp_path: Path, done: bool
) -> None:
    for number in range(len(case.lines)):
        files = RunFiles.at(tmp_path, f"run-{number}", "naive", "tiny")
        with case.serve() as server:
            server.faults = {number: Fault(done=done)}
            asyncio.run(run_over_http(case, server.url, files, Clock()))

            assert len(server.jobs) == 1, case.lines[number]
        answers = [record.response for record in read_responses(files.responses)]
        assert [answer.text for answer in answers if isinstance(answer, Completion)] == [
            f"answer {number}" for number in range(6)
        ]
