"""A model that answers from a file: for tests, for scoring again, for other people's answers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pii_bench.errors import InputFileError
from pii_bench.jsonl import RecordError, get, read_records
from pii_bench.models.base import CallError, Draws
from pii_bench.models.stored import decode_response

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pii_bench.models.base import Completion, Request


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
