from __future__ import annotations

import asyncio
import re
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.models.catalog import ModelCard, ModelOptions
from pii_bench.runs.responses import read_response
from pii_bench.systems import catalog, prompted
from pii_bench.systems.catalog import (
    ENTRY_POINTS,
    SystemOptions,
    build_systems,
    check_name,
    fault_of,
    is_prompted,
    system_names,
)
from pii_bench.tasks import Status, Task
from tests.builders import write_lines
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pii_bench.systems.base import System

PLUGIN = re.compile(r"^```python\n# my_system\.py\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that the command is run in, and `my_system` looked for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("my_system", None)


@pytest.fixture
def plug_in(folder: Path) -> str:
    """The example of the documentation as a module."""
    found = PLUGIN.search((REPOSITORY / "docs/extending.md").read_text(encoding="utf-8"))
    assert found is not None
    (folder / "my_system.py").write_text(found[1], encoding="utf-8")
    return found[1]


def installed(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    points = [EntryPoint(name, value, ENTRY_POINTS) for name, value in values.items()]
    monkeypatch.setattr(
        catalog, "entry_points", lambda *, group: EntryPoints(points).select(group=group)
    )


def cards(name: str, **options: object) -> list[tuple[str, str, bool]]:
    systems = build_systems(name, SystemOptions(**options))  # type: ignore[arg-type]
    return [(s.card.model, s.card.prompt, s.card.oracle) for s in systems]


def test_a_chat_model_comes_with_its_strategy(tmp_path: Path) -> None:
    answers = write_lines(tmp_path / "mine.jsonl", [{"id": "s1", "text": "[]"}])

    assert [prompt for _, prompt, _ in cards(f"replay:{answers}")] == ["detection", "naive"]
    assert [prompt for _, prompt, _ in cards(f"replay:{answers}", strategy="self-cot")] == [
        "detection",
        "self-cot",
    ]


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
def test_a_composition(name: str, expected: list[tuple[str, bool]]) -> None:
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
def test_a_name_that_is_none(name: str, what: str) -> None:
    for refuses in (check_name, lambda name: build_systems(name, SystemOptions())):
        with pytest.raises(UnknownNameError) as caught:
            refuses(name)

        assert str(caught.value).startswith(what)


@pytest.mark.parametrize(
    ("name", "prompted"),
    [
        *[("gpt4o", True), ("openai/m", True), ("local/a+b.gguf", True), ("replay:a/b", True)],
        *[("encoder", False), ("encoder:a/b", False), ("gold+encoder", False), ("gold", False)],
        *[("hf:a/b", False), ("hf:a+b/c+all", False), ("python:m:f", False), ("python:/", False)],
    ],
)
def test_a_name_is_known_before_anything_is_loaded_for_it(name: str, *, prompted: bool) -> None:
    check_name(name)

    assert is_prompted(name) is prompted


def test_a_plug_in_that_is_installed_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, mine="no_such_module:make")

    check_name("mine")


def test_only_the_last_plus_parts_a_name() -> None:
    with pytest.raises(PiiBenchError, match=r"^a\+b: no such folder"):
        build_systems("hf:a+b+all", SystemOptions())


@pytest.mark.parametrize(
    ("name", "options", "option"),
    [
        ("bilstm-crf+all", SystemOptions(strategy="naive"), "--strategy"),
        ("bilstm-crf+all", SystemOptions(max_tokens=9), "--max-tokens"),
        (
            "bilstm-crf",
            SystemOptions(model=ModelOptions(base_url="http://localhost")),
            "--base-url",
        ),
        ("python:m:f", SystemOptions(label_map=Path("map.json")), "--label-map"),
        ("python:m:f", SystemOptions(strategy="naive"), "--strategy"),
        ("python:m:f", SystemOptions(output="schema"), "--output"),
        ("bilstm-crf+all", SystemOptions(votes=5), "--votes"),
        ("gold+all", SystemOptions(label_map=Path("map.json")), "--label-map"),
        ("smollm2", SystemOptions(label_map=Path("map.json")), "--label-map"),
        ("bilstm-crf", SystemOptions(temperature="default"), "has no use for --temperature"),
        ("python:m:f", SystemOptions(temperature="default"), "has no use for --temperature"),
        ("bilstm-crf", SystemOptions(keep="more"), "has no use for --keep"),
        ("gpt4o", SystemOptions(keep="more"), "has no dial: --keep"),
    ],
)
def test_an_option_that_does_not_apply_is_refused(
    name: str, options: SystemOptions, option: str
) -> None:
    with pytest.raises(PiiBenchError, match=re.escape(option)):
        build_systems(name, options)


def built(path: Path, **options: object) -> Sequence[System]:
    answers = write_lines(path / "mine.jsonl", [{"id": "s1", "text": "[]"}])
    return build_systems(f"replay:{answers}", SystemOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({}, {"temperature": 0.7, "votes": 5}),
        ({"votes": 3}, {"temperature": 0.7, "votes": 3}),
        ({"temperature": 0.3}, {"temperature": 0.3, "votes": 5}),
        ({"temperature": "default"}, {"temperature": None, "votes": 5}),
    ],
)
def test_a_vote_draws_at_its_own_temperature(
    tmp_path: Path, options: dict[str, object], settings: dict[str, object]
) -> None:
    detection, vote = built(tmp_path, strategy="self-consistency-vote", **options)

    assert vote.card.prompt == "self-consistency-vote"
    assert {key: vote.card.settings[key] for key in settings} == settings
    assert "votes" not in detection.card.settings
    asked = options.get("temperature")
    assert detection.card.settings["temperature"] == (None if asked == "default" else asked or 0.0)


def test_only_a_strategy_that_votes_takes_votes(tmp_path: Path) -> None:
    what = "strategy 'self-consistency' has no vote: leave --votes out"
    with pytest.raises(PiiBenchError, match=what):
        built(tmp_path, strategy="self-consistency", votes=5)


@pytest.mark.parametrize("strategy", ["naive", "self-consistency-vote"])
def test_a_schema_is_asked_for_in_both_tasks(tmp_path: Path, strategy: str) -> None:
    systems = built(tmp_path, strategy=strategy, output="schema")

    assert [system.card.prompt for system in systems] == ["detection+schema", f"{strategy}+schema"]
    assert {system.card.output for system in systems} == {"schema"}
    assert {system.card.settings["output"] for system in systems} == {"schema"}


def test_the_example_of_the_documentation_is_short_and_runs(
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
def test_an_installed_plug_in_has_a_name_and_changes_none_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed(monkeypatch, **{"mine": "my_system:systems", "bilstm-crf": "my_system:systems"})

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
        ("builtins:list", "must be a callable without arguments"),
    ],
)
def test_a_factory_that_makes_no_systems(target: str, what: str) -> None:
    with pytest.raises(PiiBenchError, match=re.escape(what)):
        build_systems(f"python:{target}", SystemOptions())


# Nothing is asked there.
SERVER = ModelOptions(base_url="http://localhost:9/v1")


def sampling(name: str, **options: object) -> tuple[object, object]:
    given = SystemOptions(model=SERVER, **options)  # type: ignore[arg-type]
    settings = build_systems(name, given)[0].card.settings
    return settings["temperature"], settings["max_tokens"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt4o", (0.0, 2048)),
        ("openai/gpt-5-2025-08-07", (None, 16384)),
        ("qwen3-8b-think", (0.0, 16384)),
        ("openai/nobody-knows-it", (0.0, 2048)),
    ],
)
def test_what_suits_the_model_is_the_default(name: str, expected: tuple[object, object]) -> None:
    assert sampling(name) == expected


@pytest.mark.parametrize("reasons", [True, False])
def test_the_longest_answer_that_the_model_writes_caps_the_default(
    monkeypatch: pytest.MonkeyPatch, reasons: bool
) -> None:
    card = ModelCard("x", "openai", "x", "source", max_output=1000, reasons=reasons)
    monkeypatch.setattr(prompted, "find_card", lambda *_: card)

    assert sampling("openai/x") == (0.0, 1000)


def test_what_is_asked_for_comes_first() -> None:
    assert sampling("gpt4o", temperature=0.7, max_tokens=99) == (0.7, 99)
    assert sampling("gpt4o", temperature="default") == (None, 2048)
    assert sampling("gpt-5", temperature="default", max_tokens=99) == (None, 99)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_temperature_that_the_model_does_not_take_is_refused(temperature: float) -> None:
    with pytest.raises(PiiBenchError, match=r"^model 'gpt-5' takes no temperature: leave --temp"):
        sampling("gpt-5", temperature=temperature)


def test_more_tokens_than_the_model_writes_are_refused() -> None:
    reason = r"^model 'gpt4o' writes at most 16,384 tokens, and --max-tokens came as 16,385$"
    with pytest.raises(PiiBenchError, match=reason):
        sampling("gpt4o", max_tokens=16_385)
    assert sampling("gpt4o", max_tokens=16_384) == (0.0, 16_384)


SAMPLE = load_dataset("demo").samples[0]

MODULE = """
from pii_bench.models.base import CallError, Completion
from pii_bench.systems.base import SystemCard
from pii_bench.tasks import Status, Task

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
    # Python compares times to the second before it reads a module again.
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
def test_a_fault_of_its_code_is_a_malformed_answer(folder: Path, body: str, text: str) -> None:
    response = asyncio.run(loaded(folder, body).respond(SAMPLE))

    assert getattr(response, "text", None) == text
    assert read_response(Task.DETECTION, response, "text").status is Status.MALFORMED


def test_an_entity_that_is_not_in_the_text_is_an_answer(folder: Path) -> None:
    system = loaded(folder, """return Completion('Subject1{"Nemo Nowhere": "PER"}')""")

    response = asyncio.run(system.respond(SAMPLE))

    assert fault_of(response) is None
    assert read_response(Task.DETECTION, response, "text").status is Status.OK


def test_without_a_prompt_its_task_names_it(folder: Path) -> None:
    system = loaded(folder, "return Completion('{}')", prompt="")

    assert (system.card.prompt, system.card.task) == ("detection", Task.DETECTION)


def test_what_may_pass_is_raised(folder: Path) -> None:
    system = loaded(folder, "raise CallError('timeout')")

    with pytest.raises(Exception, match=r"^timeout$"):
        asyncio.run(system.respond(SAMPLE))


def test_other_code_is_another_system(folder: Path) -> None:
    one, same, other = (
        loaded(folder, f"return Completion('{text}')") for text in ("{}", "{}", "[]")
    )

    assert one.request_hash(SAMPLE) == same.request_hash(SAMPLE) != other.request_hash(SAMPLE)
    assert one.card.settings["source"] != other.card.settings["source"]
