"""Packages import only from those below them."""

from __future__ import annotations

import ast
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
"""Packages and the two modules above some of them, from the top down; the rest is the ground."""


def imports_of(path: Path) -> Iterator[str]:
    """The modules of ours that a file imports, also those for type checking and in functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module=str(module)) if module.startswith("pii_bench"):
                yield module
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name.startswith("pii_bench"))


def floor_of(module: str) -> int:
    """The number of a module's floor, from the top; the ground is below the last.

    `pii_bench` itself, which offers what `api` has when it is asked for, is ground.
    """
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
