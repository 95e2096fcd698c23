from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import PiiBenchError, ProviderRefusedError
from pii_bench.models.base import CallError, Completion, Sampling
from pii_bench.models.batch import BatchLimits
from pii_bench.runs.batch import require_prompted
from pii_bench.runs.records import Failure
from pii_bench.runs.store import read_responses
from pii_bench.systems.prompted import DrawnSystem
from tests.fakes import FakeModel, fake_system
from tests.runs.batch_bench import IDS, SAMPLES, START, Bench, FakeService

if TYPE_CHECKING:
    from pii_bench.models.base import Outcome, Request
    from pii_bench.runs.records import RunRecord


def test_one_job_answers_all_samples_and_a_second_run_makes_no_call(bench: Bench) -> None:
    bench.run()

    assert bench.service.submitted == [IDS]
    assert bench.stored() == bench.expected()
    assert (bench.progress.start, bench.progress.failed) == ((0, 6), [False] * 6)
    assert bench.running == 0

    steps = len(bench.service.steps)
    bench.run()
    assert len(bench.service.steps) == steps


def test_answered_samples_are_not_submitted_again(bench: Bench) -> None:
    bench.run(SAMPLES[:2])

    bench.run(SAMPLES[:4])

    assert bench.service.submitted == [["s1", "s2"], ["s3", "s4"]]
    assert bench.stored() == bench.expected(SAMPLES[:4])
    assert bench.progress.start == (2, 4)


def test_a_run_that_does_not_wait_leaves_its_job_to_the_next_run(bench: Bench) -> None:
    bench.run(wait=False)
    assert (bench.running, bench.stored(), bench.clock.pauses) == (1, [], [])
    assert bench.files.batches.exists()

    bench.run(wait=False)
    assert (bench.running, bench.stored()) == (0, bench.expected())
    assert bench.service.submitted == [IDS]
    assert not bench.files.batches.exists()


def test_the_list_of_jobs_holds_ids_and_hashes_and_no_text(bench: Bench) -> None:
    bench.run(SAMPLES[:1], wait=False)

    [job] = json.loads(bench.files.batches.read_text())["jobs"]
    tag = job.pop("tag")
    requests = {"s1": bench.system.request_hash(SAMPLES[0])}
    assert job == {"submitted": START, "requests": requests, "id": "job-1"}
    assert list(bench.service.jobs["job-1"]) == [f"{tag}-0"]


def test_no_job_holds_more_requests_than_allowed(bench: Bench) -> None:
    bench.service.limits = BatchLimits(requests=4, size=10**6)
    bench.service.looks = 2

    bench.run()

    assert bench.service.submitted == [["s1", "s2", "s3", "s4"], ["s5", "s6"]]
    assert bench.stored() == bench.expected()
    assert len({name for job in bench.service.jobs.values() for name in job}) == 6
    assert bench.progress.waits == [(0, 6), (0, 6)]


@pytest.mark.parametrize(("fit", "jobs"), [(0.5, 6), (1.0, 6), (2.0, 3), (5.9, 2), (6.0, 1)])
def test_no_job_is_larger_than_allowed_unless_one_request_is(
    bench: Bench, fit: float, jobs: int
) -> None:
    one = bench.service.size(bench.system.request(SAMPLES[0]))
    bench.service.limits = BatchLimits(requests=100, size=int(fit * one))

    bench.run()

    assert len(bench.service.jobs) == jobs
    assert bench.stored() == bench.expected()


def test_pauses_grow_to_a_minute(bench: Bench) -> None:
    bench.service.looks = 12

    bench.run()

    pauses = bench.clock.pauses
    assert pauses[:3] == [2.0, 3.0, 4.5]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 60.0


def test_a_job_that_does_not_end_in_time_is_left_to_the_next_run(bench: Bench) -> None:
    bench.service.looks = 10**6

    with pytest.raises(PiiBenchError, match="has not ended the batches after 26 hours"):
        bench.run()

    bench.service.looks = 0
    bench.run()
    assert bench.service.submitted == [IDS]
    assert bench.stored() == bench.expected()


def fail_some(request: Request) -> Outcome | None:
    """Let s2 expire, s3 fail and s4 be missing from the results."""
    failures = {"s2": CallError("expired"), "s3": CallError("bad_request", "HTTP 400"), "s4": None}
    return failures.get(request.sample_id, Completion("fine"))


def test_failures_are_recorded_and_submitted_again_by_the_next_run(bench: Bench) -> None:
    bench.service.outcome = fail_some

    bench.run()

    failures = {r.id: r.response for r in bench.stored() if isinstance(r.response, Failure)}
    assert failures == {
        "s2": Failure("expired", ""),
        "s3": Failure("bad_request", "HTTP 400"),
        "s4": Failure("bad_response", "not among the results of its batch"),
    }
    assert sorted(bench.progress.failed) == [False, False, False, True, True, True]

    bench.service.outcome = FakeService().outcome
    bench.run()
    assert bench.service.submitted == [IDS, ["s2", "s3", "s4"]]
    assert [r.id for r in bench.stored() if isinstance(r.response, Completion)] == IDS


def test_a_refusal_is_raised_after_the_other_results_are_saved(bench: Bench) -> None:
    refusal = ProviderRefusedError("no such model")
    bench.service.outcome = lambda request: (
        Completion("fine") if request.sample_id == "s1" else refusal
    )

    with pytest.raises(ProviderRefusedError, match="no such model"):
        bench.run()

    assert bench.stored()[0].response == Completion("fine")
    assert bench.stored()[1].response == Failure("provider_refused", "no such model")
    assert not bench.files.batches.exists()


def test_results_that_a_job_lacks_fail_as_the_provider_says(bench: Bench) -> None:
    bench.service.outcome = lambda _: None
    bench.service.absent = CallError("expired")
    bench.run()
    assert {record.response for record in bench.stored()} == {Failure("expired", "")}

    bench.service.absent = ProviderRefusedError("batch failed")
    with pytest.raises(ProviderRefusedError, match="batch failed"):
        bench.run()
    assert not bench.files.batches.exists()


def test_a_job_with_all_its_results_refuses_nothing(bench: Bench) -> None:
    bench.service.absent = ProviderRefusedError("batch failed")

    bench.run()

    assert bench.stored() == bench.expected()


def change_request(bench: Bench) -> None:
    bench.system = replace(bench.system, sampling=Sampling(max_tokens=99))


def superseded(bench: Bench) -> list[RunRecord]:
    return list(read_responses(bench.files.superseded))


def test_answers_to_changed_requests_are_stored_as_superseded(bench: Bench) -> None:
    bench.run(wait=False)
    old = bench.expected()
    change_request(bench)

    bench.run()

    # The new job is submitted while the old one runs.
    assert bench.service.steps[:5] == ["submit", "poll", "submit", "poll", "result"]
    assert bench.service.submitted == [IDS, IDS]
    assert bench.stored() == bench.expected()
    assert sorted(superseded(bench), key=lambda record: record.id) == old
    assert bench.progress.failed == [False] * 6


def test_failures_of_changed_requests_are_dropped(bench: Bench) -> None:
    bench.run(wait=False)
    change_request(bench)
    bench.service.outcome = lambda _: CallError("expired")

    bench.run()

    assert not bench.files.superseded.exists()
    assert len(bench.stored()) == 6


def test_a_late_answer_to_an_old_request_does_not_replace_a_new_one(bench: Bench) -> None:
    bench.service.looks = 4
    bench.run(wait=False)
    change_request(bench)
    # Ten more polls than the new job, which ends first.
    bench.service.looked = {"job-1": -10}

    bench.run()

    assert bench.stored() == bench.expected()
    assert len(superseded(bench)) == 6


def test_a_shorter_run_collects_the_whole_job(bench: Bench) -> None:
    bench.run(wait=False)

    bench.run(SAMPLES[:2])

    assert bench.stored() == bench.expected()
    assert (bench.progress.start, len(bench.progress.failed)) == ((0, 2), 2)


def test_only_systems_with_one_call_per_sample_run_in_batches() -> None:
    system = fake_system(FakeModel())

    assert require_prompted(system) is system
    with pytest.raises(PiiBenchError, match=r"'fake/one' \(naive\) cannot be run in batches"):
        require_prompted(DrawnSystem(system, "votes", 3))
