from __future__ import annotations

import asyncio
import re
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.models.calls import CallPolicy
from pii_bench.models.catalog import ModelOptions
from pii_bench.runs.responses import read_response
from pii_bench.systems import catalog
from pii_bench.systems.catalog import (
    ENTRY_POINTS,
    SystemOptions,
    build_systems,
    check_name,
    fault_of,
    is_prompted,
    plug_ins,
    system_names,
)
from pii_bench.tasks import Status, Task
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pii_bench.systems.base import System

PLUGIN = re.compile(r"^```python\n# my_system\.py\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, from which `my_system` is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("my_system", None)


@pytest.fixture
def plug_in(folder: Path) -> str:
    """The documented example, as the module `my_system`."""
    example = PLUGIN.search((REPOSITORY / "docs/extending.md").read_text(encoding="utf-8"))
    assert example is not None
    (folder / "my_system.py").write_text(example[1], encoding="utf-8")
    return example[1]


def install_entry_points(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    points = [EntryPoint(name, value, ENTRY_POINTS) for name, value in values.items()]
    monkeypatch.setattr(
        catalog, "entry_points", lambda *, group: EntryPoints(points).select(group=group)
    )


def cards(name: str) -> list[tuple[str, str, bool]]:
    systems = build_systems(name, SystemOptions())
    return [(s.card.model, s.card.prompt, s.card.oracle) for s in systems]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bilstm-crf", [("detection", False)]),
        ("bilstm-crf+all", [("detection", False), ("all", False)]),
        ("bilstm-crf+gold", [("detection", False), ("gold", True)]),
        ("gold+keyword", [("detection", True), ("keyword", True)]),
        ("gold+gold", [("detection", True), ("gold", True)]),
    ],
)
def test_a_composition_has_the_systems_of_its_parts(
    name: str, expected: list[tuple[str, bool]]
) -> None:
    detector = name.partition("+")[0]

    assert cards(name) == [(detector, prompt, oracle) for prompt, oracle in expected]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("bilstm-crf+keywrd", "unknown relevance system 'keywrd'; did you mean 'keyword'?"),
        ("bilstm-crf+", "unknown relevance system ''"),
        ("bilstm+keyword", "unknown detector 'bilstm'; did you mean 'bilstm-crf'?"),
        ("bilstm-crd", "unknown model 'bilstm-crd'; did you mean 'bilstm-crf'?"),
        ("hf", "unknown detector 'hf'"),
        ("gold:x", "unknown detector 'gold:x'"),
        ("opnai/gpt-4o", "unknown provider 'opnai'; did you mean 'openai'?"),
        ("", "unknown model ''"),
    ],
)
def test_an_unknown_name_is_an_error(name: str, what: str) -> None:
    for check in (check_name, lambda name: build_systems(name, SystemOptions())):
        with pytest.raises(UnknownNameError) as caught:
            check(name)

        assert str(caught.value).startswith(what)


@pytest.mark.parametrize(
    ("name", "prompted"),
    [
        *[("gpt4o", True), ("openai/m", True), ("local/a+b.gguf", True), ("replay:a/b", True)],
        *[("encoder", False), ("encoder:a/b", False), ("gold+encoder", False), ("gold", False)],
        *[("hf:a/b", False), ("hf:a+b/c+all", False), ("python:m:f", False), ("python:/", False)],
    ],
)
def test_names_are_checked_without_loading(name: str, *, prompted: bool) -> None:
    check_name(name)

    assert is_prompted(name) is prompted


def test_a_name_is_split_at_its_last_plus() -> None:
    with pytest.raises(PiiBenchError, match=r"^a\+b: no such folder"):
        build_systems("hf:a+b+all", SystemOptions())


@pytest.mark.parametrize(
    ("name", "options", "what"),
    [
        ("bilstm-crf+all", {"strategy": "naive"}, "does not use --strategy"),
        ("bilstm-crf+all", {"max_tokens": 9}, "does not use --max-tokens"),
        ("bilstm-crf+all", {"votes": 5}, "does not use --votes"),
        ("bilstm-crf", {"temperature": "default"}, "does not use --temperature"),
        ("bilstm-crf", {"model": ModelOptions("http://localhost")}, "does not use --base-url"),
        ("bilstm-crf", {"model": ModelOptions(timeout=3.0)}, "does not use --timeout"),
        ("bilstm-crf", {"keep": "more"}, "does not use --keep"),
        ("bilstm-crf", {"chunk": 9}, "does not use --chunk"),
        ("bilstm-crf", {"calls": CallPolicy(max_usd=1.0)}, "makes no calls: leave --max-usd out"),
        ("python:m:f", {"label_map": Path("map.json")}, "does not use --label-map"),
        ("python:m:f", {"output": "schema"}, "does not use --output"),
        ("encoder", {"label_map": Path("map.json")}, "does not use --label-map"),
        ("gold+all", {"label_map": Path("map.json")}, "has our types: --label-map"),
        ("smollm2", {"label_map": Path("map.json")}, "is no detector: --label-map"),
        ("gpt4o", {"keep": "more"}, "has no dial: --keep"),
        ("gpt4o", {"taxonomy": "paper"}, "does not use --taxonomy"),
    ],
)
def test_an_option_that_does_not_apply_is_refused(
    name: str, options: dict[str, Any], what: str
) -> None:
    with pytest.raises(PiiBenchError, match=re.escape(what)):
        build_systems(name, SystemOptions(**options))


def test_the_documented_example_is_short_and_runs(
    plug_in: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len([line for line in plug_in.splitlines() if line.strip()]) <= 15
    assert main(["run", "--all", "--model", "python:my_system:systems", "--dataset", "demo"]) == 0

    shown = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.startswith("demo: ")] == [
        "demo: detection",
        "demo: query-related",
        "demo: masking",
    ]
    assert shown.count("| 12/12") == 3


@pytest.mark.usefixtures("plug_in")
def test_an_entry_point_adds_a_name_and_replaces_no_built_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = {"mine": "my_system:systems", "bilstm-crf": "my_system:systems"}
    install_entry_points(monkeypatch, **ours, unread="no_such_module:make")

    check_name("unread")
    systems = build_systems("mine", SystemOptions())

    assert [system.card.task for system in systems] == [Task.DETECTION, Task.QUERY_RELATED]
    assert "mine" in system_names()
    assert cards("bilstm-crf") == [("bilstm-crf", "detection", False)]


@pytest.mark.usefixtures("plug_in")
@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("my_system", "must be python:MODULE:FACTORY"),
        ("gone_module:systems", "cannot be loaded: No module named 'gone_module'"),
        ("my_system:gone", "cannot be loaded: module 'my_system' has no attribute 'gone'"),
        ("my_system:re", "must be a callable without arguments"),
        ("builtins:list", "came with no objects; allowed: objects with System's methods"),
        ("os:getcwd", "came with str; allowed: objects with System's methods"),
    ],
)
def test_a_factory_that_returns_no_systems_is_an_error(target: str, what: str) -> None:
    with pytest.raises(PiiBenchError, match=re.escape(what)):
        build_systems(f"python:{target}", SystemOptions())


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def systems(): return None", ""),
        ("def systems(): return 3", ""),
        ("def systems(needed): return []", ", but raised TypeError"),
        ("def systems():\n    raise ValueError('Lee')", ", but raised ValueError at {}:2"),
        ("def systems():\n    None.gone", ", but raised AttributeError at {}:2"),
        ("systems = 1 / 0", ", but raised ZeroDivisionError at {}:1"),
        ("\ndef systems(:", ", but raised SyntaxError at {}:2"),
    ],
)
def test_code_of_a_factory_that_fails_is_an_error(folder: Path, source: str, what: str) -> None:
    path = folder / "my_system.py"
    path.write_text(source, encoding="utf-8")

    with pytest.raises(PiiBenchError) as caught:
        build_systems("python:my_system:systems", SystemOptions())

    must = "must be a callable without arguments that returns a sequence of Systems"
    assert f"my_system:systems {must}{what.format(path)}" in str(caught.value)
    assert "Lee" not in str(caught.value)


def test_an_input_error_of_a_factory_keeps_its_message(folder: Path) -> None:
    source = "from pii_bench import load_dataset\ndef systems(): return load_dataset('gone')"
    (folder / "my_system.py").write_text(source, encoding="utf-8")

    with pytest.raises(UnknownNameError, match=r"^unknown dataset 'gone'"):
        build_systems("python:my_system:systems", SystemOptions())


SAMPLE = load_dataset("demo").samples[0]

MODULE = """
from pii_bench.models.base import CallError, Completion
from pii_bench.systems.base import SystemCard
from pii_bench.tasks import Task

class Mine:
    card = SystemCard("mine", "{prompt}", "", Task.DETECTION, oracle=False, settings={{}})
    def request_hash(self, sample): return sample.id
    async def respond(self, sample): {body}
    async def close(self): pass

def systems(): return [Mine()]
"""


def loaded(folder: Path, body: str, prompt: str = "system") -> System:
    sys.modules.pop("my_system", None)
    (folder / "my_system.py").write_text(MODULE.format(body=body, prompt=prompt), encoding="utf-8")
    # Python would reuse the compiled module within the same second.
    for compiled in folder.glob("__pycache__/*"):
        compiled.unlink()
    return build_systems("python:my_system:systems", SystemOptions())[0]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("raise ValueError(sample.description)", "error: the plug-in raised ValueError"),
        ("return 'Lee'", "error: the plug-in returned str, not Prediction"),
    ],
)
def test_an_error_of_a_plug_in_is_a_malformed_answer(folder: Path, body: str, text: str) -> None:
    response = asyncio.run(loaded(folder, body).respond(SAMPLE))

    assert getattr(response, "text", None) == text
    assert read_response(Task.DETECTION, response, "text").status is Status.MALFORMED


def test_a_hallucinated_entity_of_a_plug_in_is_an_answer(folder: Path) -> None:
    system = loaded(folder, """return Completion('Subject1{"Nemo Nowhere": "PER"}')""")

    response = asyncio.run(system.respond(SAMPLE))

    assert fault_of(response) is None
    assert read_response(Task.DETECTION, response, "text").status is Status.OK


def test_the_prompt_of_a_plug_in_defaults_to_its_task(folder: Path) -> None:
    system = loaded(folder, "return Completion('{}')", prompt="")

    assert (system.card.prompt, system.card.task) == ("detection", Task.DETECTION)


def test_a_call_error_of_a_plug_in_is_raised(folder: Path) -> None:
    system = loaded(folder, "raise CallError('timeout')")

    with pytest.raises(Exception, match=r"^timeout$"):
        asyncio.run(system.respond(SAMPLE))


def test_the_source_of_a_plug_in_is_in_its_request_hash(folder: Path) -> None:
    one, same, other = (
        loaded(folder, f"return Completion('{text}')") for text in ("{}", "{}", "[]")
    )

    assert one.request_hash(SAMPLE) == same.request_hash(SAMPLE) != other.request_hash(SAMPLE)
    assert one.card.settings["source"] != other.card.settings["source"]


def test_an_object_that_no_factory_made_keeps_its_identity() -> None:
    (system,) = build_systems("bilstm-crf", SystemOptions())

    (wrapped,) = plug_ins([system])

    assert wrapped.card == system.card
    assert wrapped.request_hash(SAMPLE) == system.request_hash(SAMPLE)
