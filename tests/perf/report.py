"""What was measured, as Markdown."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import statistics
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tabulate import tabulate

import pii_bench
from tests.perf.contestants import BARE, CONTESTANTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.perf.contestants import Bench, Contestant
    from tests.perf.process import Cost

_PEERS: Final = ("inspect-ai", "lm-eval", "nervaluate", "openai", "rouge-score", "uvloop")
_VERSIONS: Final = (
    "import json, sys; from importlib.metadata import version; "
    "print(json.dumps([version(name) for name in sys.argv[1:]]))"
)

_TEXT: Final = """\
# Speed

What `make perf` measured on {date}; the command writes this file.

## Calls

{requests} requests, the same for all, to a server on this machine that answers each after
100 ms. The wait alone is {waits}.
Whole processes, start-up and exit included, started in turn after one run each that does not
count; medians of {runs} runs. `x` is the ratio to the first row. The server counted {requests}
answers in each run.

{calls}
{absent}
## Memory

Largest resident memory of `pii-bench run`, {first} calls at a time:

{memory}

## Scorer

Both score the same cases, each in its own process, without start-up; medians of five
repetitions. RougeL is of pairs of ASCII texts (what rouge-score knows); `found` is the mean
F-measure. Detection is of the entities of all samples of `single` under faulty predictions;
`found` is the F1 over all entities, of equal text and type for pii_bench, of equal position and
type for nervaluate. In addition pii_bench matches subjects and computes three more scores of
texts; nervaluate computes three more of positions, and all four for each type.

{scorers}

## Where

{machine}

The load of the machine just before was {load:.1f}. `make perf` installs the other tools into
`build/perf-venv`; `make perf-promptfoo` before it adds promptfoo (npm, 1.5 GB).
"""


@dataclass(frozen=True, slots=True)
class Judged:
    """One kind of cases, judged by us and by a peer.

    Attributes:
        ours, theirs: median seconds over all cases, and the mean or F1 that came out.
    """

    what: str
    cases: int
    peer: str
    ours: tuple[float, float]
    theirs: tuple[float, float]


def render(
    bench: Bench,
    contestants: Sequence[Contestant],
    costs: Mapping[tuple[str, int], list[Cost]],
    memory: Mapping[int, float],
    judged: Sequence[Judged],
    *,
    load: float,
) -> str:
    """The report: costs by contestant's name and calls at a time, MiB by number of samples."""
    requests = max(memory)
    concurrencies = sorted({concurrency for _, concurrency in costs})
    waits = " and ".join(f"{requests / each / 10:.1f} s at {each}" for each in concurrencies)
    absent = [each.name for each in CONTESTANTS if each not in contestants]
    return _TEXT.format(
        date=dt.datetime.now(dt.UTC).date(),
        requests=f"{requests:,}",
        waits=waits,
        runs=min(len(each) for each in costs.values()),
        calls=_calls(contestants, costs, concurrencies),
        absent=f"\nNot installed here, so left out: {', '.join(absent)}.\n" if absent else "",
        first=concurrencies[0],
        memory=_table(
            ("samples", "peak MiB"), [(f"{each:,}", f"{peak:.1f}") for each, peak in memory.items()]
        ),
        scorers=_scorers(judged),
        machine=_machine(bench),
        load=load,
    )


def _calls(
    contestants: Sequence[Contestant],
    costs: Mapping[tuple[str, int], list[Cost]],
    concurrencies: Sequence[int],
) -> str:
    header = ["program", "stores"]
    rows = [[contestant.name, contestant.keeps] for contestant in contestants]
    for concurrency in concurrencies:
        header += [f"{concurrency} at a time: s", "x", "of CPU: s"]
        bare = statistics.median(cost.wall for cost in costs[BARE.name, concurrency])
        for contestant, row in zip(contestants, rows, strict=True):
            own = costs[contestant.name, concurrency]
            wall = statistics.median(cost.wall for cost in own)
            cpu = statistics.median(cost.cpu for cost in own)
            row += [f"{wall:.2f}", f"{wall / bare:.2f}", f"{cpu:.2f}"]
    return _table(header, rows)


def _scorers(judged: Sequence[Judged]) -> str:
    header = ("what", "cases", "pii_bench: s", "found", "other tool", "s", "found", "times as fast")
    rows = []
    for each in judged:
        (own, own_found), (seconds, found) = each.ours, each.theirs
        rows.append(
            (
                *(each.what, f"{each.cases:,}", f"{own:.3f}", f"{own_found:.4f}", each.peer),
                *(f"{seconds:.3f}", f"{found:.4f}", f"{seconds / own:.1f}"),
            )
        )
    return _table(header, rows)


def _machine(bench: Bench) -> str:
    done = subprocess.run(  # noqa: S603 - our own code
        [bench.peers, "-c", _VERSIONS, *_PEERS], stdout=subprocess.PIPE, check=True
    )
    versions = dict(zip(_PEERS, json.loads(done.stdout), strict=True))
    package = bench.node_modules / "promptfoo" / "package.json"
    if package.exists():
        versions["promptfoo"] = json.loads(package.read_text(encoding="utf-8"))["version"]
    peers = ", ".join(f"{name} {each}" for name, each in versions.items())
    own = ", ".join(f"{name} {version(name)}" for name in ("openai", "aiohttp", "rapidfuzz"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    return (
        f"- {_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB; {system}\n"
        f"- pii_bench {pii_bench.__version__} and the bare loop: {own}\n"
        f"- other tools: {peers}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return tabulate(rows, headers=header, tablefmt="pipe", disable_numparse=True)
