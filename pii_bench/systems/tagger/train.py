"""Training a tagger from dataset files to the files that ship."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from pii_bench.datasets.checksums import sha256_of
from pii_bench.datasets.native import read_native
from pii_bench.errors import MissingExtraError
from pii_bench.files import replacing, write_whole, writing
from pii_bench.systems.tagger.files import EMISSIONS, LOG, Decoder, write_decoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pii_bench.datasets.sample import Sample
    from pii_bench.systems.tagger.settings import Epoch, Settings

_INSTALL: Final = "pip install 'pii-bench[train]'"
_VERSIONS: Final = ("torch", "numpy", "onnx", "safetensors")


def train(
    train_paths: Sequence[Path],
    dev_paths: Sequence[Path],
    folder: Path,
    report: Callable[[Epoch], None],
    settings: Settings,
) -> None:
    """Train and write the weights for torch, those for onnxruntime, the decoder and the log.

    The log holds the seed and all settings, versions, hashes of the data and the dev curve.

    Raises:
        MissingExtraError: torch, onnx or safetensors is not installed.
        InputFileError: a dataset file cannot be read.
        ResultsError: a file cannot be written.
    """
    try:
        from pii_bench.systems.tagger.export import emissions_graph, write_network
        from pii_bench.systems.tagger.fit import dev_score, fit
    except ImportError as error:
        raise MissingExtraError("what training needs", _INSTALL) from error
    dev = _read(dev_paths)
    trained = fit(_read(train_paths), dev, settings, report)
    network, vocabulary = trained.network, trained.vocabulary
    log = {
        "settings": asdict(settings),
        "device": trained.device,
        "versions": {"python": platform.python_version()}
        | {package: version(package) for package in _VERSIONS},
        "train": _provenance(train_paths),
        "dev": _provenance(dev_paths),
        "best_epoch": trained.best,
        "dev_of_files": asdict(dev_score(network, vocabulary, dev)),
        "epochs": [asdict(epoch) for epoch in trained.epochs],
    }
    write_decoder(folder, Decoder(vocabulary, network.transitions()))
    write_network(folder, network)
    with writing(folder / EMISSIONS), replacing(folder / EMISSIONS) as file:
        file.write(emissions_graph(network).SerializeToString())
    write_whole(folder / LOG, json.dumps(log, indent=1) + "\n")


def _read(paths: Sequence[Path]) -> tuple[Sample, ...]:
    """The samples of files, each description once: queries do not matter for detection."""
    found = {sample.description: sample for path in paths for sample in read_native(path)}
    return tuple(found.values())


def _provenance(paths: Sequence[Path]) -> list[dict[str, Any]]:
    return [{"file": path.name, "sha256": sha256_of(path)} for path in paths]
