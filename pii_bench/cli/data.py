"""`pii-bench data build`, `check`, `stats`, `quality`, `perturb`: the sets, and files like them."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tabulate import tabulate

from pii_bench.cli.options import (
    DATASET_HELP,
    WRITTEN_SETS,
    Command,
    add_calls,
    add_data_folder,
    add_dataset,
    add_json,
    positive,
    share,
    usd,
)
from pii_bench.cli.terminal import RunProgress, counted, say, say_json, tell
from pii_bench.construction.perturb import KINDS, Unfit, versions
from pii_bench.construction.quality import (
    LONG,
    frequent_words,
    render,
    text_measures,
    trivial_measure,
)
from pii_bench.construction.recorded import Recorded
from pii_bench.construction.sets import build_sets
from pii_bench.datasets.catalog import DATASETS, load_dataset, load_datasets
from pii_bench.datasets.check.run import check_files
from pii_bench.datasets.check.text import blanked
from pii_bench.datasets.publish import README, publish, replace_block
from pii_bench.datasets.sample import read_native, write_native
from pii_bench.datasets.statistics import (
    compare_means,
    compare_types,
    measure,
    published_statistics,
    to_markdown,
)
from pii_bench.errors import CheckFailedError, PiiBenchError, UnknownNameError
from pii_bench.escaping import markdown_table
from pii_bench.systems.relevance.catalog import build_relevance

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from pii_bench.datasets.sample import Sample
    from pii_bench.datasets.statistics import Statistics

_MEASURED: Final = ("single", "multi")
_TRIVIAL: Final = ("all", "random", "keyword", "embedding")
_WORDS: Final = 50

_BUILD: Final = (
    "Build every set from the recorded texts, the same bytes on any machine, and pin it in its "
    "card."
)


def _add_build(parser: argparse.ArgumentParser) -> None:
    add_data_folder(parser)
    parser.add_argument(
        "--writer",
        metavar="MODEL",
        help="let a chat model write texts from the commissions, into DIR/built (see run --model)",
    )
    parser.add_argument(
        "--set", choices=WRITTEN_SETS, default="single", help="with --writer (%(default)s)"
    )
    parser.add_argument(
        "--limit", type=positive, default=20, metavar="N", help="with --writer (%(default)s)"
    )
    parser.add_argument(
        "--max-usd",
        type=usd,
        metavar="USD",
        help="with --writer: make no call that might pass this sum",
    )
    add_calls(parser)


def _build(arguments: argparse.Namespace) -> bool:
    """Build every set, or let a chat model write the first texts of one.

    Returns:
        Whether everything was built or written.

    Raises:
        PiiBenchError: texts of a set are missing, or the chat model cannot be asked.
        ResultsError: a set cannot be written.
    """
    if arguments.writer:
        return _build_by_model(arguments)
    for path, samples in _build_all(arguments.data).items():
        say(f"{path}: {samples} samples")
    publish(arguments.data)
    return True


def _build_all(data: Path) -> dict[Path, int]:
    """Write every set; the files, each with its number of samples."""
    written = {}
    for name, samples in build_sets(Recorded.load()).items():
        path = DATASETS[name].path_in(data)
        write_native(path, samples)
        written[path] = len(samples)
    return written


def _build_by_model(arguments: argparse.Namespace) -> bool:
    """Say what was refused and why; whether every commission brought a text."""
    from pii_bench.construction.commissions import ORDERS
    from pii_bench.construction.model_writer import write_with_model
    from pii_bench.models.calls.guarded import CallPolicy
    from pii_bench.models.catalog import ModelOptions, build_model
    from pii_bench.models.table import find_card

    options = ModelOptions(base_url=arguments.base_url, timeout=float(arguments.timeout))
    concurrency = arguments.concurrency or 8
    model = build_model(arguments.writer, options)
    provider, _, model_id = model.name.partition("/")
    card = find_card(provider, model_id)
    policy = CallPolicy(concurrency, max_usd=arguments.max_usd)
    guarded = policy.guard(model, card.price if card and not arguments.base_url else None)
    order = ORDERS[arguments.set]
    with RunProgress() as progress:
        progress.label(f"{order.name} by {model.name}")
        report = asyncio.run(
            write_with_model(
                guarded,
                order,
                min(arguments.limit, order.size),
                arguments.data / "built",
                concurrency=concurrency,
                observer=progress,
            )
        )
    for sample_id, reasons in report.refused.items():
        for reason in reasons or ("no answer came: run again",):
            tell(f"{sample_id}: {reason}")
    where = f": {report.path}" if report.accepted else ""
    say(f"accepted {len(report.accepted)}, refused {len(report.refused)}{where}")
    return not report.refused


_CHECK: Final = (
    "Find faults in dataset files, ours or others in our format: annotations, formats, leaks, "
    "queries, consistency, duplicates. What is found is shown with the texts in question, and "
    "said is what was left out since it would take too long. "
    "Exit code 2 when there is any."
)


def _add_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="JSON Lines")


def _check(arguments: argparse.Namespace) -> bool:
    """Check dataset files; print each problem, and how many there are of each rule.

    Raises:
        CheckFailedError: there is one.
        InputFileError: a file cannot be read.
    """
    report = check_files(
        arguments.files, lambda samples: counted(samples, "samples checked", of=len(samples))
    )
    found = [(path, problem) for path, own in report.problems.items() for problem in own]
    for path, problem in found:
        say(f"{path}: {problem.sample_id}: {problem.rule}: {problem.reason}")
    for line in report.left_out:
        say(line)
    if not found:
        say(f"no problems in {report.samples} samples")
        return True
    say()
    for rule, count in Counter(problem.rule for _, problem in found).most_common():
        say(f"{rule}: {count}")
    faulty = {(path, problem.sample_id) for path, problem in found}
    raise CheckFailedError(len(found), len(faulty))


_STATS: Final = "Show the statistics of datasets, with those of the paper's sets of the same names."


def _add_stats(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument("--write", action="store_true", help="put them into data/README.md too")
    add_json(parser)


def _stats(arguments: argparse.Namespace) -> bool:
    """Print the statistics of datasets, with those of the paper's sets.

    Raises:
        UnknownNameError: neither a name nor a file.
        InputFileError: a file is absent or broken.
        ResultsError: the dataset card cannot be written.
    """
    published = published_statistics()
    measured = {
        dataset.name: measure(dataset.samples) for dataset in load_datasets(arguments.dataset)
    }
    markdown = "\n\n".join(
        f"### {name}\n\n{to_markdown(ours, published.get(name))}" for name, ours in measured.items()
    )
    if arguments.json:
        say_json(
            [
                {"dataset": name, **row}
                for name, ours in measured.items()
                for row in _stats_rows(ours, published.get(name))
            ]
        )
    else:
        say(markdown)
    if arguments.write:
        replace_block("statistics", markdown, README)
        (tell if arguments.json else say)(f"\nwritten: {README}")
    return True


def _stats_rows(ours: Statistics, paper: Statistics | None) -> Iterator[dict[str, object]]:
    for table, compared in (("per sample", compare_means), ("entities", compare_types)):
        for row in compared(ours, paper):
            yield {"table": table, **asdict(row), "difference": row.difference}
    yield {"table": "categories", "name": "categories", "ours": ours.categories}


_QUALITY: Final = (
    "Measure single and multi: how alike their texts are, and how far systems get that "
    "understand nothing. The figures go into README.md next to the sets too."
)


def _add_quality(parser: argparse.ArgumentParser) -> None:
    add_data_folder(parser)
    add_json(parser)
    parser.add_argument(
        "--compare",
        metavar="DATASET",
        help="print the most frequent words with those of a dataset, such as capid:PATH",
    )


def _quality(arguments: argparse.Namespace) -> bool:
    """Print the quality of single and multi and write it into the README next to them.

    Raises:
        InputFileError: a set is broken, or the README has no place for the figures.
        UnknownNameError: `--compare` names no dataset.
        ResultsError: the README cannot be written.
    """
    data: Path = arguments.data
    other: str | None = arguments.compare
    if not all((data / f"{name}.jsonl").exists() for name in _MEASURED):
        tell(f"{data}: the sets are not there and are built first")
        _build_all(data)
    sets = {name: read_native(data / f"{name}.jsonl") for name in _MEASURED}
    measures = text_measures(sets)
    measures += [trivial_measure(build_relevance(name), sets) for name in _TRIVIAL]
    table = render(measures)
    words = {} if other is None else _frequent({**sets, other: load_dataset(other).samples})
    if arguments.json:
        measured = [
            {"measure": each.name, "set": name, "value": value, "goal": each.goal}
            for each in measures
            for name, value in each.values.items()
        ]
        shares = [
            {"measure": "share of texts", "set": name, "word": word, "value": share}
            for name, own in words.items()
            for word, share in own
        ]
        say_json([*measured, *shares])
    else:
        say(table)
        if words:
            _print_words(words)
    if (data / "README.md").exists():
        replace_block("quality", table, data / "README.md")
    return True


def _frequent(sets: Mapping[str, Sequence[Sample]]) -> dict[str, Sequence[tuple[str, float]]]:
    """The most frequent words of each set, with the share of texts that hold them."""
    return {name: frequent_words(map(blanked, samples), _WORDS) for name, samples in sets.items()}


def _print_words(found: Mapping[str, Sequence[tuple[str, float]]]) -> None:
    rows = zip(
        *([f"{word} {share:.1%}" for word, share in own] for own in found.values()), strict=False
    )
    say()
    say(f"share of texts that hold a word of {LONG} letters and more:")
    say(tabulate(rows, headers=[*found], disable_numparse=True))


_PERTURB: Final = (
    "Write versions of a dataset's samples, by kind: "
    + "; ".join(f"{name}, {kind.what}" for name, kind in KINDS.items())
    + ". Annotations are carried along, and each version is checked. --dataset FILE runs them, and "
    "`analyse` compares them with the originals where the same system ran on both."
)


def _add_perturb(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", help=DATASET_HELP)
    parser.add_argument(
        "--kind",
        dest="kinds",
        default=",".join(KINDS),
        metavar="KIND,...",
        help="which, separated by commas (default: all)",
    )
    defaults = ", ".join(f"{name} {kind.rate:g}" for name, kind in KINDS.items() if kind.rate < 1)
    parser.add_argument(
        "--rate",
        type=share,
        metavar="SHARE",
        help="of the letters, words, marks or values that a kind can change "
        f"(default: {defaults}, others 1)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of every draw (default: %(default)s)")
    parser.add_argument(
        "--limit", type=positive, metavar="N", help="at most N versions of each kind"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.jsonl")
    add_json(parser)


def _perturb(arguments: argparse.Namespace) -> bool:
    """Write versions of samples, and print how many there are of each kind.

    Raises:
        UnknownNameError: no such kind or dataset.
        InputFileError: the dataset is broken.
        PiiBenchError: there is no version, or it would replace the dataset.
        ResultsError: the file cannot be written.
    """
    kinds = list(dict.fromkeys(name.strip() for name in arguments.kinds.split(",")))
    for name in kinds:
        if name not in KINDS:
            raise UnknownNameError("kind", name, KINDS)
    dataset = load_dataset(arguments.dataset)
    out: Path = arguments.out
    if out.exists() and out.resolve() == Path(dataset.source.rpartition(":")[2]).resolve():
        raise PiiBenchError(f"{out} is the dataset itself: give another --out")
    made: list[Sample] = []
    cells: list[list[object]] = []
    for kind in counted(kinds, "kinds written", of=len(kinds)):
        found = versions(
            dataset.samples,
            kind,
            of=dataset.name,
            seed=arguments.seed,
            rate=arguments.rate,
            limit=arguments.limit,
        )
        made += found.samples
        cells.append([kind, len(found.samples), *(found.unfit.get(why, 0) for why in Unfit)])
    for fault in dataset.faults:
        tell(f"{arguments.dataset}: {fault}")
    if not made:
        raise PiiBenchError(f"{', '.join(kinds)}: nothing to change in {dataset.name}")
    write_native(out, made)
    if arguments.json:
        names = ("kind", "versions", "nothing_to_change", "breaks_a_rule")
        say_json([dict(zip(names, row, strict=True)) for row in cells])
        return True
    say(markdown_table(["Kind", "Versions", "Nothing to change", "Breaks a rule"], cells))
    say(f"\n{len(made)} samples: {out}")
    return True


COMMANDS: Final = {
    "data build": Command(_BUILD, _add_build, _build),
    "data check": Command(_CHECK, _add_check, _check),
    "data stats": Command(_STATS, _add_stats, _stats),
    "data quality": Command(_QUALITY, _add_quality, _quality),
    "data perturb": Command(_PERTURB, _add_perturb, _perturb),
}
