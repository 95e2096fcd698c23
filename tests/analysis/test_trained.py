from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.trained import read_trained
from pii_bench.cli import main
from pii_bench.errors import InputFileError

if TYPE_CHECKING:
    from pathlib import Path

_LOG = {
    "settings": {"head": "crf", "frozen": False, "kinds": ["typos", "values"]},
    "data": {
        "train": {"train-single": 780, "capid:../other/train.jsonl": 1906},
        "dev": {"dev-single": 120, "held out of capid:../other/train.jsonl": 200},
    },
    "dev": {"strict": 0.75, "entity": 0.875, "query": 0.5, "h": 0.625, "score": 2.75},
    "start": [],
    "history": [{"epoch": 1.0}, {"epoch": 2.0}],
    "earlier": {},
}


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "with-crf"
    folder.mkdir()
    (folder / "training.json").write_text(json.dumps(_LOG), encoding="utf-8")
    return folder


def test_a_row_says_what_was_learnt_from_and_how_good_it_is(weights: Path) -> None:
    assert read_trained(weights) == {
        "weights": "with-crf",
        "head": "crf",
        "frozen": False,
        "augmented": "typos, values",
        "train": "train-single 780, capid:train.jsonl 1906",
        "epochs": 2,
        "dev": "dev-single 120, held out of capid:train.jsonl 200",
        "strict_f1": 0.75,
        "ent_f1": 0.875,
        "f1": 0.5,
        "h": 0.625,
    }


def test_epochs_before_the_start_count(weights: Path) -> None:
    earlier = {
        "first": {**_LOG, "history": [{"epoch": 4.0}]},
        "second": {**_LOG, "start": ["first"]},
    }
    mean = {**_LOG, "history": [], "start": ["second", "first"], "earlier": earlier}
    (weights / "training.json").write_text(json.dumps(mean), encoding="utf-8")

    assert read_trained(weights)["epochs"] == 6


def test_the_table_is_written_as_csv(weights: Path, tmp_path: Path) -> None:
    out = tmp_path / "trained.csv"

    assert main(["trained", str(weights), "--out", str(out)]) == 0

    header, row = out.read_text(encoding="utf-8").splitlines()
    assert header.startswith("weights,head,frozen,augmented,train,epochs,dev,strict_f1")
    assert row.startswith('with-crf,crf,False,"typos, values",')
    assert row.endswith(",0.7500,0.8750,0.5000,0.6250")


def test_a_folder_without_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"training\.json: No such file"):
        read_trained(tmp_path)
    (tmp_path / "training.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputFileError, match="is no log of `pii-bench train encoder`"):
        read_trained(tmp_path)
