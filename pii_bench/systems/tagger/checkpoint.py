"""The weights in torch's own form: what was trained, and what exports are compared with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from safetensors.torch import load_file, save

from pii_bench.files import replacing, writing
from pii_bench.systems.tagger.files import LOG, read_decoder
from pii_bench.systems.tagger.network import BiLstmCrf
from pii_bench.systems.tagger.settings import Sizes

if TYPE_CHECKING:
    from pathlib import Path

WEIGHTS: Final = "weights.safetensors"


def write_network(folder: Path, network: BiLstmCrf) -> None:
    """Write `WEIGHTS`: half precision, to which `fit` rounded them.

    Raises:
        ResultsError: it cannot be written.
    """
    halves = {name: weight.half() for name, weight in network.state_dict().items()}
    with writing(folder / WEIGHTS), replacing(folder / WEIGHTS) as file:
        file.write(save(halves))


def read_network(folder: Path) -> BiLstmCrf:
    """The network of a folder that `train` wrote, in evaluation mode.

    Raises:
        InputFileError: the vocabulary is missing or broken.
    """
    settings = json.loads((folder / LOG).read_text(encoding="utf-8"))["settings"]
    vocabulary = read_decoder(folder).vocabulary
    network = BiLstmCrf(vocabulary, Sizes(**settings["sizes"]), settings["dropout"])
    network.load_state_dict(load_file(folder / WEIGHTS))
    return network.eval()
