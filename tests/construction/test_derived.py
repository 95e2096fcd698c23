from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pii_bench.construction import derived
from pii_bench.construction.derived import (
    TRAIN_TWINS,
    TwinRound,
    conversation,
    conversation_sheets,
    later_round,
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


def test_two_hundred_texts_of_each_set_get_twins_unless_they_are_listed(tmp_path: Path) -> None:
    texts = recorded(*SINGLES, *PAIRS)
    sources = twin_sources(texts)

    assert [m.id.partition("-")[0] for m in sources] == ["single"] * 200 + ["multi"] * 200
    assert len({m.id for m in sources}) == 400

    (tmp_path / "twinned.txt").write_text("single-0002\nmulti-0007\n", encoding="utf-8")
    sources = twin_sources(replace(texts, folder=tmp_path))
    assert [source.id for source in sources] == ["single-0002", "multi-0007"]


@pytest.mark.parametrize(
    ("singles", "reason"),
    [
        (SINGLES[1:], "single: 1213 of 1214 texts are recorded"),
        # A text qualifies with two facts for a second query.
        ([single(n, needs="A2 A3") for n in range(1, 1215)], "single: only 0 texts can have twins"),
    ],
)
def test_twins_need_complete_sets_and_enough_texts(singles: list[Marked], reason: str) -> None:
    with pytest.raises(PiiBenchError, match=reason):
        twin_sources(recorded(*singles, *PAIRS))


def test_texts_whose_query_can_be_turned_are_preferred() -> None:
    pairs = [multi(n, needs="A2" if n in {1, 1000} else "B3") for n in range(1, 1229)]

    sources = twin_sources(recorded(*SINGLES, *pairs))[200:]

    turned = [source.id for source in sources if "turned" in twin_kinds(source)]
    assert turned == ["multi-0001", "multi-1000"]
    assert len(sources) == 200


def test_kinds_of_twins() -> None:
    assert twin_kinds(single(1)) == ("second", "paraphrase")
    assert twin_kinds(multi(1)) == ("second", "paraphrase", "turned")


def test_training_texts_about_two_people_get_a_pair_of_queries() -> None:
    two, one, *later = twin_sources(recorded(*TRAIN), TRAIN_TWINS)

    assert (two.id, one.id) == ("train-multi-0001", "train-single-0001")
    assert later == [two, two]
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


@pytest.mark.parametrize(
    ("number", "kinds"),
    [
        (3, ("one-again", "other-again", "paraphrase-again")),
        (4, ("one-third", "other-third", "second-third")),
    ],
)
def test_later_rounds_of_training(number: int, kinds: tuple[str, ...]) -> None:
    own = recorded(*TRAIN)
    source = twin_sources(own, TRAIN_TWINS)[number - 1]

    assert twin_kinds(source, TRAIN_TWINS, later_round(own, number, TRAIN_TWINS)) == kinds


def test_a_round_has_the_first_texts_of_its_set() -> None:
    own = recorded(*(multi(number, "train-more-multi") for number in (3, 1, 2)))

    texts = TwinRound("train-more-multi", 2).of(own)

    assert [text.id for text in texts] == ["train-more-multi-0001", "train-more-multi-0002"]


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


def test_a_sheet_of_twins_shows_the_text_and_its_query() -> None:
    text = twin_sheet(recorded(*SINGLES, *PAIRS), 17)

    assert text.count("=== twins-") == 12
    assert "=== twins-0201\nof: multi-" in text
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
    joined = [sample_id for group in derived._joined() for sample_id in group]

    assert len(joined) == len(set(joined)) == 1000
    people = sum(1 + sample_id.startswith("multi") for sample_id in joined)
    assert people / 200 == 7.5


def test_a_sheet_of_a_conversation_lists_facts_and_texts() -> None:
    text = conversation_sheets(recorded(*SINGLES, *PAIRS), 1)

    assert text.startswith("=== distract-0001\nplace: knowledge platform\n")
    assert "  A1 Full Name: Ann Lee\n" in text
    assert text.count("=== distract-") == 12
    assert text.count("\n--- ") == 12 * 5
