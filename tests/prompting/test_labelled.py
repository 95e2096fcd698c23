"""The examples of the strategy `json`, and the labels that it asks for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pii_bench.errors import PiiBenchError, UnknownNameError
from pii_bench.prompting.labelled import Shots, choose, definitions, draw_examples
from pii_bench.prompting.strategies import STRATEGIES, Prompt, load_prompt
from tests.builders import make_sample, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JSON = STRATEGIES["json"]
ROWS = [
    ("Mia Ortega met Ben.", [(0, 3, "FIRSTNAME"), (4, 10, "LASTNAME1"), (15, 18, "FIRSTNAME")]),
    ("Call 555-0199 for Ben.", [(5, 13, "PHONENUMBER"), (18, 21, "FIRSTNAME")]),
    ("No one is here.", []),
    ("Call 555-0142 for Ada.", [(5, 13, "PHONENUMBER"), (18, 21, "FIRSTNAME")]),
]


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A dataset of spans of which the last row is of the test split."""

    def row(number: int, text: str, spans: list[tuple[int, int, str]]) -> dict[str, Any]:
        marked = [{"start": a, "end": b, "label": c, "value": text[a:b]} for a, b, c in spans]
        split = "test" if number == len(ROWS) else "train"
        return {"source_text": text, "privacy_mask": marked, "split": split}

    rows = [row(number, *each) for number, each in enumerate(ROWS, start=1)]
    return f"ai4privacy:{write_lines(tmp_path / 'rows.jsonl', rows)}"


def ai4privacy(shots: Shots) -> Prompt:
    return load_prompt(JSON, taxonomy="ai4privacy", shots=shots)


def test_a_label_is_defined_by_the_table() -> None:
    paper = definitions("paper")
    assert list(paper) == ["PER", "CODE", "LOC", "ORG", "DEM", "DATETIME", "QUANTITY"]
    # The definition of a type is its categories.
    assert paper["DATETIME"] == "Date, Time, Duration"

    asked = definitions("ai4privacy")

    assert asked["EMAIL"] == "Email Address"
    assert asked["FIRSTNAME"] == "Part of: Full Name"
    assert asked["BIC"] == "Swift code"
    assert asked["JOBAREA"] == "Occupation"
    assert asked["TITLE"] == ""
    # The same label with a running number is no label of its own.
    assert "LASTNAME" in asked
    assert not {"LASTNAME1", "LASTNAME2"} & set(asked)


def test_a_taxonomy_that_is_not_there() -> None:
    with pytest.raises(UnknownNameError, match=r"^unknown taxonomy 'ai4privcy'; did you mean"):
        load_prompt(JSON, taxonomy="ai4privcy")


def test_a_prompt_with_examples(assert_golden: Callable[[str, str], None]) -> None:
    prompt = load_prompt(JSON, shots=Shots(2, seed=7))

    (message,) = prompt.messages(make_sample())

    assert_golden("prompts/json+2-shot.txt", message.content + "\n")


def test_the_name_and_settings_tell_one_prompt_from_another(source: str) -> None:
    assert (load_prompt(JSON).name, load_prompt(JSON).settings) == ("json", {"taxonomy": "paper"})
    assert load_prompt(JSON, output="schema", taxonomy="spacy").name == "json+spacy+schema"
    prompt = ai4privacy(Shots(1, source, "similarity", 3))
    assert prompt.name == "json+ai4privacy+1-similar"
    assert prompt.settings == {
        "taxonomy": "ai4privacy",
        "shots": 1,
        "shots_source": source,
        "shots_by": "similarity",
        "shots_seed": 3,
    }


def test_labels_examples_and_seed_are_in_the_hash() -> None:
    prompts = [
        load_prompt(JSON),
        load_prompt(JSON, taxonomy="spacy"),
        load_prompt(JSON, shots=Shots(2)),
        load_prompt(JSON, shots=Shots(3)),
        load_prompt(JSON, shots=Shots(2, seed=1)),
        load_prompt(JSON, shots=Shots(2, by="similarity")),
    ]

    assert len({prompt.sha256 for prompt in prompts}) == len(prompts)
    assert load_prompt(JSON, shots=Shots(2)).sha256 == prompts[2].sha256


def test_examples_are_of_the_train_split_alone_with_the_labels_asked_for(source: str) -> None:
    asked = definitions("ai4privacy")

    found = draw_examples(Shots(2, source), "ai4privacy", asked)

    values = {
        each.text: {label: texts for label, texts in each.values.items() if texts} for each in found
    }
    assert values == {
        "Mia Ortega met Ben.": {"FIRSTNAME": ["Mia", "Ben"], "LASTNAME": ["Ortega"]},
        "Call 555-0199 for Ben.": {"FIRSTNAME": ["Ben"], "PHONENUMBER": ["555-0199"]},
        "No one is here.": {},
    }


def test_the_seed_draws_and_fewer_examples_are_the_first_of_more() -> None:
    asked = definitions("paper")

    def texts(number: int, seed: int) -> list[str]:
        drawn = draw_examples(Shots(number, seed=seed), "paper", asked)
        return [each.text for each in drawn]

    assert texts(5, 1)[:3] == texts(2, 1)
    assert texts(5, 1) != texts(5, 2)
    # train-single asks two queries about each text.
    assert len(set(texts(300, 1))) == 301


def test_a_text_is_never_its_own_example(source: str) -> None:
    for by in ("seed", "similarity"):
        shots = Shots(2, source, by)
        examples = draw_examples(shots, "ai4privacy", definitions("ai4privacy"))
        for text, _ in ROWS[:3]:
            shown = [each.text for each in choose(examples, shots, text)]
            assert len(set(shown)) == 2
            assert text not in shown


def test_similar_examples_share_most_with_the_text(source: str) -> None:
    (message,) = ai4privacy(Shots(1, source, "similarity")).messages(
        make_sample(description="Call 555-0142 for Ada.", subjects=[], related=[])
    )

    assert "Text:\nCall 555-0199 for Ben.\n\nYour object:\n" in message.content
    assert "Mia" not in message.content
    assert '{"PII": {"FIRSTNAME": ["Ben"], "PHONENUMBER": ["555-0199"]}}' in message.content


def test_examples_of_a_schema_have_every_label() -> None:
    prompt = load_prompt(JSON, output="schema", shots=Shots(1))
    (message,) = prompt.messages(make_sample())

    answer = message.content.rpartition("Text:")[0].rpartition("Your object:\n")[2]
    assert list(json.loads(answer)["PII"]) == list(prompt.definitions)


@pytest.mark.parametrize(
    "name", ["single", "dev-single", "mine.jsonl", "tab:x.json", "{source}#split=test"]
)
def test_a_test_set_gives_no_examples(source: str, name: str) -> None:
    with pytest.raises(PiiBenchError, match="is no train split to take examples from: train-s"):
        load_prompt(JSON, shots=Shots(1, name.format(source=source)))


def test_examples_must_be_marked_with_the_labels_asked_for(source: str) -> None:
    with pytest.raises(PiiBenchError, match="not marked with the labels of 'paper': choose"):
        load_prompt(JSON, shots=Shots(1, source))


def test_more_examples_than_there_are(source: str) -> None:
    with pytest.raises(PiiBenchError, match="it has 3 texts, of which one may be asked about"):
        ai4privacy(Shots(3, source))
