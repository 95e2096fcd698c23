from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main
from pii_bench.datasets.catalog import DATASETS
from tests.builders import sample_record, write_lines

if TYPE_CHECKING:
    from pathlib import Path


def test_a_sound_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", str(DATASETS["demo"].path)]) == 0

    output = capsys.readouterr()
    assert output.out == "no problems in 12 samples\n"
    assert output.err == ""


def test_problems_with_file_id_rule_and_reason(
    own_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_lines(own_folder / "one.jsonl", [sample_record(query="Is 32 old, Ann?")])
    second = write_lines(
        own_folder / "two.jsonl",
        [
            sample_record("s2", description="Ann Lee is 32. Is 32 old?"),
            sample_record("s3", related=[]),
        ],
    )

    assert main(["data", "check", str(first), str(second)]) == 2

    output = capsys.readouterr()
    assert output.out.splitlines() == [
        f"{first}: s1: query-value: the query holds '32'",
        f"{first}: s1: query-name: the query holds 'Ann', of a name",
        f"{second}: s2: span-complete: '32' at [18, 20] is not annotated",
        f"{second}: s3: related-count: 0 entities are needed, not 1 to 3",
        f"{second}: s3: duplicate: the description is that of s1",
        "",
        "query-value: 1",
        "query-name: 1",
        "span-complete: 1",
        "related-count: 1",
        "duplicate: 1",
    ]
    assert output.err == "pii-bench: the check found 5 problems in 3 samples\n"


def test_a_file_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", "absent.jsonl"]) == 2

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "pii-bench: absent.jsonl: No such file or directory\n"


@pytest.mark.parametrize("arguments", [["data"], ["data", "check"], ["data", "mend"]])
def test_wrong_arguments(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
