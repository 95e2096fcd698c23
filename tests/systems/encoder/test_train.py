"""Each head trains for real, on a tiny encoder that the test makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.systems.catalog import SystemOptions, build_systems

pytest.importorskip("torch", reason="the extra `encoder` is not installed")
transformers = pytest.importorskip("transformers", reason="the extra `encoder` is not installed")

from pii_bench.systems.encoder.network import Head  # noqa: E402 - torch must be there
from tests.systems.encoder.test_windows import tokenizer  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    made = tokenizer()
    config = transformers.BertConfig(
        vocab_size=made.get_vocab_size(),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    transformers.BertModel(config).save_pretrained(folder)
    made.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.parametrize("head", get_args(Head))
def test_a_head_trains_and_what_it_writes_answers(
    checkpoint: Path, tmp_path: Path, head: str
) -> None:
    out = tmp_path / "out"
    arguments = ["--checkpoint", str(checkpoint), "--head", head, "--epochs", "1"]

    code = main(
        ["train", "encoder", *arguments, "--train", "demo", "--dev", "demo", "--out", str(out)]
    )

    assert code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "encoder.onnx",
        "heads.npz",
        "tokenizer.json",
        "training.json",
    ]
    detection, related = build_systems(f"encoder:{out}", SystemOptions())
    assert detection.card.names_subjects
    assert related.card.settings["weights"] == detection.card.settings["weights"]
    assert load_dataset("demo").samples
