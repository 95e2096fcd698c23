"""The training loop: Adam on train, stopped early by dev."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from pii_bench.scorer.tokens import tokenize
from pii_bench.systems.tagger.batches import example_of, forget_words, shuffled
from pii_bench.systems.tagger.decode import decode
from pii_bench.systems.tagger.labels import gold_spans
from pii_bench.systems.tagger.network import BiLstmCrf
from pii_bench.systems.tagger.scores import span_score
from pii_bench.systems.tagger.settings import Epoch
from pii_bench.systems.tagger.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.tagger.batches import Batch
    from pii_bench.systems.tagger.scores import SpanScore
    from pii_bench.systems.tagger.settings import Settings


@dataclass(frozen=True, slots=True)
class Trained:
    """What training gives.

    Attributes:
        network: as it was after the best epoch, rounded to half precision, in evaluation mode.
        vocabulary: of the texts to train on.
        epochs: the dev curve.
        best: number of the best epoch, the first of equals.
        device: on which it was trained, `cpu` or a GPU's name.
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
    """Train until dev stops getting better, on a GPU where torch sees one.

    Torch keeps to one thread: the steps are too small to share, and the weights then do not
    depend on the number of cores.

    Args:
        train: to learn from; the vocabulary comes from it alone.
        dev: to stop by.
        settings: how.
        report: called after every epoch.
    """
    torch.set_num_threads(1)
    torch.manual_seed(settings.seed)
    vocabulary = Vocabulary.of(_forms(train), settings.least, spelling=settings.spelling)
    network = BiLstmCrf(vocabulary, settings.sizes, settings.dropout)
    gpu = torch.cuda.is_available()
    network.to("cuda" if gpu else "cpu")
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    examples = [example_of(sample, vocabulary) for sample in train]
    random = np.random.default_rng(settings.seed)
    epochs: list[Epoch] = []
    best, best_weights = 0, network.state_dict()
    while len(epochs) < settings.epochs and len(epochs) - best < settings.patience:
        started = time.perf_counter()
        loss = _epoch(network, optimizer, shuffled(examples, settings.batch, random), settings)
        score = dev_score(network, vocabulary, dev)
        seconds = round(time.perf_counter() - started, 1)
        epochs.append(Epoch(len(epochs) + 1, loss / len(examples), score, seconds))
        if best == 0 or score.f1 > epochs[best - 1].dev.f1:
            best, best_weights = len(epochs), copy.deepcopy(network.state_dict())
        report(epochs[-1])
    network.load_state_dict(best_weights)
    # Files hold half precision; what is measured from here on is what they hold.
    network.cpu().half().float().eval()
    return Trained(
        network, vocabulary, tuple(epochs), best, torch.cuda.get_device_name() if gpu else "cpu"
    )


def dev_score(network: BiLstmCrf, vocabulary: Vocabulary, dev: Sequence[Sample]) -> SpanScore:
    """Exact span scores; leaves the network in evaluation mode."""
    network.eval()
    transitions = network.transitions()
    return span_score(
        (decode(sample.description, vocabulary, transitions, network.score), gold_spans(sample))
        for sample in dev
    )


def _epoch(
    network: BiLstmCrf, optimizer: torch.optim.Adam, batches: Iterable[Batch], settings: Settings
) -> float:
    """The sum of the losses of all texts."""
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


def _forms(samples: Iterable[Sample]) -> Iterator[str]:
    for sample in samples:
        for token in tokenize(sample.description):
            yield sample.description[token.start : token.end]
