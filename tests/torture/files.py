"""Attacks with corrupt files and invalid paths."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pii_bench.cli import main
from tests.builders import sample_record, write_lines
from tests.ranking.stored_runs import ANN, BO, store_run, tiny_dataset
from tests.torture.process import Trial
from tests.torture.servers import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMANDS: Final = (
    ("leaderboard",),
    ("compare", "fake/sound", "fake/other"),
    ("diagnose",),
    ("export", "every-eval-ever", "--out", "out"),
)
_VALUES: Final[tuple[object, ...]] = (
    None, True, -1, 10**400, 1.5, "", HOSTILE, "\ud800", [], [[]], {}, {"a": None}, "x" * 100_000,
)  # fmt: skip
_FUZZED: Final = 300


def attack_manifests(folder: Path) -> Iterator[Trial]:
    """Replace each value of a manifest by others, and write broken files."""
    whole = _results(folder)
    document = json.loads(whole.read_bytes())
    broken = {
        "nothing": b"",
        "brackets": b"[" * 200_000,
        "900 brackets": b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}",
        "no UTF-8": b"\xff\xfe{}",
        "a list": b"[]",
        "half": whole.read_bytes()[:100],
    }
    for path in _paths(document):
        for number, value in enumerate(_VALUES):
            changed = json.dumps(_replaced(document, path, value)).encode()
            broken[f"{'.'.join(path)} = value {number}"] = changed
    yield from _each(folder, whole, broken)


def attack_lines(folder: Path) -> Iterator[Trial]:
    """Replace each value of a response line by others, and write random bytes."""
    manifest = _results(folder)
    responses = manifest.with_name(manifest.name.replace(".run.json", ".jsonl"))
    first, *others = responses.read_bytes().splitlines(keepends=True)
    record = json.loads(first) | {"usage": {"input_tokens": 1, "output_tokens": 1}}
    broken = {}
    for path in _paths(record):
        for number, value in enumerate(_VALUES):
            line = json.dumps(_replaced(record, path, value)).encode()
            broken[f"{'.'.join(path)} = value {number}"] = line + b"\n" + b"".join(others)
    chance = random.Random(13)
    for number in range(_FUZZED // 10):
        changed = bytearray(first)
        for _ in range(chance.randint(1, 8)):
            changed[chance.randrange(len(changed) - 1)] = chance.randrange(256)
        broken[f"line {number} of random bytes"] = bytes(changed) + b"".join(others)
    yield from _each(folder, responses, broken)


def attack_inputs(folder: Path) -> Iterator[Trial]:
    """Change random bytes of datasets, predictions and CAPID's answers."""
    chance = random.Random(13)
    capid = {
        "context": "Mo has asthma.",
        "question": "Is flour bad?",
        "piis": {"asthma": {"type": "health", "relevance": "1"}},
    }
    answer = {"context": "Mo has asthma.", "question": "Is flour bad?", "parsed": capid["piis"]}
    prediction = {"id": "s1", "subjects": [[{"text": "Ann", "type": "PER"}]], "related": ["32"]}
    files = {
        "set.jsonl": [sample_record("s1"), sample_record("s2")],
        "capid.jsonl": [capid],
        "answers.jsonl": [answer],
        "mine.jsonl": [prediction, prediction | {"id": "s2"}],
    }
    commands = {
        "set.jsonl": (
            ("data", "check", "set.jsonl"),
            ("score", "mine.jsonl", "--dataset", "set.jsonl"),
        ),
        "capid.jsonl": (("data", "stats", "--dataset", "capid:capid.jsonl"),),
        "answers.jsonl": (
            (
                *("convert", "capid-outputs", "answers.jsonl"),
                *("--dataset", "capid:capid.jsonl", "--out", "out.jsonl"),
            ),
        ),
        "mine.jsonl": (("score", "mine.jsonl", "--dataset", "set.jsonl"),),
    }
    with contextlib.chdir(folder):
        for name, attacked in commands.items():
            for number in range(_FUZZED):
                for each, records in files.items():
                    write_lines(Path(each), records)
                raw = bytearray(Path(name).read_bytes())
                for _ in range(chance.randint(1, 4)):
                    raw[chance.randrange(len(raw))] = chance.randrange(256)
                Path(name).write_bytes(raw)
                yield _run(f"{name} {number}", attacked)


def _results(folder: Path) -> Path:
    """Store two valid models' runs and one to attack; return the manifest of the last."""
    dataset = tiny_dataset(folder / "tiny.jsonl")
    runs = folder / "results" / "runs"
    related = {"s1": '### Answer: ["32"]', "s2": ""}
    for model in ("fake/sound", "fake/other"):
        store_run(runs, dataset, "detection", {"s1": ANN, "s2": BO}, model=model)
        store_run(runs, dataset, "naive", related, model=model)
    return store_run(runs, dataset, "naive", related, model="fake/attacked").manifest


def _each(folder: Path, attacked: Path, contents: dict[str, bytes]) -> Iterator[Trial]:
    whole = attacked.read_bytes()
    with contextlib.chdir(folder):
        for name, content in contents.items():
            attacked.write_bytes(content)
            yield _run(name, _COMMANDS)
            attacked.write_bytes(whole)
            shutil.rmtree("out", ignore_errors=True)


def _run(name: str, commands: tuple[tuple[str, ...], ...]) -> Trial:
    checks: dict[str, bool] = {}
    for command in commands:
        out, err = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = _code(command)
        # Any exception is a failure of the trial.
        except Exception as error:  # noqa: BLE001
            checks[f"{command[0]} raises no {type(error).__name__}"] = False
            continue
        said = out.getvalue() + err.getvalue()
        checks[f"{command[0]} ends with code 0, 1 or 2"] = code in {0, 1, 2}
        checks[f"{command[0]} says no control character"] = "\x1b" not in said
        if command == ("leaderboard",):
            table = Path("results/leaderboard.csv").read_text(encoding="utf-8")
            checks["the sound runs are shown"] = code != 2 and "run,fake/sound" in table
    return Trial.of(name, checks)


def _code(command: tuple[str, ...]) -> int:
    try:
        return main(command)
    except SystemExit as refused:
        # argparse exits when it refuses an argument.
        return 2 if refused.code is None else int(refused.code)


def _paths(value: object, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return [above]
    inner = [path for key, each in value.items() for path in _paths(each, (*above, key))]
    return [*([above] if above else []), *inner]


def _replaced(value: Any, path: tuple[str, ...], by: object) -> Any:
    if not path:
        return by
    return value | {path[0]: _replaced(value[path[0]], path[1:], by)}


def attack_names(folder: Path) -> Iterator[Trial]:
    """Pass invalid names and paths on the command line."""
    names = (
        *("x" * 300, "\udcff.jsonl", "gone/x.jsonl", ".", "", "capid:", "tab:", "capid:\udcff"),
        *("con", "http:x", "~", "*", "-", "\x1b[2J.jsonl", "a/" * 200, "=1+1", "'\"$(x)`"),
    )
    commands = (
        ("score", "NAME", "--dataset", "demo"),
        ("score", "mine.jsonl", "--dataset", "NAME"),
        ("data", "check", "NAME"),
        ("run", "--model", "gold", "--dataset", "NAME"),
        ("run", "--model", "NAME", "--dataset", "demo"),
        ("leaderboard", "--results", "in/NAME"),
        ("report", "--results", "in/NAME"),
    )
    with contextlib.chdir(folder):
        for name in names:
            for command in commands:
                given = tuple(each.replace("NAME", name) for each in command)
                yield _run(f"{command[0]} {name[:20]!r}", (given,))
