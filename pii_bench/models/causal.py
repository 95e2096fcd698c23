"""Causal language models in torch, from a folder or a GGUF file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

if TYPE_CHECKING:
    from pathlib import Path


def load(base: Path) -> tuple[Any, Any]:
    """Load the tokenizer and the model of a GGUF file or a folder, in 32-bit floats.

    Raises:
        InputFileError: a GGUF file whose architecture is not Llama's.
    """
    if base.is_dir():
        source: dict[str, Any] = {"pretrained_model_name_or_path": base}
    else:
        from pii_bench.models.tuned_gguf import check_architecture

        check_architecture(base)
        source = {"pretrained_model_name_or_path": base.parent, "gguf_file": base.name}
    tokenizer = AutoTokenizer.from_pretrained(**source, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(
        **source, local_files_only=True, dtype=torch.float32
    )
    if base.is_dir():
        return tokenizer, model
    # `Trainer` refuses a model read from a quantised file, although its weights are floats now.
    del model.config.quantization_config
    untyped: Any = AutoModelForCausalLM
    copy = untyped.from_config(model.config, dtype=torch.float32)
    copy.load_state_dict(model.state_dict())
    return tokenizer, copy
