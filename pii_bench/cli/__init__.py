"""The command line.

Each command is a module named after it (`data check`: `pii_bench.cli.data_check`) with
`add_arguments` and `run`, which returns False if the result is incomplete and raises a
`PiiBenchError` for wrong arguments or input. Only the module of the given command is imported.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pii_bench
from pii_bench.cli.terminal import OutputClosedError, OutputError, flush, log
from pii_bench.errors import PiiBenchError, ProviderUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


DONE: Final = 0
INCOMPLETE: Final = 1
WRONG_INPUT: Final = 2

COMMANDS: Final[Mapping[str, str]] = {
    "run": "run a system on datasets, score it and update the leaderboard",
    "gate": "exit with 1 if a system scores too low, for continuous integration",
    "models": "list the models that have an alias, with prices, limits and status",
    "mask": "mask the personal information in a text that a query does not need",
    "serve": "serve the web application and its API",
    "spans": "score local detectors on a dataset of spans",
    "score": "score a file of predictions",
    "convert": "convert another project's answers into a predictions file",
    "leaderboard": "write leaderboard.csv and leaderboard.md from the results",
    "compare": "compare two systems on their stored runs",
    "cost": "estimate the money, time and people that masking many documents takes",
    "analyse": "analyse stored runs: curves, types, drops, agreement of datasets",
    "diagnose": "classify the errors of stored runs and measure what leaks",
    "report": "write the leaderboard and every sample as one HTML file",
    "utility": "measure what masking protects and how much it harms answers",
    "export every-eval-ever": "export stored runs in the format of Every Eval Ever 0.3.0",
    "export fine-tuning": "export prompts with gold answers, to fine-tune a chat model on",
    "train": "train the BiLSTM-CRF, or fine-tune an encoder or a chat model",
    "trained": "compare fine-tuned encoders by their dev scores",
    "fit": "fit the thresholds of the relevance systems",
    "data build": "build our datasets",
    "data commission": "write the commissions that tell a writer what to write",
    "data accept": "check written texts and record those without a problem",
    "data sheet": "write the sheet that a blind reader answers",
    "data read": "record a reader's answers",
    "data agreement": "show how blind readers agree with gold and with each other",
    "data perturb": "write versions of a dataset: other names, formats, typos, OCR noise...",
    "data check": "find faults in dataset files",
    "data stats": "show the statistics of datasets next to the paper's",
    "data quality": "measure how alike texts are and how well trivial systems score",
}
"""The summary of each command."""


_GROUPS: Final[Mapping[str, str]] = {
    "export": "export runs or training examples in other formats",
    "data": "make, check and describe dataset files",
}


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse a command line (default: `sys.argv`); `run` of the result runs the command.

    Raises:
        SystemExit: with code 2 for wrong arguments, 0 for help and version.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(
        prog="pii-bench",
        description="Benchmark of query-aware PII masking.",
        epilog="Exit codes: 0 done; 1 incomplete, or a check of the command failed; "
        "2 wrong arguments or input.",
    )
    parser.add_argument("--version", action="version", version=pii_bench.__version__)
    groups = {"": parser.add_subparsers(required=True, metavar="COMMAND")}
    for name, summary in COMMANDS.items():
        group, _, last = name.rpartition(" ")
        if group not in groups:
            group_parser = groups[""].add_parser(group, help=_GROUPS[group])
            groups[group] = group_parser.add_subparsers(required=True, metavar="COMMAND")
        command = groups[group].add_parser(last, help=summary)
        if words[: len(name.split())] == name.split():
            module = import_module(f"pii_bench.cli.{name.replace(' ', '_').replace('-', '_')}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser.parse_args(words)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 done; 1 incomplete (run again for the rest), or a check of the command failed; 2 wrong
        arguments or input.
    """
    if sys.stderr is None:
        # `print` would send messages to standard output.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 -- open to the end
    for stream in (sys.stdout, sys.stderr):
        # Escape the characters that the terminal's encoding lacks.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        if sys.stdout is None:
            raise PiiBenchError("standard output is closed")
        parsed = parse_arguments(arguments)
        complete = parsed.run(parsed)
        flush()
    except OutputClosedError:
        return DONE
    except PiiBenchError as error:
        log(f"pii-bench: {error}")
        unfinished = isinstance(error, OutputError | ProviderUnavailableError)
        return INCOMPLETE if unfinished else WRONG_INPUT
    except KeyboardInterrupt:
        log("pii-bench: interrupted")
        return INCOMPLETE
    except OSError as error:
        # Such as a file without permission that no module handles.
        where = "" if error.filename is None else f"{error.filename}: "
        log(f"pii-bench: {where}{error.strerror or error}")
        return WRONG_INPUT
    return DONE if complete else INCOMPLETE
