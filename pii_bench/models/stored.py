"""Completions as JSON: how responses are stored, and how a replay reads them.

One completion's keys stand in the record itself; several draws are the list `draws` of such
objects.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from pii_bench.jsonl import RecordError, get, get_objects
from pii_bench.models.base import Completion, Draws, Finish, Response, Usage

_COUNTED: Final = ("input_tokens", "output_tokens")
_FINISHES: Final = {str(finish): finish for finish in Finish}


def encode_response(response: Response) -> dict[str, Any]:
    """The keys of a response."""
    if isinstance(response, Draws):
        return {"draws": [encode_completion(each) for each in response.completions]}
    return encode_completion(response)


def decode_response(record: dict[str, Any]) -> Response:
    """Read a response's keys.

    Raises:
        RecordError: naming the key at fault.
    """
    if "draws" not in record:
        return decode_completion(record)
    draws = get_objects(record, "draws")
    if not draws:
        raise RecordError("'draws' must not be empty")
    return Draws(
        tuple(decode_completion(each, f"draws[{number}]") for number, each in enumerate(draws))
    )


def encode_completion(completion: Completion) -> dict[str, Any]:
    """The keys of a completion; what is not known, or is 0 by default, is left out."""
    known: dict[str, Any] = {"text": completion.text, "finish": completion.finish}
    if completion.model is not None:
        known["model"] = completion.model
    if completion.usage is not None:
        known["usage"] = {
            key: value
            for key, value in asdict(completion.usage).items()
            if value or key in _COUNTED
        }
    if completion.reasoning is not None:
        known["reasoning"] = completion.reasoning
    if completion.batched:
        known["batched"] = True
    if completion.seconds is not None:
        known["seconds"] = round(completion.seconds, 3)
    return known


def decode_completion(record: dict[str, Any], owner: str = "record") -> Completion:
    """Read a completion's keys; only `text` is required, so that stored answers are easy to write.

    Raises:
        RecordError: naming the key at fault and what it belongs to.
    """
    finish = get(record, "finish", str, owner) if "finish" in record else Finish.UNKNOWN
    if finish not in _FINISHES:
        raise RecordError(f"{owner}: 'finish' is {finish!r} (allowed: {', '.join(Finish)})")
    usage = _decode_usage(get(record, "usage", dict, owner)) if "usage" in record else None
    return Completion(
        text=get(record, "text", str, owner),
        finish=_FINISHES[finish],
        model=get(record, "model", str, owner) if "model" in record else None,
        usage=usage,
        reasoning=get(record, "reasoning", str, owner) if "reasoning" in record else None,
        batched="batched" in record and get(record, "batched", bool, owner),
        seconds=get(record, "seconds", float, owner) if "seconds" in record else None,
    )


def _decode_usage(usage: dict[str, Any]) -> Usage:
    for key in _COUNTED:
        if key not in usage:
            raise RecordError(f"usage: {key!r} is missing")
    # What is no count is unknown, see `Completion`, and no reason to refuse the answer.
    return Usage(
        usage["input_tokens"],
        usage["output_tokens"],
        usage.get("reasoning_tokens", 0),
        usage.get("cached_tokens", 0),
    )
