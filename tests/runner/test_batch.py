from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError, PiiBenchError, ProviderRefusedError
from pii_bench.files import ResultsError
from pii_bench.models.base import CallError, Completion, Sampling
from pii_bench.models.batch import (
    RESULTS_GONE,
    Absence,
    BatchLimits,
    BatchState,
    UnknownJobError,
    absent_from_results,
    build_batch_service,
    custom_id,
)
from pii_bench.runner.batch import Polling, require_prompted, run_batch
from pii_bench.runner.batch_jobs import jobs_path
from pii_bench.runner.records import Failure, RunRecord
from pii_bench.runner.store import RunFiles, RunStore, read_lines
from pii_bench.systems.voted import VotedSystem
from tests.batch_server import Fault
from tests.builders import make_sample
from tests.fakes import FakeModel, RecordingObserver, fake_system
from tests.models.batch_cases import CASES, Case

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Request
    from pii_bench.models.batch import Outcome
    from pii_bench.systems.prompted import PromptedSystem

SAMPLES = [make_sample(f"s{number}") for number in range(1, 7)]
IDS = [sample.id for sample in SAMPLES]
START = 1_800_000_000.0
DAY = 86400.0


class Crash(BaseException):
    """The process dies."""


@dataclass
class Clock:
    """Time that passes only while somebody sleeps."""

    now: float = START
    pauses: list[float] = field(default_factory=list)

    def read(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def polling(self, *, wait: bool = True) -> Polling:
        return Polling(wait=wait, sleep=self.sleep, now=self.read)


class FakeService:
    """A provider's batch API in this process (`BatchService`); its jobs outlive crashes.

    Attributes:
        outcome: what becomes of a request.
        looks: how often a job is found running before it has ended.
        faults: raised by the n-th step, from 0; every method is a step, and every result.
        late: whether a step that fails has its effect all the same.
        jobs: requests by job, in order of submission.
    """

    def __init__(self) -> None:
        self.outcome: Callable[[Request], Outcome | None] = lambda request: Completion(
            f"answer to {request.sample_id}", batched=True
        )
        self.limits = BatchLimits(requests=100, size=10**6)
        self.looks = 1
        self.faults: dict[int, BaseException] = {}
        self.late = False
        self.steps: list[str] = []
        self.jobs: dict[str, dict[str, Request]] = {}
        self.looked: dict[str, int] = {}
        self.absent: CallError | ProviderRefusedError = absent_from_results()
        self.undecided = 0
        self.forgotten = False

    @property
    def submitted(self) -> list[list[str]]:
        """The samples of each job."""
        return [[request.sample_id for request in job.values()] for job in self.jobs.values()]

    def size(self, request: Request) -> int:
        return len(request.messages[-1].content)

    async def submit(self, requests: Sequence[Request], tag: str) -> str:
        fault = self._step("submit")
        if fault and not self.late:
            raise fault
        name = f"job-{len(self.jobs) + 1}"
        self.jobs[name] = {custom_id(tag, number): each for number, each in enumerate(requests)}
        if fault:
            raise fault
        return name

    async def find(self, tag: str, *, since: float, requests: int) -> str | Absence:
        self._raise("find")
        if self.undecided:
            self.undecided -= 1
            return Absence.UNDECIDED
        for name, job in self.jobs.items():
            if custom_id(tag, 0) in job and len(job) == requests and since <= START + DAY:
                return name
        return Absence.SURE

    async def poll(self, job: str) -> BatchState:
        self._raise("poll")
        if self.forgotten:
            raise UnknownJobError("fake", job)
        self.looked[job] = self.looked.get(job, 0) + 1
        ended, total = self.looked[job] > self.looks, len(self.jobs[job])
        return BatchState(ended, total if ended else 0, total, self.absent)

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Outcome], None]:
        # In another order than that of the requests.
        for name, request in reversed(self.jobs[job].items()):
            self._raise("result")
            if (outcome := self.outcome(request)) is not None:
                yield name, outcome

    def _step(self, name: str) -> BaseException | None:
        self.steps.append(name)
        return self.faults.get(len(self.steps) - 1)

    def _raise(self, name: str) -> None:
        if fault := self._step(name):
            raise fault


class WaitingObserver(RecordingObserver):
    """Notes what it is told (`BatchObserver`)."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[tuple[int, int]] = []

    def waiting(self, *, finished: int, total: int) -> None:
        self.waits.append((finished, total))


@dataclass
class Bench:
    """A folder, a system, a provider and a clock, for one run after another."""

    files: RunFiles
    service: FakeService = field(default_factory=FakeService)
    clock: Clock = field(default_factory=Clock)
    system: PromptedSystem = field(default_factory=lambda: fake_system(FakeModel()))
    observer: WaitingObserver = field(default_factory=WaitingObserver)
    running: int = 0

    def run(self, samples: Sequence[Sample] = SAMPLES, *, wait: bool = True) -> None:
        requests = self.hashes()
        self.observer = WaitingObserver()
        with RunStore(self.files, requests) as store:
            self.running = asyncio.run(
                run_batch(
                    self.system,
                    samples,
                    store,
                    files=self.files,
                    requests=requests,
                    service=self.service,
                    observer=self.observer,
                    polling=self.clock.polling(wait=wait),
                )
            )

    def hashes(self) -> dict[str, str]:
        return {sample.id: self.system.request_hash(sample) for sample in SAMPLES}

    def stored(self) -> list[RunRecord]:
        return [record for _, record in read_lines(self.files.responses)]

    def expected(self, samples: Sequence[Sample] = SAMPLES) -> list[RunRecord]:
        return [
            RunRecord(
                sample.id,
                self.system.request_hash(sample),
                Completion(f"answer to {sample.id}", batched=True),
            )
            for sample in samples
        ]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(RunFiles.at(tmp_path, "fake/one", "naive", "tiny"))


def test_one_job_answers_all_samples(bench: Bench) -> None:
    bench.run()

    assert bench.service.submitted == [IDS]
    assert bench.stored() == bench.expected()
    assert (bench.observer.start, bench.observer.failed) == ((0, 6), [False] * 6)
    assert bench.running == 0


def test_what_was_answered_before_is_not_submitted(bench: Bench) -> None:
    bench.run(SAMPLES[:2])

    bench.run(SAMPLES[:4])

    assert bench.service.submitted == [["s1", "s2"], ["s3", "s4"]]
    assert bench.stored() == bench.expected(SAMPLES[:4])
    assert bench.observer.start == (2, 4)


def test_when_all_is_answered_the_provider_is_not_asked(bench: Bench) -> None:
    bench.run()
    steps = len(bench.service.steps)

    bench.run()

    assert len(bench.service.steps) == steps


def test_the_list_of_jobs_is_there_only_while_a_job_is(bench: Bench) -> None:
    bench.run(wait=False)
    assert jobs_path(bench.files).name == "tiny.batch.json"
    assert jobs_path(bench.files).exists()

    bench.run()
    assert not jobs_path(bench.files).exists()


def test_a_run_that_does_not_wait_leaves_its_job_to_the_next(bench: Bench) -> None:
    bench.run(wait=False)
    assert (bench.running, bench.stored(), bench.clock.pauses) == (1, [], [])

    bench.run(wait=False)
    assert (bench.running, bench.stored()) == (0, bench.expected())
    assert bench.service.submitted == [IDS]


def test_the_list_of_jobs_holds_ids_and_hashes_and_no_text(bench: Bench) -> None:
    bench.run(SAMPLES[:1], wait=False)

    [job] = json.loads(jobs_path(bench.files).read_text())["jobs"]
    tag = job.pop("tag")
    requests = {"s1": bench.system.request_hash(SAMPLES[0])}
    assert job == {"submitted": START, "requests": requests, "id": "job-1"}
    assert list(bench.service.jobs["job-1"]) == [f"{tag}-0"]


def test_custom_ids_are_unique_among_jobs(bench: Bench) -> None:
    bench.service.limits = BatchLimits(requests=2, size=10**6)

    bench.run()

    names = [name for job in bench.service.jobs.values() for name in job]
    assert len(set(names)) == len(names) == 6


def test_no_job_holds_more_requests_than_allowed(bench: Bench) -> None:
    bench.service.limits = BatchLimits(requests=4, size=10**6)

    bench.run()

    assert bench.service.submitted == [["s1", "s2", "s3", "s4"], ["s5", "s6"]]
    assert bench.stored() == bench.expected()


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


def test_it_tells_how_far_the_jobs_are(bench: Bench) -> None:
    bench.service.limits = BatchLimits(requests=4, size=10**6)
    bench.service.looks = 2

    bench.run()

    assert bench.observer.waits == [(0, 6), (0, 6)]


def test_a_job_that_never_ends_is_given_up_for_now(bench: Bench) -> None:
    bench.service.looks = 10**6

    with pytest.raises(PiiBenchError, match="has not ended the jobs after 26 hours"):
        bench.run()

    bench.service.looks = 0
    bench.run()
    assert bench.service.submitted == [IDS]
    assert bench.stored() == bench.expected()


def fail_some(request: Request) -> Outcome | None:
    """s2 expires, s3 is refused, s4 is in no result."""
    match request.sample_id:
        case "s2":
            return CallError("expired")
        case "s3":
            return CallError("bad_request", "HTTP 400")
        case "s4":
            return None
    return Completion("fine")


def test_what_failed_is_recorded_and_submitted_by_the_next_run_alone(bench: Bench) -> None:
    bench.service.outcome = fail_some

    bench.run()

    failures = {r.id: r.response for r in bench.stored() if isinstance(r.response, Failure)}
    assert failures == {
        "s2": Failure("expired", ""),
        "s3": Failure("bad_request", "HTTP 400"),
        "s4": Failure("bad_response", "not among the results of its batch"),
    }
    assert sorted(bench.observer.failed) == [False, False, False, True, True, True]

    bench.service.outcome = FakeService().outcome
    bench.run()
    assert bench.service.submitted == [IDS, ["s2", "s3", "s4"]]
    assert [r.id for r in bench.stored() if isinstance(r.response, Completion)] == IDS


def test_what_an_expired_job_does_not_name_has_expired(bench: Bench) -> None:
    bench.service.outcome = lambda _: None
    bench.service.absent = CallError("expired")

    bench.run()

    assert {record.response for record in bench.stored()} == {Failure("expired", "")}


def test_a_refusal_of_every_request_is_raised_when_the_rest_is_saved(bench: Bench) -> None:
    refusal = ProviderRefusedError("no such model")
    bench.service.outcome = lambda request: (
        Completion("fine") if request.sample_id == "s1" else refusal
    )

    with pytest.raises(ProviderRefusedError, match="no such model"):
        bench.run()

    assert bench.stored()[0].response == Completion("fine")
    assert bench.stored()[1].response == Failure("provider_refused", "no such model")
    assert not jobs_path(bench.files).exists()


def test_a_job_that_was_refused_whole_is_raised(bench: Bench) -> None:
    bench.service.outcome = lambda _: None
    bench.service.absent = ProviderRefusedError("batch failed")

    with pytest.raises(ProviderRefusedError, match="batch failed"):
        bench.run()

    assert not jobs_path(bench.files).exists()


def crashes(steps: int) -> list[tuple[int, bool]]:
    return list(itertools.product(range(steps), [False, True]))


def test_a_crash_at_any_step_loses_nothing_and_submits_nothing_twice(tmp_path: Path) -> None:
    undisturbed = Bench(RunFiles.at(tmp_path, "undisturbed", "naive", "tiny"))
    undisturbed.run()
    assert undisturbed.service.steps == ["submit", "poll", "poll", *["result"] * 6]

    for number, late in crashes(len(undisturbed.service.steps)):
        bench = Bench(RunFiles.at(tmp_path, f"crash-{number}-{late}", "naive", "tiny"))
        bench.service.faults, bench.service.late = {number: Crash()}, late
        with pytest.raises(Crash):
            bench.run()

        bench.run()

        assert bench.service.submitted == [IDS], (number, late)
        assert bench.files.responses.read_bytes() == undisturbed.files.responses.read_bytes()
        assert not jobs_path(bench.files).exists()


def test_crash_after_crash_is_survived(bench: Bench) -> None:
    bench.service.late = True
    for _ in range(9):
        bench.service.faults = {len(bench.service.steps) + 1: Crash()}
        with pytest.raises(Crash):
            bench.run()

    bench.run()

    assert bench.service.submitted == [IDS]
    assert bench.stored() == bench.expected()


def test_a_crash_between_two_jobs_keeps_the_first(bench: Bench) -> None:
    bench.service.limits = BatchLimits(requests=4, size=10**6)
    bench.service.faults = {1: Crash()}
    with pytest.raises(Crash):
        bench.run()

    bench.run()

    assert bench.service.submitted == [["s1", "s2", "s3", "s4"], ["s5", "s6"]]
    assert bench.stored() == bench.expected()


@pytest.mark.parametrize("line", range(6))
def test_a_crash_while_a_result_is_saved_costs_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, line: int
) -> None:
    append, appended = RunStore.append, itertools.count()

    def crash(store: RunStore, record: RunRecord) -> None:
        if next(appended) == line:
            raise Crash
        append(store, record)

    monkeypatch.setattr(RunStore, "append", crash)
    with pytest.raises(Crash):
        bench.run()

    bench.run()

    assert bench.service.submitted == [IDS]
    assert bench.stored() == bench.expected()


def test_a_full_disk_stops_the_run_before_anything_is_submitted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ResultsError("no space left")

    monkeypatch.setattr("pii_bench.runner.batch_jobs.write_json", refuse)

    with pytest.raises(ResultsError):
        bench.run()

    assert bench.service.submitted == []


def test_a_lost_job_is_looked_for_only_when_it_must_have_appeared(bench: Bench) -> None:
    bench.service.faults = {0: Crash()}
    with pytest.raises(Crash):
        bench.run()
    bench.clock.now += 20.0

    bench.run()

    assert bench.clock.pauses[0] == 40.0


def test_while_a_running_job_may_be_the_lost_one_nothing_is_submitted(bench: Bench) -> None:
    bench.service.faults, bench.service.late = {0: Crash()}, True
    with pytest.raises(Crash):
        bench.run()
    bench.service.undecided = 3

    bench.run()

    assert bench.service.steps.count("find") == 4
    assert bench.service.submitted == [IDS]
    assert bench.stored() == bench.expected()


def test_a_call_that_fails_at_any_step_is_made_again(tmp_path: Path) -> None:
    undisturbed = Bench(RunFiles.at(tmp_path, "undisturbed", "naive", "tiny"))
    undisturbed.run()

    for number, late in crashes(len(undisturbed.service.steps)):
        bench = Bench(RunFiles.at(tmp_path, f"failure-{number}-{late}", "naive", "tiny"))
        bench.service.faults, bench.service.late = {number: CallError("connection")}, late

        bench.run()

        assert bench.service.submitted == [IDS], (number, late)
        assert bench.files.responses.read_bytes() == undisturbed.files.responses.read_bytes()
        assert bench.observer.failed == [False] * 6


def test_a_server_that_asks_for_patience_gets_it(bench: Bench) -> None:
    bench.service.faults = {
        1: CallError("rate_limit", retry_after=33.0),
        2: CallError("rate_limit", retry_after=86400.0),
    }

    bench.run()

    assert bench.clock.pauses[:2] == [33.0, 600.0]


def test_a_job_that_may_not_be_submitted_now_is_submitted_later(bench: Bench) -> None:
    bench.service.faults = {0: CallError("rate_limit")}

    bench.run()

    assert bench.service.steps[:2] == ["submit", "submit"]
    assert bench.stored() == bench.expected()


def test_a_job_that_is_wrong_fails_each_of_its_samples(bench: Bench) -> None:
    bench.service.faults = {0: CallError("bad_request", "HTTP 413")}

    bench.run()

    assert {record.response for record in bench.stored()} == {Failure("bad_request", "HTTP 413")}
    assert bench.service.steps == ["submit"]
    assert not jobs_path(bench.files).exists()


def test_a_refused_submission_leaves_no_job(bench: Bench) -> None:
    bench.service.faults = {0: ProviderRefusedError("check the API key")}

    with pytest.raises(ProviderRefusedError):
        bench.run()

    assert not jobs_path(bench.files).exists()


def test_nothing_is_tried_forever(bench: Bench) -> None:
    bench.service.faults = dict.fromkeys(range(1, 1000), CallError("server_error", "HTTP 500"))

    with pytest.raises(PiiBenchError) as raised:
        bench.run()

    assert str(raised.value) == (
        "model 'fake/one': its batch API failed 30 times in a row, last with server_error: "
        "HTTP 500; what came is saved, and the jobs go on: run again to collect the rest"
    )
    assert len(bench.service.steps) == 31

    bench.service.faults = {}
    bench.run()
    assert bench.service.submitted == [IDS]


def test_a_job_that_the_provider_does_not_know_names_the_file(bench: Bench) -> None:
    bench.run(wait=False)
    bench.service.forgotten = True

    with pytest.raises(PiiBenchError, match="knows no batch 'job-1'") as raised:
        bench.run()

    assert str(jobs_path(bench.files)) in str(raised.value)
    assert jobs_path(bench.files).exists()


@pytest.mark.parametrize(("age", "gone"), [(DAY, False), (8 * DAY, True)])
def test_results_are_given_up_only_when_they_may_have_been_deleted(
    bench: Bench, age: float, gone: bool
) -> None:
    bench.run(wait=False)
    bench.clock.now += age
    bench.service.faults = {4: CallError(RESULTS_GONE)}

    bench.run()

    gone_ones = [r.id for r in bench.stored() if r.response == Failure(RESULTS_GONE, "")]
    assert gone_ones == (["s1", "s2", "s3", "s4", "s5"] if gone else [])
    assert not jobs_path(bench.files).exists()


def change_request(bench: Bench) -> None:
    bench.system = replace(bench.system, sampling=Sampling(max_tokens=99))


def superseded(bench: Bench) -> list[RunRecord]:
    return [record for _, record in read_lines(bench.files.superseded)]


def test_answers_to_a_request_that_has_changed_are_put_aside(bench: Bench) -> None:
    bench.run(wait=False)
    old = bench.expected()
    change_request(bench)

    bench.run()

    assert bench.service.submitted == [IDS, IDS]
    assert bench.stored() == bench.expected()
    assert sorted(superseded(bench), key=lambda record: record.id) == old
    assert bench.observer.failed == [False] * 6


def test_failures_of_a_request_that_has_changed_are_forgotten(bench: Bench) -> None:
    bench.run(wait=False)
    change_request(bench)
    bench.service.outcome = lambda _: CallError("expired")

    bench.run()

    assert not bench.files.superseded.exists()
    assert len(bench.stored()) == 6


def test_a_late_answer_to_an_old_request_replaces_no_new_one(bench: Bench) -> None:
    bench.service.looks = 4
    bench.run(wait=False)
    change_request(bench)
    # The new job ends before the old one.
    bench.service.looked = {"job-1": -10}

    bench.run()

    assert bench.stored() == bench.expected()
    assert len(superseded(bench)) == 6


def test_a_shorter_run_collects_the_whole_job(bench: Bench) -> None:
    bench.run(wait=False)

    bench.run(SAMPLES[:2])

    assert bench.stored() == bench.expected()
    assert (bench.observer.start, len(bench.observer.failed)) == ((0, 2), 2)


@pytest.mark.parametrize("content", ["", "[]", '{"jobs": [{}]}', '{"jobs": [{"tag": 3}]}'])
def test_a_broken_list_of_jobs_is_an_error_that_names_it(bench: Bench, content: str) -> None:
    path = jobs_path(bench.files)
    path.parent.mkdir(parents=True)
    path.write_text(content)

    with pytest.raises(InputFileError, match=r"tiny\.batch\.json: no list of batches"):
        bench.run()

    assert bench.service.steps == []


def test_only_a_model_that_is_asked_once_per_sample_runs_in_batches() -> None:
    system = fake_system(FakeModel())

    assert require_prompted(system) is system
    with pytest.raises(PiiBenchError, match=r"'fake/one' \(naive\) cannot be run in batches"):
        require_prompted(VotedSystem(system, 3))


async def run_for_real(case: Case, url: str, files: RunFiles, clock: Clock) -> None:
    model = case.build(url, 5.0)
    system = fake_system(FakeModel())
    requests = {sample.id: system.request_hash(sample) for sample in SAMPLES}
    try:
        with RunStore(files, requests) as store:
            await run_batch(
                system,
                SAMPLES,
                store,
                files=files,
                requests=requests,
                service=build_batch_service(model),
                observer=WaitingObserver(),
                polling=clock.polling(),
            )
    finally:
        await model.close()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_a_connection_that_breaks_at_any_call_costs_nothing(
    case: Case, tmp_path: Path, done: bool
) -> None:
    for number in range(len(case.lines)):
        files = RunFiles.at(tmp_path, f"run-{number}", "naive", "tiny")
        with case.serve() as server:
            server.faults = {number: Fault(done=done)}
            asyncio.run(run_for_real(case, server.url, files, Clock()))

            assert len(server.jobs) == 1, case.lines[number]
        answers = [record.response for _, record in read_lines(files.responses)]
        assert [answer.text for answer in answers if isinstance(answer, Completion)] == [
            f"answer {number}" for number in range(6)
        ]
