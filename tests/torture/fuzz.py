"""Random inputs of the parser, scorer, masking and report."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, Final

from pii_bench.analysis.report.data import Texts, collect_report
from pii_bench.analysis.report.page import render_page
from pii_bench.masking import mask, unmask
from pii_bench.prompting.parsing.answers import parse_structured_detection, parse_structured_related
from pii_bench.prompting.parsing.detection import parse_detection
from pii_bench.prompting.parsing.texts import parse_related
from pii_bench.scorer import score_detection, score_masking, score_query_related
from tests.analysis.report.test_page import Page
from tests.ranking.stored_runs import ANN, store_run, tiny_dataset
from tests.torture.process import Trial
from tests.torture.servers import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    _Subject = list[tuple[str, str]]

PARSED: Final = 20_000
SCORED: Final = 4_000
MASKED: Final = 4_000
REPORTED: Final = 24

_PIECES: Final = (
    *("### Answer: ", '["', '"]', "[", "]", "{", "}", '"', "'", "“", "”", ",", ":"),
    *("\\", "\\u", "`"),
    *('Subject1{"Ann": "PER"}', "Subject 2", "PER", "None", "<think>", "</think>", "```json", "\n"),
    *("\ud800", "\udfff", "\x00", "\x1b[31m", "\u202e", "\u200b", "e\u0301\u0316", "小满"),
    *("\N{WOMAN}\u200d\N{WOMAN}\u200d\N{GIRL}", " "),
    *("1e999", "9" * 50, "[" * 50, "}" * 50, "sorry, I can't", "- ", "1. ", "=1+1", "<script>"),
)
_WORDS: Final = (
    *("Ann", "Lee", "O'Neil", "O’Neil", "Acme Corp", "32", "Annual", "e\u0301", "\u00e9", "李明"),
)


def _text(chance: random.Random, pieces: tuple[str, ...], most: int) -> str:
    return "".join(chance.choices(pieces, k=chance.randint(0, most)))


def _tried(name: str, attempt: Callable[..., dict[str, bool]], *arguments: Any) -> Trial:
    try:
        return Trial.of(name, attempt(*arguments))
    # Any exception is a failure of the trial.
    except Exception as error:  # noqa: BLE001
        return Trial(name, (f"no {type(error).__name__}",))


def fuzz_parser(_: Path) -> Iterator[Trial]:
    """Parse answers of random pieces, and correct answers with random changes."""
    chance = random.Random(13)
    right = ('Subject1{"Ann Lee": "PER", "32": "DEM"}', '### Answer: ["32", "Oslo"]')
    for number in range(PARSED):
        text = _text(chance, _PIECES, 30)
        if number % 2:
            whole = chance.choice(right)
            place = chance.randrange(len(whole))
            text = whole[:place] + _text(chance, _PIECES, 2) + whole[place + chance.randint(0, 3) :]
        yield _tried(f"answer {number}", _parse, text)


def _parse(text: str) -> dict[str, bool]:
    readers = (parse_detection, parse_related, parse_structured_detection, parse_structured_related)
    found = [reader(text) for reader in readers]
    return {
        "has an answer exactly where its status says so": all(
            each.status.answered == (each.payload is not None) for each in found
        ),
        "the same answer twice": found == [reader(text) for reader in readers],
    }


def fuzz_scorer(_: Path) -> Iterator[Trial]:
    """Score random subjects and texts in two orders."""
    chance = random.Random(13)
    pieces = (*_WORDS, *_PIECES, " ")

    def subject() -> _Subject:
        return [
            (_text(chance, pieces, 3), chance.choice(("PER", "loc ", "", "\ud800")))
            for _ in range(chance.randint(0, 4))
        ]

    for number in range(SCORED):
        predicted = [subject() for _ in range(chance.randint(0, 8))]
        gold = [subject() for _ in range(chance.randint(0, 5))]
        shuffled = chance.sample(predicted, len(predicted)), chance.sample(gold, len(gold))
        yield _tried(f"sample {number}", _score, predicted, gold, *shuffled)


def _score(
    predicted: list[_Subject],
    gold: list[_Subject],
    shuffled_predicted: list[_Subject],
    shuffled_gold: list[_Subject],
) -> dict[str, bool]:
    found = score_detection(predicted, gold)
    again = score_detection(shuffled_predicted, shuffled_gold)
    metrics = ("strict", "entity", "entity_matched", "rouge_l")
    figures = [getattr(found, name) for name in metrics]
    first = [text for subject in predicted for text, _ in subject]
    second = [text for subject in gold for text, _ in subject]
    related = score_query_related(first, second)
    masking = score_masking(first, second, second, first)
    figures += [related.exact, related.rouge_l, masking.exact, masking.rouge_l]
    return {
        "every figure is from 0 to 1": all(
            0 <= each <= 1 for prf in figures for each in (prf.precision, prf.recall, prf.f1)
        ),
        "the order changes no figure": all(
            getattr(found, name) == getattr(again, name) for name in metrics
        ),
        "a side against itself is perfect": score_detection(gold, gold).strict.f1 == 1,
    }


def fuzz_mask(_: Path) -> Iterator[Trial]:
    """Mask and unmask random texts and entities."""
    chance = random.Random(13)
    pieces = (*_WORDS, *"  \u00a0\n-‑", "<Person>", "<Person 1>", "\ud800", "\u200b")
    for number in range(MASKED):
        text = _text(chance, pieces, 16)
        entities = [(chance.choice(_WORDS), "PER") for _ in range(chance.randint(0, 5))]
        entities += [(_text(chance, pieces, 2), chance.choice(("ORG", "", "EMAIL")))]
        related = [chance.choice(_WORDS)] if chance.random() < 0.4 else []
        yield _tried(f"text {number}", _mask, text, entities, related)


def _mask(text: str, entities: list[tuple[str, str]], related: list[str]) -> dict[str, bool]:
    masked = mask(text, entities, related)
    return {
        "the text comes back": unmask(masked.text, masked.mapping) == text,
        "nothing is masked that is not named": bool(entities) or masked.text == text,
        "the same masks twice": mask(text, entities, related).text == masked.text,
    }


def fuzz_report(folder: Path) -> Iterator[Trial]:
    """Render reports of runs with random models, answers and texts."""
    chance = random.Random(13)
    for number in range(REPORTED):
        results = folder / str(number) / "results"
        dataset = tiny_dataset(folder / str(number) / "tiny.jsonl")
        model = f"fake/{number}{_text(chance, (*_PIECES, HOSTILE), 4)}"
        said = json.dumps({"Ann Lee": _text(chance, _PIECES, 3), _text(chance, _PIECES, 3): "PER"})
        answers = {"s1": f"Subject1{said}", "s2": _text(chance, _PIECES, 20)}
        store_run(results / "runs", dataset, "detection", answers, model=model)
        store_run(
            results / "runs", dataset, "naive", {"s1": ANN, "s2": answers["s2"]}, model=model,
            settings={"x": HOSTILE}, unmasked_text_to=HOSTILE,
        )  # fmt: skip
        yield _tried(f"report {number}", _render, results)


def _render(results: Path) -> dict[str, bool]:
    text = render_page(collect_report(results, texts=Texts.ALL))
    page = Page(text)
    active = [tag for tag, _ in page.elements if tag in {"script", "iframe", "object", "embed"}]
    attributes = [each for _, pairs in page.elements for each in pairs.items()]
    return {
        "two scripts, the data and ours": active == ["script", "script"],
        "no handler of an event": not any(
            name.startswith("on") or (value or "").startswith("javascript:")
            for name, value in attributes
        ),
        "the data is JSON": isinstance(json.loads(page.inside["script"][0]), dict),
        "UTF-8 holds it": bool(text.encode()),
    }
