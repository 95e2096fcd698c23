"""A checkpoint of the usual layout that tags each piece of a word by a table."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_POSITIONS: Final = 18


def save_tiny_checkpoint(folder: Path, tags: Mapping[str, str], *, head: bool = True) -> Path:
    """Save a BERT of one layer, made by hand, with the tokenizer of its few words.

    A piece's embedding is one number of its own, all that would mix pieces is zero, and the
    head reads the tag off that number: `tags[piece]`, for all other pieces `O`. It sees 16
    tokens at a time.

    Args:
        folder: made where it is not there.
        tags: piece (`lee`, `##s`) to tag.
        head: whether the head is saved too.
    """
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    pieces = [*_SPECIAL, *tags]
    names = ["O", *sorted(set(tags.values()) - {"O"})]
    config = transformers.BertConfig(
        vocab_size=len(pieces),
        hidden_size=len(pieces),
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=1,
        max_position_embeddings=_POSITIONS,
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
    )
    model = transformers.BertForTokenClassification(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
        model.bert.embeddings.word_embeddings.weight.copy_(torch.eye(len(pieces)))
        for number, piece in enumerate(pieces):
            model.classifier.weight[names.index(tags.get(piece, "O")), number] = 1.0
    (model if head else model.bert).save_pretrained(folder)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    transformers.BertTokenizerFast(vocab=str(vocabulary)).save_pretrained(folder)
    return folder
