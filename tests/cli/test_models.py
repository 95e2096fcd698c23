from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main, models
from pii_bench.models.catalog import read_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Capsys

TABLE = """
[first]
provider = "openai"
id = "first-1"
context = 1_050_000
max_output = 128_000
reasons = true
accepts_temperature = false
status = "deprecated"
retirement = 2027-01-14
substitute = "second"
note = "a note"
source = "https://example.org/first"
date = 2026-11-01

[first.price]
input = 2.50
cached_input = 0.25
cache_write = 3.125
output = 10.00
batch_factor = 0.5
source = "https://example.org/prices"
date = 2026-11-02

[second]
provider = "deepseek"
id = "second-2"
source = "https://example.org/second"

[second.price]
input = 0.1
output = 0.5
source = "https://example.org/prices"
date = 2026-11-03

[third]
provider = "openai"
id = "org/third"
context = 8_192
needs_base_url = true
source = "https://example.org/third"
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "models.toml"
    path.write_text(TABLE, encoding="utf-8")
    monkeypatch.setattr(models, "MODELS", read_table(path))


def shown(capsys: Capsys, *options: str) -> str:
    assert main(["models", *options]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("table")
def test_the_table(capsys: Capsys, assert_golden: Callable[[str, str], None]) -> None:
    assert_golden("models.txt", shown(capsys))


@pytest.mark.usefixtures("table")
def test_the_models_as_json(capsys: Capsys) -> None:
    first, _, third = json.loads(shown(capsys, "--json"))
    keys = ("alias", "model", "context", "retirement", "note", "source", "date")
    assert {key: first[key] for key in keys} == {
        "alias": "first",
        "model": "openai/first-1",
        "context": 1_050_000,
        "retirement": "2027-01-14",
        "note": "a note",
        "source": "https://example.org/first",
        "date": "2026-11-01",
    }
    assert first["price"] == {
        "input": 2.5,
        "output": 10.0,
        "date": "2026-11-02",
        "source": "https://example.org/prices",
        "cached_input": 0.25,
        "cache_write": 3.125,
        "batch_factor": 0.5,
    }
    assert (third["model"], third["price"]) == ("openai/org/third", None)
