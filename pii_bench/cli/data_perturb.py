"""`pii-bench data perturb`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pii_bench.cli.options import DATASET_HELP, add_options, positive, share
from pii_bench.cli.terminal import echo, echo_json, log, log_progress
from pii_bench.construction.perturb import KINDS, Unfit, versions
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.sample import write_native
from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.escaping import markdown_table

if TYPE_CHECKING:
    import argparse

    from pii_bench.datasets.sample import Sample


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Write versions of a dataset's samples. Kinds: "
        + "; ".join(f"{name} ({kind.description})" for name, kind in KINDS.items())
        + ". The annotations are adapted, and each version is checked. Run a system on both "
        "datasets (--dataset FILE), and `analyse` compares them."
    )
    parser.add_argument("dataset", metavar="DATASET", help=DATASET_HELP)
    parser.add_argument(
        "--kind",
        dest="kinds",
        default=",".join(KINDS),
        metavar="KIND,...",
        help="kinds of versions, separated by commas (default: all)",
    )
    defaults = ", ".join(f"{name} {kind.rate:g}" for name, kind in KINDS.items() if kind.rate < 1)
    parser.add_argument(
        "--rate",
        type=share,
        metavar="SHARE",
        help="share of the letters, words, marks or values to change "
        f"(default: {defaults}, others 1)",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="at most N versions of each kind"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE.jsonl", help="file to write"
    )
    add_options(parser, "--json")


def run(arguments: argparse.Namespace) -> bool:
    """Write versions of samples, and print the number of each kind."""
    kinds = list(dict.fromkeys(name.strip() for name in arguments.kinds.split(",")))
    for name in kinds:
        if name not in KINDS:
            raise UnknownNameError("kind", name, KINDS)
    dataset = load_dataset(arguments.dataset)
    out: Path = arguments.out
    if out.exists() and out.resolve() == Path(dataset.source.rpartition(":")[2]).resolve():
        raise PiiBenchError(f"{out} is the dataset itself: give another --out")
    samples: list[Sample] = []
    rows: list[list[object]] = []
    unfit: Counter[Unfit] = Counter()
    for kind in log_progress(kinds, "kinds written", of=len(kinds)):
        result = versions(
            dataset.samples,
            kind,
            dataset=dataset.name,
            seed=arguments.seed,
            rate=arguments.rate,
            limit=arguments.limit,
        )
        samples += result.samples
        unfit.update(result.unfit)
        rows.append([kind, len(result.samples), *(result.unfit.get(why, 0) for why in Unfit)])
    for fault in dataset.faults:
        log(f"{arguments.dataset}: {fault}")
    if not samples:
        why = f"nothing to change in {dataset.name}"
        if faulty := unfit[Unfit.FAULTY]:
            why = (
                f"no version of {dataset.name}: {faulty} would break a rule or have annotations "
                f"that cannot follow the text, {unfit[Unfit.UNCHANGED]} have nothing to change"
            )
        raise PiiBenchError(f"{', '.join(kinds)}: {why}")
    write_native(out, samples)
    if arguments.json:
        names = ("kind", "versions", "nothing_to_change", "breaks_a_rule")
        echo_json([dict(zip(names, row, strict=True)) for row in rows])
        return True
    echo(markdown_table(["Kind", "Versions", "Nothing to change", "Breaks a rule"], rows))
    echo(f"\n{len(samples)} samples: {out}")
    return True
