from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.base import CallError, Completion, Draws, Request, Sampling
from pii_bench.prompting.strategies import STRATEGIES, load_prompt
from pii_bench.systems.chunked import ChunkedSystem, pieces
from pii_bench.systems.prompted import PromptedSystem
from tests.builders import make_sample
from tests.fakes import FakeModel

TEXT = "Ann Lee is 32.\n\nShe lives in Oslo. Her son is Bo."
SAMPLE = make_sample("s1", description=TEXT, subjects=[], related=[])


def system(model: FakeModel | None = None, chunk: int = 20) -> ChunkedSystem:
    prompt = load_prompt(STRATEGIES["json"])
    return ChunkedSystem(PromptedSystem(model or FakeModel(), prompt, Sampling()), chunk)


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("Ann is 32.", 10, ["Ann is 32."]),
        (TEXT, 20, ["Ann Lee is 32.\n\n", "She lives in Oslo. ", "Her son is Bo."]),
        ("Ann met Bo in Oslo", 12, ["Ann met Bo ", "in Oslo"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        # Half a piece at least: the paragraph that ends early is no end.
        ("A.\n\nAnn met Bo in Oslo", 14, ["A.\n\nAnn met ", "Bo in Oslo"]),
        ("", 5, [""]),
    ],
)
def test_a_text_is_cut_where_something_ends(text: str, most: int, expected: list[str]) -> None:
    assert pieces(text, most) == expected


@given(st.text(alphabet="ab .\n", max_size=80), st.integers(1, 30))
def test_the_pieces_make_the_text(text: str, most: int) -> None:
    found = pieces(text, most)

    assert "".join(found) == text
    assert all(len(piece) <= most for piece in found)
    assert all(2 * len(piece) >= most for piece in found[:-1])


def test_each_piece_is_asked_about() -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Completion:
        asked.append(request)
        return Completion(f"answer {request.draw}")

    response = asyncio.run(system(FakeModel(answer)).respond(SAMPLE))

    assert response == Draws(
        (Completion("answer 0"), Completion("answer 1"), Completion("answer 2"))
    )
    assert [(each.sample_id, each.draw) for each in asked] == [("s1", 0), ("s1", 1), ("s1", 2)]
    shown = [each.messages[0].content.rpartition("Text:\n")[2] for each in asked]
    assert [each.partition("\n\nYour object:")[0].strip() for each in shown] == [
        "Ann Lee is 32.",
        "She lives in Oslo.",
        "Her son is Bo.",
    ]


def test_a_piece_without_an_answer_leaves_the_sample_without_one() -> None:
    def answer(request: Request) -> Completion:
        if request.draw == 1:
            raise CallError("timeout")
        return Completion("{}")

    with pytest.raises(CallError, match="timeout"):
        asyncio.run(system(FakeModel(answer)).respond(SAMPLE))


def test_the_size_of_a_piece_is_part_of_what_it_is() -> None:
    small, large = system(chunk=20), system(chunk=30)

    assert small.request_hash(SAMPLE) != large.request_hash(SAMPLE)
    assert small.card.settings["chunk"] == 20
    assert small.card.taxonomy == "paper"
    assert not small.card.names_subjects
