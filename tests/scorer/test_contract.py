from __future__ import annotations

import json
import subprocess
import sys

import pytest

import pii_bench.scorer

ALLOWED = {"pii_bench", "pii_bench.errors"}


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """Return the modules that a fresh interpreter loads with the scorer."""
    code = "import json, sys, pii_bench.scorer; print(json.dumps(list(sys.modules)))"
    done = subprocess.run(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return set(json.loads(done.stdout))


def test_the_scorer_imports_nothing_heavy(imported: set[str]) -> None:
    packages = {name.partition(".")[0] for name in imported}

    assert "rapidfuzz" in packages
    assert not packages & {"httpx2", "numpy", "openai", "pandas", "requests", "rich", "scipy"}


def test_the_scorer_imports_nothing_else_of_the_project(imported: set[str]) -> None:
    ours = {name for name in imported if name.partition(".")[0] == "pii_bench"}

    assert {name for name in ours if not name.startswith("pii_bench.scorer")} == ALLOWED


def test_public_names_exist_and_versions_are_pinned() -> None:
    assert all(hasattr(pii_bench.scorer, name) for name in pii_bench.scorer.__all__)
    assert pii_bench.scorer.NORMALISER == "nfc-ws-1"
    assert pii_bench.scorer.MATCHER == "lsa-lex-1"
    assert pii_bench.scorer.ROUGE_L_TOKENISER == "rouge-uni-1"
