"""Training of a tagger with Adam and early stopping on dev; writes the files that ship."""

from __future__ import annotations

import copy
import json
import platform
import time
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pii_bench.datasets.sample import read_native
from pii_bench.files import replacing, sha256_of, write_whole, writing
from pii_bench.scorer.measures import ZERO, Counts, micro
from pii_bench.scorer.text import tokenize
from pii_bench.systems.tagger import decode, gold_spans, labels_of
from pii_bench.systems.tagger.network import BiLstmCrf, emissions_graph, write_network
from pii_bench.systems.tagger.settings import Epoch
from pii_bench.systems.tagger.vocabulary import (
    EMISSIONS,
    LOG,
    PADDING,
    UNKNOWN,
    Vocabulary,
    distinct,
    write_decoder,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pii_bench.datasets.sample import Sample
    from pii_bench.scorer import PRF
    from pii_bench.systems.tagger.settings import Settings
    from pii_bench.systems.tagger.vocabulary import Features

# Texts of this many batches are sorted by length together, so that batches need little padding
# and still differ in every epoch.
_SORTED_TOGETHER: Final = 16


@dataclass(frozen=True, slots=True)
class Example:
    """The features and labels of a text."""

    features: Features
    labels: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of examples, padded to the longest; all int64.

    `words`, `shapes`, `places` and `labels` have the shape (texts, tokens), `lengths` (texts,), and
    `spellings` (spellings, characters); `places` are the rows in `spellings`.
    """

    words: Tensor
    shapes: Tensor
    spellings: Tensor
    places: Tensor
    labels: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """Shape (texts, tokens): True for tokens, False for padding."""
        return torch.arange(self.words.shape[1]) < self.lengths[:, None]


def example_of(sample: Sample, vocabulary: Vocabulary) -> Example:
    """Return the example of a sample; its description must have a visible character."""
    tokens = tokenize(sample.description)
    labels = np.array(labels_of(tokens, gold_spans(sample)), np.int64)
    return Example(vocabulary.encode(sample.description, tokens), labels)


def collate(examples: Sequence[Example]) -> Batch:
    """Return a batch of examples."""
    features = [example.features for example in examples]
    labels = [example.labels for example in examples]
    spellings, places = distinct(_padded([each.characters for each in features]).numpy())
    return Batch(
        words=_padded([each.words for each in features]),
        shapes=_padded([each.shapes for each in features]),
        spellings=torch.from_numpy(spellings),
        places=torch.from_numpy(places),
        labels=_padded(labels),
        lengths=torch.tensor([len(each) for each in labels]),
    )


def _padded(rows: Sequence[NDArray[np.int64]]) -> Tensor:
    """Stack rows, padded to the longest with 0, which is `PADDING` and `OUTSIDE`."""
    return pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True)


def shuffled(
    examples: Sequence[Example], size: int, random: np.random.Generator
) -> Iterator[Batch]:
    """Yield every example once, in batches of similar length, in random order."""
    order = [examples[index] for index in random.permutation(len(examples))]
    batches: list[Sequence[Example]] = []
    chunk = size * _SORTED_TOGETHER
    for start in range(0, len(order), chunk):
        by_length = sorted(order[start : start + chunk], key=lambda item: -len(item.labels))
        batches += [by_length[first : first + size] for first in range(0, len(by_length), size)]
    for index in random.permutation(len(batches)):
        yield collate(batches[index])


def forget_words(words: Tensor, share: float) -> Tensor:
    """Replace a random share of the words by the unknown word; keep padding.

    So the network learns to handle words that are not in the training texts.
    """
    forgotten = torch.rand(words.shape) < share
    return words.masked_fill(forgotten & (words != PADDING), UNKNOWN)


@dataclass(frozen=True, slots=True)
class Trained:
    """The result of training: the network of the best epoch, of equals the first.

    The network is rounded to half precision and in evaluation mode. The device is `cpu` or the
    name of the GPU.
    """

    network: BiLstmCrf
    vocabulary: Vocabulary
    epochs: tuple[Epoch, ...]
    best: int
    device: str


def fit(
    train: Sequence[Sample],
    dev: Sequence[Sample],
    settings: Settings,
    report: Callable[[Epoch], None],
) -> Trained:
    """Train until dev stops improving, on a GPU if torch has one.

    Torch uses one thread: the steps are too small for several, and the weights do not depend on
    the number of cores. The vocabulary is that of the training texts alone.
    """
    torch.set_num_threads(1)
    torch.manual_seed(settings.seed)
    forms = [
        sample.description[token.start : token.end]
        for sample in train
        for token in tokenize(sample.description)
    ]
    vocabulary = Vocabulary.of(forms, settings.least, spelling=settings.spelling)
    network = BiLstmCrf(vocabulary, settings.sizes, settings.dropout)
    gpu = torch.cuda.is_available()
    network.to("cuda" if gpu else "cpu")
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    examples = [example_of(sample, vocabulary) for sample in train]
    random = np.random.default_rng(settings.seed)
    epochs: list[Epoch] = []
    best = 0
    best_weights = network.state_dict()
    while len(epochs) < settings.epochs and len(epochs) - best < settings.patience:
        started = time.perf_counter()
        loss = _epoch(network, optimizer, shuffled(examples, settings.batch, random), settings)
        score = dev_score(network, vocabulary, dev)
        seconds = round(time.perf_counter() - started, 1)
        epochs.append(Epoch(len(epochs) + 1, loss / len(examples), score, seconds))
        if best == 0 or score.f1 > epochs[best - 1].dev.f1:
            best = len(epochs)
            best_weights = copy.deepcopy(network.state_dict())
        report(epochs[-1])
    network.load_state_dict(best_weights)
    # The files have half precision, so measure the network with it too.
    network.cpu().half().float().eval()
    return Trained(
        network, vocabulary, tuple(epochs), best, torch.cuda.get_device_name() if gpu else "cpu"
    )


def dev_score(network: BiLstmCrf, vocabulary: Vocabulary, dev: Sequence[Sample]) -> PRF:
    """Return the exact span scores, 0 if no text has a span; sets the evaluation mode."""
    network.eval()
    transitions = network.transitions()
    counts: list[Counts] = []
    for sample in dev:
        predicted = decode(sample.description, vocabulary, transitions, network.score)
        counts.append(Counts.of(set(predicted), set(gold_spans(sample))))
    return micro(counts) or ZERO


def _epoch(
    network: BiLstmCrf, optimizer: torch.optim.Adam, batches: Iterable[Batch], settings: Settings
) -> float:
    """Train for one epoch and return the sum of the losses."""
    network.train()
    total = 0.0
    for batch in batches:
        words = forget_words(batch.words, settings.forgotten)
        optimizer.zero_grad()
        loss = network.loss(replace(batch, words=words))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), settings.clip)
        optimizer.step()
        total += loss.item() * len(batch.lengths)
    return total


def train(
    train_paths: Sequence[Path],
    dev_paths: Sequence[Path],
    folder: Path,
    report: Callable[[Epoch], None],
    settings: Settings,
) -> None:
    """Train, and write the weights for torch and for onnxruntime, the decoder and the log.

    The log has the settings, versions, hashes of the data, and the scores of each epoch.

    Raises:
        InputFileError: a dataset file cannot be read.
        ResultsError: a file cannot be written.
    """
    dev = _read_descriptions(dev_paths)
    trained = fit(_read_descriptions(train_paths), dev, settings, report)
    network, vocabulary = trained.network, trained.vocabulary
    log = {
        "settings": asdict(settings),
        "device": trained.device,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "numpy", "onnx", "safetensors")},
        },
        "train": _provenance(train_paths),
        "dev": _provenance(dev_paths),
        "best_epoch": trained.best,
        "dev_of_files": asdict(dev_score(network, vocabulary, dev)),
        "epochs": [asdict(epoch) for epoch in trained.epochs],
    }
    write_decoder(folder, vocabulary, network.transitions())
    write_network(folder, network)
    with writing(folder / EMISSIONS), replacing(folder / EMISSIONS) as file:
        file.write(emissions_graph(network).SerializeToString())
    write_whole(folder / LOG, json.dumps(log, indent=1) + "\n")


def _read_descriptions(paths: Sequence[Path]) -> tuple[Sample, ...]:
    """Read samples, each description once, because detection ignores queries."""
    samples = [sample for path in paths for sample in read_native(path)]
    return tuple({sample.description: sample for sample in samples}.values())


def _provenance(paths: Sequence[Path]) -> list[dict[str, Any]]:
    return [{"file": path.name, "sha256": sha256_of(path)} for path in paths]
