"""`python -m tests.torture` runs the stress tests and writes `docs/torture.md`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pii_bench.cli.terminal import echo, log
from pii_bench.escaping import markdown, markdown_table
from pii_bench.files import write_whole
from tests.conftest import REPOSITORY
from tests.torture import files, fuzz, kills, servers, sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.torture.process import Trial

_OUT: Final = REPOSITORY / "docs" / "torture.md"
_HEADER: Final = ("Area", "Attack", "Expected", "Trials", "Passed")
_INTRODUCTION: Final = """\
# Stress tests

`make torture` runs these attacks on this machine, without the internet, and writes this file.
Their code is in `tests/torture`; `make test-slow` runs each as a test. A trial passes if everything
under "Expected" is true.

"""

_COMMAND: Final = (
    "no traceback, API key, sample text or control character in the output; exit code 0, 1 or 2"
)
_OTHERS: Final = "every command ends with exit code 0, 1 or 2 and shows the valid runs"
_EXIT: Final = "no exception; exit code 0, 1 or 2"


@dataclass(frozen=True, slots=True)
class Attack:
    """One kind of attack.

    Attributes:
        area: The attacked area.
        name: A description of the attack.
        holds: A description of what is expected of each trial.
        run: Runs the trials in an empty folder.
    """

    area: str
    name: str
    holds: str
    run: Callable[[Path], Iterator[Trial]]


ATTACKS: Final = (
    Attack(
        "server",
        "impossible token counts, with `--max-usd`",
        "the cap is kept, no stored answer is requested again, the leaderboard shows all runs",
        servers.attack_usage,
    ),
    Attack(
        "server",
        "invalid or malicious response bodies",
        f"{_COMMAND}; no script in the report; the leaderboard shows the valid run",
        servers.attack_bodies,
    ),
    Attack(
        "server",
        "faulty transport (gzip bombs, resets, delays, encodings)",
        f"{_COMMAND}; at most 512 MB; the leaderboard shows the valid run",
        servers.attack_transports,
    ),
    Attack(
        "server",
        "redirects to another host",
        f"the API key is not sent there; {_COMMAND}",
        servers.attack_redirects,
    ),
    Attack(
        "kill",
        "SIGKILL during calls, sorting and scoring",
        "no answer is lost, duplicated or requested again; files equal those of an undisturbed run",
        kills.kill_chats,
    ),
    Attack(
        "kill",
        "SIGKILL while batches are submitted, awaited and read",
        "no request is submitted twice; the answers equal those of an undisturbed run",
        kills.kill_batches,
    ),
    Attack(
        "kill",
        "crashes at every step of a batch, before and after its effect, singly and in pairs",
        "no request is submitted twice; the file equals that of an undisturbed run",
        kills.crash_batches,
    ),
    Attack(
        "kill",
        "response files cut at any place in their last line",
        "only missing answers are requested; every sample has one answer",
        kills.tear_lines,
    ),
    Attack(
        "fuzz",
        "parser: answers of random pieces",
        "no exception; the same result each time",
        fuzz.fuzz_parser,
    ),
    Attack(
        "fuzz",
        "scorer: random subjects and texts",
        "no exception; scores from 0 to 1 that do not depend on the order",
        fuzz.fuzz_scorer,
    ),
    Attack(
        "fuzz",
        "mask: random texts and entities",
        "no exception; unmasking restores the text",
        fuzz.fuzz_mask,
    ),
    Attack(
        "fuzz",
        "report: random models, answers and texts",
        "only the report's two scripts; no event handler; valid UTF-8",
        fuzz.fuzz_report,
    ),
    Attack("file", "manifests with each value replaced", _OTHERS, files.attack_manifests),
    Attack("file", "response lines with each value replaced", _OTHERS, files.attack_lines),
    Attack(
        "file",
        "datasets, predictions and answers with bytes changed",
        _EXIT,
        files.attack_inputs,
    ),
    Attack("file", "invalid names and paths", _EXIT, files.attack_names),
    Attack(
        "size",
        "`data check` of similar lines and large samples",
        "at most 1 GB",
        sizes.attack_check,
    ),
    Attack(
        "size",
        "`score` of many lines, subjects and combining marks",
        "at most 1 GB",
        sizes.attack_score,
    ),
    Attack("size", "`mask` of long texts", "at most 500 MB", sizes.attack_mask),
)
"""All attacks, in the order of the table."""


def main() -> int:
    """Run the attacks and return 1 if a trial failed, else 0."""
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
            log(f"  {held} of {len(trials)} passed")
    table = render(done)
    echo(table)
    if arguments.area is None:
        write_whole(arguments.out, _INTRODUCTION + table)
    return int(any(trial.broken for _, trials in done for trial in trials))


def render(done: Sequence[tuple[Attack, Sequence[Trial]]]) -> str:
    """Return the table, followed by the failed trials."""
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
    table = markdown_table(_HEADER, [*rows, ("all", "", "", tried, held)], align)
    failed = [
        f"- {markdown(attack.name)}: {markdown(trial.name)}: {markdown('; '.join(trial.broken))}"
        for attack, trials in done
        for trial in trials
        if trial.broken
    ]
    below = ["", "## Failed trials", "", *failed] if failed else []
    # The attacks' names are ours: their backticks mark code.
    return "\n".join([table.replace("\\`", "`"), *below]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
