"""`python -m tests.torture` tries every attack and writes what held to `docs/torture.md`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import echo, log
from pii_bench.escaping import markdown, markdown_table
from pii_bench.files import write_whole
from tests.conftest import REPOSITORY
from tests.torture import files, fuzz, kills, servers, sizes
from tests.torture.attack import Attack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.torture.attack import Trial

_OUT: Final = REPOSITORY / "docs" / "torture.md"
_HEADER: Final = ("Area", "What was tried", "What must hold", "Tried", "Held")
_INTRODUCTION: Final = """\
# What was tried and what held

`make torture` tries these attacks on this machine, without the internet, and writes this file.
`tests/torture` holds them; `make test-slow` runs each as a test. A trial holds if everything in its
line does.

"""

_COMMAND: Final = "no traceback, key, text of a sample or control character; code 0, 1 or 2"
_REST: Final = "every command ends with code 0, 1 or 2 and shows the sound runs"

ATTACKS: Final = (
    Attack(
        "server",
        "counts of tokens that cannot be true, under `--max-usd`",
        "the cap holds, no answer is asked for twice, the leaderboard shows all runs",
        servers.attack_usage,
    ),
    Attack(
        "server",
        "bodies of answers that are no answers, or say what they should not",
        f"{_COMMAND}; no script in the report; the leaderboard shows the sound run",
        servers.attack_bodies,
    ),
    Attack(
        "server",
        "answers that arrive as they should not (bombs, resets, waits, encodings)",
        f"{_COMMAND}; at most 512 MB; the leaderboard shows the sound run",
        servers.attack_transports,
    ),
    Attack(
        "server",
        "redirects to another host",
        f"the key does not go there; {_COMMAND}",
        servers.attack_redirects,
    ),
    Attack(
        "kill",
        "SIGKILL while chats are asked, sorted and scored",
        "nothing lost, doubled or asked again; the files are those of an undisturbed run",
        kills.kill_chats,
    ),
    Attack(
        "kill",
        "SIGKILL while batches are submitted, waited for and read",
        "no request is submitted twice; the answers are those of an undisturbed run",
        kills.kill_batches,
    ),
    Attack(
        "kill",
        "crashes at every step of a batch, before and after its effect, alone and in pairs",
        "no request is submitted twice; the file is that of an undisturbed run",
        kills.crash_batches,
    ),
    Attack(
        "kill",
        "files of responses that end anywhere in their last line",
        "only what is missing is asked; every sample has one answer",
        kills.tear_lines,
    ),
    Attack(
        "fuzz", "parser: answers of random pieces", "no exception, one reading", fuzz.fuzz_parser
    ),
    Attack(
        "fuzz",
        "scorer: random subjects and texts",
        "no exception; figures from 0 to 1 that no order changes",
        fuzz.fuzz_scorer,
    ),
    Attack(
        "fuzz",
        "mask: random texts and entities",
        "no exception; the text comes back",
        fuzz.fuzz_mask,
    ),
    Attack(
        "fuzz",
        "report: random models, answers and texts",
        "two scripts, the data and ours; no handler; UTF-8",
        fuzz.fuzz_report,
    ),
    Attack("file", "manifests with each value replaced", _REST, files.attack_manifests),
    Attack("file", "lines of responses with each value replaced", _REST, files.attack_lines),
    Attack(
        "file",
        "datasets, predictions and answers with bytes changed",
        "no exception; code 0, 1 or 2",
        files.attack_inputs,
    ),
    Attack("file", "names that no file has", "no exception; code 0, 1 or 2", files.attack_names),
    Attack(
        "size", "`data check` of alike lines and large samples", "at most 1 GB", sizes.attack_check
    ),
    Attack("size", "`score` of many lines, subjects and marks", "at most 1 GB", sizes.attack_score),
    Attack("size", "`mask` of long texts", "at most 500 MB", sizes.attack_mask),
)
"""In the order of the table."""


def main() -> int:
    """Try the attacks; 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--area", choices=sorted({attack.area for attack in ATTACKS}))
    parser.add_argument("--out", type=Path, default=_OUT, help="default: %(default)s")
    arguments = parser.parse_args()
    done: list[tuple[Attack, list[Trial]]] = []
    for attack in ATTACKS:
        if arguments.area in {None, attack.area}:
            log(f"{attack.area}: {attack.name} ...")
            with tempfile.TemporaryDirectory(prefix="pii-bench-torture-") as folder:
                trials = list(attack.run(Path(folder)))
            done.append((attack, trials))
            held = sum(not trial.broken for trial in trials)
            log(f"  {held} of {len(trials)} held")
    table = render(done)
    echo(table)
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
