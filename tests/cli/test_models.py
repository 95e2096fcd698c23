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
def test_the_table_and_its_sources(
    capsys: Capsys, assert_golden: Callable[[str, str], None]
) -> None:
    with_sources = shown(capsys, "--sources")

    assert_golden("models-sources.txt", with_sources)
    table, _, _ = with_sources.partition("\nfirst: ")
    assert shown(capsys) == table


@pytest.mark.usefixtures("table")
def test_the_models_of_one_provider(capsys: Capsys) -> None:
    lines = shown(capsys, "--provider", "deepseek", "--sources").splitlines()

    assert [line.split()[1] for line in lines if line.startswith("| ")] == ["alias", "second"]
    assert "  https://example.org/second" in lines
    assert "  https://example.org/third" not in lines


def test_a_provider_without_models(capsys: Capsys) -> None:
    assert main(["models", "--provider", "opnai"]) == 2
    assert "unknown provider 'opnai'; did you mean 'openai'" in capsys.readouterr().err


@pytest.mark.usefixtures("table")
def test_the_models_as_json(capsys: Capsys) -> None:
    first, third = json.loads(shown(capsys, "--provider", "openai", "--json"))
    assert {key: first[key] for key in ("alias", "model", "context", "retirement", "date")} == {
        "alias": "first",
        "model": "openai/first-1",
        "context": 1_050_000,
        "retirement": "2027-01-14",
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
