"""Tables of every format, with upper case instead of tags."""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pii_bench.errors import InputFileError, MissingExtraError, PiiBenchError, UnknownNameError
from pii_bench.files import ResultsError
from pii_bench.masking.tables import Table, append, begin, open_table
from tests.builders import write_lines
from tests.full_disk import no_file_longer_than

if TYPE_CHECKING:
    from pathlib import Path

CSV: Final = 'id,text,ask\n1,"ann, ""bo""\ncy",old?\n2,,x\n3,dee,who?\n'
MASKED: Final = 'id,text,ask\n1,"ANN, ""BO""\nCY",old?\n2,,x\n3,DEE,who?\n'


def mask(table: Table, out: Path, *, rows: int | None = None, force: bool = False) -> int:
    """Mask the next rows (default: all) in upper case; return how many were masked before."""
    part = out.with_name(f"{out.name}.part")
    done = begin(table, part, force=force)
    for row in list(table.rows())[done:][:rows]:
        append(part, row.encode(row.text and row.text.upper()))
    if rows is None:
        table.finish(part, out)
        assert not part.exists()
    return done


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_json_lines_change_only_in_the_texts(tmp_path: Path) -> None:
    path = write(
        tmp_path / "in.JSONL",
        '{"text": "zoë\\n", "ask": "é?", "n": [1, {"text": "x"}]}\n\n{"ask": null, "text": null}',
    )
    table = open_table(path, "text", "ask")

    rows = list(table.rows())
    mask(table, tmp_path / "out.jsonl")

    assert [(row.text, row.query) for row in rows] == [("zoë\n", "é?"), (None, "")]
    assert [row.where for row in rows] == [f"{path}:1", f"{path}:3"]
    assert "zoë" not in repr(rows)
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == (
        '{"text": "ZOË\\n", "ask": "é?", "n": [1, {"text": "x"}]}\n{"ask": null, "text": null}\n'
    )


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        (
            '{"n": 1e400, "m": 0.10000000000000000001, "text": "ann"}',
            '{"n": 1e400, "m": 0.10000000000000000001, "text": "ANN"}',
        ),
        ('{"a":{"text":"x:y"},"text":"ann"}', '{"a":{"text":"x:y"},"text":"ANN"}'),
        ('\ufeff{ "te\\u0078t" : "ann\\n" , "a": [] }\r', '{ "te\\u0078t" : "ANN\\n" , "a": [] }'),
        # A parser keeps the last value of a key, but the file has both.
        ('{"text": "bo", "text": "ann"}', '{"text": "ANN", "text": "ANN"}'),
        ('{"text": "\\ud800"}', '{"text": "\\ud800"}'),
    ],
)
def test_a_line_of_json_is_kept_as_it_is_written(tmp_path: Path, line: str, masked: str) -> None:
    table = open_table(write(tmp_path / "in.jsonl", f"{line}\n"), "text")

    mask(table, tmp_path / "out.jsonl")

    assert (tmp_path / "out.jsonl").read_bytes().decode() == f"{masked}\n"


def test_csv_changes_only_in_the_texts(tmp_path: Path) -> None:
    table = open_table(write(tmp_path / "in.csv", CSV), "text", "ask")

    rows = list(table.rows())
    mask(table, tmp_path / "out.csv")

    assert [row.text for row in rows] == ['ann, "bo"\ncy', "", "dee"]
    assert [row.query for row in rows] == ["old?", "x", "who?"]
    assert rows[2].where == f"{tmp_path / 'in.csv'}: row 3"
    assert (tmp_path / "out.csv").read_bytes().decode() == MASKED


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("text,b\r\na,é\r\n", "text,b\r\nA,é\r\n"),
        ("text,b\na,é", "text,b\nA,é\n"),
        ("\ufefftext\na\n", "\ufefftext\nA\n"),
        ('\ufeff"text"\na\n', "\ufefftext\nA\n"),
        # A blank line is no row; a row of one empty cell has quotes.
        ('text\n\na\n""\n', 'text\nA\n""\n'),
        ('text,b\n"a\r","\r\n"\n', 'text,b\n"A\r","\r\n"\n'),
        ("text\n", "text\n"),
        (f"text\n{'a' * 200_000}\n", f"text\n{'A' * 200_000}\n"),
    ],
)
def test_csv_dialects_are_kept(tmp_path: Path, text: str, masked: str) -> None:
    mask(open_table(write(tmp_path / "in.csv", text), "text"), tmp_path / "out.csv")

    assert (tmp_path / "out.csv").read_bytes().decode() == masked


CELLS: Final = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    ['"', '"\n', '""\r\n"', ",\n", "\r"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(texts=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4), data=st.data())
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_a_run_cut_anywhere_resumes_to_the_same_table(
    tmp_path: Path, ending: str, texts: list[tuple[str, str]], data: st.DataObject
) -> None:
    path, out = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    write_lines(path, [{"text": a, "b": b} for a, b in texts])
    if ending == "csv":
        quoted = [[cell.replace('"', '""') for cell in row] for row in [("text", "b"), *texts]]
        write(path, "".join(f'"{a}","{b}"\n' for a, b in quoted))
    table = open_table(path, "text")
    mask(table, out, force=True)
    whole = out.read_bytes()

    cut = data.draw(st.integers(0, len(whole)))
    out.with_name(f"{out.name}.part").write_bytes(whole[:cut])
    done = mask(table, out)

    assert out.read_bytes() == whole
    assert done == len(texts) if cut == len(whole) else done < len(texts)


def test_a_full_disk_loses_only_the_incomplete_row(tmp_path: Path) -> None:
    table = open_table(write(tmp_path / "in.csv", CSV), "text")
    out, part = tmp_path / "out.csv", tmp_path / "out.csv.part"

    with no_file_longer_than(20), pytest.raises(ResultsError, match=r"out\.csv\.part: cannot be"):
        mask(table, out)

    assert part.read_bytes() == MASKED.encode()[:20]
    assert mask(table, out, rows=2) == 0
    assert mask(table, out) == 2
    assert out.read_bytes() == MASKED.encode()


def test_only_force_discards_the_part_of_another_table(tmp_path: Path) -> None:
    table = open_table(write(tmp_path / "in.csv", CSV), "text")
    part = write(tmp_path / "out.csv.part", "id,other\n1,ANN\n")

    with pytest.raises(PiiBenchError, match=r"out\.csv\.part: belongs to another table; --for"):
        begin(table, part, force=False)

    assert part.read_text() == "id,other\n1,ANN\n"
    assert begin(table, part, force=True) == 0
    assert part.read_text() == "id,text,ask\n"


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"txt": "ann"}\n', ":2: record: 'text' is missing"),
        ("a.jsonl", b'{"text": 7}\n', ":1: record: 'text' must be a string, not a whole number"),
        ("a.jsonl", b'{"text": "ann', ":1: not valid JSON (column 10: Unterminated string"),
        ("a.jsonl", b"\xff\n", ":1: not valid UTF-8 (byte 0 of the line)"),
        ("a.csv", b"txt\nann\n", ": 0 columns are named 'text'; did you mean 'txt'?"),
        ("a.csv", b"ann lee\nbo\n", ": 0 columns are named 'text'"),
        ("a.csv", b"text,text\nann,bo\n", ": 2 columns are named 'text'"),
        ("a.csv", b"", ": 0 columns are named 'text'"),
        ("a.csv", b"text,b\nann\n", ":2: row 1 has 1 cells, the header 2"),
        ("a.csv", b'text\n"ann\nbo\n', ":3: not valid CSV: unexpected end of data"),
        ("a.csv", b"text\nann\nbo\xff\n", ":3: not valid UTF-8 (byte 2)"),
        ("gone.csv", None, ": No such file or directory"),
        ("gone.jsonl", None, ": No such file or directory"),
    ],
)
def test_errors_name_the_place_and_quote_nothing(
    tmp_path: Path, name: str, content: bytes | None, what: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)

    with pytest.raises(InputFileError) as caught:
        list(open_table(tmp_path / name, "text").rows())

    assert str(caught.value).startswith(f"{tmp_path / name}{what}")
    assert "ann" not in str(caught.value).removeprefix(str(tmp_path))


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"'\.json'; did you mean '\.jsonl'\? \(allowed: "):
        open_table(tmp_path / "in.json", "text")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(MissingExtraError, match=r"run `.* -m pip install pyarrow`"):
        open_table(tmp_path / "in.parquet", "text")


@pytest.fixture
def pq() -> Any:
    pytest.importorskip("pyarrow")
    return importlib.import_module("pyarrow.parquet")


@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_parquet_changes_only_in_the_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pq: Any, kind: str
) -> None:
    arrow = importlib.import_module("pyarrow")
    schema = arrow.schema(
        [("day", arrow.timestamp("ms")), ("text", arrow.type_for_alias(kind)), ("ask", "string")],
        metadata={"of": "ours"},
    )
    columns = ([86_400, None, 0], ["zoë", None, "ann\nbo"], ["a?", None, "c?"])
    arrays = [arrow.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
    before = arrow.Table.from_arrays(arrays, schema=schema)
    pq.write_table(before, tmp_path / "in.parquet")
    monkeypatch.setattr("pii_bench.datasets.rows._BATCH_SIZE", 2)
    table = open_table(tmp_path / "in.parquet", "text", "ask")
    out, part = tmp_path / "out.parquet", tmp_path / "out.parquet.part"

    assert [row.query for row in table.rows()] == ["a?", "", "c?"]
    assert mask(table, out, rows=2) == 0
    assert list(map(json.loads, part.read_text().splitlines())) == ["ZOË", None]
    part.write_bytes(part.read_bytes() + b'"AN')
    assert mask(table, out) == 2

    after = pq.read_table(out)
    assert after.schema.equals(schema, check_metadata=True)
    assert after.column("text").to_pylist() == ["ZOË", None, "ANN\nBO"]
    assert after.drop_columns("text") == before.drop_columns("text")


def test_a_broken_parquet_file_is_refused(tmp_path: Path, pq: Any) -> None:
    path = write(tmp_path / "in.parquet", "ann")
    with pytest.raises(InputFileError, match=r"in\.parquet: not a Parquet file$"):
        open_table(path, "text")
    with pytest.raises(InputFileError, match=r"gone\.parquet: No such file"):
        open_table(tmp_path / "gone.parquet", "text")
    arrow = importlib.import_module("pyarrow")
    pq.write_table(arrow.table({"text": ["ann lee"] * 2_000}), path)
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\xff" * 40 + content[44:])
    with pytest.raises(InputFileError, match=r"in\.parquet: not a readable Parquet file$"):
        list(open_table(path, "text").rows())
    pq.write_table(arrow.table({"text": [1]}), path)
    with pytest.raises(InputFileError, match="'text' holds int64; allowed: string or large_string"):
        open_table(path, "text")
