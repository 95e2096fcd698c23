"""`python -m tests.perf.web` measures the web application under load and writes a report.

Nothing here is a test: how fast a machine is can be told, not asserted. The server is a process of
its own, as people start it; all texts differ, so that nothing is remembered.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx2

from pii_bench.datasets.catalog import load_dataset
from pii_bench.runs.mask_text import ask
from pii_bench.systems import ENCODER
from pii_bench.systems.catalog import SystemOptions, build_systems
from pii_bench.web.settings import Settings
from tests.web.chromium import serving
from tests.web.savers import lost, save_together, study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REPOSITORY: Final = Path(__file__).resolve().parents[2]
USERS: Final = 50
PROCESSES: Final = Settings().workers
CHARACTERS: Final = 500
PAUSES: Final = (8.0, 3.0)
"""Mean seconds between a user's requests: reading a result takes longer."""

SAVES: Final = 20


@dataclass(frozen=True, slots=True)
class Measured:
    """Times of the requests of one condition, in seconds, and of all together."""

    name: str
    times: Sequence[float]
    wall: float

    @property
    def row(self) -> str:
        """As a row of the report's table."""
        p95 = statistics.quantiles(self.times, n=20, method="inclusive")[-1]
        seconds = (statistics.median(self.times), p95, max(self.times))
        told = " | ".join(f"{each:.2f}" for each in seconds)
        return f"| {self.name} | {len(self.times)} | {told} | {self.per_second:.1f} |"

    @property
    def per_second(self) -> float:
        """Requests answered in a second."""
        return len(self.times) / self.wall


def texts() -> Iterator[dict[str, str]]:
    """Requests of 500 characters, each another."""
    samples = load_dataset("single").samples
    for number, sample in enumerate(samples):
        text = f"{number}. {sample.description} {samples[number - 1].description}"
        yield {"text": text[:CHARACTERS], "query": sample.query or ""}


async def timed(client: httpx2.AsyncClient, body: dict[str, str]) -> float:
    """Seconds of one request."""
    begun = time.perf_counter()
    answer = await client.post("/mask", json=body)
    answer.raise_for_status()
    return time.perf_counter() - begun


async def sequential(client: httpx2.AsyncClient, bodies: Sequence[dict[str, str]]) -> list[float]:
    """One after the other."""
    return [await timed(client, body) for body in bodies]


async def together(client: httpx2.AsyncClient, bodies: Sequence[dict[str, str]]) -> list[float]:
    """All at the same moment."""
    return list(await asyncio.gather(*(timed(client, body) for body in bodies)))


async def users(
    client: httpx2.AsyncClient, bodies: Sequence[dict[str, str]], pause: float
) -> list[float]:
    """Fifty users, who read a while before they ask again."""
    draw = random.Random(19)

    async def user(own: Sequence[dict[str, str]]) -> list[float]:
        found = []
        for body in own:
            await asyncio.sleep(draw.expovariate(1 / pause))
            found.append(await timed(client, body))
        return found

    each = [bodies[number::USERS] for number in range(USERS)]
    return [time for own in await asyncio.gather(*map(user, each)) for time in own]


def alone(count: int) -> tuple[Measured, float]:
    """The system in this process, without a server; and a core's seconds for a text."""
    systems = build_systems(ENCODER, SystemOptions())
    bodies = list(islice(texts(), count + 1))

    times, spent = [], []

    async def asked() -> None:
        for body in bodies:
            begun, used = time.perf_counter(), time.process_time()
            await ask(body["text"], body["query"], systems)
            times.append(time.perf_counter() - begun)
            spent.append(time.process_time() - used)

    asyncio.run(asked())
    # The first loads what is loaded once.
    found = Measured("the system alone in one process, no server", times[1:], sum(times[1:]))
    return found, statistics.mean(spent[1:])


def saved(folder: Path, people: int) -> tuple[Measured, int]:
    """People who save annotations at once, as fast as it goes; and how many saves were lost."""
    where = folder / "many.sqlite"
    secrets = study(str(where), people)
    with serving(folder, "--database", where.name) as url:
        begun = time.perf_counter()
        told = asyncio.run(save_together(url, secrets, SAVES))
        wall = time.perf_counter() - begun
    name = f"{people} annotator{'s' * (people > 1)}, {SAVES} saves each without a pause"
    return Measured(name, told.times, wall), len(lost(str(where), told))


async def measure(url: str, rounds: int) -> list[Measured]:
    """All conditions of masking, one after the other."""
    bodies = texts()

    def some(count: int) -> list[dict[str, str]]:
        return [next(bodies) for _ in range(count)]

    limits = httpx2.Limits(max_connections=USERS)
    async with httpx2.AsyncClient(base_url=url, timeout=300, limits=limits) as client:
        # Each process loads its model with its first text.
        await together(client, some(16))
        found = []
        for name, way, count in (
            ("5 requests, one after the other", sequential, 5),
            ("5 requests at once", together, 5),
            ("50 requests at once", together, USERS),
        ):
            times: list[float] = []
            begun = time.perf_counter()
            for _ in range(rounds):
                times += await way(client, some(count))
            found.append(Measured(name, times, time.perf_counter() - begun))
        for pause in PAUSES:
            begun = time.perf_counter()
            times = await users(client, some(4 * USERS), pause)
            name = f"50 users, {pause:.0f} s between their requests"
            found.append(Measured(name, times, time.perf_counter() - begun))
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=REPOSITORY / "results" / "perf-web.md")
    parser.add_argument("--rounds", type=int, default=5, help="of each burst")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    one, core = alone(5 * arguments.rounds)
    found = [one]
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as url:
        found += asyncio.run(measure(url, arguments.rounds))
    savings, missing = [], 0
    for people in (1, USERS):
        with tempfile.TemporaryDirectory() as folder:
            own, gone = saved(Path(folder), people)
        savings.append(own)
        missing += gone
    about = (
        f"`make perf-web` writes this: `POST /mask` with texts of {CHARACTERS} characters, all of "
        f"them different, system `encoder`, {PROCESSES} processes on {os.cpu_count()} cores. "
        f"Before it began {load:.1f} other processes were running or waiting for a core."
    )
    _, sequence, _, burst, *_ = found
    gain = burst.per_second / sequence.per_second
    # The last of the first 95 of 100 waits for all before it.
    least = 0.95 * USERS * core / PROCESSES
    bound = (
        f"{PROCESSES} processes answer {gain:.2f} times as many requests a second as come one "
        f"after the other. The system alone takes {1000 * core:.0f} ms of a core for a text, so "
        f"with {USERS} simultaneous requests p95 cannot be below {least:.2f} s on {PROCESSES} such "
        "cores."
    )
    annotations = (
        "Annotations (`POST /tasks/ID/save`), each on the disk before its answer; afterwards "
        f"{missing} that the server had acknowledged were missing."
    )
    lines = [
        "# The web application under load",
        "",
        about,
        "",
        "| condition | requests | median s | p95 s | longest s | requests per s |",
        "|---|---|---|---|---|---|",
        *(each.row for each in found),
        "",
        bound,
        "",
        annotations,
        "",
        "| condition | saves | median s | p95 s | longest s | saves per s |",
        "|---|---|---|---|---|---|",
        *(each.row for each in savings),
        "",
    ]
    arguments.out.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))  # noqa: T201 -- a command of its own


if __name__ == "__main__":
    main()
