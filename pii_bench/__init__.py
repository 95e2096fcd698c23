"""pii_bench: an open benchmark for query-aware PII masking.

    >>> import pii_bench
    >>> rows = pii_bench.run("encoder", "demo")
    >>> masked = pii_bench.mask("Ann Lee is 32.", "How old am I?")

The functions are imported on first use, so that `import pii_bench.scorer` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pii_bench.api import leaderboard, load_dataset, mask, run, score

__version__ = "0.1.0"

__all__ = ["leaderboard", "load_dataset", "mask", "run", "score"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from pii_bench import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
