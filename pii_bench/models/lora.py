"""Fine-tuning a causal model with low-rank adapters (Hu et al., 2021, arXiv:2106.09685).

The loss counts only the tokens of the answer. The result is a folder, or a GGUF file if the base
is one.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import gguf
import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import Linear
from torch.nn.utils.rnn import pad_sequence
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainerState, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.escaping import csv_text
from pii_bench.files import sha256_of, sha256_of_folder, write_whole, writing
from pii_bench.models.causal import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from pii_bench.models.tuning import Example

IGNORED: Final = -100
"""The label of a token that the loss ignores."""

_WEIGHT: Final = ".weight"
_HEADER: Final = ("GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.architecture")


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyperparameters of training.

    Attributes:
        steps: updates of the weights, each after `accumulate` batches.
        longest: tokens of prompt and answer; longer examples are left out.
        learning_rate: the peak; it rises during `warmup` and falls to 0 along a cosine.
        warmup: share of the steps.
        rank: of the adapters, which are on every linear layer but the last.
        alpha: the adapters' output is scaled by `alpha / rank`.
        half: whether to multiply matrices in bfloat16, which recent processors do fast.
        save: steps between two checkpoints.
    """

    steps: int = 160
    batch: int = 1
    accumulate: int = 1
    longest: int = 512
    learning_rate: float = 5e-4
    warmup: float = 0.05
    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    half: bool = True
    save: int = 25
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Tuned:
    """A fine-tuned model.

    Attributes:
        model: a GGUF file for `--model local/PATH`, or a folder for the user's own server.
        left_out: number of examples that are too long.
        first_loss: mean over the first tenth of the steps.
        last_loss: mean over the last tenth.
    """

    model: Path
    examples: int
    left_out: int
    first_loss: float
    last_loss: float


class StepReporter(TrainerCallback):
    """Reports step, number of steps and loss, and adds the seconds of training to the log."""

    def __init__(self, report: Callable[[int, int, float], None]) -> None:
        self._report, self._start = report, time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Continue from the seconds of an interrupted training."""
        seconds = [entry["seconds"] for entry in state.log_history if "seconds" in entry]
        self._start = time.monotonic() - (seconds[-1] if seconds else 0.0)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Report a step."""
        entry = state.log_history[-1]
        if "loss" in entry:
            entry["seconds"] = round(time.monotonic() - self._start, 1)
            self._report(state.global_step, state.max_steps, entry["loss"])


def tune(
    base: Path,
    examples: Sequence[Example],
    out: Path,
    settings: Settings,
    report: Callable[[int, int, float], None],
) -> Tuned:
    """Fine-tune a model, and write adapter, merged model, losses and log.

    The base is a GGUF file, or a folder with a causal model and its tokenizer. An interrupted
    training continues from its last checkpoint in the folder `out` + `.work`. After each step
    `report` gets its number, the number of steps, and the loss.

    Raises:
        InputFileError: a GGUF file whose architecture is not Llama's.
        PiiBenchError: no example is short enough, the tokenizer has no chat template, or the
            interrupted training had other settings or examples.
        ResultsError: the files cannot be written.
    """
    torch.manual_seed(settings.seed)
    tokenizer, model = load(base)
    encoded = [encode(tokenizer, example) for example in examples]
    fitting = [item for item in encoded if len(item["input_ids"]) <= settings.longest]
    if not fitting:
        raise PiiBenchError(f"no example has at most {settings.longest} tokens")
    left_out = len(encoded) - len(fitting)
    labels = [label for item in fitting for label in item["labels"]]
    data = {
        "examples": len(fitting),
        "left_out": left_out,
        "tokens": len(labels),
        "answer_tokens": sum(label != IGNORED for label in labels),
        "sha256": hashlib.sha256(json.dumps(fitting).encode()).hexdigest(),
    }
    work = out.with_name(f"{out.name}.work")
    checkpoint = _last_checkpoint(work, {"settings": asdict(settings), "data": data})
    state = TrainerState()
    if checkpoint is not None:
        state = TrainerState.load_from_json(str(Path(checkpoint) / "trainer_state.json"))
    if checkpoint is not None and state.global_step >= settings.steps:
        # `Trainer` would make one more step.
        adapted = PeftModel.from_pretrained(model, checkpoint)
    else:
        adapted = adapt(model, settings)
        trainer = Trainer(
            model=adapted,
            args=_arguments(work, settings),
            train_dataset=fitting,
            data_collator=lambda items: collate(items, tokenizer.eos_token_id),
            callbacks=[StepReporter(report)],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=checkpoint)
        state = trainer.state
    steps = [entry for entry in state.log_history if "loss" in entry]
    written = _write(base, adapted, tokenizer, out)
    columns = ("step", "loss", "learning_rate", "grad_norm", "seconds")
    losses = csv_text(columns, ([step.get(name) for name in columns] for step in steps), figure="")
    write_whole(out / "loss.csv", losses)
    log = {
        "base": {base.name: _sha256(base)},
        "model": {written.name: _sha256(written)},
        "data": data,
        "settings": asdict(settings),
        "versions": {name: version(name) for name in ("torch", "transformers", "peft", "gguf")},
        "threads": torch.get_num_threads(),
        "seconds": steps[-1]["seconds"],
    }
    write_whole(out / "training.json", json.dumps(log, indent=1) + "\n")
    tenth = max(1, len(steps) // 10)
    return Tuned(
        model=written,
        examples=len(fitting),
        left_out=left_out,
        first_loss=sum(entry["loss"] for entry in steps[:tenth]) / tenth,
        last_loss=sum(entry["loss"] for entry in steps[-tenth:]) / tenth,
    )


def adapt(model: Any, settings: Settings) -> Any:
    """Add adapters to a model; only their weights are trained."""
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)


def encode(tokenizer: Any, example: Example) -> dict[str, list[int]]:
    """Tokenize prompt and answer separately, as they are at inference.

    The `labels` are `IGNORED` for the prompt. They and `input_ids` end with the token that ends
    an answer.

    Raises:
        PiiBenchError: there is no chat template, or it changes earlier messages.
    """
    if not tokenizer.chat_template:
        raise PiiBenchError("the model's tokenizer has no chat template: is it a chat model?")
    messages = [asdict(message) for message in example.prompt]
    start = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    messages.append({"role": "assistant", "content": example.answer})
    chat = tokenizer.apply_chat_template(messages, tokenize=False)
    if not chat.startswith(start):
        raise PiiBenchError("the model's chat template does not keep the prompt as it was")
    prompt = tokenizer.encode(start, add_special_tokens=False)
    answer = tokenizer.encode(chat[len(start) :], add_special_tokens=False)
    end = tokenizer.eos_token_id
    answer = [*answer[: answer.index(end)], end] if end in answer else [*answer, end]
    return {"input_ids": prompt + answer, "labels": [IGNORED] * len(prompt) + answer}


def collate(items: Sequence[dict[str, list[int]]], padding: int) -> dict[str, torch.Tensor]:
    """Pad examples to one length; each of the three tensors is (examples, tokens)."""

    def padded(rows: list[list[int]], value: int) -> torch.Tensor:
        tensors = [torch.tensor(row) for row in rows]
        return pad_sequence(tensors, batch_first=True, padding_value=value)

    tokens = [item["input_ids"] for item in items]
    return {
        "input_ids": padded(tokens, padding),
        "labels": padded([item["labels"] for item in items], IGNORED),
        "attention_mask": padded([[1] * len(row) for row in tokens], 0),
    }


def _arguments(work: Path, settings: Settings) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(work),
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup,
        lr_scheduler_type="cosine",
        save_strategy="steps",
        save_steps=settings.save,
        save_total_limit=2,
        logging_steps=1,
        remove_unused_columns=False,
        disable_tqdm=True,
        report_to=[],
        seed=settings.seed,
        bf16=settings.half,
        use_cpu=not torch.cuda.is_available(),
        dataloader_pin_memory=torch.cuda.is_available(),
    )


def _last_checkpoint(work: Path, run: dict[str, Any]) -> str | None:
    """Return the last checkpoint, made with the same settings and data; None to start anew."""
    path = work / "settings.json"
    text = json.dumps(run, indent=1) + "\n"
    untyped: Any = get_last_checkpoint
    checkpoint: str | None = untyped(str(work)) if work.is_dir() else None
    if checkpoint is None:
        write_whole(path, text)
    elif not path.exists() or path.read_text(encoding="utf-8") != text:
        raise PiiBenchError(f"{work} was made with other settings or examples: remove it first")
    return checkpoint


def _write(base: Path, adapted: Any, tokenizer: Any, out: Path) -> Path:
    """Write the adapter and the merged model; return the model's path."""
    with writing(out):
        adapted.save_pretrained(out / "adapter")
    if not base.is_dir():
        # The file's name becomes the model's name in results.
        path = out / f"{out.name}.gguf"
        write_tuned(base, changes_of(adapted), path)
        return path
    path = out / "merged"
    with writing(out):
        adapted.merge_and_unload().save_pretrained(path)
        tokenizer.save_pretrained(path)
    return path


def changes_of(adapted: Any) -> dict[str, Any]:
    """Return what the adapters add to each weight, by its name in the model without adapters."""
    return {
        f"{name.removeprefix('base_model.model.')}.weight": part.get_delta_weight("default")
        .detach()
        .float()
        .numpy()
        for name, part in adapted.named_modules()
        if isinstance(part, Linear)
    }


def write_tuned(base: Path, changes: Mapping[str, NDArray[np.float32]], out: Path) -> None:
    """Write a copy of the GGUF file `base` with changes added to its weights.

    Everything else, tokenizer and chat template included, is copied, so that the same servers can
    load it. Changed weights are stored as 16-bit floats: the few bits of a quantised weight cannot
    represent small changes. The changes are matrices by the weight's name in transformers, such as
    `model.layers.0.self_attn.q_proj.weight`.

    Raises:
        InputFileError: `base` lacks one of the weights.
        ResultsError: `out` cannot be written.
    """
    reader = gguf.GGUFReader(base)
    names = {key: _gguf_name(reader, key) for key in changes}
    added = {name: _permuted(reader, name, changes[key]) for key, name in names.items()}
    if missing := sorted(set(added) - {tensor.name for tensor in reader.tensors}):
        raise InputFileError(base, f"has no weights {', '.join(missing)}")
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        # Not `replacing`: the library takes a path, not a file object.
        new = out.with_name(f".{out.name}.new")
        _write_gguf(reader, added, new)
        new.replace(out)


def _write_gguf(
    reader: gguf.GGUFReader, added: Mapping[str, NDArray[np.float32]], out: Path
) -> None:
    writer = gguf.GGUFWriter(out, "llama")
    for field in reader.fields.values():
        if field.name in _HEADER:
            continue
        kind = field.types[0]
        item_kind = field.types[-1] if kind is gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=item_kind)
    for tensor in reader.tensors:
        if tensor.name in added:
            weight = gguf.dequantize(tensor.data, tensor.tensor_type) + added[tensor.name]
            writer.add_tensor(tensor.name, weight.astype(np.float16))
        else:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_name(reader: gguf.GGUFReader, name: str) -> str:
    """Return the GGUF name for a weight's name in transformers."""
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, _number(reader, "block_count"))
    stem = names.get_name(name.removesuffix(_WEIGHT))
    return f"{stem or name.removesuffix(_WEIGHT)}{_WEIGHT}"


def _permuted(
    reader: gguf.GGUFReader, name: str, change: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the matrix with its rows in GGUF's order.

    Rotary embeddings rotate pairs of dimensions of queries and keys: transformers pairs the two
    halves of a head, llama.cpp neighbours (`permute` in llama.cpp's `convert_hf_to_gguf.py`).
    """
    if name.endswith(f"attn_q{_WEIGHT}"):
        heads = _number(reader, "attention.head_count")
    elif name.endswith(f"attn_k{_WEIGHT}"):
        heads = _number(reader, "attention.head_count_kv")
    else:
        return change
    rows, columns = change.shape
    halves = change.reshape(heads, 2, rows // heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)


def _number(reader: gguf.GGUFReader, key: str) -> int:
    return int(reader.fields[f"llama.{key}"].contents())


def _sha256(path: Path) -> str:
    return sha256_of_folder(path) if path.is_dir() else sha256_of(path)
