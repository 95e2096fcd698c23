"""`pii-bench mask`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from tabulate import tabulate

from pii_bench.cli import mask_corpus
from pii_bench.cli.options import (
    add_endpoint,
    add_engine,
    add_keep,
    add_label_map,
    add_local_only,
    add_sampling,
    load_systems,
    ray_workers,
    system_options,
)
from pii_bench.cli.terminal import RunProgress, echo_exactly, echo_json, log
from pii_bench.errors import PiiBenchError
from pii_bench.files import decode, read_text
from pii_bench.masking import absent_tags, inexact_tags, mask, unmask
from pii_bench.masking.mapping_file import check_target, read_mapping, write_mapping
from pii_bench.runs import corpora
from pii_bench.runs.mask_text import (
    Counts,
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
from pii_bench.scorer import normalise
from pii_bench.scorer.masked_text import Trace
from pii_bench.systems import DEFAULT_SYSTEM
from pii_bench.systems.base import UNKNOWN_RECIPIENT, require_local
from pii_bench.systems.catalog import SystemOptions, build_systems, is_prompted
from pii_bench.tasks import Task

if TYPE_CHECKING:
    import argparse
    from collections import Counter
    from collections.abc import Awaitable, Sequence

    from pii_bench.masking import Masked
    from pii_bench.runs.mask_text import Answers
    from pii_bench.systems.base import System

T = TypeVar("T")

STANDARD_INPUT: Final = Path("-")

_TRACES: Final = {
    Trace.READABLE: "as written",
    Trace.RESTATED: "in another form",
    Trace.PART: "in part",
}


DESCRIPTION: Final = (
    "Replace in a text all personal information that a query does not need by tags such as "
    "<Phone Number>. Where the system fails nothing is printed, and the exit code is 2. With "
    "--out a corpus is masked: a folder of texts, or a column of a table. With --rewrite a chat "
    "model writes the text anew instead."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "file",
        type=Path,
        nargs="?",
        default=STANDARD_INPUT,
        help="UTF-8 text (default: -, stdin), or a corpus",
    )
    parser.add_argument("--query", help="what will be asked about the text; it is not masked")
    parser.add_argument(
        "--model",
        default=DEFAULT_SYSTEM,
        metavar="SYSTEM",
        help="any that `pii-bench run` takes and that is not told gold (default: %(default)s)",
    )
    parser.add_argument(
        "--rewrite",
        action="store_true",
        help="let the chat model of --model write the text anew, without what the query does not "
        f"need; {DEFAULT_SYSTEM} looks for what is left",
    )
    parser.add_argument(
        "--mapping",
        type=Path,
        metavar="FILE",
        help="write what the tags stand for to this file, which only you may read",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace the mapping file, or begin a corpus anew"
    )
    parser.add_argument(
        "--unmask",
        action="store_true",
        help="put back into an answer what the tags of --mapping stand for",
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="list on standard error each text that was found, and what became of it",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object instead of the text: `text`, and what was `found`",
    )
    parser.add_argument(
        "--on-failure",
        choices=("refuse", "mask-all"),
        default="refuse",
        help="if the system does not tell what the query needs: print nothing, or mask all that "
        "was found (default: %(default)s)",
    )
    add_local_only(parser)
    parser.add_argument(
        "--strategy", help="a chat model's prompt for query-related PII (default: naive)"
    )
    add_label_map(parser)
    corpus = parser.add_argument_group("a corpus", mask_corpus.DESCRIPTION)
    mask_corpus.add_arguments(corpus)
    add_engine(corpus)
    add_keep(parser)
    add_sampling(parser.add_argument_group("what a chat model is asked"))
    add_endpoint(parser.add_argument_group("how it is called"))


def run(arguments: argparse.Namespace) -> bool:
    """Print a text with tags, or with `--unmask` an answer without them; all else to stderr.

    Nothing is printed unless all went well: a text that could not be masked never passes.

    Returns:
        Whether no tag of an answer was left that is written otherwise than in the mapping.

    Raises:
        PiiBenchError: wrong arguments or input, or the system gave no usable answer.
    """
    if arguments.unmask:
        return _unmask(arguments)
    if mask_corpus.is_meant(arguments):
        return _mask_corpus(arguments)
    if arguments.query is None:
        raise PiiBenchError("--query is missing: what will be asked about the text?")
    return _rewrite(arguments) if arguments.rewrite else _mask(arguments)


def _mask_corpus(arguments: argparse.Namespace) -> bool:
    mask_corpus.check(arguments)
    rewriter = _Rewriter(arguments) if arguments.rewrite else None
    systems = rewriter.systems if rewriter else _systems(arguments)
    corpus = mask_corpus.prepare(arguments)
    _tell_recipients(systems)
    workers = ray_workers(arguments, systems)
    if rewriter is not None:
        maskings = partial(rewrite_each, systems, rewriter.rewriting)
    elif workers is None:
        maskings = partial(mask_each, systems, arguments.on_failure)
    else:
        asked = arguments.model, system_options(arguments), arguments.on_failure, workers
        maskings = partial(mask_each_on_ray, *asked)
    with RunProgress() as progress:
        counts = corpora.mask_corpus(corpus, arguments.query, maskings, progress)
    before = f", {corpus.done} of them before, which are not counted here" if corpus.done else ""
    _say(f"texts: {corpus.total}{before}")
    if rewriter is None:
        _tell(counts)
    else:
        rewriter.tell_counts()
    return True


class _Rewriter:
    """Lets texts be written anew, and counts what is left."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        _refuse_for_rewriting(arguments)
        options = replace(system_options(arguments), strategy=str(Task.REWRITE), keep=None)
        if not is_prompted(arguments.model):
            raise PiiBenchError(
                f"system {arguments.model!r} writes no text: --rewrite needs a chat model, --model"
            )
        self._rewriter = rewriting_system(build_systems(arguments.model, options))
        self._checkers = masking_systems(
            build_systems(DEFAULT_SYSTEM, SystemOptions(keep=arguments.keep))
        )
        self.systems: Sequence[System] = (self._rewriter, *self._checkers)
        self._traces = Traces()
        if arguments.local_only:
            require_local(self.systems)

    async def rewriting(self, text: str, query: str) -> Rewriting:
        made = await rewrite(text, query, self._rewriter, self._checkers)
        self._traces.add(made)
        return made

    def tell_counts(self) -> None:
        traces = self._traces
        left = traces.told.total()
        how = ", ".join(
            f"{traces.told[trace]} {name}" for trace, name in _TRACES.items() if traces.told[trace]
        )
        _say(
            f"of {traces.values} values that {DEFAULT_SYSTEM} finds and the query does not need, "
            f"{left} can still be told{_by_type(traces.types)}{f': {how}' if how else ''}"
        )


def _refuse_for_rewriting(arguments: argparse.Namespace) -> None:
    given = {
        "engine": None if arguments.engine == "process" else arguments.engine,
        "mapping": arguments.mapping,
        "label-map": arguments.label_map,
        "votes": arguments.votes,
        "strategy": None if arguments.strategy == Task.REWRITE else arguments.strategy,
        "on-failure": None if arguments.on_failure == "refuse" else arguments.on_failure,
    }
    for option, value in given.items():
        if value is not None:
            raise PiiBenchError(f"--rewrite has no use for --{option}: leave it out")


def _rewrite(arguments: argparse.Namespace) -> bool:
    if arguments.force:
        raise PiiBenchError("--force is about the output of a corpus: leave it out")
    work = _Rewriter(arguments)
    text = _read(arguments.file)
    _tell_recipients(work.systems)

    rewriting = asyncio.run(_closing(work.systems, work.rewriting(text, arguments.query)))
    echo_exactly(rewriting.text + "\n")
    work.tell_counts()
    if arguments.explain:
        types = {normalise(value): pii_type for value, pii_type in rewriting.found.entities}
        rows = [
            (types[each.text.text], each.text.text, "yes" if each.text.needed else "", told)
            for each in rewriting.told
            for told in [_TRACES.get(each.trace, "gone")]
        ]
        headers = ("type", "text", "needed", "in the new text")
        log(tabulate(rows, headers=headers, disable_numparse=True))
    return True


def _mask(arguments: argparse.Namespace) -> bool:
    query, mapping = arguments.query, arguments.mapping
    if mapping is not None:
        if mapping == STANDARD_INPUT:
            raise PiiBenchError("--mapping: a mapping is never printed; give it a file")
        check_target(mapping, force=arguments.force)
    elif arguments.force:
        raise PiiBenchError("--force is about the file of --mapping: leave it out")
    if arguments.engine != "process":
        raise PiiBenchError("--engine ray is for a corpus, not for one text")
    systems = _systems(arguments)
    text = _read(arguments.file)
    _tell_recipients(systems)
    asking = _ask(text, systems, arguments)
    answers, in_query = asyncio.run(_closing(systems, asking))
    # Weights make room for what finds the answers in a long text.
    del systems
    masked = mask(text, answers.entities, answers.needed or ())
    if mapping is not None:
        write_mapping(mapping, masked.mapping, force=arguments.force)
    if arguments.json:
        echo_json({"text": masked.text, "found": _found(answers, masked)})
    else:
        echo_exactly(masked.text)
    counts = Counts()
    counts.add(answers, masked, query, in_query)
    _tell(counts)
    if arguments.explain:
        log(tabulate(_found(answers, masked), headers="keys", disable_numparse=True))
    return True


def _unmask(arguments: argparse.Namespace) -> bool:
    if arguments.mapping is None:
        raise PiiBenchError("--unmask needs the file of --mapping")
    for option in ("query", "force", "json", "rewrite", *mask_corpus.OPTIONS):
        if getattr(arguments, option) not in (None, False):
            name = option.replace("_", "-")
            raise PiiBenchError(f"--unmask has no use for --{name}: leave it out")
    mapping = read_mapping(arguments.mapping)
    answer = _read(arguments.file)
    echo_exactly(unmask(answer, mapping))
    if absent := absent_tags(answer, mapping):
        _say(f"not in the text: {', '.join(absent)}")
    if inexact := inexact_tags(answer, mapping):
        _say(f"left as they are, for the mapping has other numbers: {', '.join(inexact)}")
    return not inexact


def _systems(arguments: argparse.Namespace) -> Sequence[System]:
    options, local_only = system_options(arguments), arguments.local_only
    return masking_systems(load_systems(arguments.model, options, local_only=local_only))


def _read(path: Path) -> str:
    if path == STANDARD_INPUT:
        return decode(sys.stdin.buffer.read(), "standard input")
    return read_text(path)


async def _ask(
    text: str, systems: Sequence[System], arguments: argparse.Namespace
) -> tuple[Answers, tuple[tuple[str, str], ...]]:
    """What a system says of the text, and what it finds in the query itself."""
    query = arguments.query
    answers = await ask(text, query, systems, on_failure=arguments.on_failure)
    return answers, await find_in_query(query, systems)


async def _closing(systems: Sequence[System], work: Awaitable[T]) -> T:
    """Do some work, and close the systems that it asks."""
    try:
        return await work
    finally:
        for system in systems:
            await system.close()


def _tell_recipients(systems: Sequence[System]) -> None:
    for recipient in sorted({system.card.unmasked_text_to for system in systems}):
        does_not_say = " (the system does not say)" if recipient == UNKNOWN_RECIPIENT else ""
        _say(f"the unmasked text goes to: {recipient}{does_not_say}")


def _tell(counts: Counts) -> None:
    """Counts alone, by type: what is masked, and what is not."""
    _say(f"masked: {counts.values} values at {counts.places} places{_by_type(counts.masked)}")
    if counts.readable.total():
        _say(f"left readable, for the query needs it{_by_type(counts.readable)}")
    if counts.undecided:
        _say("what the query needs was not told: everything that was found is masked")
    if counts.not_found:
        _say(f"named by the system, but not found in the text: {counts.not_found}")
    if held := counts.in_query.total():
        values = "1 value" if held == 1 else f"{held} values"
        _say(f"the query itself holds {values}{_by_type(counts.in_query)}: it is not masked")


def _found(answers: Answers, masked: Masked) -> list[dict[str, str]]:
    """What was found: type, text, and its tag or that it is left readable."""
    tags = {normalise(text): tag for tag, texts in masked.mapping.items() for text in texts}
    return [
        {"type": pii_type, "text": text, "becomes": tags.get(normalise(text), "left readable")}
        for text, pii_type in dict.fromkeys(answers.entities)
        if text not in masked.not_found
    ]


def _by_type(counts: Counter[str]) -> str:
    listed = ", ".join(f"{pii_type} {count}" for pii_type, count in sorted((+counts).items()))
    return f" ({listed})" if listed else ""


def _say(line: str) -> None:
    log(f"pii-bench mask: {line}")
