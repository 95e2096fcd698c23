from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pii_bench.construction.derived import (
    TRAIN_TWINS,
    conversation,
    conversation_sheets,
    twin_kinds,
    twin_sheet,
    twin_sources,
)
from pii_bench.construction.marked import Marked, MarkedQuery
from pii_bench.construction.recorded import SIZES, Recorded
from pii_bench.errors import PiiBenchError


def single(number: int, name: str = "single", needs: str = "A3") -> Marked:
    return Marked(
        f"{name}-{number:04d}",
        {"register": "letter", "facts": "A1 Full Name, A2 Age, A3 Time, A4 Height"},
        f"{{A1|Ann Lee}}, {{A2|{20 + number % 60}}}, {{A4|170 cm}}, takes the {{A3|8:30}}.",
        (MarkedQuery("Will she catch it?", tuple(needs.split()), "implied", "travel", "near"),),
    )


def multi(number: int, name: str = "multi", needs: str = "A2") -> Marked:
    facts = "A1 Full Name, A2 Age, B1 Full Name, B2 Age, B3 City/Region"
    return Marked(
        f"{name}-{number:04d}",
        {"register": "letter", "relation": "siblings", "facts": facts},
        "{A1|Ann Lee}, {A2|30}, and {B1|Bo Lee}, {B2|32}, meet in {B3|Oslo}.",
        (MarkedQuery("Is my sister old enough?", (needs,), "implied", "legal", "B"),),
    )


def recorded(*texts: Marked) -> Recorded:
    sets: dict[str, dict[str, Marked]] = {name: {} for name in SIZES}
    for text in texts:
        sets[text.id.rpartition("-")[0]][text.id] = text
    return Recorded(Path("texts"), sets)


SINGLES = [single(number) for number in range(1, 1215)]
PAIRS = [multi(number) for number in range(1, 1229)]
TRAIN = (single(1, "train-single"), multi(1, "train-multi"))


def listed(folder: Path, *text_ids: str) -> Recorded:
    """Return all texts of single and multi, of which some are listed to get twins."""
    (folder / "twinned.txt").write_text("\n".join(text_ids), encoding="utf-8")
    return replace(recorded(*SINGLES, *PAIRS), folder=folder)


def test_the_listed_texts_get_twins(tmp_path: Path) -> None:
    texts = listed(tmp_path, "single-0002", "multi-0007")

    assert twin_sources(texts) == [(SINGLES[1], ""), (PAIRS[6], "")]
    with pytest.raises(PiiBenchError, match=r"twinned\.txt: No such file"):
        twin_sources(replace(texts, folder=tmp_path / "gone"))


def test_kinds_of_twins() -> None:
    assert twin_kinds(single(1)) == ("second", "paraphrase")
    assert twin_kinds(multi(1)) == ("second", "paraphrase", "turned")
    # One fact is left for a second query.
    assert twin_kinds(single(1, needs="A2 A3")) == ("paraphrase",)
    # The other person has no city.
    assert twin_kinds(multi(1, needs="B3")) == ("second", "paraphrase")


def test_training_texts_about_two_people_get_a_pair_of_queries() -> None:
    (two, _), (one, _), *later = twin_sources(recorded(*TRAIN), TRAIN_TWINS)

    assert (two.id, one.id) == ("train-multi-0001", "train-single-0001")
    assert later == [(two, "-again"), (two, "-third")]
    assert twin_kinds(two, TRAIN_TWINS) == ("one", "other", "paraphrase", "turned")
    assert twin_kinds(one, TRAIN_TWINS) == ("second", "paraphrase")


def test_a_third_person_does_not_change_the_kinds_of_twins() -> None:
    two = multi(1, "train-multi")
    three = replace(
        two,
        header={**two.header, "facts": two.header["facts"] + ", C1 Full Name, C2 Age"},
        text=two.text + " {C1|Cy Lee}, {C2|34}, is away.",
    )

    assert twin_kinds(three, TRAIN_TWINS) == ("one", "other", "paraphrase", "turned")


def test_later_rounds_of_training() -> None:
    two = TRAIN[1]

    assert twin_kinds(two, TRAIN_TWINS, "-again") == (
        *("one-again", "other-again", "paraphrase-again"),
    )
    assert twin_kinds(two, TRAIN_TWINS, "-third") == ("one-third", "other-third", "second-third")


def test_a_round_has_the_first_texts_of_its_set() -> None:
    own = recorded(*(multi(number, "dev-multi") for number in (61, 2, *range(3, 61), 1)))

    ids = [text.id for text, _ in twin_sources(own, "dev-twins")]

    assert ids == [f"dev-multi-{number:04d}" for number in range(1, 61)]


def test_a_later_round_shows_the_queries_of_those_before() -> None:
    asked = MarkedQuery("Is she an adult?", ("A2",), "contrast", "legal", "desk", kind="one")
    twins = Marked("train-twins-0001", {"of": "train-multi-0001"}, "", (asked,))

    text = twin_sheet(recorded(TRAIN[1], twins), 1, TRAIN_TWINS)

    first, second, third = text.split("=== train-twins-")[1:]
    assert "wanted: one, other, paraphrase, turned\n" in first
    assert "wanted: one-again, other-again, paraphrase-again\n" in second
    assert "--- its twin 'one': A2 | contrast | legal | desk\nIs she an adult?\n" in second
    assert "--- its twin 'one': A2 | contrast | legal | desk\nIs she an adult?\n" in third
    assert "its twin" not in first


def test_a_sheet_shows_all_queries_of_a_text() -> None:
    own = multi(1, "train-more-multi")
    pair = MarkedQuery("Is my brother old enough?", ("B2",), "implied", "legal", "A")
    four = replace(own, queries=(*own.queries, pair))

    text = twin_sheet(recorded(four), 1, TRAIN_TWINS)

    assert "wanted: one-again, other-again, paraphrase-again\n" in text
    assert "--- its own query: A2 | implied | legal | B\nIs my sister old enough?\n" in text
    assert "--- its own query: B2 | implied | legal | A\nIs my brother old enough?\n" in text


def test_a_sheet_of_twins_shows_the_text_and_its_query(tmp_path: Path) -> None:
    ids = [f"multi-{number:04d}" for number in range(1, 101)]
    text = twin_sheet(listed(tmp_path, *ids), 3)

    assert text.count("=== twins-") == 12
    assert "=== twins-0025\nof: multi-0025\n" in text
    assert "wanted: second, paraphrase, turned\n" in text
    assert "--- its own query: A2 | implied | legal | B\nIs my sister old enough?\n" in text


def test_a_conversation_joins_five_texts_with_new_tags() -> None:
    asked = conversation(recorded(*SINGLES, *PAIRS), 1)

    assert len(asked.joined) == 5
    letters = sorted({tag[0] for tag in asked.facts})
    assert letters == list("ABCDEFGHIJ"[: len(letters)])
    assert len(asked.subjects) == 3
    assert set(asked.facts) == set(asked.values)
    # The last text is of one person or two.
    assert any(f"{{{letter}1|Ann Lee}}" in asked.texts[-1] for letter in letters[-2:])


def test_no_text_is_in_two_conversations() -> None:
    texts = recorded(*SINGLES, *PAIRS)
    joined = [text_id for number in range(1, 201) for text_id in conversation(texts, number).joined]

    assert len(joined) == len(set(joined)) == 1000
    people = sum(1 + sample_id.startswith("multi") for sample_id in joined)
    assert people / 200 == 7.5


def test_a_sheet_of_a_conversation_lists_facts_and_texts() -> None:
    text = conversation_sheets(recorded(*SINGLES, *PAIRS), 1)

    assert text.startswith("=== distract-0001\nplace: knowledge platform\n")
    assert "  A1 Full Name: Ann Lee\n" in text
    assert text.count("=== distract-") == 12
    assert text.count("\n--- ") == 12 * 5
