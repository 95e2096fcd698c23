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
from pii_bench.systems.encoder.network import IGNORED, Head, JointReader, export, restore
from pii_bench.systems.encoder.reader import Reader, bucket
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
        learning_rate: peak learning rate of the encoder.
        head_factor: learning rate of the heads as a multiple of the encoder's.
        epochs: number of epochs; 0 keeps the initial weights.
        warmup: share of the steps in which the learning rate rises to its peak.
        unasked: share of samples used without their query, so that detection learns from bare text.
        patience: epochs without a better dev score after which training stops.
        half: whether to train in bfloat16, which is fast on recent processors.
        augmented: share of samples that are added a second time, rewritten.
        joined: number of conversations made of several samples, as a share of the samples.
        cut: number of excerpts of one to three sentences, as a share of the samples.
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


@dataclass(slots=True)
class Mention:
    """A gold mention of an entity in a window, from subword `start` to before `end`.

    Attributes:
        named: id of the person whose name it is, or None if it is not a name.
        owners: ids of the subjects it belongs to.
        needed: 1 or 0, or `IGNORED` without a query; for a name in a text about several people,
            whether the query needs any entity of that person, and `IGNORED` in other texts.
    """

    start: int
    end: int
    named: str | None
    owners: set[str]
    needed: int


@dataclass(frozen=True, slots=True)
class Example:
    """A window with a label for each subword, `IGNORED` unless it begins a word of the text.

    A pair is the index of a mention that is not a name, that of the nearest name of a person, the
    bucket of their distance, and 1 if the mention belongs to the person, else 0. There are pairs
    only if the window has names of several people.
    """

    window: Window
    labels: tuple[int, ...]
    mentions: tuple[Mention, ...]
    pairs: tuple[tuple[int, int, int, int], ...]


def examples_of(tokenizer: Tokenizer, sample: Sample, *, with_query: bool) -> Iterator[Example]:
    """Yield the windows of a sample, in which the query may precede the text, as examples."""
    query = (sample.query or "") if with_query else ""
    for window in windows_of(tokenizer, sample.description, query):
        yield _example(window, sample, has_query=bool(query))


def _example(window: Window, sample: Sample, *, has_query: bool) -> Example:
    labels = [IGNORED] * len(window.ids)
    for index, opens in enumerate(window.opens, start=window.first):
        if opens:
            labels[index] = OUTSIDE
    related = {(need.subject, need.text) for need in sample.related}
    related_subjects = {need.subject for need in sample.related}
    people = {
        subject.id
        for subject in sample.subjects
        if any(entity.type == PiiType.PER for entity in subject.entities)
    }
    mentions: dict[tuple[int, int], Mention] = {}
    for subject, entity, span in _spans_by_start(sample):
        touched = subwords_of(window, *span)
        if touched is None:
            continue
        start, end = window.first + touched[0], window.first + touched[1]
        is_name = entity.type == PiiType.PER
        if not has_query or (is_name and len(people) < 2):
            needed = IGNORED
        elif is_name:
            needed = int(subject in related_subjects)
        else:
            needed = int((subject, entity.text) in related)
        shared = mentions.get((start, end))
        if shared is not None:
            shared.owners.add(subject)
            shared.needed = max(shared.needed, needed)
            continue
        if not any(other.start < end and start < other.end for other in mentions.values()):
            _label(labels, window, start, end, PiiType(entity.type))
        named = subject if is_name else None
        mentions[start, end] = Mention(start, end, named, {subject}, needed)
    in_order = tuple(mentions.values())
    return Example(window, tuple(labels), in_order, tuple(_pairs(in_order)))


def _spans_by_start(sample: Sample) -> list[tuple[str, Entity, tuple[int, int]]]:
    """Return subject id, entity and span of each mention; of equal starts, the longest first."""
    spans = [
        (subject.id, entity, span)
        for subject in sample.subjects
        for entity in subject.entities
        for span in entity.spans
    ]
    return sorted(spans, key=lambda item: (item[2][0], -item[2][1], item[0]))


def _label(labels: list[int], window: Window, start: int, end: int, pii_type: PiiType) -> None:
    """Label the words that begin in a range of a window's subwords as one entity."""
    label = begin(pii_type)
    for index in range(start, end):
        if window.opens[index - window.first]:
            labels[index] = label
            label = begin(pii_type) + 1


def _pairs(mentions: Sequence[Mention]) -> list[tuple[int, int, int, int]]:
    """Pair each mention that is not a name with the nearest name of each of several people."""
    names: dict[str, list[int]] = {}
    for index, mention in enumerate(mentions):
        if mention.named is not None:
            names.setdefault(mention.named, []).append(index)
    if len(names) < 2:
        return []
    pairs = []
    for index, mention in enumerate(mentions):
        if mention.named is not None:
            continue
        for person, name_indices in names.items():
            nearest = min(name_indices, key=lambda name: abs(mention.start - mentions[name].start))
            distance = bucket(mention.start - mentions[nearest].start)
            pairs.append((index, nearest, distance, int(person in mention.owners)))
    return pairs


def collate(examples: Sequence[Example]) -> dict[str, Any]:
    """Return the batch for `JointReader.forward`."""
    spans: list[tuple[int, int, int]] = []
    needed: list[int] = []
    pairs: list[tuple[int, int, int]] = []
    owned: list[int] = []
    for row, example in enumerate(examples):
        first = len(spans)
        for mention in example.mentions:
            spans.append((row, mention.start, mention.end))
            needed.append(mention.needed)
        for mentioned, name, distance, is_owned in example.pairs:
            pairs.append((first + mentioned, first + name, distance))
            owned.append(is_owned)
    windows = [example.window for example in examples]
    return {
        "input_ids": torch.tensor(padded([window.ids for window in windows])),
        "attention_mask": torch.tensor(padded([(1,) * len(window.ids) for window in windows])),
        "token_type_ids": torch.tensor(padded([window.types for window in windows])),
        "spelled": torch.tensor(spelled_of(windows)),
        "labels": torch.tensor(padded([example.labels for example in examples], IGNORED)),
        "spans": torch.tensor(spans, dtype=torch.long).reshape(-1, 3),
        "needed": torch.tensor(needed, dtype=torch.long),
        "pairs": torch.tensor(pairs, dtype=torch.long).reshape(-1, 3),
        "owned": torch.tensor(owned, dtype=torch.long),
    }


def training_examples(
    tokenizer: Tokenizer, samples: Sequence[Sample], settings: Settings
) -> list[Example]:
    """Return the examples of the samples and of their augmentations."""
    # The order of the draws decides the examples: changing it changes the trained weights.
    chance = random.Random(settings.seed)
    rewritten: list[Sample] = []
    for sample in samples if settings.kinds else ():
        if chance.random() < settings.augmented:
            new = augmented(sample, settings.kinds, chance)
            if new is not None:
                rewritten.append(new)
    examples: list[Example] = []
    for sample in [*samples, *rewritten]:
        with_query = chance.random() >= settings.unasked
        examples += examples_of(tokenizer, sample, with_query=with_query)
    joined = conversations(samples, round(settings.joined * len(samples)), chance)
    cut = excerpts(samples, round(settings.cut * len(samples)), chance)
    for sample in [*joined, *cut]:
        examples += examples_of(tokenizer, sample, with_query=True)
    return examples


class JointTrainer(Trainer):
    """A `Trainer` that scores dev by the benchmark, and has a learning rate for the heads."""

    def __init__(
        self, dev: Sequence[Sample], tokenizer: Path, settings: Settings, **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self._dev = dev
        self._tokenizer = tokenizer
        self._settings = settings

    def create_optimizer(self, *_: Any) -> torch.optim.Optimizer:
        """Create AdamW with separate learning rates for the encoder and the heads."""
        reader: Any = self.model
        weights = list(reader.named_parameters())
        encoder = [weight for name, weight in weights if name.startswith("encoder.")]
        heads = [weight for name, weight in weights if not name.startswith("encoder.")]
        rate = self._settings.learning_rate
        self.optimizer = torch.optim.AdamW(
            [
                {"params": encoder, "lr": rate},
                {"params": heads, "lr": self._settings.head_factor * rate},
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
        measured = measure(folder, self._dev)
        reader.train()
        metrics = {f"eval_{name}": value for name, value in measured.figures.items()}
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
    start: Sequence[Path],
) -> Measured:
    """Train, export the epoch with the best dev score, and return the scores of what is exported.

    The checkpoint is the folder of a BERT-like model with its `tokenizer.json`, or the GGUF file of
    a decoder, which includes its tokenizer. Training resumes from the last checkpoint in `work`, or
    begins with the mean of the weights of the encoders in `start` (model soups, Wortsman et al.
    2022).

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
    started_from: list[str] = []
    earlier: dict[str, Any] = {}
    for folder in start:
        weights = Reader(folder).sha256
        log_before, logs_before = _read_log(folder)
        started_from.append(weights)
        earlier |= {**logs_before, weights: log_before}
    examples = training_examples(tokenizer, train_samples, settings)
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
        # `Trainer` groups them by the length of `input_ids`.
        train_dataset=[{"input_ids": each.window.ids, "example": each} for each in examples],
        eval_dataset=[],
        data_collator=lambda items: collate([item["example"] for item in items]),
        callbacks=[EarlyStoppingCallback(early_stopping_patience=settings.patience)],
    )
    if settings.epochs:
        trainer.train(resume_from_checkpoint=any(work.glob("checkpoint-*")))
    reader.eval()
    export(reader, tokenizer_file, out, quantised=True)
    measured = measure(out, dev_samples)
    log = {
        "dial": {setting: asdict(point) for setting, point in measured.thresholds.items()},
        "dev": dict(measured.figures),
        "data": {
            "train": {name: len(samples) for name, samples in data.train.items()},
            "dev": {name: len(samples) for name, samples in data.dev.items()},
        },
        "settings": asdict(settings),
        "start": started_from,
        "versions": {name: version(name) for name in _VERSIONS},
        "history": trainer.state.log_history,
        "earlier": earlier,
    }
    write_whole(out / LOG, json.dumps(log, indent=1) + "\n")
    return measured


def _read_log(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the log of an encoder and those of the trainings before it, by hash of the weights."""
    try:
        log = json.loads((folder / LOG).read_bytes())
        return log, log.pop("earlier")
    except (OSError, ValueError, LookupError) as error:
        raise InputFileError(folder / LOG, "cannot be read") from error


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
