"""`pii-bench export every-eval-ever`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pii_bench.cli.terminal import say, tell
from pii_bench.errors import PiiBenchError
from pii_bench.integrations.every_eval_ever.every_eval_ever import export_runs

if TYPE_CHECKING:
    from pathlib import Path

    from pii_bench.integrations.every_eval_ever.every_eval_ever import Evaluator


def export_every_eval_ever(results: Path, out: Path, evaluator: Evaluator) -> bool:
    """Write the runs of a results folder and say where they are.

    Returns:
        Whether every run could be written with the scores of all its samples.

    Raises:
        PiiBenchError: there is no run, a stored one is broken, or a file cannot be written.
    """
    exported = export_runs(results, out, evaluator, created=int(time.time()))
    for reason in exported.left_out:
        tell(f"left out: {reason}")
    for path in exported.incomplete:
        tell(f"incomplete: {path}")
    if not exported.files and not exported.left_out:
        raise PiiBenchError(f"{results}: no run in it to export")
    say(f"{len(exported.files)} runs in {out}")
    return not (exported.incomplete or exported.left_out)
