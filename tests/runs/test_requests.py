from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from pii_bench.runs.requests import RequestHashes
from tests.builders import make_sample
from tests.fakes import FakeModel, fake_system

if TYPE_CHECKING:
    from pii_bench.datasets.sample import Sample
    from pii_bench.models.base import Completion
    from pii_bench.systems.base import SystemCard

SAMPLES = [make_sample("s1"), make_sample("s2")]


@dataclass
class Hashing:
    """Notes whose requests are hashed (`System`)."""

    hashed: list[str] = field(default_factory=list)

    @property
    def card(self) -> SystemCard:
        raise NotImplementedError

    def request_hash(self, sample: Sample) -> str:
        self.hashed.append(sample.id)
        return f"hash of {sample.id}"

    async def respond(self, sample: Sample) -> Completion:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


def test_each_sample_has_the_hash_of_its_request() -> None:
    system = fake_system(FakeModel())

    hashes = RequestHashes(system, SAMPLES)

    assert dict(hashes) == {sample.id: system.request_hash(sample) for sample in SAMPLES}
    assert len(hashes) == 2


def test_a_request_is_hashed_once_and_only_when_it_is_needed() -> None:
    system = Hashing()
    hashes = RequestHashes(system, SAMPLES)

    assert list(hashes) == ["s1", "s2"]
    assert system.hashed == []
    assert [hashes["s2"], hashes["s2"]] == ["hash of s2", "hash of s2"]
    assert system.hashed == ["s2"]


def test_a_sample_that_is_not_there_has_none() -> None:
    hashes = RequestHashes(Hashing(), SAMPLES)

    assert hashes.get("s3") is None
    with pytest.raises(KeyError):
        hashes["s3"]
