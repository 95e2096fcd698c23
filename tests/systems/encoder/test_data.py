from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.datasets.catalog import TRAIN
from pii_bench.errors import PiiBenchError
from pii_bench.systems.encoder.data import read_data
from tests.builders import sample_record, write_lines

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pii_bench.datasets.sample import Sample


def ids(samples: Iterable[Sample]) -> set[str]:
    return {sample.id for sample in samples}


@pytest.mark.parametrize(("hold_out", "held_out"), [(1, 1), (2, 2), (200, 2)])
def test_at_most_a_fifth_of_what_is_not_ours_decides(
    tmp_path: Path, hold_out: int, held_out: int
) -> None:
    records = [sample_record(f"s{number}") for number in range(10)]
    ten = str(write_lines(tmp_path / "ten.jsonl", records))

    data = read_data([ten], ["dev-single"], hold_out)

    deciding = ids(data.dev[f"held out of {ten}"])
    assert len(deciding) == held_out
    assert ids(data.train[ten]) == {f"s{number}" for number in range(10)} - deciding
    assert read_data([ten], ["dev-single"], hold_out) == data


def test_of_ours_nothing_is_held_out() -> None:
    data = read_data(TRAIN[:1], ["dev-single"], 200)

    assert {name: len(samples) for name, samples in data.train.items()} == {"train-single": 780}
    assert {name: len(samples) for name, samples in data.dev.items()} == {"dev-single": 120}


def test_samples_without_a_query_are_left_out(tmp_path: Path) -> None:
    records = [sample_record("s1"), sample_record("s2", query=None, related=[])]
    two = str(write_lines(tmp_path / "two.jsonl", records))

    assert ids(read_data([two], [], 200).train[two]) == {"s1"}


@pytest.mark.parametrize(("train", "dev"), [(["single"], []), ([], ["frontier"])])
def test_nothing_is_learnt_from_a_test_set_nor_chosen_by_it(
    train: list[str], dev: list[str]
) -> None:
    with pytest.raises(PiiBenchError, match="is only for tests \\(allowed: train-single, train-m"):
        read_data(train, dev, 200)
