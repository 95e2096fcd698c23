"""`pii-bench mask`."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from tabulate import tabulate

from pii_bench.cli.options import SAMPLING, add_options, load_systems, ray_workers, system_options
from pii_bench.cli.terminal import (
    RunProgress,
    counted,
    echo_exactly,
    echo_json,
    log,
    standard_input,
)
from pii_bench.errors import PiiBenchError
from pii_bench.files import decode, encode, open_binary, read_text
from pii_bench.masking import absent_tags, inexact_tags, mask, unmask
from pii_bench.masking.mapping_file import check_target, read_mapping, write_mapping
from pii_bench.masking.tables import KINDS
from pii_bench.runs import corpora
from pii_bench.runs.corpora import TableRun
from pii_bench.runs.mask_text import (
    MaskingCounts,
    Rewriting,
    Traces,
    ask,
    find_in_query,
    mask_each,
    mask_each_on_ray,
    masking_systems,
    rewrite,
    rewrite_each,
    rewriting_system,
)
from pii_bench.runs.on_ray import import_ray
from pii_bench.scorer import normalise
from pii_bench.scorer.locate import Locator
from pii_bench.scorer.masked_text import Trace
from pii_bench.systems import BALANCED, DEFAULT_SYSTEM
from pii_bench.systems.base import UNKNOWN_RECIPIENT, close_all
from pii_bench.systems.catalog import SystemOptions, build_systems, is_prompted
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Awaitable, Mapping, Sequence

    from pii_bench.masking import Masked
    from pii_bench.runs.corpora import Corpus
    from pii_bench.runs.mask_text import Answers, OnFailure
    from pii_bench.systems.base import System

T = TypeVar("T")

STANDARD_INPUT: Final = Path("-")

_TRACES: Final = {
    Trace.READABLE: "as written",
    Trace.RESTATED: "in another form",
    Trace.PART: "in part",
}
_UNUSED: Final[Mapping[str, tuple[str, ...]]] = {
    "--unmask": (
        *("query", "model", "rewrite", "force", "explain", "json", "on_failure", "strategy"),
        *("label_map", "out", "column", "query_column", "engine", "workers", "keep"),
        *("max_tokens", "temperature", "output", "votes", "base_url", "timeout"),
    ),
    "--rewrite": ("mapping", "json", "on_failure", "label_map", "engine", "workers", "votes"),
    "one text": ("engine", "workers"),
    "a corpus": ("mapping", "explain", "json"),
}
"""The options that each mode of the command refuses, because it does not use them."""

_CORPUS: Final = (
    "Every *.txt file below a folder, or a column of a .jsonl, .csv or .parquet file. Run again "
    "to continue: files that exist are skipped; for a table, the complete rows in OUT.part are "
    "kept, an incomplete last line is cut off, and as many rows of the input are skipped. OUT.part "
    "becomes OUT at the end (for .parquet it holds the masked texts as JSON lines until then). "
    "Another column, query or system than in OUT.part.json is refused; for a folder, and that the "
    "input is the same, is not checked. At the first text on which the system fails, the run stops "
    "and names it."
)

_ONE_TEXT: Final = (
    "--out is for a corpus, a folder or a table; one text goes to standard output: > FILE"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command and its arguments."""
    parser.description = (
        "Replace the personal information in a text by tags such as <Phone Number>, except what a "
        "query needs. If the system fails, nothing is printed and the exit code is 2. With --out, "
        "mask a corpus: a folder of texts, or a column of a table. With --rewrite, a chat model "
        "rewrites the text instead."
    )
    parser.add_argument(
        "file",
        type=Path,
        nargs="?",
        default=STANDARD_INPUT,
        help="a UTF-8 text (default: -, standard input), or a corpus",
    )
    parser.add_argument("--query", help="the question about the text; it is not masked")
    parser.add_argument(
        "--model",
        default=DEFAULT_SYSTEM,
        metavar="SYSTEM",
        help="as for `pii-bench run`, except systems that use gold (default: %(default)s)",
    )
    parser.add_argument(
        "--rewrite",
        action="store_true",
        help="let the chat model of --model rewrite the text without what the query does not "
        f"need; {DEFAULT_SYSTEM} then looks for values that are left",
    )
    parser.add_argument(
        "--mapping",
        type=Path,
        metavar="FILE",
        help="write the values behind the tags to this file, which only you may read",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace the mapping file, or start a corpus over"
    )
    parser.add_argument(
        "--unmask",
        action="store_true",
        help="replace the tags in an answer by the values of --mapping",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="list on standard error each value that was found, and its tag",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a JSON object with `text` and `found` instead of the text",
    )
    parser.add_argument(
        "--on-failure",
        choices=("refuse", "mask-all"),
        default="refuse",
        help="if the system does not say what the query needs: print nothing, or mask all that "
        "was found (default: %(default)s)",
    )
    add_options(parser, "--local-only")
    parser.add_argument(
        "--strategy", help="a chat model's prompt for query-related PII (default: naive)"
    )
    add_options(parser, "--label-map")
    corpus = parser.add_argument_group("corpora", _CORPUS)
    corpus.add_argument(
        "--out", type=Path, help="a folder for a folder, a file with the same ending for a table"
    )
    corpus.add_argument("--column", metavar="NAME", help="the column of a table with the texts")
    corpus.add_argument(
        "--query-column",
        metavar="NAME",
        help="the column with the queries, instead of --query; not masked",
    )
    add_options(corpus, "--engine", "--workers")
    add_options(parser, "--keep")
    add_options(parser.add_argument_group("answers of chat models"), *SAMPLING)
    add_options(parser.add_argument_group("calls of chat models"), "--base-url", "--timeout")


def run(arguments: argparse.Namespace) -> bool:
    """Print a masked text, or with `--unmask` a restored answer; messages go to standard error.

    The text is printed only if every step succeeded. Return False if an answer has a tag whose
    number is not in the mapping.
    """
    if arguments.unmask:
        return _unmask(arguments)
    if arguments.rewrite:
        _refuse_unused("--rewrite", arguments)
    corpus_options = (arguments.out, arguments.column, arguments.query_column)
    if arguments.file.is_dir() or corpus_options != (None, None, None):
        _refuse_unused("a corpus", arguments)
        _mask_corpus(arguments)
        return True
    _refuse_unused("one text", arguments)
    if arguments.query is None:
        raise PiiBenchError("--query is missing: what will be asked about the text?")
    if arguments.rewrite:
        _rewrite(arguments)
    else:
        _mask(arguments)
    return True


def _mask(arguments: argparse.Namespace) -> None:
    query, mapping = arguments.query, arguments.mapping
    if mapping is not None:
        if mapping == STANDARD_INPUT:
            raise PiiBenchError("--mapping: a mapping is never printed; give it a file")
        check_target(mapping, force=arguments.force)
    elif arguments.force:
        raise PiiBenchError("--force replaces the file of --mapping: leave it out")
    systems = _load_masking_systems(arguments)
    text = _read(arguments.file)
    _log_recipients(systems)
    answers, in_query = asyncio.run(
        _closing(systems, _ask(text, query, systems, arguments.on_failure))
    )
    # Frees the weights: masking a long text takes memory too.
    del systems
    locator = Locator(text)
    masked = mask(text, answers.entities, answers.needed or (), locator=locator)
    if mapping is not None:
        write_mapping(mapping, masked.mapping, force=arguments.force)
    found = _found(locator, answers, masked)
    if arguments.json:
        echo_json({"text": masked.text, "found": found})
    else:
        echo_exactly(masked.text)
    counts = MaskingCounts()
    counts.add(locator, answers, masked)
    counts.add_query(in_query)
    _log_counts(counts)
    if arguments.explain:
        log(tabulate(found, headers="keys", disable_numparse=True))


async def _ask(
    text: str, query: str, systems: Sequence[System], on_failure: OnFailure
) -> tuple[Answers, frozenset[tuple[str, str]]]:
    """Return the answers about the text, and the values in the query."""
    answers = await ask(text, query, systems, on_failure=on_failure)
    return answers, await find_in_query(query, answers, systems)


def _found(locator: Locator, answers: Answers, masked: Masked) -> list[dict[str, str]]:
    """Return the type and text of each value in a text, with its tag if it is masked everywhere."""
    found = []
    for value, pii_type in dict.fromkeys(answers.entities):
        tags = [masked.tag_over(*span) for span in locator.spans(value)]
        if tags:
            becomes = "left readable" if None in tags else str(tags[0])
            found.append({"type": pii_type, "text": value, "becomes": becomes})
    return found


def _unmask(arguments: argparse.Namespace) -> bool:
    if arguments.mapping is None:
        raise PiiBenchError("--unmask needs the file of --mapping")
    _refuse_unused("--unmask", arguments)
    mapping = read_mapping(arguments.mapping)
    answer = _read(arguments.file)
    echo_exactly(unmask(answer, mapping))
    if absent := absent_tags(answer, mapping):
        _log(f"not in the text: {', '.join(absent)}")
    inexact = inexact_tags(answer, mapping)
    if inexact:
        _log(f"left as they are, because the mapping has other numbers: {', '.join(inexact)}")
    return not inexact


class _Rewriter:
    """Rewrites texts, and counts the values that the new texts still reveal."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        if arguments.strategy not in {None, Task.REWRITE}:
            raise PiiBenchError("--rewrite does not use --strategy: leave it out")
        if not is_prompted(arguments.model):
            raise PiiBenchError(
                f"system {arguments.model!r} writes no text: --rewrite needs a chat model, --model"
            )
        options = replace(system_options(arguments), strategy=str(Task.REWRITE), keep=None)
        self._rewriter = rewriting_system(
            load_systems(arguments.model, options, local_only=arguments.local_only)
        )
        self._checkers = masking_systems(
            build_systems(DEFAULT_SYSTEM, SystemOptions(keep=arguments.keep))
        )
        self.systems: Sequence[System] = (self._rewriter, *self._checkers)
        self._traces = Traces()

    async def rewrite(self, text: str, query: str) -> Rewriting:
        rewriting = await rewrite(text, query, self._rewriter, self._checkers)
        self._traces.add(rewriting)
        return rewriting

    def log_counts(self) -> None:
        traces = self._traces
        kinds = [
            f"{traces.revealed[trace]} {name}"
            for trace, name in _TRACES.items()
            if traces.revealed[trace]
        ]
        _log(
            f"of {traces.values} values that {DEFAULT_SYSTEM} finds and the query does not need, "
            f"the new text still reveals {traces.revealed.total()}{_by_type(traces.types)}"
            + (f": {', '.join(kinds)}" if kinds else "")
        )


def _rewrite(arguments: argparse.Namespace) -> None:
    if arguments.force:
        raise PiiBenchError("--force is for the output of a corpus: leave it out")
    rewriter = _Rewriter(arguments)
    text = _read(arguments.file)
    _log_recipients(rewriter.systems)
    rewriting = asyncio.run(_closing(rewriter.systems, rewriter.rewrite(text, arguments.query)))
    echo_exactly(rewriting.text + "\n")
    rewriter.log_counts()
    if arguments.explain:
        types = {normalise(value): pii_type for value, pii_type in rewriting.found.entities}
        rows = [
            (
                types[value.text.text],
                value.text.text,
                "yes" if value.text.needed else "",
                _TRACES.get(value.trace, "gone"),
            )
            for value in rewriting.traces
        ]
        headers = ("type", "text", "needed", "in the new text")
        log(tabulate(rows, headers=headers, disable_numparse=True))


def _mask_corpus(arguments: argparse.Namespace) -> None:
    _check_corpus_arguments(arguments)
    rewriter = _Rewriter(arguments) if arguments.rewrite else None
    systems = rewriter.systems if rewriter else _load_masking_systems(arguments)
    # Before OUT.part exists: where it does, a later run replaces an existing OUT without --force.
    workers = ray_workers(arguments, systems)
    if workers is not None:
        import_ray()
    corpus = _open_corpus(arguments)
    _log_recipients(systems)
    if rewriter is not None:
        mask_texts = partial(rewrite_each, systems, rewriter.rewrite)
    elif workers is None:
        mask_texts = partial(mask_each, systems, arguments.on_failure)
    else:
        options = system_options(arguments)
        mask_texts = partial(
            mask_each_on_ray, arguments.model, options, arguments.on_failure, workers
        )
    with RunProgress() as progress:
        counts = corpora.mask_corpus(corpus, arguments.query, mask_texts, progress)
    before = f", {corpus.done} of them masked before and not counted here" if corpus.done else ""
    _log(f"texts: {corpus.total}{before}")
    if rewriter is None:
        texts = corpus.total - corpus.done
        _log_counts(counts, texts=texts, queries=arguments.query is None)
    else:
        rewriter.log_counts()


def _check_corpus_arguments(arguments: argparse.Namespace) -> None:
    if arguments.file == STANDARD_INPUT:
        if arguments.column is None and arguments.query_column is None:
            raise PiiBenchError(_ONE_TEXT)
        raise PiiBenchError("a corpus is a folder or a table, not standard input: name it")
    if arguments.out is None:
        raise PiiBenchError("--out is missing: where do the masked texts go?")
    if (arguments.query is None) == (arguments.query_column is None):
        raise PiiBenchError("what will be asked about the texts? Give --query or --query-column")
    if arguments.query is not None and not arguments.query.strip():
        raise PiiBenchError("the query is blank: what will be asked about the texts?")


def _open_corpus(arguments: argparse.Namespace) -> Corpus:
    path, out, force = arguments.file, arguments.out, arguments.force
    if path.is_dir():
        if arguments.column is not None or arguments.query_column is not None:
            raise PiiBenchError(f"{path}: a folder has no columns; it takes --query and --out")
        return corpora.corpus_of_folder(path, out, force=force)
    if arguments.column is None:
        # A path that cannot be read is the first thing to report.
        open_binary(path).close()
        if path.suffix.lower() not in KINDS:
            raise PiiBenchError(_ONE_TEXT)
        raise PiiBenchError(f"--column is missing: which column of {path} holds the texts?")
    if arguments.column == arguments.query_column:
        raise PiiBenchError("--query-column is the column of the texts, which are masked")
    query = arguments.query
    run = TableRun(
        column=arguments.column,
        query_column=arguments.query_column,
        query_sha256=None if query is None else hashlib.sha256(encode(query)).hexdigest(),
        system=arguments.model,
        keep=arguments.keep or BALANCED,
        rewrite=arguments.rewrite,
        strategy=arguments.strategy,
        label_map=None if arguments.label_map is None else str(arguments.label_map),
    )
    return corpora.corpus_of_table(path, out, run, force=force)


def _load_masking_systems(arguments: argparse.Namespace) -> Sequence[System]:
    options = system_options(arguments)
    return masking_systems(load_systems(arguments.model, options, local_only=arguments.local_only))


def _refuse_unused(mode: str, arguments: argparse.Namespace) -> None:
    """Raise an error for the first option that a mode does not use and that is not its default."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for option in _UNUSED[mode]:
        if getattr(arguments, option) != parser.get_default(option):
            name = option.replace("_", "-")
            raise PiiBenchError(f"{mode} does not use --{name}: leave it out")


def _read(path: Path) -> str:
    if path == STANDARD_INPUT:
        return decode(standard_input().buffer.read(), "standard input")
    return read_text(path)


async def _closing(systems: Sequence[System], work: Awaitable[T]) -> T:
    """Return the result of the work, and close the systems."""
    try:
        return await work
    finally:
        await close_all(systems)


def _log_recipients(systems: Sequence[System]) -> None:
    for recipient in sorted({system.card.unmasked_text_to for system in systems}):
        unknown = " (the system does not declare it)" if recipient == UNKNOWN_RECIPIENT else ""
        _log(f"the unmasked text goes to: {recipient}{unknown}")


def _log_counts(counts: MaskingCounts, *, texts: int = 1, queries: bool = False) -> None:
    """Log what is masked and what is readable: counts by type only, no part of a text.

    `queries` is True if each text has a query of its own.
    """
    values = counted(counts.masked.total(), "value")
    places = counted(counts.places, "place")
    _log(f"masked: {values} at {places}{_by_type(counts.masked)}")
    if counts.readable.total():
        _log(f"left readable because the query needs it{_by_type(counts.readable)}")
    if counts.inside.total():
        _log(f"left readable inside a value that the query needs{_by_type(counts.inside)}")
    undecided = "the system did not say what the query needs: everything that was found"
    if counts.undecided and texts == 1:
        _log(f"{undecided} is masked")
    elif counts.undecided:
        _log(f"for {counts.undecided} of {texts} texts {undecided} in them is masked")
    if counts.not_found:
        _log(f"named by the system, but not found in the text: {counts.not_found}")
    if total := counts.in_query.total():
        whole = f"{counted(total, 'value')}{_by_type(counts.in_query)}"
        if queries:
            _log(f"the queries themselves contain {whole}: they are not masked")
        else:
            _log(f"the query itself contains {whole}: it is not masked")


def _by_type(counts: Counter[str]) -> str:
    listed = ", ".join(f"{pii_type} {count}" for pii_type, count in sorted((+counts).items()))
    return f" ({listed})" if listed else ""


def _log(line: str) -> None:
    log(f"pii-bench mask: {line}")
