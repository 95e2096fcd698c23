"""Fine-tune an encoder jointly for detection, relevance and owners."""

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

from pii_bench.errors import InputFileError
from pii_bench.files import write_whole
from pii_bench.systems.encoder import LOG
from pii_bench.systems.encoder.augment import DEFAULT, augmented, conversations, excerpts
from pii_bench.systems.encoder.measure import measure
from pii_bench.systems.encoder.network import IGNORED, Head, JointReader, export
from pii_bench.systems.encoder.reader import Reader, bucket
from pii_bench.systems.encoder.restore import restore
from pii_bench.systems.encoder.windows import padded, spelled_of, subwords_of, windows_of
from pii_bench.systems.tagger import OUTSIDE, begin
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pii_bench.datasets.sample import Entity, Sample
    from pii_bench.systems.encoder.data import Data
    from pii_bench.systems.encoder.measure import Measured
    from pii_bench.systems.encoder.windows import Window

_VERSIONS: Final = ("torch", "transformers", "onnxruntime", "tokenizers")


@dataclass(frozen=True, slots=True)
class Settings:
    """Training settings.

    Attributes:
        head: labelling head.
        frozen: whether the encoder's weights are not trained.
        learning_rate: peak learning rate of the encoder.
        head_factor: learning rate of the heads as a multiple of the encoder's.
        epochs: number of epochs; 0 keeps the initial weights.
        unasked: share of samples used without their query, so that detection learns from bare text.
        patience: epochs without a better dev score after which training stops.
        half: whether to train in bfloat16, which is fast on recent processors.
        augmented: share of samples that are added a second time, rewritten.
        kinds: kinds of rewriting, see `augment.KINDS`.
        joined: number of conversations made of several samples, as a share of the samples.
        cut: number of excerpts of one to three sentences, likewise.
    """

    head: Head = "linear"
    frozen: bool = False
    learning_rate: float = 3e-4
    head_factor: float = 10 / 3
    batch: int = 16
    epochs: int = 4
    warmup: float = 0.1
    weight_decay: float = 0.01
    unasked: float = 0.25
    patience: int = 2
    half: bool = True
    augmented: float = 0.5
    kinds: tuple[str, ...] = DEFAULT
    joined: float = 0.15
    cut: float = 0.25
    seed: int = 13


@dataclass(frozen=True, slots=True)
class Example:
    """A window with gold labels.

    Attributes:
        labels: label of each subword of the window, `IGNORED` unless it begins a word of the text.
        spans: first subword and end of each mention, within the window.
        needed: 1, 0 or `IGNORED` for each mention; for a name in a text about several people,
            whether any entity of that person is needed.
        pairs: index of a mention, index of a mention of a person's name, bucket of their distance.
        owned: for each pair whether the mention belongs to that person.
    """

    window: Window
    labels: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    needed: tuple[int, ...]
    pairs: tuple[tuple[int, int, int], ...]
    owned: tuple[int, ...]


def examples_of(tokenizer: Tokenizer, sample: Sample, *, asked: bool) -> Iterator[Example]:
    """Yield the windows of a sample as examples.

    Args:
        tokenizer: tokenizer of the encoder.
        sample: sample with entity spans.
        asked: whether the query precedes the text. Without it, `needed` is `IGNORED`.
    """
    query = (sample.query or "") if asked else ""
    for window in windows_of(tokenizer, sample.description, query):
        yield _example(window, sample, has_query=bool(query))


def _example(window: Window, sample: Sample, *, has_query: bool) -> Example:
    labels = [IGNORED] * len(window.ids)
    for place, opens in enumerate(window.opens):
        if opens:
            labels[window.first + place] = OUTSIDE
    related = {(need.subject, need.text) for need in sample.related}
    asked_about = {need.subject for need in sample.related}
    several = (
        len({s.id for s in sample.subjects if any(e.type == PiiType.PER for e in s.entities)}) > 1
    )
    rows: list[tuple[int, int]] = []
    needed: list[int] = []
    owners: list[set[str]] = []
    names: dict[str, list[int]] = {}
    places: dict[tuple[int, int], int] = {}
    for subject, entity, (start, end) in _mentions(sample):
        touched = subwords_of(window, start, end)
        if touched is None:
            continue
        row = (window.first + touched[0], window.first + touched[1])
        is_name = entity.type == PiiType.PER
        is_needed = subject in asked_about if is_name else (subject, entity.text) in related
        is_scored = has_query and (several or not is_name)
        if row in places:
            # Two people share the mention.
            owners[places[row]].add(subject)
            if is_scored:
                needed[places[row]] = max(needed[places[row]], int(is_needed))
            continue
        if not any(first < row[1] and row[0] < last for first, last in rows):
            _label(labels, row, window, PiiType(entity.type))
        places[row] = len(rows)
        if is_name:
            names.setdefault(subject, []).append(len(rows))
        rows.append(row)
        needed.append(int(is_needed) if is_scored else IGNORED)
        owners.append({subject})
    pairs = list(_pairs(rows, names))
    return Example(
        window=window,
        labels=tuple(labels),
        spans=tuple(rows),
        needed=tuple(needed),
        pairs=tuple((row, name, near) for row, name, near, _ in pairs),
        owned=tuple(int(person in owners[row]) for row, _, _, person in pairs),
    )


def _mentions(sample: Sample) -> list[tuple[str, Entity, tuple[int, int]]]:
    """Return all mentions by start, the longest first among those with the same start."""
    found = [
        (subject.id, entity, span)
        for subject in sample.subjects
        for entity in subject.entities
        for span in entity.spans
    ]
    return sorted(found, key=lambda item: (item[2][0], -item[2][1], item[0]))


def _label(labels: list[int], row: tuple[int, int], window: Window, pii_type: PiiType) -> None:
    label = begin(pii_type)
    for place in range(*row):
        if window.opens[place - window.first]:
            labels[place] = label
            label = begin(pii_type) + 1


def _pairs(
    rows: Sequence[tuple[int, int]], names: dict[str, list[int]]
) -> Iterator[tuple[int, int, int, str]]:
    """Pair each mention that is not a name with the nearest mention of each person."""
    if len(names) < 2:
        return
    named = {row for own in names.values() for row in own}
    for row, (start, _) in enumerate(rows):
        if row in named:
            continue
        for person, own in names.items():
            nearest = min(own, key=lambda name: abs(start - rows[name][0]))
            yield row, nearest, bucket(start - rows[nearest][0]), person


def collate(examples: Sequence[Example]) -> dict[str, Any]:
    """Return the batch for `JointReader.forward`."""
    spans: list[tuple[int, int, int]] = []
    pairs: list[tuple[int, int, int]] = []
    for number, example in enumerate(examples):
        pairs += [(r + len(spans), n + len(spans), near) for r, n, near in example.pairs]
        spans += [(number, start, end) for start, end in example.spans]
    windows = [example.window for example in examples]
    return {
        "input_ids": torch.tensor(padded([w.ids for w in windows])),
        "attention_mask": torch.tensor(padded([(1,) * len(w.ids) for w in windows])),
        "token_type_ids": torch.tensor(padded([w.types for w in windows])),
        "spelled": torch.tensor(spelled_of(windows)),
        "labels": torch.tensor(padded([e.labels for e in examples], IGNORED)),
        "spans": torch.tensor(spans, dtype=torch.long).reshape(-1, 3),
        "needed": torch.tensor([n for e in examples for n in e.needed], dtype=torch.long),
        "pairs": torch.tensor(pairs, dtype=torch.long).reshape(-1, 3),
        "owned": torch.tensor([o for e in examples for o in e.owned], dtype=torch.long),
    }


class Examples(torch.utils.data.Dataset[dict[str, Any]]):
    """The examples of all samples; `Trainer` groups the items by the length of `input_ids`."""

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
        extra = [
            *conversations(samples, round(settings.joined * len(samples)), chance),
            *excerpts(samples, round(settings.cut * len(samples)), chance),
        ]
        self._examples += [
            example for sample in extra for example in examples_of(tokenizer, sample, asked=True)
        ]

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, place: int) -> dict[str, Any]:
        example = self._examples[place]
        return {"input_ids": example.window.ids, "example": example}


class JointTrainer(Trainer):
    """A `Trainer` that scores dev with the benchmark's metrics, with a learning rate for the heads.

    Args:
        dev: samples for choosing the epoch.
        tokenizer: file of the encoder's tokenizer.
        settings: training settings.
        given: arguments of `Trainer`.
    """

    def __init__(
        self, dev: Sequence[Sample], tokenizer: Path, settings: Settings, **given: Any
    ) -> None:
        super().__init__(**given)
        self._dev, self._tokenizer, self._settings = dev, tokenizer, settings

    def create_optimizer(self, *_: Any) -> torch.optim.Optimizer:
        """Create AdamW with separate learning rates for the encoder and the heads."""
        reader: Any = self.model
        named = list(reader.named_parameters())
        body = [weight for name, weight in named if name.startswith("encoder.")]
        heads = [weight for name, weight in named if not name.startswith("encoder.")]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": body, "lr": self._settings.learning_rate},
                {"params": heads, "lr": self._settings.head_factor * self._settings.learning_rate},
            ],
            weight_decay=self._settings.weight_decay,
        )
        return self.optimizer

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Export the current weights and score them on dev."""
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
    start: Sequence[Path] = (),
) -> Measured:
    """Train, and export the epoch with the best dev score.

    Args:
        checkpoint: folder of a BERT-like model with its `tokenizer.json`, or the GGUF file of a
            decoder, which includes its tokenizer.
        data: samples with spans and queries.
        out: output folder of the graph, heads, tokenizer and training log.
        settings: training settings.
        work: folder of the checkpoints; training resumes from the last one.
        start: folders of trained encoders with the same checkpoint and head. Training starts from
            the mean of their weights (model soups, Wortsman et al. 2022).

    Returns:
        The dev scores of the exported files.

    Raises:
        InputFileError: a folder in `start` has no encoder of this checkpoint and head.
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
    if start:
        restore(reader, *start)
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
    if settings.epochs:
        trainer.train(resume_from_checkpoint=any(work.glob("checkpoint-*")))
    reader.eval()
    export(reader, tokenizer_file, out, quantised=True)
    found = measure(out, dev_samples)
    log = {
        "dial": {setting: asdict(point) for setting, point in found.thresholds.items()},
        "dev": dict(found.figures),
        "data": {
            "train": {name: len(samples) for name, samples in data.train.items()},
            "dev": {name: len(samples) for name, samples in data.dev.items()},
        },
        "settings": asdict(settings),
        "start": [_log_of(folder) for folder in start],
        "versions": {name: version(name) for name in _VERSIONS},
        "history": trainer.state.log_history,
    }
    write_whole(out / LOG, json.dumps(log, indent=1) + "\n")
    return found


def _log_of(folder: Path) -> dict[str, Any]:
    """Return the training log of an encoder with the hash of its weights."""
    try:
        log: dict[str, Any] = json.loads((folder / LOG).read_bytes())
    except (OSError, ValueError) as error:
        raise InputFileError(folder / LOG, "cannot be read") from error
    return {"weights": Reader(folder).sha256, **log}


def _pretrained(checkpoint: Path, work: Path) -> tuple[Any, Path]:
    """Load the pretrained model without a head; return it and its tokenizer file."""
    if checkpoint.suffix == ".gguf":
        from pii_bench.models.causal import load

        tokenizer, causal = load(checkpoint)
        work.mkdir(parents=True, exist_ok=True)
        tokenizer.backend_tokenizer.save(str(work / "tokenizer.json"))
        return causal.model, work / "tokenizer.json"
    config: Any = AutoConfig.from_pretrained(checkpoint)
    # Attention dropout is slow on a CPU.
    for name in ("attention_probs_dropout_prob", "attention_dropout"):
        if hasattr(config, name):
            setattr(config, name, 0.0)
    model = AutoModel.from_pretrained(checkpoint, config=config)
    return model, checkpoint / "tokenizer.json"
