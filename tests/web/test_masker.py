"""The queue of texts and the pool of processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.runs.mask_text import Answers, MaskingError
from pii_bench.web.masker import MOST_WAITING, PIECE, BusyError, Masker, joined
from pii_bench.web.settings import Settings
from tests.web.recorder import ASKED, BEGUN, GATE

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDER = Settings(workers=0, system="python:tests.web.recorder:build")


@pytest.fixture
def masker() -> Iterator[Masker]:
    """A masker with the recorder; its answers wait until `GATE` is set."""
    ASKED.clear()
    BEGUN.clear()
    GATE.clear()
    masker = Masker(RECORDER)
    masker.start()
    yield masker
    GATE.set()
    masker.close()


async def in_order(masker: Masker, *texts: str) -> list[str]:
    """Queue texts while another one is being read; return the order in which they are read."""
    tasks = [asyncio.create_task(masker.answers("first", "?"))]
    await asyncio.to_thread(BEGUN.wait, 60)
    tasks += [asyncio.create_task(masker.answers(text, "?")) for text in texts]
    await asyncio.sleep(0)
    GATE.set()
    await asyncio.gather(*tasks)
    return ASKED[1:]


def test_a_short_text_is_masked_before_the_pieces_of_a_long_one(masker: Masker) -> None:
    long = "x " * PIECE

    asked = asyncio.run(in_order(masker, long, "short"))

    assert asked[0] == "short"
    assert "".join(asked[1:]) == long
    assert len(asked) == 3


def test_waiting_texts_are_answered_in_order(masker: Masker) -> None:
    texts = [f"text {number}" for number in range(20)]

    assert asyncio.run(in_order(masker, *texts)) == texts


def test_a_failure_affects_only_its_own_text(masker: Masker) -> None:
    GATE.set()
    texts = [f"{'FAIL' if number % 3 == 0 else 'Ann'} N{number}" for number in range(12)]

    async def answers() -> list[Answers | BaseException]:
        waiting = (masker.answers(text, "?") for text in texts)
        return await asyncio.gather(*waiting, return_exceptions=True)

    for number, answer in enumerate(asyncio.run(answers())):
        if number % 3 == 0:
            assert isinstance(answer, MaskingError)
            assert "FAIL" not in str(answer)
        else:
            assert isinstance(answer, Answers)
            assert answer.entities == (("Ann", "PER"), (f"N{number}", "PER"))


def test_texts_beyond_the_limit_of_the_queue_are_refused(masker: Masker) -> None:
    async def flood() -> list[BaseException | Answers]:
        texts = (masker.answers("x", "?") for _ in range(MOST_WAITING + 10))
        GATE.set()
        return await asyncio.gather(*texts, return_exceptions=True)

    answers = asyncio.run(flood())

    assert [type(each) for each in answers] == [Answers] * MOST_WAITING + [BusyError] * 10


def test_a_cancelled_text_is_not_sent_to_the_system(masker: Masker) -> None:
    async def give_up() -> None:
        first = asyncio.create_task(masker.answers("first", "?"))
        await asyncio.to_thread(BEGUN.wait, 60)
        second = asyncio.create_task(masker.answers("second", "?"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        GATE.set()
        await first
        await masker.answers("third", "?")

    asyncio.run(give_up())

    assert ASKED == ["first", "third"]


def test_answers_of_pieces_are_joined() -> None:
    parts = [
        Answers((("Ann", "PER"), ("Leeds", "LOC")), ("Leeds",)),
        Answers((("Ann", "PER"), ("Bob", "PER")), ("Bob",)),
    ]

    assert joined(parts) == Answers(
        (("Ann", "PER"), ("Leeds", "LOC"), ("Bob", "PER")), ("Leeds", "Bob")
    )
    assert joined([*parts, Answers((), None)]).needed is None


@pytest.mark.parametrize("workers", [0, 1])
def test_an_unknown_system_is_refused_at_the_start(workers: int) -> None:
    others = set(multiprocessing.active_children())
    masker = Masker(Settings(workers=workers, system="encodr"))
    with pytest.raises(PiiBenchError, match="encodr"):
        masker.start()
    assert set(multiprocessing.active_children()) <= others


def test_a_process_that_dies_is_replaced() -> None:
    masker = Masker(Settings(workers=1, system="bilstm-crf+none"))
    others = set(multiprocessing.active_children())

    async def kill() -> None:
        await masker.answers("I am Ann Lee.", "?")
        (worker,) = set(multiprocessing.active_children()) - others
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(BusyError, match="died"):
            await masker.answers("I am Bob Roe.", "?")
        answers = await masker.answers("My mail is b.roe@mail.example.org.", "?")
        assert ("b.roe@mail.example.org", "CODE") in answers.entities

    asyncio.run(kill())
    masker.close()
