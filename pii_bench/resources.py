"""Where the package's own files lie: in the checkout, or inside the installed wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent
_BUNDLED: Final = _PACKAGE / "_resources"

_ROOT: Final = _BUNDLED if _BUNDLED.is_dir() else _PACKAGE.parent

DATA: Final = _ROOT / "data"
PROMPTS: Final = _ROOT / "prompts"
