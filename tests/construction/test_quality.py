from __future__ import annotations

from pii_bench.construction.quality import (
    COUNT,
    SCORE,
    SHARE,
    Measure,
    frequent_words,
    render,
    text_measures,
    trivial_measure,
)
from pii_bench.systems.relevance.catalog import build_relevance
from tests.datasets.check.samples import build


def test_a_goal_is_met_if_no_set_exceeds_it() -> None:
    assert Measure("F1", SCORE, {"single": 0.75, "multi": 0.5}, goal=0.75).is_met is True
    assert Measure("F1", SCORE, {"single": 0.5, "multi": 0.76}, goal=0.75).is_met is False
    assert Measure("words", COUNT, {"single": 3}).is_met is None


def test_texts_of_each_set_are_measured() -> None:
    single = [
        build(f"{person} works for Acme by {time}.", facts, query=query, register="letter")
        for person, time, query in (
            ("Ann Lee", "day", "Is it far?"),
            ("Bo Roe", "night", "How do I get there?"),
        )
        for facts in [{person: "Full Name", "Acme": "Company Name"}]
    ]
    text = "The bus was late. Nobody knew why."
    single.append(build(text, query="How do I get back?", register="diary"))
    sets = {"single": single, "multi": single[2:]}

    similar, opening, query_opening, organisation, register, words = text_measures(sets)

    # "<PER> works for <ORG> by day" has two 5-grams, one of which is in the second text too.
    assert similar.values == {"single": 1, "multi": 0}
    assert opening.values == {"single": 2 / 3, "multi": 1}
    assert opening.examples["single"] == "<PER> works for <ORG>"
    assert query_opening.values == {"single": 2 / 3, "multi": 1}
    assert query_opening.examples["single"] == "how do i get"
    assert organisation.values == {"single": 2, "multi": 0}
    assert register.values == {"single": 2 / 3, "multi": 1}
    assert register.examples == {"single": "letter", "multi": "diary"}
    # <PER> works for <ORG> by day night, and: the bus was late nobody knew why
    assert words.values == {"single": 7 + 7, "multi": 7}
    assert [measure.is_met for measure in (similar, opening, organisation)] == [False, False, True]


def test_frequent_words_are_ranked_by_the_share_of_texts_and_then_alphabetically() -> None:
    texts = ["Letter after letter came", "A letter, again", "Again and <ORG> again"]

    assert frequent_words(texts, 3) == [("again", 2 / 3), ("letter", 2 / 3), ("after", 1 / 3)]


def test_a_trivial_system_chooses_among_the_gold_entities_but_names() -> None:
    sample = build(
        "Ann Lee, 32, lives in Leeds.",
        {"Ann Lee": "Full Name", "32": "Age", "Leeds": "City/Region"},
        related=[("A", "32")],
    )

    measure = trivial_measure(build_relevance("all"), {"single": [sample]})

    # One of the two candidates is needed: precision 1/2 and recall 1.
    assert measure.values == {"single": 2 / 3}
    assert measure.goal == 0.75


def test_the_table_lists_figures_goals_and_examples() -> None:
    measures = [
        Measure("alike", SHARE, {"single": 0.0123, "multi": 0.004}, 0.01, {"multi": "so it"}),
        Measure("words", COUNT, {"single": 12345, "multi": 7}),
        Measure("F1", SCORE, {"single": 0.5, "multi": 0.25}, 0.75),
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
