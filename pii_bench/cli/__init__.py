"""The command line: the last package of the suite, and the only one that prints.

The module of a command is named after it (`data check`: `pii_bench.cli.data_check`) and has its
`DESCRIPTION`, `add_arguments` and `run`, which returns whether everything asked for is there. It
is imported only when its command is given.
"""

from __future__ import annotations

import argparse
import io
import sys
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pii_bench
from pii_bench.cli.terminal import OutputError, finish, tell
from pii_bench.errors import PiiBenchError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


DONE: Final = 0
INCOMPLETE: Final = 1
WRONG_INPUT: Final = 2

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "run a system over a dataset, score it and update the leaderboard",
        "gate": "exit with 1 where a system's figures fall short, for continuous integration",
        "models": "list the models that have an alias: prices, limits, status",
        "mask": "mask in a text what a query does not need, and put it back into an answer",
        "serve": "the web application: mask in the browser, and an API",
        "spans": "score where local detectors find PII, on any dataset of spans",
        "score": "score a file of predictions made anywhere",
        "convert": "turn answers in another project's format into a predictions file",
        "leaderboard": "write leaderboard.csv and leaderboard.md from the results",
        "compare": "compare two systems on their stored runs",
        "cost": "say what many documents take: money, time, and people who check",
        "analyse": "analyse stored runs: curves, types, drops, agreement of datasets",
        "diagnose": "say what kinds of error stored runs make, and what leaks",
        "report": "write the leaderboard and every sample as one HTML file",
        "utility": "measure what masking protects and what an answer loses by it",
        "export every-eval-ever": "Every Eval Ever 0.3.0: a file per run, a line per sample",
        "export fine-tuning": "prompts with gold answers, for a service or TRL to fine-tune on",
        "train": "train the BiLSTM-CRF that ships, or fine-tune an encoder or a chat model",
        "trained": "show fine-tuned encoders side by side, by their figures on dev",
        "fit": "fit the thresholds of the relevance systems",
        "data build": "build our datasets",
        "data commission": "say what a writer is to write",
        "data accept": "record written texts where they are sound",
        "data sheet": "say what a blind reader is to read",
        "data read": "record a reader's answers",
        "data agreement": "show how blind readers agree with gold and each other",
        "data perturb": "write a dataset's texts with other names, formats, typos, OCR noise...",
        "data check": "find faults in dataset files",
        "data stats": "show the statistics of datasets next to the paper's",
        "data quality": "measure how alike texts are and how far trivial systems get",
    }
)
"""Each command with what it does."""


_GROUPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "export": "write stored runs or examples in a format of others",
        "data": "work on dataset files: build, check, perturb, stats, quality",
    }
)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse a command line; `run` of the result is the function to call with it.

    Raises:
        SystemExit: with code 2 for arguments that are wrong, 0 for help and version.
    """
    given = sys.argv[1:] if arguments is None else [*arguments]
    parser = argparse.ArgumentParser(
        prog="pii-bench",
        description="Benchmark of query-aware PII masking.",
        epilog="Exit codes: 0 done; 1 incomplete, run again; 2 wrong arguments or input.",
    )
    parser.add_argument("--version", action="version", version=pii_bench.__version__)
    groups = {"": parser.add_subparsers(required=True, metavar="COMMAND")}
    for name, summary in COMMANDS.items():
        group, _, last = name.rpartition(" ")
        if group not in groups:
            added = groups[""].add_parser(group, help=_GROUPS[group])
            groups[group] = added.add_subparsers(required=True, metavar="COMMAND")
        command = groups[group].add_parser(last, help=summary)
        if name.split() == given[: len(name.split())]:
            module = import_module(f"pii_bench.cli.{name.replace(' ', '_').replace('-', '_')}")
            command.description = module.DESCRIPTION
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser.parse_args(given)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 done; 1 the run is incomplete, and running it again does only what is missing;
        2 wrong arguments or input.
    """
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal's encoding lacks is shown by its number.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        parsed = parse_arguments(arguments)
        complete = parsed.run(parsed)
        finish()
    except PiiBenchError as error:
        tell(f"pii-bench: {error}")
        return INCOMPLETE if isinstance(error, OutputError) else WRONG_INPUT
    except KeyboardInterrupt:
        tell("pii-bench: interrupted")
        return INCOMPLETE
    except BrokenPipeError:
        # The reader of our output has gone; Python would complain at exit.
        sys.stderr.close()
        return DONE
    except OSError as error:
        # Of a file that no module expects trouble with, such as one that may not be looked at.
        where = "" if error.filename is None else f"{error.filename}: "
        tell(f"pii-bench: {where}{error.strerror or error}")
        return WRONG_INPUT
    return DONE if complete else INCOMPLETE
