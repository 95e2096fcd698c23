"""The command line: the last module of the suite, and the only one that prints."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pii_bench.cli.arguments import parse_arguments
from pii_bench.errors import PiiBenchError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

DONE = 0
INCOMPLETE = 1
WRONG_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 done; 1 the run is incomplete, and running it again does only what is missing;
        2 wrong arguments or input.
    """
    parsed = parse_arguments(arguments)
    try:
        complete = _run_command(parsed)
    except PiiBenchError as error:
        print(f"pii-bench: {error}", file=sys.stderr)
        return WRONG_INPUT
    except KeyboardInterrupt:
        print("pii-bench: interrupted", file=sys.stderr)
        return INCOMPLETE
    except BrokenPipeError:
        # The reader of our output has gone; Python would complain at exit.
        sys.stderr.close()
        return DONE
    return DONE if complete else INCOMPLETE


def _run_command(parsed: argparse.Namespace) -> bool:
    """Run it, importing only what it needs; whether everything asked for is there."""
    match parsed.command:
        case "run":
            from pii_bench.cli.run import run_benchmark

            return run_benchmark(parsed)
        case "score":
            from pii_bench.cli.score import score_predictions

            return score_predictions(parsed.predictions, parsed.dataset)
        case "convert":
            from pii_bench.cli.score import convert_answers

            return convert_answers(parsed.answers, parsed.dataset, parsed.out)
        case "leaderboard":
            from pii_bench.cli.leaderboard import build_leaderboard

            return build_leaderboard(parsed.results)
        case "train":
            from pii_bench.cli.train import train_tagger

            return train_tagger(parsed.data, parsed.out)
        case _:
            return _run_data_command(parsed)


def _run_data_command(parsed: argparse.Namespace) -> bool:
    match parsed.command:
        case "data build":
            from pii_bench.cli.data_build import build_by_model, build_data

            return build_by_model(parsed) if parsed.writer else build_data(parsed.data)
        case "data check":
            from pii_bench.cli.data_check import check_dataset

            return check_dataset(parsed.files)
        case "data stats":
            from pii_bench.cli.data_stats import print_statistics

            return print_statistics(parsed.dataset, write=parsed.write)
        case _:
            from pii_bench.cli.data_quality import report_quality

            return report_quality(parsed.data)
