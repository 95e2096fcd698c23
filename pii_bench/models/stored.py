"""Completions as JSON: how responses are stored, and how a replay reads them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pii_bench.jsonl import RecordError, get
from pii_bench.models.base import Completion, Finish, Usage


def encode_completion(completion: Completion) -> dict[str, Any]:
    """The keys of a completion; what is not known is left out."""
    known = asdict(completion)
    return {key: value for key, value in known.items() if value is not None}


def decode_completion(record: dict[str, Any]) -> Completion:
    """Read a completion's keys; only `text` is required, so that stored answers are easy to write.

    Raises:
        RecordError: naming the key at fault.
    """
    finish = get(record, "finish", str) if "finish" in record else Finish.UNKNOWN
    if finish not in set(Finish):
        raise RecordError(f"'finish' is {finish!r} (allowed: {', '.join(Finish)})")
    usage = get(record, "usage", dict) if "usage" in record else None
    return Completion(
        text=get(record, "text", str),
        finish=Finish(finish),
        model=get(record, "model", str) if "model" in record else None,
        usage=None
        if usage is None
        else Usage(
            get(usage, "input_tokens", int, "usage"), get(usage, "output_tokens", int, "usage")
        ),
    )
