"""Keys and sample texts are searched in all output, however a run ends."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.models import catalog
from pii_bench.models.catalog import CUSTOM_ENDPOINT_KEY, PROVIDERS
from tests.anthropic_replies import message
from tests.builders import read_folder
from tests.cli.command import COMMAND, environment
from tests.protocol_server import Reply, completion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.cli.conftest import Capsys
    from tests.protocol_server import ProtocolServer, ReceivedRequest

KEYS: Final = {
    variable: f"sk-planted-{variable.lower()}-0123456789"
    for variable in (CUSTOM_ENDPOINT_KEY, *(each.key_variable for each in PROVIDERS.values()))
}
SAMPLES: Final = load_dataset("demo").samples
WINDOW: Final = 16
"""Length of a piece of a sample that counts as a leak, in characters."""

WINDOWS: Final = frozenset(
    text[start : start + WINDOW]
    for sample in SAMPLES
    for text in (sample.description, sample.query or "")
    for start in range(len(text) - WINDOW + 1)
)
CLOUD: Final = ("openai", "deepseek", "anthropic", "mistral")


def leaks(text: str) -> list[str]:
    """Return the keys and pieces of samples in a text."""
    pieces = (text[start : start + WINDOW] for start in range(len(text) - WINDOW + 1))
    return [key for key in KEYS.values() if key in text] + [p for p in pieces if p in WINDOWS]


def files(folder: Path) -> str:
    """Return the names and contents of all files in a folder, hidden ones too."""
    paths = sorted(folder.rglob("*"))
    return "\n".join(f"{p}\n{_text(p) if p.is_file() else ''}" for p in paths)


def _text(path: Path) -> str:
    """Return the content of a file; for score files, the unpacked content."""
    if path.suffix != ".npz":
        return path.read_text(encoding="utf-8")
    with zipfile.ZipFile(path) as archive:
        return "\n".join(archive.read(name).decode("latin-1") for name in archive.namelist())


def answer(request: ReceivedRequest, text: str = "### Answer: []") -> Reply:
    """Return an answer in the protocol of the request; Mistral's is the same as OpenAI's."""
    return message(text) if request.path.endswith("/messages") else completion(text)


def echo(request: ReceivedRequest) -> str:
    """Return the key and the texts of a request."""
    key = request.headers.get("authorization") or request.headers["x-api-key"]
    return "\n".join([key, *(turn["content"] for turn in request.body["messages"])])


def bad_request(request: ReceivedRequest) -> Reply:
    sent = echo(request)
    error = {"type": sent, "message": sent, "code": sent, "param": sent}
    return Reply(status=400, body={"type": "error", "error": error, **error})


def no_json(request: ReceivedRequest) -> Reply:
    return Reply(body=echo(request).encode())


def another_shape(request: ReceivedRequest) -> Reply:
    return Reply(body={"choices": echo(request), "content": echo(request)})


def refusal(request: ReceivedRequest) -> Reply:
    error = {"type": "authentication_error", "message": echo(request), "code": None}
    return Reply(status=401, body={"type": "error", "error": error, **error})


def redirect(request: ReceivedRequest) -> Reply:
    return Reply(status=307, headers={"Location": f"/?{echo(request).splitlines()[0]}"})


FAILURES: Final = (bad_request, no_json, another_shape)


def run(model: str, *options: object) -> int:
    return main(["run", "--dataset", "demo", "--model", model, *map(str, options)])


def sent_keys(server: ProtocolServer) -> set[str]:
    """Return the variables whose keys the server received."""
    came = [str([request.path, dict(request.headers), request.body]) for request in server.requests]
    return {variable for variable, key in KEYS.items() if any(key in text for text in came)}


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, key in KEYS.items():
        monkeypatch.setenv(variable, key)


def test_the_search_finds_planted_keys_and_texts() -> None:
    sample = SAMPLES[3]
    cut = sample.description[20:40]

    assert leaks(f"log: {cut!r}...")
    assert leaks(json.dumps({"query": sample.query}))
    assert leaks(f"Bearer {KEYS['MISTRAL_API_KEY']}") == [KEYS["MISTRAL_API_KEY"]]
    assert leaks("detection on demo: 10 of 12 samples have no answer; run again") == []


@pytest.mark.parametrize("provider", CLOUD)
@pytest.mark.parametrize("own", [True, False])
def test_a_run_leaks_nothing_and_sends_only_the_key_of_its_endpoint(
    provider: str,
    capsys: Capsys,
    protocol_server: ProtocolServer,
    monkeypatch: pytest.MonkeyPatch,
    *,
    own: bool,
) -> None:
    here = {name: replace(p, base_url=protocol_server.url) for name, p in PROVIDERS.items()}
    if own:
        monkeypatch.setattr(catalog, "PROVIDERS", here)
    protocol_server.script(answer)

    elsewhere = () if own else ("--base-url", protocol_server.url)
    assert run(f"{provider}/m", "--limit", 2, *elsewhere) == 0

    key = PROVIDERS[provider].key_variable if own else CUSTOM_ENDPOINT_KEY
    assert sent_keys(protocol_server) == {key}
    output = capsys.readouterr()
    assert leaks(output.out + output.err + files(Path())) == []


@pytest.mark.parametrize("provider", CLOUD)
@pytest.mark.parametrize("refuse", [refusal, redirect])
def test_errors_that_repeat_the_request_leak_nothing(
    provider: str,
    refuse: Callable[[ReceivedRequest], Reply],
    capsys: Capsys,
    protocol_server: ProtocolServer,
) -> None:
    protocol_server.script(*FAILURES, answer, refuse)

    assert run(f"{provider}/m", "--base-url", protocol_server.url, "--concurrency", 1) == 2

    stored = files(Path())
    assert stored.count('"error": {"kind": "bad_request"') == 1
    assert stored.count('"error": {"kind": "bad_response"') == 2
    output = capsys.readouterr()
    assert f"provider {provider!r} refuses model 'm': HTTP " in output.err
    assert leaks(output.out + output.err + stored) == []


def test_texts_are_stored_only_where_the_model_repeats_them(
    capsys: Capsys, protocol_server: ProtocolServer
) -> None:
    repeated = (SAMPLES[0].query or "")[:40]
    protocol_server.script(lambda request: answer(request, f'### Answer: ["{repeated}"]'))

    assert run("openai/m", "--base-url", protocol_server.url, "--limit", 2) == 0

    found = {name for name in read_folder(Path()) if leaks(_text(Path(name)))}
    assert {name.rpartition("/")[2] for name in found} == {"demo.jsonl"}
    pieces = {piece for name in found for piece in leaks(_text(Path(name)))}
    assert pieces == {repeated[start : start + WINDOW] for start in range(40 - WINDOW + 1)}
    output = capsys.readouterr()
    assert leaks(output.out + output.err) == []


CRASHING: Final = """
import sys
from pii_bench.cli import main
from pii_bench.runs.store import RunStore
RunStore.append = lambda *_: 1 / 0
sys.exit(main())
"""
CRASH: Final = (sys.executable, "-c", CRASHING)
LOGS: Final = {"OPENAI_LOG": "debug", "ANTHROPIC_LOG": "debug", "MISTRAL_DEBUG": "1"}
DEVELOPER: Final = {"PYTHONDEVMODE": "1", **LOGS}


@pytest.mark.parametrize(
    ("provider", "command", "variables"),
    [
        pytest.param("mistral", CRASH, LOGS),
        *(
            pytest.param(provider, command, DEVELOPER, marks=pytest.mark.slow)
            for provider in CLOUD
            for command in (COMMAND, CRASH)
        ),
    ],
)
def test_debug_switches_leak_nothing(
    provider: str,
    command: tuple[str, ...],
    variables: Mapping[str, str],
    protocol_server: ProtocolServer,
) -> None:
    protocol_server.script(*FAILURES, answer, refusal)
    ended = subprocess.run(  # noqa: S603 -- our own interpreter and code
        [
            *(*command, "run", "--dataset", "demo", "--concurrency", "1"),
            *("--model", f"{provider}/m", "--base-url", protocol_server.url),
        ],
        capture_output=True,
        text=True,
        check=False,
        env=environment(**KEYS, **variables),
    )

    assert ended.returncode == (1 if command == CRASH else 2)
    assert ("ZeroDivisionError" in ended.stderr) == (command == CRASH)
    assert "ResourceWarning" not in ended.stderr
    assert leaks(ended.stdout + ended.stderr + files(Path())) == []
