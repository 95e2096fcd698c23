"""The SDK's client without the types of the APIs that nobody here calls.

`import openai` takes 0.38 s, of which 0.17 s go into 320 modules of types that a client does
not need (3.51.0, 2 cores). At the start of a run nothing else can be done in that time.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE: Final = "openai"
_POSTPONED: Final = (_PACKAGE, "openai.lib", "openai.types", "openai.types.shared")

# Other names of this form are looked for in every module, by `warnings` for one.
_SAID_BY_PACKAGES: Final = frozenset({"__all__", "__version__"})

_NEEDED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "openai._client": ("AsyncOpenAI",),
        "openai._exceptions": ("APIConnectionError", "APIStatusError", "APITimeoutError"),
    }
)


def import_client_alone() -> None:
    """Import `openai` with its asynchronous client and its errors, and run no more of it.

    The rest of the package, and `openai.lib` and `openai.types`, are run when something of
    them is asked for. Nothing is done where the SDK is imported already; a release that
    cannot be imported in this way is imported as usual.
    """
    if _PACKAGE in sys.modules:
        return
    try:
        packages = [_postpone(name) for name in _POSTPONED]
        for module, names in _NEEDED.items():
            for name in names:
                setattr(packages[0], name, getattr(importlib.import_module(module), name))
    except (ImportError, AttributeError):
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
            del sys.modules[name]


class _Postponed(ModuleType):
    """A package whose own code has not run; its modules can be imported all the same."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        asked = not name.startswith("__") or name in _SAID_BY_PACKAGES
        if not asked or spec is None or spec.loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        # A module of the package is no reason to run it.
        if importlib.util.find_spec(f"{self.__name__}.{name}") is not None:
            return importlib.import_module(f"{self.__name__}.{name}")
        self.__class__ = ModuleType  # type: ignore[assignment]
        spec.loader.exec_module(self)
        return getattr(self, name)


def _postpone(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"no module named {name!r}", name=name)
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _Postponed
    sys.modules[name] = package
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, package)
    return package
