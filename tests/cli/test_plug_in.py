"""Runs of systems that other people plug in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Capsys

DETECTOR = """
from pii_bench.scorer.locate import DetectedSpan
from pii_bench.systems.composed import compose_systems
from pii_bench.systems.parts import DetectedEntities, PredictedRelevance
from pii_bench.systems.relevance.catalog import build_relevance
from pii_bench.taxonomy import PiiType

class Mine:
    name, identity = "mine", {}
    def detect(self, text): return [DetectedSpan(0, SPAN, PiiType.PER)]

def systems():
    return compose_systems(DetectedEntities(Mine()), PredictedRelevance(build_relevance("all")))
"""


ASKED = ("run", "--model", "python:mine:systems", "--dataset", "demo")


@pytest.fixture(autouse=True)
def clean_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("mine", None)


def test_a_sample_on_which_its_code_fails_is_named_and_the_run_goes_on(
    own_folder: Path, capsys: Capsys
) -> None:
    # The text of demo-0001 alone names Halifax.
    source = DETECTOR.replace("SPAN", "10**6 if 'Halifax' in text else 4")
    (own_folder / "mine.py").write_text(source)

    assert main([*ASKED, "--task", "detection", "--all"]) == 0

    told = capsys.readouterr()
    assert told.err.splitlines()[-1] == (
        "detection on demo, sample 'demo-0001': the plug-in raised ValueError"
    )
    assert "| 12/12" in told.out


def test_of_many_samples_the_first_are_named(own_folder: Path, capsys: Capsys) -> None:
    (own_folder / "mine.py").write_text(DETECTOR.replace("SPAN", "-1"))

    assert main([*ASKED, "--task", "detection"]) == 0

    *_, fifth, rest = capsys.readouterr().err.splitlines()
    assert fifth == "detection on demo, sample 'demo-0005': the plug-in raised ValueError"
    assert rest == "detection on demo: and 7 more"
