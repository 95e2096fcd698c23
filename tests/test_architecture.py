"""Packages import only from those below them, and a run passes through few files."""

from __future__ import annotations

import ast
import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pii_bench.cli import main
from tests.cli.command import run_python
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

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


def called_files(*arguments: str) -> list[str]:
    """Run a command; return the files of the package that it calls, not those it only imports."""
    package = str(_PACKAGE)
    called: set[str] = set()

    def is_importing(frame: FrameType | None) -> bool:
        while frame is not None:
            code = frame.f_code
            if code.co_name == "<module>" and code.co_filename.startswith(package):
                return True
            frame = frame.f_back
        return False

    def record(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        is_new_call = event == "call" and path.startswith(package) and path not in called
        if is_new_call and not is_importing(frame):
            called.add(path)

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        main(arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(str(Path(path).relative_to(_PACKAGE)) for path in called)


def test_a_run_of_the_default_system_calls_at_most_45_files(tmp_path: Path) -> None:
    arguments = ("run", "--dataset", "all", "--limit", "1", "--results", str(tmp_path))
    # In a fresh process, which has cached nothing.
    code = "import json, sys; from tests.test_architecture import called_files as called; "
    code += "print(json.dumps(called(*sys.argv[1:])))"

    output = run_python("-c", code, *arguments, cwd=REPOSITORY)

    called = json.loads(output.splitlines()[-1])
    assert {"cli/run.py", "runs/run.py", "systems/encoder/reader.py"} <= set(called)
    assert len(called) <= 45
