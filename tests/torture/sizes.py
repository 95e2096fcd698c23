"""Attacks with huge inputs: a command must end and keep its memory within a limit."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Final

from tests.torture.process import Ended, Trial, pii_bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_QUERY: Final = {"query": "Am I old?"}


def _record(number: int, text: str, entities: Sequence[Mapping[str, object]]) -> str:
    return json.dumps(
        {
            "id": f"s{number}",
            "description": text,
            **_QUERY,
            "subjects": [{"id": "A", "entities": entities}],
            "related": [{"subject": "A", "text": entities[0]["text"]}],
        }
    )


def _write(path: Path, lines: Iterator[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def _trial(name: str, ended: Ended, megabytes: int, codes: tuple[int, ...]) -> Trial:
    small = {f"at most {megabytes} MB": ended.megabytes <= megabytes}
    return Trial.of(name, ended.checks(codes) | small)


def attack_check(folder: Path) -> Iterator[Trial]:
    """Check datasets of many similar lines, and samples of many entities."""
    tail = "and I am 32 years old and live in Oslo with my two cats near the old port."
    phrases = [" ".join(f"{chr(97 + k)}{n}" for k in range(20)) for n in range(200)]
    alike: dict[str, Callable[[int], str]] = {
        "100,000 lines that differ in a name": lambda n: f"I am called Ann{n} {tail}",
        "100,000 equal texts": lambda _: f"I am called Ann {tail}",
        "100,000 lines that share less than half": lambda n: (
            f"I live near the old port {' '.join(f'w{n}x{k}' for k in range(9))} and am 32"
        ),
        "100,000 lines of four of 200 phrases": lambda n: (
            f"I am 32 {' '.join(random.Random(n).sample(phrases, 4))}"
        ),
    }
    for number, (name, describe) in enumerate(alike.items()):
        path = folder / f"alike-{number}.jsonl"
        entity: dict[str, object] = {"text": "32", "type": "DEM"}
        _write(path, (_record(n, describe(n), [entity]) for n in range(100_000)))
        yield _trial(name, pii_bench(folder, "data", "check", path.name), 1024, (0, 2))
        path.unlink()
    many = 20_000
    spans = [{"text": "Ann", "type": "PER", "spans": [[4 * n, 4 * n + 3]]} for n in range(many)]
    crossing = [{"text": "a" * 900, "type": "PER", "spans": [[n, n + 900]]} for n in range(many)]
    samples: dict[str, tuple[str, Sequence[Mapping[str, object]]]] = {
        "20,000 equal entities": ("Ann is 32.", [{"text": "Ann", "type": "PER"}] * many),
        "20,000 equal entities with spans": ("Ann " * many, spans),
        "20,000 entities": (
            " ".join(f"Ann{n}" for n in range(many)),
            [{"text": f"Ann{n}", "type": "PER"} for n in range(many)],
        ),
        "20,000 spans that cross": ("a" * (many + 900), crossing),
    }
    for name, (text, entities) in samples.items():
        _write(folder / "one.jsonl", iter([_record(0, text, entities)]))
        yield _trial(name, pii_bench(folder, "data", "check", "one.jsonl"), 1024, (0, 2))


def attack_score(folder: Path) -> Iterator[Trial]:
    """Score predictions of many lines, many subjects and very long texts."""
    lines = 200_000
    entity: dict[str, object] = {"text": "32", "type": "DEM"}
    _write(folder / "set.jsonl", (_record(n, f"Ann{n} is 32.", [entity]) for n in range(lines)))
    answers = (
        json.dumps(
            {"id": f"s{n}", "subjects": [[{"text": "32", "type": "DEM"}]], "related": ["32"]}
        )
        for n in range(lines)
    )
    _write(folder / "mine.jsonl", answers)
    ended = pii_bench(folder, "score", "mine.jsonl", "--dataset", "set.jsonl")
    yield _trial(f"{lines:,} lines", ended, 1024, (0,))

    _write(folder / "one.jsonl", iter([_record(0, "Ann Lee is 32.", [entity])]))
    person = {"text": "Ann Lee", "type": "PER"}
    subjects: dict[str, list[list[dict[str, str]]]] = {
        "23,000 subjects with nothing in common": [
            [{"text": f"x{n}", "type": "PER"}] for n in range(23_000)
        ],
        "23,000 subjects with a word in common": [
            [{"text": f"Ann {n}", "type": "PER"}] for n in range(23_000)
        ],
        "23,000 equal subjects": [[person]] * 23_000,
        "a subject of 50,000 entities": [
            [{"text": f"Ann {n}", "type": "PER"} for n in range(50_000)]
        ],
        "a text of 100,000 combining marks": [
            [{"text": "e" + "\u0301\u0316" * 50_000, "type": "PER"}]
        ],
        "a text of a million letters": [[{"text": "a" * 1_000_000, "type": "PER"}]],
    }
    for name, found in subjects.items():
        related = [entity["text"] for subject in found for entity in subject][:50_000]
        answer = json.dumps({"id": "s0", "subjects": found, "related": related})
        _write(folder / "mine.jsonl", iter([answer]))
        ended = pii_bench(folder, "score", "mine.jsonl", "--dataset", "one.jsonl")
        yield _trial(name, ended, 1024, (0,))


def attack_mask(folder: Path) -> Iterator[Trial]:
    """Mask long texts."""
    sentence = "Ann Lee of Acme Corp is 32 and lives in Oslo. Tom Roe is 45. "
    # The encoder takes minutes for a megabyte of sentences.
    systems = {"bilstm-crf+keyword": (5_000, 5_000), "encoder": (100, 1_000)}
    for system, (much, one_word) in systems.items():
        texts = {
            f"{much:,} kB of sentences": sentence * (much * 1000 // len(sentence)),
            f"{one_word:,} kB without a space": "Ann" * (one_word * 1000 // 3),
            "100,000 combining marks": "e" + "\u0301\u0316" * 50_000,
        }
        for name, text in texts.items():
            (folder / "long.txt").write_text(text, encoding="utf-8")
            options = ("--model", system, "--query", "How old is she?")
            ended = pii_bench(folder, "mask", "long.txt", *options)
            yield _trial(f"{system}: {name}", ended, 500, (0,))
