"""Options that several commands take."""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlencode

from pii_bench.errors import PiiBenchError
from pii_bench.models.calls import MOST_CALLS
from pii_bench.systems import KEEP
from pii_bench.systems.base import THIS_MACHINE
from pii_bench.tasks import ALL_TASKS, TASK_CHOICES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pii_bench.systems.base import System
    from pii_bench.systems.catalog import SystemOptions

DATASET_HELP: Final = (
    "a dataset's name, the path of a file, or FORMAT:PATH (capid, tab, ai4privacy...)"
)
WRITTEN_SETS: Final = (
    *("single", "multi", "train-single", "train-multi", "dev-single", "dev-multi"),
    *("twins", "train-twins", "train-other", "distract", "frontier"),
)


class Given(argparse.Action):
    """Stores a value, and in `given` the names of the options that the user wrote.

    What `ALONE` names is refused next to `--config`, whose file says it.
    """

    ALONE: Final = frozenset({"model", "strategy", "dataset", "limit"})

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        _: str | None = None,
    ) -> None:
        """Store the value, and note the option."""
        setattr(namespace, self.dest, values)
        given = namespace.given = {*getattr(namespace, "given", ()), self.dest}
        if "config" in given and (both := given & self.ALONE):
            named = ", ".join(f"--{name}" for name in sorted(both))
            parser.error(f"argument --config: not allowed with argument {named}")


def add_calls(parser: argparse._ActionsContainer) -> None:
    """How chat models are called."""
    parser.add_argument(
        "--concurrency",
        type=_calls,
        metavar="N",
        help=f"calls at a time, at most {MOST_CALLS} (default: 8; local: 1)",
    )
    add_endpoint(parser)


def add_endpoint(parser: argparse._ActionsContainer) -> None:
    """Where a chat model is reached."""
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="another server that speaks the provider's protocol (openai/NAME: vLLM, Ollama, "
        "llama.cpp); its key, if any, in PII_BENCH_API_KEY",
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        default=120,
        metavar="SECONDS",
        help="for one attempt of a call (default: %(default)s)",
    )


def add_results(parser: argparse.ArgumentParser, *, stored: bool = False) -> None:
    """Where results go; with `stored` a folder that must be there."""
    parser.add_argument(
        "--results",
        type=_folder if stored else Path,
        default=Path("results"),
        metavar="DIR",
        help="folder of runs and leaderboard (default: %(default)s)",
    )


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no folder; `pii-bench run` makes one")
    return path


def add_json(parser: argparse._ActionsContainer) -> None:
    """Rows for a program to read."""
    parser.add_argument(
        "--json", action="store_true", help="print the rows as a JSON array instead of tables"
    )


def add_gzip(parser: argparse.ArgumentParser) -> None:
    """Smaller files."""
    parser.add_argument(
        "--gzip", action="store_true", help="compress the samples (.gz); `gunzip` restores them"
    )


def add_data_folder(parser: argparse.ArgumentParser) -> None:
    """Where the sets are."""
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="folder of the sets and their cards (default: %(default)s)",
    )


def add_keep(parser: argparse.ArgumentParser) -> None:
    """How much the encoder leaves readable."""
    parser.add_argument(
        "--keep",
        choices=KEEP,
        help="encoder: mask more, or leave more readable (default: balanced)",
    )


def add_limit(parser: argparse.ArgumentParser, of: str = "samples of each dataset") -> None:
    """How many."""
    parser.add_argument("--limit", type=positive, metavar="N", help=f"only the first N {of}")


def add_max_usd(parser: argparse._ActionsContainer, what: str) -> None:
    """What may be spent."""
    parser.add_argument("--max-usd", type=usd, metavar="USD", help=what)


def add_local_only(parser: argparse.ArgumentParser, what: str) -> None:
    """Who may read the texts."""
    parser.add_argument(
        "--local-only", action="store_true", help=f"refuse a {what} another machine"
    )


def add_label_map(parser: argparse.ArgumentParser) -> None:
    """What a detector's labels mean."""
    parser.add_argument(
        "--label-map",
        type=Path,
        metavar="FILE",
        help="JSON of a detector's labels to our types, instead of its own",
    )


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """One dataset, or all."""
    parser.add_argument("--dataset", default="all", help=f"all (the default), {DATASET_HELP}")


def add_filters(parser: argparse._ActionsContainer) -> None:
    """Which rows of a dataset of spans."""
    parser.add_argument(
        "--language", metavar="CODE", help="only the rows in one language, of ai4privacy:PATH..."
    )
    parser.add_argument("--split", metavar="NAME", help="only the rows of one split, likewise")


def filtered(arguments: argparse.Namespace) -> str:
    """The dataset asked for, with the filters.

    Raises:
        PiiBenchError: it takes none.
    """
    given = {key: value for key in ("language", "split") if (value := getattr(arguments, key))}
    source: str = arguments.dataset
    if not given:
        return source
    from pii_bench.datasets.span_files import SPAN_FORMATS

    if source.partition(":")[0] not in SPAN_FORMATS or "#" in source:
        named = " and ".join(f"--{key}" for key in given)
        raise PiiBenchError(f"dataset {source!r} takes no {named}: {', '.join(SPAN_FORMATS)} do")
    return f"{source}#{urlencode(given)}"


def add_task(parser: argparse.ArgumentParser) -> None:
    """One task, or all."""
    parser.add_argument(
        "--task", default=ALL_TASKS, choices=TASK_CHOICES, help="default: %(default)s"
    )


def positive(text: str) -> int:
    """A whole number from 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, not {text!r}")
    return number


def _calls(text: str) -> int:
    number = positive(text)
    if number > MOST_CALLS:
        raise argparse.ArgumentTypeError(f"must be at most {MOST_CALLS}, not {text!r}")
    return number


def number(what: str, fits: Callable[[float], bool]) -> Callable[[str], float]:
    """What reads a finite number that fits; another is told to be none of `what`."""

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not (math.isfinite(found) and fits(found)):
            raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}")
        return found

    return read


usd: Final = number("a sum above 0 in USD", lambda found: found > 0)
amount: Final = number("a number from 0", lambda found: found >= 0)
share: Final = number("a number above 0 and at most 1", lambda found: 0 < found <= 1)
weight: Final = number("a number from 0 to 1", lambda found: 0 <= found <= 1)
_degree: Final = number("`default` or a number from 0 to 2", lambda found: 0 <= found <= 2)


def _temperature(text: str) -> float | Literal["default"]:
    return "default" if text == "default" else _degree(text)


def add_sampling(group: argparse._ArgumentGroup) -> None:
    """What a chat model is asked."""
    group.add_argument(
        "--max-tokens",
        type=positive,
        metavar="N",
        help="longest answer, reasoning included (default: 2048; a model that reasons: 16384; "
        "local: 512)",
    )
    group.add_argument(
        "--temperature",
        type=_temperature,
        metavar="T",
        help="`default` to send none, as some models want (default: 0; of a vote: 0.7)",
    )
    group.add_argument(
        "--output",
        choices=("text", "schema"),
        default="text",
        help="let the provider enforce a JSON schema; a condition of its own (%(default)s)",
    )
    group.add_argument(
        "--votes", type=positive, metavar="K", help="draws of self-consistency-vote (default: 5)"
    )


def add_labelled(group: argparse._ArgumentGroup) -> None:
    """What the strategy `json` asks."""
    group.add_argument(
        "--taxonomy",
        metavar="NAME",
        help="whose labels it asks for: paper (the seven types, the default), ai4privacy, datafog, "
        "nemotron, presidio, spacy...",
    )
    group.add_argument("--shots", type=positive, metavar="N", help="examples shown (default: none)")
    group.add_argument(
        "--shots-from",
        dest="shots_source",
        metavar="DATASET",
        help="whose train split they come from: train-single (the default), train-multi, or "
        "ai4privacy:PATH...",
    )
    group.add_argument(
        "--shots-by",
        choices=("seed", "similarity"),
        help="the same ones for every text (the default), or those most like it",
    )
    group.add_argument("--shots-seed", type=int, metavar="SEED", help="of their draw (default: 0)")
    group.add_argument(
        "--chunk",
        type=positive,
        metavar="CHARACTERS",
        help="ask about longer texts in pieces (default: whole texts)",
    )


def system_options(arguments: argparse.Namespace) -> SystemOptions:
    """What `run` and `mask` both ask of a system."""
    from pii_bench.models.catalog import ModelOptions
    from pii_bench.systems.catalog import SystemOptions

    return SystemOptions(
        strategy=arguments.strategy,
        max_tokens=arguments.max_tokens,
        temperature=arguments.temperature,
        output=arguments.output,
        votes=arguments.votes,
        model=ModelOptions(base_url=arguments.base_url, timeout=float(arguments.timeout)),
        label_map=arguments.label_map,
        keep=arguments.keep,
    )


def built(name: str, options: SystemOptions, *, local_only: bool) -> tuple[System, ...]:
    """The systems of a name; with `local_only` one that is elsewhere is refused.

    Raises:
        PiiBenchError: it is elsewhere, told before it asks for a key; or as `build_systems`.
    """
    from pii_bench.models.catalog import PROVIDERS, resolve
    from pii_bench.systems.base import require_local
    from pii_bench.systems.catalog import build_systems

    if local_only and resolve(name).partition("/")[0] in PROVIDERS:
        unasked = replace(options, model=replace(options.model, asked=False))
        require_local(build_systems(name, unasked))
    systems = tuple(build_systems(name, options))
    if local_only:
        require_local(systems)
    return systems


def add_reader(parser: argparse.ArgumentParser) -> None:
    """Which reader."""
    parser.add_argument(
        "--reader",
        choices=("a", "b", "c"),
        required=True,
        help="a or b: every version is read by both; c: reads samples of the finished set",
    )


def calls_at_a_time(arguments: argparse.Namespace, model: str | None) -> int:
    """As asked for by `--concurrency`; else 8, and 1 of a local model, which has one processor."""
    from pii_bench.models.catalog import LOCAL, resolve

    local = model is not None and resolve(model).startswith(f"{LOCAL}/")
    return arguments.concurrency or (1 if local else 8)


def add_engine(parser: argparse._ActionsContainer) -> None:
    """Where a local system works."""
    parser.add_argument(
        "--engine",
        choices=("process", "ray"),
        default="process",
        help="process: this one; ray: a Ray cluster, that of RAY_ADDRESS or one of this machine, "
        "with a copy of the system in each worker (default: %(default)s)",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="of --engine ray (default: the processors of this machine)",
    )


def ray_workers(arguments: argparse.Namespace, systems: Iterable[System]) -> int | None:
    """How many processes of Ray work; None where this one does.

    Raises:
        PiiBenchError: `--workers` without Ray, or a system that calls another machine.
    """
    if arguments.engine == "process":
        if arguments.workers is not None:
            raise PiiBenchError("--workers is for --engine ray")
        return None
    for system in systems:
        if system.card.unmasked_text_to != THIS_MACHINE:
            raise PiiBenchError(
                f"--engine ray is for systems of this machine, not for {system.card.model!r}, "
                f"which sends texts to {system.card.unmasked_text_to}: use --concurrency"
            )
    workers: int | None = arguments.workers
    return workers or os.cpu_count() or 1
