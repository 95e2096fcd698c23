"""Fine-tunes an encoder for detection, relevance and owners at once."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import (
    AutoConfig,
    AutoModel,
    EarlyStoppingCallback,
    Trainer,
    TrainingArguments,
)

from pii_bench.files import write_whole
from pii_bench.systems.encoder.augment import ALL, augmented
from pii_bench.systems.encoder.conversations import conversations
from pii_bench.systems.encoder.examples import collate, examples_of
from pii_bench.systems.encoder.excerpts import excerpts
from pii_bench.systems.encoder.export import export
from pii_bench.systems.encoder.files import LOG
from pii_bench.systems.encoder.measure import measure
from pii_bench.systems.encoder.network import Head, JointReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.encoder.measure import Measured

_VERSIONS: Final = ("torch", "transformers", "onnxruntime", "tokenizers")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to train.

    Attributes:
        head: what labels words, see `network.HEADS`.
        frozen: whether the encoder's weights stay as they are.
        learning_rate: of the encoder; the heads take `head_rate`.
        unasked: share of examples whose query is left out, so that texts alone are read too.
        patience: epochs without a better dev score after which training stops.
        augmented: share of samples that are learnt from a second time, rewritten.
        kinds: of rewriting, see `augment`.
        joined: conversations that are made of several samples, as a share of the samples.
        cut: excerpts of one to three sentences, likewise.
        half: whether matrices are multiplied in bfloat16, which recent processors do fast.
    """

    head: Head = "linear"
    frozen: bool = False
    learning_rate: float = 3e-4
    head_rate: float = 1e-3
    batch: int = 16
    epochs: int = 4
    warmup: float = 0.1
    weight_decay: float = 0.01
    unasked: float = 0.25
    patience: int = 2
    half: bool = True
    augmented: float = 0.5
    kinds: tuple[str, ...] = ALL
    joined: float = 0.15
    cut: float = 0.25
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Data:
    """What is learnt from and what decides: dataset to samples."""

    train: Mapping[str, Sequence[Sample]]
    dev: Mapping[str, Sequence[Sample]]


class Examples(torch.utils.data.Dataset[dict[str, Any]]):
    """The windows of samples; each item has its `input_ids`, by which batches are grouped."""

    def __init__(self, tokenizer: Tokenizer, samples: Sequence[Sample], settings: Settings) -> None:
        chance = random.Random(settings.seed)
        further = [
            new
            for sample in samples
            if settings.kinds
            and chance.random() < settings.augmented
            and (new := augmented(sample, settings.kinds, chance)) is not None
        ]
        self._examples = [
            example
            for sample in [*samples, *further]
            for example in examples_of(tokenizer, sample, asked=chance.random() >= settings.unasked)
        ]
        made = [
            *conversations(samples, round(settings.joined * len(samples)), chance),
            *excerpts(samples, round(settings.cut * len(samples)), chance),
        ]
        self._examples += [
            example for sample in made for example in examples_of(tokenizer, sample, asked=True)
        ]

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, place: int) -> dict[str, Any]:
        example = self._examples[place]
        return {"input_ids": example.window.ids, "example": example}


class JointTrainer(Trainer):
    """Measures on dev what the system is for, and gives the heads a rate of their own.

    Args:
        dev: samples that decide which epoch is kept.
        tokenizer: file of the encoder's tokenizer.
        settings: how to train.
        given: what `Trainer` takes.
    """

    def __init__(
        self, dev: Sequence[Sample], tokenizer: Path, settings: Settings, **given: Any
    ) -> None:
        super().__init__(**given)
        self._dev, self._tokenizer, self._settings = dev, tokenizer, settings

    def create_optimizer(self, *_: Any) -> torch.optim.Optimizer:
        """AdamW with a rate for the encoder and one for the heads."""
        reader: Any = self.model
        named = list(reader.named_parameters())
        body = [weight for name, weight in named if name.startswith("encoder.")]
        heads = [weight for name, weight in named if not name.startswith("encoder.")]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": body, "lr": self._settings.learning_rate},
                {"params": heads, "lr": self._settings.head_rate},
            ],
            weight_decay=self._settings.weight_decay,
        )
        return self.optimizer

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The scorer's figures on dev, by the files that would be written now."""
        reader: Any = self.model
        reader.eval()
        folder = Path(str(self.args.output_dir)) / "dev"
        export(reader, self._tokenizer, folder, quantised=False)
        found = measure(folder, self._dev)
        reader.train()
        metrics = {f"eval_{name}": value for name, value in found.figures.items()}
        metrics["epoch"] = float(self.state.epoch or 0)
        self.log(metrics)
        self.control: Any = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics


def train(
    checkpoint: Path,
    data: Data,
    out: Path,
    settings: Settings,
    work: Path,
) -> Measured:
    """Train, keep the epoch that is best on dev, and export it.

    Args:
        checkpoint: folder of a BERT-like model with its `tokenizer.json`, or the GGUF file of a
            decoder, whose tokenizer is inside.
        data: samples with spans and queries; dev decides which epoch is kept.
        out: where the graph, the heads, the tokenizer and the log go.
        settings: how.
        work: where checkpoints are kept; training goes on from the last one there.

    Returns:
        The figures of the written files on dev, see `measure`.
    """
    train_samples = [sample for samples in data.train.values() for sample in samples]
    dev_samples = [sample for samples in data.dev.values() for sample in samples]
    torch.manual_seed(settings.seed)
    np.random.seed(settings.seed)
    encoder, tokenizer_file = _pretrained(checkpoint, work)
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    reader = JointReader(encoder, settings.head, frozen=settings.frozen)
    arguments = TrainingArguments(
        output_dir=str(work),
        per_device_train_batch_size=settings.batch,
        num_train_epochs=settings.epochs,
        warmup_steps=settings.warmup,
        lr_scheduler_type="linear",
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="eval_score",
        greater_is_better=True,
        remove_unused_columns=False,
        train_sampling_strategy="group_by_length",
        logging_steps=50,
        report_to=[],
        seed=settings.seed,
        bf16=settings.half,
        use_cpu=not torch.cuda.is_available(),
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    trainer = JointTrainer(
        dev=dev_samples,
        tokenizer=tokenizer_file,
        settings=settings,
        model=reader,
        args=arguments,
        train_dataset=Examples(tokenizer, train_samples, settings),
        eval_dataset=[],
        data_collator=lambda items: collate([item["example"] for item in items]),
        callbacks=[EarlyStoppingCallback(early_stopping_patience=settings.patience)],
    )
    resumable = any(work.glob("checkpoint-*"))
    trainer.train(resume_from_checkpoint=resumable)
    reader.eval()
    export(reader, tokenizer_file, out, quantised=True)
    found = measure(out, dev_samples)
    log = {
        "dial": {setting: asdict(point) for setting, point in found.dial.items()},
        "dev": dict(found.figures),
        "data": {
            "train": {name: len(samples) for name, samples in data.train.items()},
            "dev": {name: len(samples) for name, samples in data.dev.items()},
        },
        "settings": asdict(settings),
        "versions": {name: version(name) for name in _VERSIONS},
        "history": trainer.state.log_history,
    }
    write_whole(out / LOG, json.dumps(log, indent=1) + "\n")
    return found


def _pretrained(checkpoint: Path, work: Path) -> tuple[Any, Path]:
    """The pretrained model without a head, and the file of its tokenizer."""
    if checkpoint.suffix == ".gguf":
        from pii_bench.models.causal import load

        tokenizer, causal = load(checkpoint)
        work.mkdir(parents=True, exist_ok=True)
        tokenizer.backend_tokenizer.save(str(work / "tokenizer.json"))
        return causal.model, work / "tokenizer.json"
    config: Any = AutoConfig.from_pretrained(checkpoint)
    # The dropout of attention is slow off a GPU.
    for name in ("attention_probs_dropout_prob", "attention_dropout"):
        if hasattr(config, name):
            setattr(config, name, 0.0)
    model = AutoModel.from_pretrained(checkpoint, config=config)
    return model, checkpoint / "tokenizer.json"
