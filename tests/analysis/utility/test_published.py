from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis.utility.published import published_figures
from pii_bench.errors import InputFileError
from pii_bench.ranking.source import Source

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "table,task,dataset,model,strategy,metric,value,note\n"


def test_the_figures_of_the_paper() -> None:
    rows = published_figures()

    assert [
        (row.condition, *(each.value for each in (row.means.privacy, row.means.utility)))
        for row in rows
    ] == [("no-mask", 0.0, 1.0), ("mask-all", 1.0, 0.52), ("mask-query-unrelated", 0.83, 0.89)]
    assert [row.means.balanced.value for row in rows] == [0.5, 0.76, 0.86]
    assert {(row.source, row.answerer, row.measure, row.note) for row in rows} == {
        (Source.PUBLISHED, "gpt-4o-2024-08-06", "not said", "paper, table 8")
    }
    assert not any(row.complete or row.signature for row in rows)


def test_figures_of_other_tasks_are_left(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(HEADER + "2,detection,single,human,,strict_f1,0.9,\n", encoding="utf-8")

    assert published_figures(path) == []


@pytest.mark.parametrize(
    "line",
    [
        "8,privacy_utility,set,m,no-mask,privacy,1.1,",
        "8,privacy_utility,set,m,no-mask,privacy,much,",
        "8,privacy_utility,set,m,no-mask,f1,0.5,",
    ],
)
def test_what_is_no_figure(tmp_path: Path, line: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(HEADER + line + "\n", encoding="utf-8")

    with pytest.raises(InputFileError, match="no table of published figures"):
        published_figures(path)
