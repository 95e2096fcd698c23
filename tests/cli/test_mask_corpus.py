"""`pii-bench mask` on folders and tables."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pii_bench.cli import main
from pii_bench.errors import InputFileError
from pii_bench.runs.corpora import TableRun, corpus_of_table
from tests.builders import read_folder, read_lines, write_lines
from tests.protocol_server import ProtocolServer, Reply, completion

if TYPE_CHECKING:
    from tests.cli.conftest import Capsys

FOUND: Final = 'Subject1{"Ann Lee": "PER", "32": "DEM"}'
NEEDED: Final = '### Answer: ["32"]'
ROWS: Final = [{"n": n, "text": f"Ann Lee is {n}.", "ask": "Old?"} for n in (31, 32, 33)]
OWN: Final = ("--query-column", "ask")
MASKED: Final = [row | {"text": f"<Full Name> is {row['n']}."} for row in ROWS]


@pytest.fixture
def replay() -> str:
    answers = [
        {"id": "text", "prompt": "detection", "text": FOUND, "finish": "stop"},
        {"id": "text", "text": NEEDED, "finish": "stop"},
    ]
    return f"replay:{write_lines(Path('said/answers.jsonl'), answers)}"


@pytest.fixture
def letters() -> Path:
    folder = Path("letters")
    (folder / "old").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"Ann Lee is 32.\r\n")
    (folder / "old" / "b.txt").write_bytes(b"Dear Ann Lee,\nAnn Lee")
    (folder / "old" / "empty.txt").write_bytes(b" \n")
    (folder / "notes.md").write_bytes(b"Ann Lee")
    return folder


@pytest.fixture
def table() -> Path:
    return write_lines(Path("rows.jsonl"), ROWS)


def behind(server: ProtocolServer) -> tuple[str, ...]:
    """Return the options of a chat model behind a server."""
    return ("--model", "openai/m", "--base-url", server.url)


def mask(*options: object) -> int:
    return main(["mask", *map(str, options)])


def mask_folder(*options: object) -> int:
    return mask("letters", "--query", "Old?", "--out", "out", *options)


def mask_table(*options: object, asked: tuple[str, str] = ("--query", "Old?")) -> int:
    return mask("rows.jsonl", "--column", "text", *asked, "--out", "o.jsonl", *options)


def test_every_text_of_a_folder_is_masked(letters: Path, replay: str, capsys: Capsys) -> None:
    assert mask_folder("--query", "Is Ann Lee old?", "--model", replay) == 0

    assert read_folder(Path("out")) == {
        "a.txt": b"<Full Name> is 32.\r\n",
        "old/b.txt": b"Dear <Full Name>,\n<Full Name>",
        "old/empty.txt": b" \n",
    }
    output = capsys.readouterr()
    assert output.out == ""
    lines = output.err.splitlines()
    assert lines[:2] == [
        "pii-bench mask: the unmasked text goes to: this machine",
        f"pii-bench mask: {letters}: 3 to answer",
    ]
    assert "3 of 3 done, 0 failed" in lines[2]
    assert lines[3:] == [
        "pii-bench mask: texts: 3",
        "pii-bench mask: masked: 2 values at 3 places (PER 2)",
        "pii-bench mask: left readable because the query needs it (DEM 1)",
        "pii-bench mask: the query itself contains 1 value (PER 1): it is not masked",
    ]


@pytest.mark.usefixtures("letters")
def test_existing_files_are_skipped_unless_forced(replay: str, capsys: Capsys) -> None:
    there = Path("out/a.txt")
    there.parent.mkdir()
    there.write_text("as it was")

    assert mask_folder("--model", replay) == 0
    assert there.read_text() == "as it was"
    assert "mask: texts: 3, 1 of them masked before and not" in capsys.readouterr().err
    assert mask_folder("--model", replay, "--force") == 0
    assert there.read_bytes() == b"<Full Name> is 32.\r\n"
    assert "mask: texts: 3\n" in capsys.readouterr().err


def test_a_folder_begun_with_force_continues_without_it(
    letters: Path, replay: str, capsys: Capsys
) -> None:
    out = Path("out")
    (out / "old").mkdir(parents=True)
    for name in ("a.txt", "old/b.txt", "other.txt"):
        (out / name).write_text("as it was")
    (letters / "old" / "b.txt").write_bytes(b"\xff")

    assert mask_folder("--model", replay, "--force") == 2
    assert set(read_folder(out)) == {"a.txt", "other.txt"}
    (letters / "old" / "b.txt").write_text("Ann Lee")
    assert mask_folder("--model", replay) == 0

    assert read_folder(out) == {
        "a.txt": b"<Full Name> is 32.\r\n",
        "old/b.txt": b"<Full Name>",
        "old/empty.txt": b" \n",
        "other.txt": b"as it was",
    }
    assert "texts: 3, 1 of them masked before" in capsys.readouterr().err


@pytest.mark.parametrize("locked", ["os.scandir", "pathlib.Path.stat"])
@pytest.mark.usefixtures("letters")
def test_a_subfolder_that_cannot_be_read_is_an_error(
    replay: str, capsys: Capsys, monkeypatch: pytest.MonkeyPatch, locked: str
) -> None:
    # `chmod` would not keep the administrator out.
    original = os.scandir if locked == "os.scandir" else Path.stat

    def refuse(path: Any, **options: Any) -> Any:
        if "old" in (Path(path).name, Path(path).parent.name):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return original(path, **options)

    monkeypatch.setattr(locked, refuse)

    assert mask_folder("--model", replay) == 2

    error = capsys.readouterr().err
    assert re.search(r"pii-bench: letters/old(/\w+\.txt)?: Permission denied\n$", error)
    assert not Path("out").exists()


@pytest.mark.usefixtures("letters")
def test_a_folder_in_the_place_of_a_masked_text_is_an_error(replay: str, capsys: Capsys) -> None:
    Path("out/a.txt").mkdir(parents=True)

    assert mask_folder("--model", replay) == 2

    assert "pii-bench: out/a.txt: cannot be written: Is a directory\n" in capsys.readouterr().err


def test_a_column_is_masked_for_the_query_of_each_row(
    table: Path, protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    write_lines(table, [row | {"ask": f"Number {n}?"} for n, row in enumerate(ROWS)])
    needed = ("[]", '["32"]', "[]")
    protocol_server.script(
        *(completion(text) for each in needed for text in (FOUND, f"### Answer: {each}"))
    )

    assert mask_table(*behind(protocol_server), asked=OWN) == 0

    texts = [row["text"] for row in read_lines(Path("o.jsonl"))]
    assert texts == [row["text"] for row in MASKED]
    asked = [str(request.body) for request in protocol_server.requests]
    assert ["Number 0?" in each for each in asked] == [False, True, *[False] * 4]
    assert ["Number 2?" in each for each in asked] == [*[False] * 5, True]
    assert "(DEM 1)" in capsys.readouterr().err


def test_values_in_queries_of_rows_are_counted_by_row(
    table: Path, replay: str, capsys: Capsys
) -> None:
    write_lines(table, [row | {"ask": "Is Ann Lee old?"} for row in ROWS])

    assert mask_table("--model", replay, asked=OWN) == 0

    assert capsys.readouterr().err.splitlines()[-1] == (
        "pii-bench mask: the queries themselves contain 3 values (PER 3): they are not masked"
    )


@pytest.mark.usefixtures("no_jitter")
def test_a_failure_stops_a_table_and_the_next_run_continues_there(
    table: Path, protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    out, part = Path("o.jsonl"), Path("o.jsonl.part")
    failed = Reply(status=400, body={"error": {"message": "Ann Lee is 32."}})
    protocol_server.script(completion(FOUND), completion("### Answer: []"), failed)

    assert mask_table(*behind(protocol_server)) == 2

    error = capsys.readouterr().err
    assert f"pii-bench: {table}:2: system 'openai/m@" in error
    assert error.endswith("(the texts before it are saved: run again to continue)\n")
    assert "Ann" not in error
    assert read_lines(part) == MASKED[:1]
    assert not out.exists()

    part.write_bytes(part.read_bytes() + b'{"n": 32, "text": "<Full N')
    protocol_server.script(*[completion(FOUND), completion(NEEDED)] * 2)
    before = len(protocol_server.requests)
    assert mask_table(*behind(protocol_server)) == 0

    assert len(protocol_server.requests) == before + 4
    assert read_lines(out) == MASKED
    assert not part.exists()
    assert "texts: 3, 1 of them masked before and not counted here" in capsys.readouterr().err


@pytest.mark.usefixtures("no_jitter", "table")
@pytest.mark.parametrize(
    ("others", "what"),
    [
        (["--column", "ask"], "column ('text', now 'ask')"),
        (["--query", "Young?"], "query"),
        (["--model", "encoder"], "system ('openai/m', now 'encoder')"),
        (["--rewrite"], "rewrite (False, now True)"),
        (["--strategy", "self-cot"], "strategy (None, now 'self-cot')"),
    ],
)
def test_only_the_same_run_continues_a_table(
    protocol_server: ProtocolServer, capsys: Capsys, others: list[str], what: str
) -> None:
    part, record = Path("o.jsonl.part"), Path("o.jsonl.part.json")
    failed = Reply(status=400, body={"error": {"message": "No."}})
    protocol_server.script(completion(FOUND), completion(NEEDED), failed)
    assert mask_table(*behind(protocol_server)) == 2
    begun = part.read_bytes(), record.read_bytes()

    model = () if "encoder" in others else behind(protocol_server)
    assert mask_table(*model, *others) == 2

    error = capsys.readouterr().err.splitlines()[-1]
    assert error == f"pii-bench: {part}: was begun with another {what}; --force starts again"
    assert (part.read_bytes(), record.read_bytes()) == begun
    assert "Old?" not in record.read_text()

    protocol_server.script(*[completion(FOUND), completion("### Answer: []")] * 3)
    assert mask_table("--query", "Young?", *behind(protocol_server), "--force") == 0
    assert len(read_lines(Path("o.jsonl"))) == 3
    assert not record.exists()


def test_another_label_map_does_not_continue_a_table(table: Path) -> None:
    run = TableRun(
        column="text",
        query_column="ask",
        query_sha256=None,
        system="spacy+all",
        keep="balanced",
        rewrite=False,
        strategy=None,
        label_map=None,
    )
    out = Path("o.jsonl")
    assert corpus_of_table(table, out, run, force=False).total == 3
    assert corpus_of_table(table, out, run, force=False).total == 3

    message = "was begun with another label map (None, now 'map.json')"
    with pytest.raises(InputFileError, match=re.escape(message)):
        corpus_of_table(table, out, replace(run, label_map="map.json"), force=False)


@pytest.mark.usefixtures("table")
def test_texts_without_a_relevance_decision_are_counted(
    protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    answers = (NEEDED, "Hm.", NEEDED)
    protocol_server.script(*(completion(each) for pair in answers for each in (FOUND, pair)))

    assert mask_table(*behind(protocol_server), "--on-failure", "mask-all") == 0

    assert (
        "pii-bench mask: for 1 of 3 texts the system did not say what the query needs: "
        "everything that was found in them is masked\n"
    ) in capsys.readouterr().err


def test_a_failure_stops_a_folder(
    letters: Path, protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    protocol_server.script(completion(FOUND), completion("Hm."), completion("Ann Lee, I think."))

    assert mask_folder(*behind(protocol_server), "--on-failure", "mask-all") == 2

    error = capsys.readouterr().err
    assert f"pii-bench: {letters / 'old' / 'b.txt'}: system 'openai/m@" in error
    assert "Ann" not in error
    assert read_folder(Path("out")) == {"a.txt": b"<Full Name> is <Age>.\r\n"}


def test_an_existing_table_is_replaced_only_with_force(
    table: Path, replay: str, capsys: Capsys
) -> None:
    out, part = Path("o.jsonl"), Path("o.jsonl.part")
    out.write_text("mine")

    assert mask_table("--model", replay) == 2
    assert f"{out}: exists already; --force replaces it" in capsys.readouterr().err
    assert out.read_text() == "mine"
    # A run with --force that was stopped goes on without it.
    write_lines(part, MASKED[:2])
    assert mask_table("--model", replay) == 0
    assert read_lines(out) == MASKED

    write_lines(part, [{"n": 0}] * 4)
    assert mask_table("--model", replay) == 2
    assert f"{part}: has 4 rows, {table} only 3; --force starts" in capsys.readouterr().err
    assert mask_table("--model", replay, "--force") == 0
    assert [row["n"] for row in read_lines(out)] == [31, 32, 33]


def test_a_bad_row_is_an_error_before_any_call(
    table: Path, protocol_server: ProtocolServer, capsys: Capsys
) -> None:
    table.write_text(table.read_text() + json.dumps({"text": 7}) + "\n")

    assert mask_table(*behind(protocol_server)) == 2

    assert f"pii-bench: {table}:4: record: 'text' must be a string" in capsys.readouterr().err
    assert protocol_server.requests == []


@pytest.mark.parametrize("blank", [" ", None])
def test_a_blank_query_is_an_error_before_any_call_unless_there_is_no_text(
    table: Path, protocol_server: ProtocolServer, capsys: Capsys, blank: str | None
) -> None:
    empty = [{"text": "", "ask": ""}, {"text": None, "ask": None}]
    write_lines(table, [*empty, {"text": "Ann Lee", "ask": blank}])

    assert mask_table(*behind(protocol_server), asked=OWN) == 2

    assert capsys.readouterr().err.splitlines()[-1] == (
        f"pii-bench: {table}:3: the query is blank: what will be asked about the text?"
    )
    assert protocol_server.requests == []
    assert not Path("o.jsonl.part").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("letters --query Q", "--out is missing: where do the masked texts go?"),
        ("letters --out o", "what will be asked about the texts? Give --query or --query-column"),
        ("letters --out o --query Q --query-column ask", "what will be asked about the texts? Gi"),
        ("letters --out o --query=", "the query is blank: what will be asked about the texts?"),
        ("letters --out o --query Q --column a", "letters: a folder has no columns; it takes --qu"),
        ("letters --out o --query Q --mapping m", "a corpus does not use --mapping: leave it out"),
        ("letters --out letters --query Q", "letters: must not be inside letters, nor contain it"),
        ("letters --out letters/o --query Q", "letters/o: must not be inside letters, nor conta"),
        ("letters --out . --query Q", ".: must not be inside letters, nor contain it"),
        ("said --out o --query Q", "said: contains no *.txt file"),
        ("rows.jsonl --out o.jsonl --query Q", "--column is missing: which column of rows.jsonl"),
        ("rows.jsonl --column a --query-column a --out o.jsonl", "--query-column is the column of"),
        ("rows.jsonl --column text --query Q --out o.csv", "o.csv: must end in '.jsonl', like"),
        ("rows.jsonl --column text --query Q --out rows.jsonl", "rows.jsonl: is the input it"),
        ("--query Q --out o", "--out is for a corpus, a folder or a table; one text goes to stan"),
        (
            "rows.jsonl --column text --query Q --out o.jsonl --workers 2",
            "--workers is for --engine ray",
        ),
        ("letters/a.txt --query Q --out o.txt", "--out is for a corpus, a folder or a table; one"),
        ("--query Q --out o --column a", "a corpus is a folder or a table, not standard input: "),
        ("gone --query Q --out o", "gone: No such file or directory"),
        ("gone.jsonl --column text --query Q --out o.jsonl", "gone.jsonl: No such file or direct"),
    ],
)
@pytest.mark.usefixtures("letters", "table")
def test_wrong_arguments(replay: str, capsys: Capsys, arguments: str, what: str) -> None:
    before = read_folder(Path())

    assert mask(*arguments.split(), "--model", replay) == 2

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines()[-1].startswith(f"pii-bench: {what}")
    assert read_folder(Path()) == before


@pytest.mark.usefixtures("table")
def test_a_command_without_ray_leaves_nothing(
    replay: str, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    before = read_folder(Path())

    assert mask_table("--model", replay, "--engine", "ray") == 2

    assert "pip install -e '.[ray]'" in capsys.readouterr().err
    assert read_folder(Path()) == before


@pytest.mark.usefixtures("table")
def test_a_refused_system_leaves_the_masked_rows_unchanged(capsys: Capsys) -> None:
    part = write_lines(Path("o.jsonl.part"), MASKED[:2])
    far = ("--model", "openai/m", "--base-url", "https://models.example/v1", "--local-only")

    assert mask_table(*far, "--force") == 2

    assert "--local-only: system" in capsys.readouterr().err
    assert read_lines(part) == MASKED[:2]
