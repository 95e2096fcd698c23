from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import pii_bench
from pii_bench.cli import main
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.sample import Sample
from pii_bench.errors import (
    InputFileError,
    MissingExtraError,
    MissingKeyError,
    PiiBenchError,
    ProviderRefusedError,
    UnknownNameError,
)
from pii_bench.files import sha256_of
from pii_bench.models.base import CallError, Completion, Draws, Finish, Usage
from pii_bench.runs.responses import read_response
from pii_bench.systems.base import SystemCard, fault_of
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.systems.plug_ins import plug_ins
from pii_bench.systems.predictions import Prediction
from pii_bench.tasks import Status, Task
from pii_bench.taxonomy import PiiType
from tests.systems.conftest import documented

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pii_bench.systems.base import Response, System


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


@pytest.mark.usefixtures("folder")
def test_the_documented_model_runs() -> None:
    names: dict[str, Any] = {}
    exec(documented("my_model.py"), names)  # noqa: S102 -- our own documentation

    assert {(row.model, row.scored) for row in names["rows"]} == {("mine/echo", 12)}


@pytest.mark.usefixtures("plug_in")
@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("my_system", "must be python:MODULE:FACTORY"),
        ("gone_module:systems", "cannot be loaded: No module named 'gone_module'"),
        ("my_system:gone", "cannot be loaded: module 'my_system' has no attribute 'gone'"),
        ("my_system:re", "must be a callable without arguments"),
        ("builtins:list", "came with no objects; allowed: a list of objects with"),
        ("os:getcwd", "came with str, which lacks card, request_hash, respond, close; allowed"),
    ],
)
def test_a_factory_that_returns_no_systems_is_an_error(target: str, what: str) -> None:
    with pytest.raises(PiiBenchError, match=re.escape(what)):
        build_systems(f"python:{target}", SystemOptions())


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def systems(): return None", ""),
        ("def systems(needed): return []", ", but raised TypeError"),
        ("def systems():\n    raise ValueError('Lee')", ", but raised ValueError at {}:2"),
        ("def systems():\n    None.gone", ", but raised AttributeError at {}:2"),
        (
            "import json\ndef systems():\n    json.loads('Lee')",
            ", but raised JSONDecodeError at {}:3",
        ),
        ("import numpy\ndef systems():\n    numpy.eye('Lee')", ", but raised TypeError at {}:3"),
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
from pii_bench.models.base import CallError, Completion, Draws
from pii_bench.systems.base import SystemCard
from pii_bench.tasks import Task

class Mine:
    card = SystemCard("mine", "system", "", Task.DETECTION, oracle=False, settings={{}})
    def request_hash(self, sample): return sample.id
    async def respond(self, sample): {body}
    async def close(self): pass

def systems(): return [Mine()]
"""


def loaded(folder: Path, body: str) -> System:
    sys.modules.pop("my_system", None)
    (folder / "my_system.py").write_text(MODULE.format(body=body), encoding="utf-8")
    # Python would reuse the compiled module within the same second.
    for compiled in folder.glob("__pycache__/*"):
        compiled.unlink()
    return build_systems("python:my_system:systems", SystemOptions())[0]


OK = Status.OK
DETECTED = Prediction(OK, subjects=((("Ann", "PER"),),))


@dataclass
class Constant:
    """A system that gives every sample the same response."""

    response: Any
    task: Task = Task.DETECTION

    @property
    def card(self) -> SystemCard:
        return SystemCard("constant", "system", "", self.task, oracle=False, settings={})

    def request_hash(self, _: Sample) -> str:
        return "version 1"

    async def respond(self, _: Sample) -> Response:
        response: Response = self.response
        return response

    async def close(self) -> None: ...


CARD = Constant(None).card


def altered(**parts: Any) -> SystemCard:
    return replace(CARD, **parts)


def custom(**members: Any) -> Any:
    """An object like `Constant`, with other members."""
    names = ("card", "request_hash", "respond", "close")
    usual = {name: getattr(Constant(DETECTED), name) for name in names}
    return SimpleNamespace(**(usual | members))


def answer_of(response: Any, task: Task = Task.DETECTION) -> Response:
    (system,) = plug_ins([Constant(response, task)])
    return asyncio.run(system.respond(SAMPLE))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "raise ValueError(sample.description)",
            "error: the plug-in raised ValueError at my_system.py:9",
        ),
        ("return 'Lee'", "error: the plug-in returned str, not Prediction or Completion"),
        ("return Draws(())", "error: the plug-in returned Draws, not Prediction or Completion"),
    ],
)
def test_an_error_of_a_plug_in_is_a_malformed_answer(folder: Path, body: str, text: str) -> None:
    response = asyncio.run(loaded(folder, body).respond(SAMPLE))

    assert getattr(response, "text", None) == text
    assert read_response(Task.DETECTION, response, "text").status is Status.MALFORMED


# Foreign code gives parts that the types do not allow.
made: Any = Prediction
completed: Any = Completion
drawn: Any = Draws

PARTS = (
    " (allowed: subjects are tuples of (text, type) pairs, related is a tuple of texts, draws are "
    "Completions)"
)


@pytest.mark.parametrize(
    ("task", "response", "what"),
    [
        (Task.DETECTION, made(OK, subjects=(("Ann", "PER"),)), PARTS),
        (
            Task.DETECTION,
            made(OK, subjects=(((5, "PER"),),)),
            ": prediction, subjects[0]: 'text' must be a string, not a whole number",
        ),
        (Task.DETECTION, made("Ann Lee"), f": 'status' must be one of {', '.join(Status)}"),
        (Task.DETECTION, made(OK, related=()), ": it lacks what detection asks for"),
        (
            Task.QUERY_RELATED,
            made(OK, related="Ann"),
            ": 'related' must be a tuple of texts, not one text",
        ),
        (Task.DETECTION, completed(None), ": record: 'text' must be a string, not null"),
        (
            Task.DETECTION,
            completed("", "Ann"),
            ": 'finish' must be one of stop, length, refusal, filter, unknown",
        ),
        (Task.QUERY_RELATED, Draws(()), ": 'draws' must not be empty"),
        (Task.QUERY_RELATED, drawn(("Ann",)), PARTS),
    ],
)
def test_a_response_with_a_wrong_part_is_a_fault(task: Task, response: Any, what: str) -> None:
    fault = fault_of(answer_of(response, task))

    assert fault == f"the plug-in returned a wrong {type(response).__name__}{what}"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (made("ok", subjects=[[["Ann", PiiType.PER]]]), DETECTED),
        (made(OK, subjects=((("Ann", None),),)), Prediction(OK, subjects=((("Ann", ""),),))),
        (made(OK, (pair for pair in DETECTED.subjects or ())), DETECTED),
        (Prediction(Status.REFUSED, subjects=DETECTED.subjects), Prediction(Status.REFUSED)),
        (made(OK, (), cut=1), Prediction(OK, (), cut=True)),
        (completed("", "length"), Completion("", Finish.LENGTH)),
        (Completion("x", usage=Usage(9, 5)), Completion("x", usage=Usage(9, 5))),
    ],
)
def test_a_response_is_what_its_stored_line_will_be(given: Any, kept: Response) -> None:
    assert answer_of(given) == kept


async def generator(_: Sample) -> AsyncIterator[Response]:
    yield DETECTED


@pytest.mark.parametrize(
    ("respond", "what"),
    [
        (generator, "came with async_generator from a respond that is not async"),
        (lambda _: DETECTED, "came with Prediction from a respond that is not async"),
        (lambda: DETECTED, "raised TypeError when it was called"),
        (lambda sample: Constant(DETECTED).respond(sample), None),
    ],
)
def test_a_respond_that_cannot_be_awaited_is_a_fault(respond: Any, what: str | None) -> None:
    response = asyncio.run(plug_ins([custom(respond=respond)])[0].respond(SAMPLE))

    assert fault_of(response) == (what and f"the plug-in {what}")


def test_one_system_in_place_of_a_list_is_an_error() -> None:
    with pytest.raises(PiiBenchError, match=r"^systems came with Constant, which is no list; "):
        plug_ins(Constant(DETECTED))


def test_the_prompt_of_a_plug_in_defaults_to_its_task_which_may_be_a_string() -> None:
    (system,) = plug_ins([custom(card=altered(prompt="", task="masking"))])

    assert (system.card.prompt, system.card.task) == ("masking", Task.MASKING)
    assert isinstance(system.card.task, Task)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (CallError("timeout"), True),
        (ProviderRefusedError("HTTP 401"), True),
        (MissingKeyError("openai", "OPENAI_API_KEY"), True),
        (MissingExtraError("spaCy", "pip install spacy"), True),
        (InputFileError("model.gguf", "no such file"), True),
        (PiiBenchError(SAMPLE.description), False),
        (UnknownNameError("label", SAMPLE.description, []), False),
        (KeyError(SAMPLE.description), False),
    ],
)
def test_only_an_error_that_says_nothing_about_the_answer_is_raised(
    error: Exception, *, raised: bool
) -> None:
    async def respond(_: Sample) -> Response:
        raise error

    (system,) = plug_ins([custom(respond=respond)])

    if raised:
        with pytest.raises(type(error)):
            asyncio.run(system.respond(SAMPLE))
    else:
        fault = fault_of(asyncio.run(system.respond(SAMPLE)))
        assert re.fullmatch(
            rf"the plug-in raised {type(error).__name__} at test_plug_ins\.py:\d+", fault or ""
        )


def test_the_source_of_a_plug_in_is_in_its_request_hash(folder: Path) -> None:
    one, same, other = (
        loaded(folder, f"return Completion('{text}')") for text in ("{}", "{}", "[]")
    )

    assert one.request_hash(SAMPLE) == same.request_hash(SAMPLE) != other.request_hash(SAMPLE)
    assert one.card.settings["source"] != other.card.settings["source"]
    assert other.card.settings["source"] == sha256_of(folder / "my_system.py")


@pytest.mark.parametrize(
    ("task", "changes", "same"),
    [
        (Task.DETECTION, {"id": "s2"}, True),
        (Task.DETECTION, {"query": "Who is it?"}, True),
        (Task.DETECTION, {"description": "Bo Ek is 32."}, False),
        (Task.QUERY_RELATED, {"query": "Who is it?"}, False),
    ],
)
def test_a_constant_request_hash_does_not_share_the_answers_of_other_texts(
    task: Task, changes: dict[str, str], *, same: bool
) -> None:
    (system,) = plug_ins([Constant(DETECTED, task)])
    sample = Sample("s1", "Ann Lee is 32.", "Am I old?", (), ())
    other = replace(sample, **changes)  # type: ignore[arg-type]

    assert (system.request_hash(sample) == system.request_hash(other)) is same


@pytest.mark.parametrize(
    ("card", "what"),
    [
        (None, "came with NoneType; allowed: SystemCard"),
        ({"model": "x"}, "came with dict; allowed: SystemCard"),
        (altered(model=None), "came with model of type NoneType; allowed: str"),
        (altered(model=""), "came with an empty model; allowed: a name"),
        (altered(oracle=0), "came with oracle of type int; allowed: bool"),
        (altered(settings=None), "came with settings of type NoneType; allowed: Mapping"),
        (
            altered(settings={"path": Path("x")}),
            "came with settings that are no JSON: Object of type PosixPath is not JSON",
        ),
        (altered(task="detect"), ": unknown task 'detect'; did you mean 'detection'?"),
        (altered(output="xml"), ": unknown output 'xml' (allowed: text, schema)"),
        (altered(taxonomy="nosuch"), ": unknown taxonomy 'nosuch'"),
    ],
)
def test_a_card_that_a_manifest_cannot_hold_is_an_error(card: Any, what: str) -> None:
    with pytest.raises(PiiBenchError) as caught:
        plug_ins([custom(card=card)], owner="system 'mine'")

    message = str(caught.value)
    assert message.startswith("system 'mine': the card of SimpleNamespace")
    assert what in message


def test_a_card_that_raises_is_an_error() -> None:
    class Broken(Constant):
        @property
        def card(self) -> SystemCard:
            raise AttributeError(SAMPLE.description)

    what = f"systems: the card of Broken raised AttributeError at {__file__}:"
    with pytest.raises(PiiBenchError, match=rf"^{re.escape(what)}\d+$"):
        plug_ins([Broken(DETECTED)])


def test_an_object_that_lacks_a_member_of_a_system_is_an_error() -> None:
    unclosed = custom()
    del unclosed.close

    what = "systems came with SimpleNamespace, which lacks close; allowed: a list of"
    with pytest.raises(PiiBenchError, match=what):
        plug_ins([Constant(DETECTED, Task.REWRITE), unclosed])


def test_a_request_hash_that_is_no_string_is_an_error() -> None:
    (system,) = plug_ins([custom(request_hash=lambda _: b"abc")])

    what = r"^system 'constant' \(system\): request_hash came with bytes; allowed: str$"
    with pytest.raises(PiiBenchError, match=what):
        system.request_hash(SAMPLE)


def test_a_request_hash_that_raises_is_an_error_before_the_first_call(tmp_path: Path) -> None:
    def request_hash(sample: Sample) -> str:
        raise ValueError(sample.description)

    with pytest.raises(PiiBenchError) as caught:
        pii_bench.run([custom(request_hash=request_hash)], "demo", results=tmp_path)

    what = f"system 'constant' (system): request_hash raised ValueError at {__file__}:"
    assert re.fullmatch(rf"{re.escape(what)}\d+", str(caught.value))
    assert not list(tmp_path.rglob("*.jsonl"))


def test_what_is_finished_is_not_lost_if_a_plug_in_cannot_be_closed(tmp_path: Path) -> None:
    async def close() -> None:
        raise RuntimeError(SAMPLE.description)

    with pytest.warns(RuntimeWarning) as warned:
        (row,) = pii_bench.run([custom(close=close)], "demo", results=tmp_path)

    assert row.scored == 12
    (message,) = {str(each.message) for each in warned}
    what = f"system 'constant' (system): close raised RuntimeError at {__file__}:"
    assert re.fullmatch(rf"{re.escape(what)}\d+", message)


def test_a_close_that_is_not_async_is_called() -> None:
    closed: list[bool] = []
    system = custom(close=lambda: closed.append(True))

    asyncio.run(plug_ins([system])[0].close())

    assert closed == [True]


def test_the_source_of_a_package_is_all_its_python_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "my_package").mkdir()
    files = {
        "__init__": "from my_package.core import systems",
        "core": MODULE.format(body="return Completion(TEXT)") + "from my_package.texts import TEXT",
        "texts": "TEXT = '{}'",
    }

    def source() -> str:
        for name, text in files.items():
            (folder / "my_package" / f"{name}.py").write_text(text, encoding="utf-8")
        for name in [name for name in sys.modules if name.partition(".")[0] == "my_package"]:
            monkeypatch.delitem(sys.modules, name)
        (system,) = build_systems("python:my_package:systems", SystemOptions())
        return str(system.card.settings["source"])

    before = source()
    assert source() == before
    for name in files:
        files[name] += "\n# changed"
        assert source() != before, name
        before = source()


def test_an_object_that_no_factory_made_keeps_its_identity() -> None:
    (system,) = build_systems("bilstm-crf", SystemOptions())

    (wrapped,) = plug_ins([system])

    assert wrapped.card == system.card
    assert wrapped.request_hash(SAMPLE) == system.request_hash(SAMPLE)
