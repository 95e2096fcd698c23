from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError
from pii_bench.files import ResultsError
from pii_bench.runs.batch_jobs import Job, JobsFile, jobs_path
from pii_bench.runs.store import RunFiles

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles.at(tmp_path, "fake/one", "naive", "a.b")


def test_the_list_stands_beside_the_responses(files: RunFiles) -> None:
    assert jobs_path(files) == files.responses.with_name("a.b.batch.json")


def test_a_job_s_custom_ids_number_its_samples() -> None:
    job = Job("00ff", 1.5, {"s2": "h2", "s1": "h1"})

    assert job.custom_ids == {"00ff-0": "s2", "00ff-1": "s1"}


def test_new_jobs_have_tags_of_their_own() -> None:
    tags = {Job.new({"s1": "h1"}, 1.5).tag for _ in range(100)}

    assert len(tags) == 100
    assert {len(tag) for tag in tags} == {16}


def test_jobs_are_read_back_in_their_order(files: RunFiles) -> None:
    first, second = Job("00ff", 1.5, {"s2": "h2", "s1": "h1"}), Job("aa00", 2.0, {"s3": "h3"})
    jobs = JobsFile(files)
    jobs.put(first)
    jobs.put(second)
    known = jobs.identify(first, "job-1")

    read = list(JobsFile(files))

    assert known == Job("00ff", 1.5, {"s2": "h2", "s1": "h1"}, "job-1")
    assert read == [known, second]
    assert list(read[0].requests) == ["s2", "s1"]


def test_jobs_may_be_dropped_while_they_are_gone_through(files: RunFiles) -> None:
    jobs = JobsFile(files)
    for tag in ("00", "11"):
        jobs.put(Job(tag, 1.5, {"s1": "h1"}))

    for job in jobs:
        jobs.drop(job)

    assert len(jobs) == 0
    assert not jobs_path(files).exists()


@pytest.mark.parametrize("content", ["", "[]", '{"jobs": [{}]}', '{"jobs": [{"tag": 3}]}'])
def test_a_broken_list_is_an_error_that_names_it(files: RunFiles, content: str) -> None:
    path = jobs_path(files)
    path.parent.mkdir(parents=True)
    path.write_text(content)

    with pytest.raises(InputFileError, match=r"a\.b\.batch\.json: no list of batches") as caught:
        JobsFile(files)

    remedy = "move the file away and run again: what its batches ask is asked, and paid, again"
    assert str(caught.value).endswith(f"; {remedy}")


def test_a_list_that_cannot_be_written_is_an_error_that_names_it(files: RunFiles) -> None:
    jobs = JobsFile(files)
    files.responses.parent.parent.write_text("in the way")

    with pytest.raises(ResultsError, match=r"a\.b\.batch\.json: cannot be written"):
        jobs.put(Job("00", 1.5, {"s1": "h1"}))
