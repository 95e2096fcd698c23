from __future__ import annotations

from dataclasses import replace

from pii_bench.construction.quality import (
    Measure,
    Unit,
    frequent_words,
    render,
    text_measures,
    trivial_measure,
)
from pii_bench.datasets.sample import Related
from pii_bench.systems.relevance.catalog import build_relevance
from tests.datasets.check.samples import build


def test_a_goal_is_met_when_no_set_is_above_it() -> None:
    def is_met(single: float, multi: float) -> bool | None:
        return Measure("m", Unit.SCORE, {"single": single, "multi": multi}, goal=0.75).is_met

    assert is_met(0.75, 0.5) is True
    assert is_met(0.5, 0.76) is False
    assert Measure("m", Unit.COUNT, {"single": 3}).is_met is None


def test_measures_of_two_sets() -> None:
    acme = {"Acme": "Company Name"}
    single = [
        # Blanked, two of three open with "<PER> works for <ORG>".
        build("Ann Lee works for Acme by day.", {"Ann Lee": "Full Name", **acme}),
        build("Bo Roe works for Acme by night.", {"Bo Roe": "Full Name", **acme}),
        build("The bus was late. Nobody knew why.", {}),
    ]
    single = [
        replace(sample, query=query, meta={"register": register})
        for sample, query, register in zip(
            single,
            ("Is it far?", "How do I get there?", "How do I get back?"),
            ("letter", "letter", "diary"),
            strict=True,
        )
    ]
    sets = {"single": single, "multi": single[2:]}

    alike, opening, asked, organisation, register, words = text_measures(sets)

    # Of the five-word runs "<PER> works for <ORG> by day" has two, and one is the other's too.
    assert alike.values == {"single": 1, "multi": 0}
    assert opening.values == {"single": 2 / 3, "multi": 1}
    assert opening.examples["single"] == "<PER> works for <ORG>"
    assert asked.values == {"single": 2 / 3, "multi": 1}
    assert asked.examples["single"] == "how do i get"
    assert organisation.values == {"single": 2, "multi": 0}
    assert register.values == {"single": 2 / 3, "multi": 1}
    assert register.examples == {"single": "letter", "multi": "diary"}
    # <PER> works for <ORG> by day night / the bus was late nobody knew why
    assert words.values == {"single": 7 + 7, "multi": 7}
    assert [measure.is_met for measure in (alike, opening, organisation)] == [False, False, True]


def test_words_by_the_share_of_texts_that_hold_them() -> None:
    texts = ["Letter after letter came", "A letter, again", "Again and <ORG> again"]

    assert frequent_words(texts, 3) == [("again", 2 / 3), ("letter", 2 / 3), ("after", 1 / 3)]


def test_a_trivial_system_chooses_among_the_gold_entities_but_names() -> None:
    sample = build("Ann Lee, 32, lives in Leeds.", ENTITIES)
    asked = replace(sample, query="Am I too old?", related=(Related("A", "32"),))

    # Of the two candidates one is needed: precision 1/2 and recall 1.
    measure = trivial_measure(build_relevance("all"), {"single": [asked]})

    assert measure.values == {"single": 2 / 3}
    assert measure.goal == 0.75


ENTITIES = {"Ann Lee": "Full Name", "32": "Age", "Leeds": "City/Region"}


def test_the_table() -> None:
    measures = [
        Measure("alike", Unit.SHARE, {"single": 0.0123, "multi": 0.004}, 0.01, {"multi": "so it"}),
        Measure("words", Unit.COUNT, {"single": 12345, "multi": 7}),
        Measure("F1", Unit.SCORE, {"single": 0.5, "multi": 0.25}, 0.75),
    ]

    assert render(measures) == (
        "| Measure   |   single |   multi |    Goal | Met   |\n"
        "|:----------|---------:|--------:|--------:|:------|\n"
        "| alike     |    1.23% |   0.40% | ≤ 1.00% | no    |\n"
        "| words     |   12,345 |       7 |         |       |\n"
        "| F1        |    0.500 |   0.250 | ≤ 0.750 | yes   |\n"
        "\n"
        "- alike, multi: `so it`"
    )
