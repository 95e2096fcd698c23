"""Mapping a function over many items on a Ray cluster, as a `map_batches` stage.

Each worker process builds the function once, so it holds one copy of the model. Ray restarts a
worker that died and reassigns its items.
"""

from __future__ import annotations

import logging
import os
import pickle
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pii_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Item = TypeVar("Item")
Result = TypeVar("Result")

_AT_ONCE: Final = 20_000
"""Items in memory at a time; each chunk gets a new pool."""

_BATCH: Final = 16


def map_on_ray(
    build: Callable[[], Callable[[Item], Result]], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """Apply a function to every item in the worker processes of a pool; the order is kept.

    Uses the cluster at `RAY_ADDRESS`; if it is not set, starts one on this machine and stops it at
    the end.

    Args:
        build: builds the function, once per worker. It, the items and the results are pickled.
        items: read lazily, 20,000 at a time.
        workers: number of worker processes with one CPU each, at least 1.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    ray = import_ray()
    starts = not ray.is_initialized()
    if starts:
        own = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": workers}
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        ray.init(include_dashboard=False, **quiet, **own)
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    remaining = iter(items)
    try:
        while chunk := list(islice(remaining, _AT_ONCE)):
            rows = [{"item": pickle.dumps(item)} for item in chunk]
            # Enough blocks to keep all workers busy until the end.
            blocks = min(len(rows), max(4 * workers, len(rows) // 200))
            stage = ray.data.from_items(rows, override_num_blocks=blocks).map_batches(
                _Stage,
                fn_constructor_args=(build,),
                batch_size=_BATCH,
                num_cpus=1,
                compute=ray.data.ActorPoolStrategy(size=min(workers, blocks)),
            )
            for row in stage.iter_rows():
                yield pickle.loads(row["result"])  # noqa: S301 - made by `_Stage`
    finally:
        if starts:
            ray.shutdown()


def import_ray() -> Any:
    """Import Ray with its module `data`.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    # Turn off Ray's usage statistics.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import_module("ray.data")
        return import_module("ray")
    except ImportError:
        raise MissingExtraError("Ray", "pip install -e '.[ray]'") from None


class _Stage:
    def __init__(self, build: Callable[[], Callable[[Any], Any]]) -> None:
        self._function = build()

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[bytes]]:
        items = (pickle.loads(item) for item in batch["item"])  # noqa: S301 - made by `map_on_ray`
        return {"result": [pickle.dumps(self._function(item)) for item in items]}
