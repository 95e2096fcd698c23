from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.construction.accept import Verdict, accept
from pii_bench.construction.commissions import ORDERS, commission
from pii_bench.construction.marked import read_marked
from pii_bench.construction.recorded import Recorded

if TYPE_CHECKING:
    from pathlib import Path

# Values for the free categories of the commissions used here.
_FILLING: Final = {
    "Landmark": "Hoan Bridge",
    "NGO": "Lakeshore Repair Circle",
    "Educational Institution": "Alverno College",
    "Company Name": "Third Ward Castings",
    "Healthcare Facility": "Waukesha Walk-in Clinic",
}
_QUERY: Final = "Please check whether the office took the right sum off for that year."
_PADDING: Final = (
    "The line was long and the lift was out again. I had two coffees and read the notice on the "
    "wall twice. Nobody at the window could say when the man would be back from lunch. "
)


def answer(number: int = 1, *, query: str = _QUERY, needs: str = "A2", **changes: str) -> str:
    """Return a text for commission `number` of single; `changes` replace the values of tags."""
    brief = commission(ORDERS["single"], number)
    text = " ".join(
        f"It says {{{tag}|{changes.get(tag, _FILLING.get(fact.category, fact.value))}}} there."
        for tag, fact in brief.facts.items()
    )
    room = brief.chars - len(text)
    padding = (_PADDING * 9)[: max(room, 0)].rsplit(".", 1)[0] + "."
    return (
        f"=== {brief.id}\nregister: {brief.registers[0]}\n--- text\n{text} {padding}\n"
        f"--- query: {needs} | {brief.queries[0].reference} | financial | A\n{query}\n"
    )


def judged(tmp_path: Path, *texts: str) -> list[Verdict]:
    path = tmp_path / "written.txt"
    path.write_text("\n".join(texts), encoding="utf-8")
    return accept(read_marked(path), tmp_path / "texts")


def rules(verdict: Verdict) -> list[str]:
    return sorted({problem.rule for problem in verdict.problems})


def test_a_valid_text_is_recorded_with_its_commission(tmp_path: Path) -> None:
    (verdict,) = judged(tmp_path, answer())

    assert verdict.problems == ()
    recorded = Recorded.load(tmp_path / "texts")
    (sample,) = recorded.samples("single")
    assert sample.id == "single-0001"
    assert sample.query == _QUERY
    assert [r.text for r in sample.related] == ["$2,000"]
    assert recorded.sets["single"]["single-0001"].header["form"] == "free"
    assert (tmp_path / "texts/single/001.txt").exists()


def test_a_new_version_replaces_the_earlier_one(tmp_path: Path) -> None:
    judged(tmp_path, answer())
    (verdict,) = judged(tmp_path, answer(query=_QUERY.replace("Please check", "Could you check")))

    assert verdict.problems == ()
    (sample,) = Recorded.load(tmp_path / "texts").samples("single")
    assert sample.query is not None
    assert sample.query.startswith("Could you")
    (earlier,) = read_marked(tmp_path / "texts/superseded/single.txt")
    assert earlier.queries[0].text == _QUERY
    versions = Recorded.load(tmp_path / "texts").versions("single")
    assert [version.query for version in versions] == [_QUERY, sample.query]


@pytest.mark.parametrize(
    ("text", "rule", "reason"),
    [
        (answer(A1="Ann Lee"), "value", "'Ann Lee' (A1 Full Name) is none of"),
        (answer(A8="the Third Ward Castings"), "article", "begins with an article"),
        (answer().replace("{A5|", "{A9|"), "tag", "A5 (Phone Number) is marked nowhere"),
        (answer().replace("{A6|", "{A6 "), "mark", "looks like a broken mark"),
        (answer(query=f"{_QUERY} And {{-|$250}}?"), "mark", "the query holds '{-|'"),
        (answer() + _PADDING * 5, "query-length", "characters, not 60 to 420"),
        (answer(needs="A9"), "needs", "'A9' is no fact"),
        (answer(needs=""), "needs", "a query needs 0 facts"),
        (answer().replace("register: ", "register: x"), "register", "is no kind of text"),
        (answer().replace("| financial |", "| money |"), "domain", "'money' is none of"),
        (answer().replace("--- query", _PADDING * 5 + "\n--- query"), "length", "characters, not"),
        (answer().replace("I had", "I **had**"), "markup", "plain text is wanted"),
        (answer().replace("Nobody", "Mr Rice"), "titled-name", "the text names 'Mr Rice'"),
        (answer().replace("two coffees", "€1,240 in hand"), "leak", "'€1,240'"),
        (answer(query=f"{_QUERY} I was at Alverno."), "query-part", "'Alverno'"),
        (answer(query=f"{_QUERY} Is 15 right?"), "query-part", "'15'"),
        (answer().replace("=== single-0001", "=== single-9999"), "commission", "no commission"),
    ],
)
def test_invalid_texts_are_refused(tmp_path: Path, text: str, rule: str, reason: str) -> None:
    (verdict,) = judged(tmp_path, text)

    assert rule in rules(verdict)
    assert any(reason in problem.reason for problem in verdict.problems)
    assert Recorded.load(tmp_path / "texts").samples("single") == []


def test_a_text_that_is_part_of_a_conversation_keeps_its_values(tmp_path: Path) -> None:
    judged(tmp_path, answer())
    conversation = tmp_path / "texts/distract/001.txt"
    conversation.parent.mkdir()
    conversation.write_text(
        "=== distract-0001\njoined: single-0001 single-0002\n--- text\nHello.\n"
    )
    (verdict,) = judged(tmp_path, answer(A8="Third Ward Foundry"))

    assert rules(verdict) == ["value"]
    assert "'Third Ward Foundry' (A8 Company Name) is none of" in verdict.problems[0].reason


def test_a_value_marked_as_public_is_no_leak(tmp_path: Path) -> None:
    (verdict,) = judged(tmp_path, answer().replace("two coffees", "{-|€1,240} of coffee"))

    assert verdict.problems == ()


def test_near_duplicates_of_accepted_texts_are_refused(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, *(answer(n) for n in (1, 20, 30, 40)))

    assert verdicts[0].problems == ()
    assert {"near-duplicate"} <= {rule for verdict in verdicts[1:] for rule in rules(verdict)}


def test_a_value_of_the_other_split_is_refused(tmp_path: Path) -> None:
    judged(tmp_path, answer())
    brief = commission(ORDERS["train-single"], 1)
    text = " ".join(
        f"Here is {{{tag}|{_FILLING.get(fact.category, fact.value)}}}."
        for tag, fact in brief.facts.items()
    )
    padding = (" What a day it was for all of us, with rain." * 40)[: brief.chars - len(text)]
    queries = "".join(f"--- query: A2 | implied | legal | A\n{_QUERY} {n}\n" for n in (1, 2))
    (verdict,) = judged(
        tmp_path,
        f"=== {brief.id}\nregister: letter\n--- text\n{text}{padding}\n{queries}",
    )

    assert "split" in rules(verdict)
    assert any(
        "'Third Ward Castings' is in single-0001, of the other split" in problem.reason
        for problem in verdict.problems
    )


@pytest.fixture
def source(tmp_path: Path) -> str:
    """Record a text that gets the first twins, and return its id."""
    folder = tmp_path / "texts/single"
    folder.mkdir(parents=True)
    (folder / "001.txt").write_text(
        "=== single-0001\nregister: letter\n"
        "facts: A1 Full Name, A2 Age, A3 Time, A4 City/Region\n--- text\n"
        "{A1|Ann Lee}, {A2|31}, takes the {A3|8:30} to {A4|Graz}.\n"
        "--- query: A3 | implied | travel | near\nWill she catch it?\n",
        encoding="utf-8",
    )
    (folder.parent / "twinned.txt").write_text("single-0001\n", encoding="utf-8")
    return "single-0001"


_SECOND: Final = (
    "--- second: A2 | explicit | medical | near\n"
    "At her age, which vaccinations are due this autumn, and in which order?\n"
)
_PARAPHRASE: Final = (
    "--- paraphrase: A3 | implied | travel | near\n"
    "Will she still make her train if she leaves the house only now?\n"
)


def test_twins_are_recorded_as_queries_about_a_text(tmp_path: Path, source: str) -> None:
    (verdict,) = judged(tmp_path, f"=== twins-0001\nof: {source}\n{_SECOND}{_PARAPHRASE}")

    assert verdict.problems == ()
    second, paraphrase = Recorded.load(tmp_path / "texts").samples("twins")
    assert (second.id, paraphrase.id) == (f"{source}-second", f"{source}-paraphrase")
    assert second.meta["twin_of"] == source
    assert [r.text for r in paraphrase.related] == ["8:30"]


def test_twins_of_the_wrong_kinds_are_refused(tmp_path: Path, source: str) -> None:
    (verdict,) = judged(tmp_path, f"=== twins-0001\nof: {source}\n{_SECOND}")

    assert rules(verdict) == ["queries"]
