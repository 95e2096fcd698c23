"""Detectors from local token-classification checkpoints of transformers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError
from pii_bench.files import encodable_in_place, sha256_of_folder
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.detectors import HUGGING_FACE, import_part, tidy, version_of
from pii_bench.taxonomy import PiiType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pii_bench.systems.detectors import LabelMap

INSTALL: Final = "pip install -e '.[hf]'"

_OUTSIDE: Final = "O"
_TAG: Final = re.compile(r"[BIESLU]-.+")
# The tags of BIOES and BILOU to those of BIO, which transformers reads.
_BIO: Final = {"B": "B", "S": "B", "U": "B", "I": "I", "E": "I", "L": "I"}
# RoBERTa and similar models cannot use the first two positions.
_RESERVED_POSITIONS: Final = 2

# Types that some label sets split: given name and surname, number and street, symbol and amount.
_OF_PARTS: Final = frozenset({PiiType.PER, PiiType.LOC, PiiType.QUANTITY})


class HuggingFaceDetector:
    """A token-classification checkpoint on the CPU (`Detector`).

    Nothing is downloaded, and no code of the checkpoint runs. A checkpoint without the weights of
    its head is refused, because transformers would fill them with random numbers. The name is
    `hf-`, the folder's name and the start of its hash. The map has labels without prefixes such as
    `B-`.

    Raises:
        MissingExtraError: If transformers or torch is not installed.
        InputFileError: If the folder is missing, or is not a complete checkpoint of a known
            architecture with a fast tokenizer.
        UnknownNameError: If the map lacks a label of the checkpoint.
    """

    def __init__(self, folder: Path, labels: LabelMap | None = None) -> None:
        self._labels = labels or HUGGING_FACE
        if not folder.is_dir():
            raise InputFileError(folder, "no such folder; the checkpoint must be on this machine")
        import_part("torch", INSTALL)
        transformers = import_part("transformers", INSTALL)
        transformers.utils.logging.disable_progress_bar()
        model, tokenizer = _load(transformers, folder)
        tags = _bio_tags(model.config.id2label)
        self.types = self._labels.check(tag[2:] for tag in tags.values() if tag != _OUTSIDE)
        model.config.id2label = tags
        self._pipeline = transformers.pipeline(
            "token-classification",
            model=model,
            tokenizer=tokenizer,
            aggregation_strategy="first" if _marks_continuations(tokenizer) else "simple",
            # Windows of a long text share a quarter of their tokens.
            stride=tokenizer.model_max_length // 4,
            device="cpu",
        )
        sha256 = sha256_of_folder(folder)
        folder_name = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name)
        self.name = f"hf-{folder_name}-{sha256[:8]}"
        self.identity: Mapping[str, str] = {
            "runtime": f"{version_of('transformers')}, {version_of('torch')}",
            "weights": f"sha256:{sha256}",
            "labels": f"sha256:{self._labels.sha256}",
        }

    def detect(self, text: str) -> list[DetectedSpan]:
        """Return the tagged spans whose labels have a type, with the parts of an entity joined."""
        if not text.strip():
            return []
        return tidy(text, self._joined(text, self._pipeline(encodable_in_place(text))))

    def _joined(self, text: str, groups: list[dict[str, Any]]) -> list[DetectedSpan]:
        """Join parts of an entity: one type, different labels, only white space between them."""
        spans: list[DetectedSpan] = []
        last_label = ""
        for group in sorted(groups, key=lambda group: group["start"]):
            label, start, end = group["entity_group"], group["start"], group["end"]
            pii_type = self._labels.type_of(label)
            if pii_type is None:
                continue
            is_next_part = (
                pii_type in _OF_PARTS
                and label != last_label
                and spans
                and spans[-1].type is pii_type
                and not text[spans[-1].end : start].strip()
            )
            if is_next_part:
                spans[-1] = replace(spans[-1], end=end)
            else:
                spans.append(DetectedSpan(start, end, pii_type))
            last_label = label
        return spans


def _load(transformers: Any, folder: Path) -> tuple[Any, Any]:
    broken = import_part("safetensors", INSTALL).SafetensorError
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model, loading = transformers.AutoModelForTokenClassification.from_pretrained(
            folder, local_files_only=True, output_loading_info=True
        )
    except (OSError, ValueError, KeyError, RuntimeError, broken) as error:
        # The message can be a page long and is about the Hub.
        what = f"transformers cannot load a token-classification checkpoint ({error!r:.200})"
        raise InputFileError(folder, what) from error
    # Without files, transformers returns an empty tokenizer and random weights.
    if not any((folder / name).is_file() for name in tokenizer.vocab_files_names.values()):
        raise InputFileError(folder, "has no tokenizer")
    missing = sorted(loading["missing_keys"])
    if missing:
        what = f"lacks weights of a token-classification head ({missing[0]})"
        raise InputFileError(folder, what)
    if not tokenizer.is_fast:
        raise InputFileError(folder, "its tokenizer is not a fast one and gives no offsets")
    positions = getattr(model.config, "max_position_embeddings", tokenizer.model_max_length)
    tokenizer.model_max_length = min(tokenizer.model_max_length, positions - _RESERVED_POSITIONS)
    return model, tokenizer


def _bio_tags(id2label: Mapping[int, str]) -> dict[int, str]:
    """Convert tags of any scheme to BIO; labels without a prefix count as inside."""
    tagged = all(_TAG.fullmatch(label) for label in id2label.values() if label != _OUTSIDE)
    tags = {}
    for number, label in id2label.items():
        if label == _OUTSIDE:
            tags[number] = label
        else:
            tags[number] = f"{_BIO[label[0]]}{label[1:]}" if tagged else f"I-{label}"
    return tags


def _marks_continuations(tokenizer: Any) -> bool:
    """Return True if subwords mark the continuation of a word (`##`).

    Only then can each word get one tag; otherwise words would end at white space, and spans would
    include commas.
    """
    return bool(getattr(tokenizer.backend_tokenizer.model, "continuing_subword_prefix", None))
