from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main
from pii_bench.scorer import PRF
from pii_bench.systems.tagger.settings import Epoch, Settings
from tests.builders import sample_record, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.cli.conftest import Capsys


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The arguments of a stub training that takes one epoch."""
    asked: list[object] = []

    def train(
        train: Sequence[Path],
        dev: Sequence[Path],
        folder: Path,
        report: Callable[[Epoch], None],
        settings: Settings,
    ) -> None:
        asked.extend([[path.name for path in train], [path.name for path in dev], folder])
        asked.append(settings)
        report(Epoch(1, 62.4, PRF(0.75, 0.5, 0.6), 30.4))

    stub = ModuleType("training, for which torch need not be installed")
    vars(stub)["train"] = train
    monkeypatch.setitem(sys.modules, "pii_bench.systems.tagger.train", stub)
    return asked


@pytest.mark.parametrize(
    ("options", "folder", "spelling"),
    [
        ([], "data/models/bilstm-crf", True),
        (["--words-alone"], "data/models/bilstm-crf-words", False),
        (["--data", "built", "--out", "model"], "model", True),
    ],
)
def test_the_tagger_trains_on_the_built_sets_and_prints_each_epoch(
    asked: list[object], capsys: Capsys, options: list[str], folder: str, *, spelling: bool
) -> None:
    assert main(["train", *options]) == 0

    assert asked == [
        ["train-single.jsonl", "train-multi.jsonl"],
        ["dev-single.jsonl", "dev-multi.jsonl"],
        Path(folder),
        Settings(spelling=spelling),
    ]
    assert capsys.readouterr().out.splitlines() == [
        "epoch 1: loss 62.40, dev P 0.750 R 0.500 F1 0.600, 30 s",
        f"weights: {folder}",
    ]


def test_training_without_built_sets_is_an_error(capsys: Capsys) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")

    assert main(["train", "--data", ".", "--out", "model"]) == 2

    assert "dev-single.jsonl: No such file" in capsys.readouterr().err


def test_thresholds_are_fitted_on_dev(capsys: Capsys) -> None:
    entities = [
        {"text": "$900", "type": "QUANTITY", "category": "Monthly Income"},
        {"text": "York", "type": "LOC", "category": "City/Region"},
    ]
    sample = sample_record(
        description="She gets $900 in York.",
        query="Is her salary fair?",
        subjects=[{"id": "A", "entities": entities}],
        related=[{"subject": "A", "text": "$900"}],
    )
    for name in ("dev-single", "dev-multi"):
        write_lines(Path(f"{name}.jsonl"), [sample])
    out = Path("thresholds.json")

    assert main(["fit", "random", "--data", ".", "--out", str(out)]) == 0

    # One of two candidates is needed, so chance lets in one half.
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("random: threshold 0.5000, dev F1 ")
    assert printed[1] == f"thresholds: {out}"
    assert json.loads(out.read_text())["random"]["threshold"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "module", "hint"),
    [
        ([], "pii_bench.systems.tagger.train", "-m pip install -e '.[train]'`"),
        (["lora", "--base", "."], "pii_bench.models.lora", "-m pip install -e '.[lora]'`"),
    ],
)
def test_training_without_its_extra_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys, arguments: list[str], module: str, hint: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    assert main(["train", *arguments]) == 2
    assert hint in capsys.readouterr().err
