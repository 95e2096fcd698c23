from __future__ import annotations

import re
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.models.calls import CallPolicy
from pii_bench.models.catalog import ModelOptions
from pii_bench.systems import catalog
from pii_bench.systems.catalog import (
    SystemOptions,
    build_systems,
    check_name,
    is_prompted,
)
from pii_bench.systems.plug_ins import ENTRY_POINTS
from pii_bench.tasks import Task


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
        ("bilstm+keyword", "unknown detector 'bilstm'; did you mean 'bilstm-crf'?"),
        ("bilstm-crd", "unknown model 'bilstm-crd'; did you mean 'bilstm-crf'?"),
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
        ("bilstm-crf", {"temperature": "default"}, "does not use --temperature"),
        ("bilstm-crf", {"model": ModelOptions("http://localhost")}, "does not use --base-url"),
        ("bilstm-crf", {"model": ModelOptions(timeout=3.0)}, "does not use --timeout"),
        ("bilstm-crf", {"chunk": 9}, "does not use --chunk"),
        ("bilstm-crf", {"calls": CallPolicy(max_usd=1.0)}, "makes no calls that this limits"),
        ("python:m:f", {"label_map": Path("map.json")}, "does not use --label-map"),
        ("python:m:f", {"output": "schema"}, "does not use --output"),
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


@pytest.mark.usefixtures("plug_in")
def test_an_entry_point_adds_a_name_and_replaces_no_built_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = {"mine": "my_system:systems", "bilstm-crf": "my_system:systems"}
    install_entry_points(monkeypatch, **ours, unread="no_such_module:make")

    check_name("unread")
    systems = build_systems("mine", SystemOptions())

    assert [system.card.task for system in systems] == [Task.DETECTION, Task.QUERY_RELATED]
    with pytest.raises(
        UnknownNameError, match="encoder:DIR, bilstm-crf, mine, unread, python:MODULE:FACTORY"
    ):
        check_name("nobody")
    assert cards("bilstm-crf") == [("bilstm-crf", "detection", False)]
