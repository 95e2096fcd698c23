"""Completions as JSON: how responses are stored, and a model that answers from a file of them.

One completion's keys are in the record itself; several draws are the list `draws` of such
objects.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from pii_bench.errors import InputFileError
from pii_bench.files import RecordError, get, get_objects, read_records
from pii_bench.models.base import CallError, Completion, Draws, Finish, Response, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pii_bench.models.base import Request

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


class ReplayModel:
    """Answers each sample with the response that a file has for it (`Model`).

    A line holds `id` and `text`, and may hold `prompt`, `finish`, `model` and `usage`. A
    line with a `prompt` answers that prompt only; one without answers every other. So
    the file of a run is a replay file as it is.

    A line may hold, instead of `text` and what belongs to it, `draws`, a list of such
    objects: each answers the draw of its place. A line without `draws` answers the first
    draw alone: one answer is no vote. A prompt that is asked once is answered by the first.

    Args:
        path: the file.

    Raises:
        InputFileError: a broken line, or two lines for one sample and prompt.
    """

    def __init__(self, path: Path) -> None:
        self._answers: dict[tuple[str, str | None], tuple[Completion, ...]] = {}
        digest = hashlib.sha256()
        for line, record in read_records(path):
            if "error" in record:
                continue
            try:
                sample_id = get(record, "id", str)
                prompt = get(record, "prompt", str) if "prompt" in record else None
                response = decode_response(record)
            except RecordError as error:
                raise InputFileError(path, str(error), line=line) from None
            if (sample_id, prompt) in self._answers:
                raise InputFileError(path, f"a second answer for id {sample_id!r}", line=line)
            draws = response.completions if isinstance(response, Draws) else (response,)
            self._answers[sample_id, prompt] = draws
            digest.update(f"{sample_id}\0{prompt}\0{response!r}\0".encode(errors="replace"))
        self._name = f"replay/{path.stem}"
        self._sha256 = digest.hexdigest()

    @property
    def name(self) -> str:
        """`replay/<file's stem>`."""
        return self._name

    @property
    def identity(self) -> Mapping[str, str]:
        """The hash of what the file answers."""
        return {"answers": f"sha256:{self._sha256}"}

    @property
    def endpoint(self) -> None:
        """None: nothing leaves this process."""

    async def complete(self, request: Request) -> Completion:
        """The stored response.

        Raises:
            CallError: the file has none for this sample, prompt and draw.
        """
        for prompt in (request.prompt, None):
            draws = self._answers.get((request.sample_id, prompt), ())
            if request.draw < len(draws):
                return draws[request.draw]
        raise CallError("no_stored_response")

    async def close(self) -> None:
        """Nothing to release."""
