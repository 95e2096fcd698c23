"""Completions as JSON: how responses are stored, and how a replay reads them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from pii_bench.jsonl import RecordError, get
from pii_bench.models.base import Completion, Finish, Usage

_COUNTED: Final = ("input_tokens", "output_tokens")


def encode_completion(completion: Completion) -> dict[str, Any]:
    """The keys of a completion; what is not known, or is 0 by default, is left out."""
    defaults = asdict(Completion(text=""))
    known = {
        key: value
        for key, value in asdict(completion).items()
        if key in {"text", "finish"} or value != defaults[key]
    }
    if completion.usage is not None:
        known["usage"] = {
            key: value
            for key, value in asdict(completion.usage).items()
            if value or key in _COUNTED
        }
    return known


def decode_completion(record: dict[str, Any]) -> Completion:
    """Read a completion's keys; only `text` is required, so that stored answers are easy to write.

    Raises:
        RecordError: naming the key at fault.
    """
    finish = get(record, "finish", str) if "finish" in record else Finish.UNKNOWN
    if finish not in set(Finish):
        raise RecordError(f"'finish' is {finish!r} (allowed: {', '.join(Finish)})")
    return Completion(
        text=get(record, "text", str),
        finish=Finish(finish),
        model=get(record, "model", str) if "model" in record else None,
        usage=_decode_usage(get(record, "usage", dict)) if "usage" in record else None,
        reasoning=get(record, "reasoning", str) if "reasoning" in record else None,
        batched="batched" in record and get(record, "batched", bool),
    )


def _decode_usage(usage: dict[str, Any]) -> Usage:
    counts = {
        key: get(usage, key, int, "usage")
        for key in (*_COUNTED, "reasoning_tokens", "cached_tokens")
        if key in usage or key in _COUNTED
    }
    return Usage(**counts)
