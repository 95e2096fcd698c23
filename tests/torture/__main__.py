"""`python -m tests.torture` tries every attack and writes what held to `docs/torture.md`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import say, tell
from pii_bench.escaping import markdown, markdown_table
from pii_bench.files import write_whole
from tests.conftest import REPOSITORY
from tests.torture.attacks import ATTACKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.torture.attack import Attack, Trial

_OUT: Final = REPOSITORY / "docs" / "torture.md"
_HEADER: Final = ("Area", "What was tried", "What must hold", "Tried", "Held")
_INTRODUCTION: Final = """\
# What was tried and what held

`make torture` tries these attacks on this machine, without the internet, and writes this file.
`tests/torture` holds them; `make test-slow` runs each as a test. A trial holds if everything in its
line does.

"""


def main() -> int:
    """Try the attacks; 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--area", choices=sorted({attack.area for attack in ATTACKS}))
    parser.add_argument("--out", type=Path, default=_OUT, help="default: %(default)s")
    arguments = parser.parse_args()
    done: list[tuple[Attack, list[Trial]]] = []
    for attack in ATTACKS:
        if arguments.area in {None, attack.area}:
            tell(f"{attack.area}: {attack.name} ...")
            with tempfile.TemporaryDirectory(prefix="pii-bench-torture-") as folder:
                trials = list(attack.run(Path(folder)))
            done.append((attack, trials))
            held = sum(not trial.broken for trial in trials)
            tell(f"  {held} of {len(trials)} held")
    table = render(done)
    say(table)
    if arguments.area is None:
        write_whole(arguments.out, _INTRODUCTION + table)
    return int(any(trial.broken for _, trials in done for trial in trials))


def render(done: Sequence[tuple[Attack, Sequence[Trial]]]) -> str:
    """The table, and below it each trial that did not hold."""
    rows = [
        (
            attack.area,
            attack.name,
            attack.holds,
            len(trials),
            sum(not trial.broken for trial in trials),
        )
        for attack, trials in done
    ]
    tried = sum(len(trials) for _, trials in done)
    held = sum(not trial.broken for _, trials in done for trial in trials)
    align = ("left", "left", "left", "right", "right")
    # Names of ours, whose marks of code stay.
    table = markdown_table(_HEADER, [*rows, ("all", "", "", tried, held)], align)
    failed = [
        f"- {markdown(attack.name)}: {markdown(trial.name)}: {markdown('; '.join(trial.broken))}"
        for attack, trials in done
        for trial in trials
        if trial.broken
    ]
    below = ["", "## What did not hold", "", *failed] if failed else []
    return "\n".join([table.replace("\\`", "`"), *below]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
