"""Fine-tuning a tiny model with two layers of eight dimensions."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.files import sha256_of_folder
from pii_bench.models.base import Message
from pii_bench.models.tuning import Example
from tests.builders import read_folder

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("peft", reason="the extra `lora` is not installed")
gguf = pytest.importorskip("gguf", reason="the extra `lora` is not installed")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import (  # noqa: E402
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from pii_bench.models.causal import load  # noqa: E402
from pii_bench.models.lora import (  # noqa: E402
    IGNORED,
    Settings,
    adapt,
    changes_of,
    collate,
    encode,
    tune,
    write_tuned,
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}<end>\n"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
SETTINGS = Settings(steps=4, longest=64, rank=2, half=False, save=2, learning_rate=0.01)


def example(question: str, answer: str) -> Example:
    return Example("s1", (Message("user", question),), answer)


EXAMPLES = [example("abc", "c"), example("bca", "a"), example("cab", "b"), example("aab", "b")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a model and a tokenizer with a token per character and mark of a turn."""
    path = tmp_path_factory.mktemp("model")
    marks = ["<end>", "<user>", "<assistant>"]
    names = [*marks, *"abcdefghij?\n"]
    vocabulary = {name: number for number, name in enumerate(names)}
    unknown = "?"
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(marks)
    marked = {"eos_token": marks[0], "unk_token": unknown}
    kind: Any = PreTrainedTokenizerFast
    fast = kind(tokenizer_object=tokenizer, **marked)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(path)
    torch.manual_seed(0)
    small_model(len(names)).save_pretrained(path)
    return path


def rows_of(out: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((out / "loss.csv").read_text().splitlines()))


def small_model(words: int) -> Any:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=words,
            hidden_size=8,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=64,
        )
    )


def test_only_the_answer_and_its_end_have_labels(folder: Path) -> None:
    tokenizer, _ = load(folder)

    encoded = encode(tokenizer, example("ab", "ba"))

    # <user> a b <end> \n <assistant> b a <end>
    assert encoded["input_ids"] == [1, 3, 4, 0, 14, 2, 4, 3, 0]
    assert encoded["labels"] == [IGNORED] * 6 + [4, 3, 0]


def test_shorter_examples_are_padded_without_labels() -> None:
    items = [
        {"input_ids": [5, 6, 7], "labels": [IGNORED, 6, 7]},
        {"input_ids": [5, 6], "labels": [IGNORED, 6]},
    ]

    batch = {name: part.tolist() for name, part in collate(items, padding=0).items()}

    assert batch == {
        "input_ids": [[5, 6, 7], [5, 6, 0]],
        "labels": [[IGNORED, 6, 7], [IGNORED, 6, IGNORED]],
        "attention_mask": [[1, 1, 1], [1, 1, 0]],
    }


def test_the_loss_is_that_of_the_answer(folder: Path) -> None:
    tokenizer, model = load(folder)
    batch = collate([encode(tokenizer, example("abc", "cab"))], padding=0)

    with torch.no_grad():
        output = model(**batch)

    # By hand: every token is predicted from the previous ones, the answer has four.
    probabilities = output.logits[0].log_softmax(-1)
    answer = range(7, 11)
    tokens = batch["input_ids"][0]
    expected = -sum(probabilities[place - 1, tokens[place]] for place in answer) / 4
    assert len(tokens) == 11
    assert output.loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_training_lowers_the_loss_and_writes_a_log(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps: list[tuple[int, int]] = []
    settings = replace(SETTINGS, steps=60, save=30)

    def report(step: int, of: int, _: float) -> None:
        steps.append((step, of))

    tuned = tune(folder, EXAMPLES, tmp_path / "out", settings, report)

    assert steps == [(step, 60) for step in range(1, 61)]
    assert capsys.readouterr().out == ""
    assert tuned.last_loss < tuned.first_loss
    rows = rows_of(tmp_path / "out")
    assert [row["step"] for row in rows] == [str(step) for step in range(1, 61)]
    assert sum(float(row["loss"]) for row in rows[:6]) / 6 == pytest.approx(tuned.first_loss)
    log = json.loads((tmp_path / "out" / "training.json").read_text())
    assert log["settings"]["seed"] == 13
    assert log["base"] == {folder.name: sha256_of_folder(folder)}
    assert log["model"] == {"merged": sha256_of_folder(tuned.model)}
    # <user> ... <end> \n <assistant> x <end>: nine tokens each, two of them with labels.
    data = log["data"]
    assert (data["examples"], data["left_out"]) == (4, 0)
    assert (data["tokens"], data["answer_tokens"]) == (36, 8)
    _, served = load(tuned.model)
    assert served(**collate([encode(load(folder)[0], EXAMPLES[0])], 0)).loss < tuned.first_loss


def test_an_interrupted_training_has_the_same_result(folder: Path, tmp_path: Path) -> None:
    def stop(step: int, *_: object) -> None:
        if step == 3:
            raise KeyboardInterrupt

    tune(folder, EXAMPLES, tmp_path / "whole", SETTINGS, lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        tune(folder, EXAMPLES, tmp_path / "cut", SETTINGS, stop)
    steps: list[int] = []
    tune(folder, EXAMPLES, tmp_path / "cut", SETTINGS, lambda step, *_: steps.append(step))

    assert steps == [3, 4]
    whole, cut = ([row["loss"] for row in rows_of(tmp_path / name)] for name in ("whole", "cut"))
    assert whole == cut


def test_a_finished_training_is_only_written_again(folder: Path, tmp_path: Path) -> None:
    # Five steps end within the second epoch of the four examples.
    settings = replace(SETTINGS, steps=5)
    first = tune(folder, EXAMPLES, tmp_path / "out", settings, lambda *_: None)
    kept = ("loss.csv", "merged/model.safetensors")
    files = [read_folder(tmp_path / "out")[name] for name in kept]
    steps: list[int] = []

    again = tune(folder, EXAMPLES, tmp_path / "out", settings, lambda step, *_: steps.append(step))

    assert again == first
    assert steps == []
    assert [read_folder(tmp_path / "out")[name] for name in kept] == files


def test_an_interrupted_training_needs_the_same_settings(folder: Path, tmp_path: Path) -> None:
    tune(folder, EXAMPLES, tmp_path / "out", SETTINGS, lambda *_: None)

    with pytest.raises(PiiBenchError, match=r"out\.work was made with other settings or examples"):
        tune(folder, EXAMPLES, tmp_path / "out", replace(SETTINGS, seed=1), lambda *_: None)


def test_too_long_examples_are_left_out(folder: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, longest=9)
    examples = [*EXAMPLES, example("abca", "c")]

    assert tune(folder, examples, tmp_path / "out", settings, lambda *_: None).left_out == 1
    with pytest.raises(PiiBenchError, match="no example has at most 8 tokens"):
        tune(folder, EXAMPLES, tmp_path / "none", replace(SETTINGS, longest=8), lambda *_: None)


def test_a_chat_template_is_required(folder: Path) -> None:
    tokenizer, _ = load(folder)
    tokenizer.chat_template = None

    with pytest.raises(PiiBenchError, match="no chat template"):
        encode(tokenizer, EXAMPLES[0])


def gguf_of(model: Any, path: Path, architecture: str = "llama") -> Path:
    """Write the model as a GGUF file, with llama.cpp's layout of heads."""
    config, writer = model.config, gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_token_list([f"w{number}" for number in range(config.vocab_size)])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        values = weight.detach().numpy().astype(np.float32)
        heads = {"q_proj": 2, "k_proj": 1}.get(name.split(".")[-2])
        if heads:
            # Of each head the rows 0 1 2 3 become 0 2 1 3: halves become neighbours.
            order = [4 * head + row for head in range(heads) for row in (0, 2, 1, 3)]
            values = values[order]
        writer.add_tensor(f"{names.get_name(name.removesuffix('.weight'))}.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def read_gguf(path: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name)


def test_a_tuned_gguf_file_has_the_output_of_the_adapted_model(tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = small_model(15)
    base = gguf_of(model, tmp_path / "base.gguf")
    adapted = adapt(model, SETTINGS)
    with torch.no_grad():
        # New adapters are zero.
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.5)

    write_tuned(base, changes_of(adapted), tmp_path / "tuned.gguf")

    tokens = torch.tensor([[1, 3, 4, 5, 0, 14, 2]])
    with torch.no_grad():
        expected = adapted(tokens).logits
        written = read_gguf(tmp_path / "tuned.gguf")(tokens).logits
        before = read_gguf(base)(tokens).logits
    # 16-bit floats have eleven bits.
    assert torch.allclose(expected, written, atol=0.02)
    assert not torch.allclose(expected, before, atol=0.2)
    old, new = gguf.GGUFReader(base), gguf.GGUFReader(tmp_path / "tuned.gguf")
    assert {name: field.contents() for name, field in old.fields.items()} == {
        name: field.contents() for name, field in new.fields.items()
    }


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    path = gguf_of(small_model(15), tmp_path / "other.gguf", "gpt2")

    with pytest.raises(InputFileError, match="architecture 'gpt2' cannot be fine-tuned from GGUF"):
        load(path)


def test_a_missing_weight_is_an_error(tmp_path: Path) -> None:
    base = gguf_of(small_model(15), tmp_path / "base.gguf")

    with pytest.raises(InputFileError, match=r"has no weights model\.layers\.9\.mlp\.weight"):
        write_tuned(
            base, {"model.layers.9.mlp.weight": np.zeros((1, 1), np.float32)}, tmp_path / "x"
        )
