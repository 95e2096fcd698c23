from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli import main
from pii_bench.datasets.sample import read_native
from pii_bench.models import catalog
from tests.construction.writers import good
from tests.fakes import FakeModel

if TYPE_CHECKING:
    import pytest

    from pii_bench.models.catalog import ModelOptions
    from tests.cli.conftest import Capsys


def test_a_chat_model_writes_the_first_texts_of_a_set(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    asked = []

    def build(name: str, options: ModelOptions) -> FakeModel:
        asked.append((name, options.timeout))
        return FakeModel(good)

    monkeypatch.setattr(catalog, "build_model", build)
    options = ["--set", "train-single", "--limit", "2", "--data", "mine"]

    assert main(["data", "build", "--writer", "openai/m", *options]) == 0

    path = Path("mine/built/fake--one/train-single.jsonl")
    assert asked == [("openai/m", 120.0)]
    assert capsys.readouterr().out == f"accepted 2, refused 0: {path}\n"
    assert {sample.id[:17] for sample in read_native(path)} == {
        "train-single-0001",
        "train-single-0002",
    }
