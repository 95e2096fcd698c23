"""`pii-bench mask` on one text, mostly with answers from a replay file."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pii_bench.cli import main
from pii_bench.systems import KEEP
from tests.builders import write_lines
from tests.protocol_server import ProtocolServer, completion

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys

TEXT: Final = "Ann Lee, 32,\r\nBo Ek.\n"
QUERY: Final = "Am I old?"
FOUND: Final = 'Subject1{"Ann Lee": "PER", "32": "DEM"}\nSubject2{"Bo Ek": "PER"}'
MASKED: Final = "<Full Name 1>, 32,\r\n<Full Name 2>.\n"
MAPPING: Final = {"<Full Name 1>": ["Ann Lee"], "<Full Name 2>": ["Bo Ek"]}


def system(detection: str = FOUND, related: str = '### Answer: ["32"]') -> str:
    answers = [
        {"id": "text", "prompt": "detection", "text": detection, "finish": "stop"},
        {"id": "text", "text": related, "finish": "stop"},
    ]
    return f"replay:{write_lines(Path('answers.jsonl'), answers)}"


def mask(*options: object, query: str = QUERY) -> int:
    return main(["mask", "--query", query, *map(str, options)])


def unmask(*options: object) -> int:
    return main(["mask", "--unmask", "--mapping", "mapping.json", *map(str, options)])


def pipe(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.fixture
def letter() -> Path:
    path = Path("letter.txt")
    path.write_bytes(TEXT.encode())
    return path


def test_a_text_is_masked_for_a_query_and_restored(
    letter: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert mask(letter, "--model", system(), "--mapping", "mapping.json") == 0

    output = capfdbinary.readouterr()
    assert output.out == MASKED.encode()
    assert output.err.decode().splitlines() == [
        "pii-bench mask: the unmasked text goes to: this machine",
        "pii-bench mask: masked: 2 values at 2 places (PER 2)",
        "pii-bench mask: left readable because the query needs it (DEM 1)",
    ]
    mapping = Path("mapping.json")
    assert json.loads(mapping.read_text())["tags"] == MAPPING
    assert stat.S_IMODE(mapping.stat().st_mode) == 0o600

    letter.write_bytes(output.out)
    assert unmask(letter) == 0
    assert capfdbinary.readouterr() == (TEXT.encode(), b"")


def test_explain_tells_what_became_of_values_inside_others(capsys: Capsys) -> None:
    letter = Path("letter.txt")
    letter.write_text("Ann Lee lives at 14 Mill Lane, Leeds.")
    found = '{"14 Mill Lane, Leeds": "LOC", "Leeds": "LOC", "Ann Lee": "PER", "Lee": "PER"}'
    name = system(f"Subject1{found}", '### Answer: ["14 Mill Lane, Leeds", "London"]')

    assert mask(letter, "--model", name, "--explain") == 0

    assert capsys.readouterr().err.splitlines()[1:] == [
        "pii-bench mask: masked: 1 value at 1 place (PER 1)",
        "pii-bench mask: left readable because the query needs it (LOC 1)",
        "pii-bench mask: left readable inside a value that the query needs (LOC 1)",
        "type    text                 becomes",
        "------  -------------------  -------------",
        "LOC     14 Mill Lane, Leeds  left readable",
        "LOC     Leeds                left readable",
        "PER     Ann Lee              <Full Name>",
        "PER     Lee                  <Full Name>",
    ]


def test_the_default_system_masks_standard_input_on_this_machine(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(monkeypatch, "I am Ann Lee. Write to bo.ek@mail.example.")

    # What only the query contains is counted too.
    query = "I am ann.lee@mail.example: how do I close my account?"
    assert mask("--local-only", query=query) == 0

    output = capsys.readouterr()
    assert "bo.ek@mail.example" not in output.out
    assert "<" in output.out
    assert "this machine" in output.err
    assert output.err.splitlines()[-1] == (
        "pii-bench mask: the query itself contains 1 value (CODE 1): it is not masked"
    )
    assert os.listdir(Path()) == []  # noqa: PTH208 -- hidden files too


def test_no_other_file_is_written_and_no_message_quotes_the_text(
    letter: Path, capsys: Capsys
) -> None:
    name = system(FOUND + '\nSubject3{"Cy Orr": "PER"}')

    assert mask(letter, "--model", name, query="Is Ann Lee old, Bo Ek?") == 0

    errors = capsys.readouterr().err
    assert errors.splitlines()[1:] == [
        "pii-bench mask: masked: 2 values at 2 places (PER 2)",
        "pii-bench mask: left readable because the query needs it (DEM 1)",
        "pii-bench mask: named by the system, but not found in the text: 1",
        "pii-bench mask: the query itself contains 2 values (PER 2): it is not masked",
    ]
    assert {path.name for path in Path().iterdir()} == {"letter.txt", "answers.jsonl"}


def test_failed_answers_refuse_the_text_or_mask_everything(letter: Path, capsys: Capsys) -> None:
    for answers, options, code, shown, message in (
        (("Ann Lee, I suppose.",), ["--on-failure", "mask-all"], 2, "", "; nothing is masked\n"),
        ((FOUND, "Hm."), ["--mapping", "mapping.json"], 2, "", "; nothing is masked\n"),
        (
            (FOUND, "Hm."),
            ["--on-failure", "mask-all"],
            0,
            "<Full Name 1>, <Age>,\r\n<Full Name 2>.\n",
            "everything that was found is masked\n",
        ),
    ):
        assert mask(letter, "--model", system(*answers), *options) == code
        output = capsys.readouterr()
        assert output.out == shown
        assert output.err.endswith(message)
    assert not Path("mapping.json").exists()


def test_options_reach_the_server(
    letter: Path, capsys: Capsys, protocol_server: ProtocolServer
) -> None:
    protocol_server.script(completion(FOUND), completion('### Answer: ["32"]'))
    options = ("--model", "openai/m", "--base-url", protocol_server.url, "--max-tokens", 99)

    assert mask(letter, *options, "--strategy", "self-cot", "--temperature", 0.7) == 0

    assert capsys.readouterr().out == MASKED
    bodies = [request.body for request in protocol_server.requests]
    assert [(body["max_tokens"], body["temperature"]) for body in bodies] == [(99, 0.7)] * 2
    assert "step by step" in str(bodies[1])


def test_a_mapping_is_not_overwritten_without_force(letter: Path, capsys: Capsys) -> None:
    options = (letter, "--model", system(), "--mapping", "mapping.json")
    assert mask(*options) == 0
    capsys.readouterr()

    assert mask(*options) == 2
    output = capsys.readouterr()
    assert output.out == ""
    # Refused before the system is asked.
    assert output.err.startswith("pii-bench: mapping.json: already exists, ")
    assert mask(*options, "--force") == 0
    assert capsys.readouterr().out == MASKED


def test_the_text_is_not_printed_if_the_mapping_cannot_be_written(
    letter: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    assert mask(letter, "--model", system(), "--mapping", "mapping.json") == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.endswith("mapping.json: cannot be written: No space left on device\n")


def test_an_answer_is_restored_and_other_tags_are_logged(
    capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapping = {"format": "pii-bench-mask-1", "tags": MAPPING}
    Path("mapping.json").write_text(json.dumps(mapping))

    pipe(monkeypatch, "Dear <Full Name 1>,\nyou are not old.")
    assert unmask("-") == 0
    assert capsys.readouterr() == (
        "Dear Ann Lee,\nyou are not old.",
        "pii-bench mask: not in the text: <Full Name 2>\n",
    )

    pipe(monkeypatch, "<full name 1>, <Full Name 2>, <Full Name 7>")
    assert unmask("-") == 1
    left = "left as they are, because the mapping has other numbers: <Full Name 7>"
    assert capsys.readouterr() == ("Ann Lee, Bo Ek, <Full Name 7>", f"pii-bench mask: {left}\n")


ASK = "letter.txt --query Q"
UNMASK = "--unmask --mapping m"
REWRITE = f"{ASK} --rewrite --model replay:answers.jsonl"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("letter.txt", "--query is missing: what will be asked about the text?"),
        ("letter.txt --query=", "the query is blank: give the question about the text"),
        ("gone.txt --query Q", "gone.txt: No such file or directory"),
        ("latin1.txt --query Q", "latin1.txt: not valid UTF-8 (byte 2)"),
        (f"{ASK} --force", "--force replaces the file of --mapping"),
        (f"{ASK} --mapping -", "--mapping: a mapping is never printed"),
        (f"{ASK} --mapping no/m", "no: no such folder; a mapping"),
        (f"{ASK} --model bilstm-crf", "system 'bilstm-crf' does not"),
        (f"{ASK} --model gold+all", "system 'gold' (detection) uses"),
        (f"{ASK} --workers 3", "one text does not use --workers"),
        (f"{ASK} --timeout 3", "system 'encoder' does not use --timeo"),
        ("letter.txt --unmask", "--unmask needs the file of --mapping"),
        (f"{UNMASK} --query Q", "--unmask does not use --query"),
        (f"{UNMASK} --explain", "--unmask does not use --explain: leave it"),
        (f"{UNMASK} --query-column q", "--unmask does not use --query-co"),
        ("--unmask --mapping gone.json", "gone.json: No such file or directory"),
        ("--unmask --mapping letter.txt", "letter.txt: not a mapping file: not valid JSON"),
        (f"{ASK} --rewrite", "system 'encoder' writes no text: --rewrite needs a chat model"),
        (f"{REWRITE} --mapping m.json", "--rewrite does not use --mapping"),
        (f"{REWRITE} --strategy naive", "--rewrite does not use --strategy"),
        (f"{REWRITE} --on-failure mask-all", "--rewrite does not use --on-failure"),
        (f"{REWRITE} --output schema", "strategy 'rewrite' has no schema"),
        (f"{REWRITE} --force", "--force is for the output of a corpus"),
        (
            f"{ASK} --rewrite --model openai/m --base-url http://x.example/v1 --local-only",
            "--local-only: system 'openai/m@x.example' ",
        ),
    ],
)
@pytest.mark.usefixtures("letter")
def test_wrong_arguments_and_input(capsys: Capsys, arguments: str, what: str) -> None:
    system()
    Path("latin1.txt").write_bytes("Zoë".encode("latin-1"))

    assert main(["mask", *arguments.split()]) == 2

    output = capsys.readouterr()
    assert output.out == ""
    last = output.err.splitlines()[-1]
    assert last.startswith(f"pii-bench: {what}")
    assert "Ann" not in output.err


IDENTITY = (
    "My name is Ann Lee. My IBAN is GB82WEST12345698765432, my social security number is "
    "536-22-8719, you reach me at ann.lee@example.org or +44 20 7946 0958. I take ibuprofen for my "
    "asthma."
)
ACCOUNT = "GB82WEST12345698765432"
NEVER_NEEDED = ("Ann Lee", "536-22-8719", "ann.lee@example.org", "+44 20 7946 0958")


@pytest.mark.parametrize("keep", KEEP)
def test_identity_values_stay_readable_only_if_the_query_needs_them(
    capsys: Capsys, keep: str
) -> None:
    letter = Path("identity.txt")
    letter.write_text(IDENTITY)

    def masked(query: str) -> str:
        assert main(["mask", str(letter), "--query", query, "--keep", keep]) == 0
        return capsys.readouterr().out

    health = masked("Is ibuprofen safe with asthma?")
    assert [each for each in (*NEVER_NEEDED, ACCOUNT) if each in health] == []
    # At the least, what treats it is masked as well.
    assert ("for my asthma." if keep == "least" else "I take ibuprofen for my asthma.") in health
    bank = masked("Is the check digit of my IBAN right?")
    assert [each for each in NEVER_NEEDED if each in bank] == []
    assert ACCOUNT in bank
    name = masked("What is the origin of my name, Ann Lee?")
    assert [each for each in (*NEVER_NEEDED, ACCOUNT) if each in name] == []
