"""Packages import only from those below them, and a run passes through few files."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PACKAGE: Final = REPOSITORY / "pii_bench"

FLOORS: Final = (
    "__main__",
    "cli",
    "web",
    "api",
    "integrations",
    "construction",
    "analysis",
    "ranking",
    "runs",
    "systems",
    "prompting",
    "models",
    "masking",
    "datasets",
    "scorer",
)
"""Packages, `__main__` and `api` from the top down; other modules are below them."""


def imports_of(path: Path) -> Iterator[str]:
    """Yield the pii_bench modules that a file imports, also in functions and for type checking."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module=str(module)) if module.startswith("pii_bench"):
                yield module
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name.startswith("pii_bench"))


def floor_of(module: str) -> int:
    """Return a module's index in `FLOORS`; modules in no package, and `pii_bench`, are last."""
    name = module.split(".")[1] if "." in module else ""
    return FLOORS.index(name) if name in FLOORS else len(FLOORS)


def test_every_package_has_a_floor() -> None:
    packages = {path.parent.name for path in _PACKAGE.glob("*/__init__.py")}

    assert packages == set(FLOORS) - {"__main__", "api"}


def test_packages_import_only_downwards() -> None:
    upwards = [
        f"{module} imports {imported}"
        for path in sorted(_PACKAGE.rglob("*.py"))
        for module in [".".join(path.relative_to(REPOSITORY).with_suffix("").parts)]
        if path != _PACKAGE / "__init__.py"
        for imported in imports_of(path)
        if floor_of(imported) < floor_of(module)
    ]

    assert upwards == []


def test_a_run_of_the_default_system_calls_at_most_45_files(tmp_path: Path) -> None:
    arguments = ["run", "--dataset", "all", "--limit", "1", "--results", str(tmp_path)]

    done = subprocess.run(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-m", "tests.called_files", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )

    called = json.loads(done.stdout.splitlines()[-1])
    assert {"cli/run.py", "runs/run.py", "systems/encoder/reader.py"} <= set(called)
    assert len(called) <= 45
