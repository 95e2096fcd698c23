from __future__ import annotations

import json
import sys
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import InputFileError, MissingExtraError
from pii_bench.systems.tagger.files import LOG
from pii_bench.systems.tagger.settings import Settings
from pii_bench.systems.tagger.train import train
from tests.builders import read_folder
from tests.systems.tagger.tiny import SETTINGS, train_tiny

if TYPE_CHECKING:
    from pathlib import Path


def read_log(folder: Path) -> dict[str, Any]:
    log: dict[str, Any] = json.loads((folder / LOG).read_text(encoding="utf-8"))
    return log


def test_the_log_tells_how_the_weights_came_about(tmp_path: Path) -> None:
    log = read_log(train_tiny(tmp_path))

    assert log["settings"]["seed"] == 13
    assert log["settings"]["sizes"]["hidden"] == 10
    assert set(log["versions"]) == {"python", "torch", "numpy", "onnx", "safetensors"}
    for part in ("train", "dev"):
        content = (tmp_path / f"{part}.jsonl").read_bytes()
        assert log[part] == [{"file": f"{part}.jsonl", "sha256": sha256(content).hexdigest()}]
    assert [epoch["number"] for epoch in log["epochs"]] == list(range(1, len(log["epochs"]) + 1))
    curve = [epoch["dev"]["f1"] for epoch in log["epochs"]]
    assert curve[log["best_epoch"] - 1] == max(curve) > 0.9
    assert log["dev_of_files"]["f1"] == pytest.approx(max(curve), abs=0.05)


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    def weights(name: str, seed: int) -> dict[str, bytes]:
        files = read_folder(train_tiny(tmp_path / name, replace(SETTINGS, epochs=2, seed=seed)))
        del files[LOG]
        return files

    assert weights("one", 1) == weights("again", 1)
    assert weights("one", 1) != weights("other", 2)


def test_without_the_extra_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pii_bench.systems.tagger.export", None)

    with pytest.raises(MissingExtraError, match=r"-m pip install 'pii-bench\[train\]'`"):
        train_tiny(tmp_path)


def test_a_dataset_that_is_missing_is_named_before_any_training(tmp_path: Path) -> None:
    def unreached(_: object) -> None:
        raise AssertionError("trained")

    missing = tmp_path / "no.jsonl"
    with pytest.raises(InputFileError, match=r"no\.jsonl"):
        train([missing], [missing], tmp_path / "model", unreached, Settings())
    assert not (tmp_path / "model").exists()
