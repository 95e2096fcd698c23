"""Every command that prints a table prints its rows as JSON too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from pii_bench.cli import COMMANDS, main
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.cli.conftest import Capsys

OURS: Final = {"source": "run", "model": "gold", "strategy": "keyword", "dataset": "demo"}

EACH: Final[Mapping[str, Mapping[str, object]]] = {
    "run --model gold+keyword --dataset demo": {
        "model": "gold",
        "task": "detection",
        "ent_f1": 1.0,
    },
    "run --model gold+keyword --dataset demo --dry-run": {"model": "gold", "calls": 0},
    "run --config bench.toml": OURS | {"task": "masking"},
    "run --config bench.toml --dry-run": {"model": "gold", "prompt": "keyword", "calls": 0},
    "leaderboard": OURS | {"task": "masking", "gold": 12},
    "leaderboard --table 6": {"table": 6, "source": "published", "model": "bilstm-crf"},
    "compare gold+keyword bilstm-crf+keyword": {
        "dataset": "demo",
        "task": "masking",
        "figure": "h",
    },
    "analyse": OURS | {"table": "headlines", "metric": "f1", "samples": 12},
    "diagnose": OURS | {"table": "errors", "class": "not-chosen", "gold": 12},
    "cost --dataset demo": {"dataset": "demo"},
    "utility": {"source": "published"},
    "models": {"alias": "gpt4o", "provider": "openai"},
    f"trained {REPOSITORY}/data/models/encoder": {"weights": "encoder", "head": "charcnn-crf"},
    "spans --model bilstm-crf --dataset demo": {"model": "bilstm-crf", "slice": "all"},
    "data stats --dataset demo": {"dataset": "demo", "table": "per sample"},
    "data agreement single": {"set": "single", "group": "all"},
    "data perturb demo --kind typos --out versions.jsonl": {"kind": "typos"},
    "export fine-tuning --for openai --limit 20 --out examples.jsonl": {"examples": 20},
    "data quality": {"measure": "distinct words", "set": "multi"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, and the first samples of the sets that `data quality` reads."""
    folder = tmp_path_factory.mktemp("json")
    (folder / "bench.toml").write_text('models = ["gold+keyword"]\ndatasets = ["demo"]\n')
    (folder / "data").mkdir()
    for name in ("single", "multi"):
        lines = (REPOSITORY / "data" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
        (folder / "data" / f"{name}.jsonl").write_bytes(b"".join(lines[:5]))
    (folder / "data" / "README.md").write_text("<!-- quality:begin --><!-- quality:end -->\n")
    for system in ("gold+keyword", "bilstm-crf+keyword"):
        results = str(folder / "results")
        assert main(["run", "--model", system, "--dataset", "demo", "--results", results]) == 0
    return folder


@pytest.mark.parametrize("command", EACH)
def test_json_is_the_only_output(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.chdir(folder)
    capsys.readouterr()

    assert main([*command.split(), "--json"]) == 0

    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert any(EACH[command].items() <= row.items() for row in rows), rows[:3]


def test_only_these_commands_have_no_json() -> None:
    # `score` is tried elsewhere, for it needs predictions.
    tried = {name for name in COMMANDS for command in EACH if f"{command} ".startswith(f"{name} ")}

    assert COMMANDS.keys() - tried - {"score"} == {
        *("gate", "mask", "serve", "convert", "report", "export every-eval-ever", "train", "fit"),
        *("data build", "data commission", "data accept", "data sheet", "data read", "data check"),
    }
