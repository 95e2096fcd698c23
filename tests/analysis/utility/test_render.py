from __future__ import annotations

from typing import TYPE_CHECKING

from pii_bench.analysis.utility.chats import Ratings
from pii_bench.analysis.utility.collect import samples_to_csv, to_csv, to_markdown, write_utility
from pii_bench.analysis.utility.figures import (
    Means,
    Missing,
    SampleFigures,
    UtilityRow,
    published_figures,
)
from pii_bench.ranking.rows import Source
from tests.builders import read_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pii_bench.analysis.utility.collect import Measured

FIGURES = (
    SampleFigures("s1", 0.75, 0.5, ratings=Ratings(masked=5.0, unmasked=9.0)),
    SampleFigures("s2", 0.25, None, Missing.UNPARSED),
    SampleFigures("s3", None, None, Missing.NO_MASKING),
)


def measured(
    condition: str, measure: str, figures: tuple[SampleFigures, ...], *, oracle: bool = False
) -> Measured:
    row = UtilityRow(
        source=Source.RUN,
        dataset="demo",
        condition=condition,
        oracle=oracle,
        answerer="local/small",
        measure=measure,
        means=Means.of(figures, 0.5),
        samples=3,
        asked=len(figures),
        signature=f"data:demo@0123|strategy:{condition}|utility:{measure}",
    )
    return row, figures


ALL = (
    measured("no-mask", "cosine wordllama", tuple(SampleFigures(n, 0, 1) for n in ("s1", "s2"))),
    measured("mask-all", "cosine wordllama", (SampleFigures("s1", 1.0, None, Missing.NO_ANSWER),)),
    measured("mask-query-unrelated", "judge fake/judge", FIGURES, oracle=True),
    measured(
        "words+keyword",
        "cosine wordllama",
        tuple(SampleFigures(name, 0.5, 0.25) for name in ("s1", "s2", "s3")),
    ),
)
KEYS = "dataset,condition,answerer,measure"
JUDGED = "demo,mask-query-unrelated,local/small,judge fake/judge"
ROWS = [*(row for row, _ in ALL), *published_figures()]


def test_the_table_of_figures(assert_golden: Callable[[str, str], None]) -> None:
    assert_golden("utility.csv", to_csv(ROWS))


def test_the_page_of_figures(assert_golden: Callable[[str, str], None]) -> None:
    assert_golden("utility.md", to_markdown(ROWS))


def test_figures_of_samples() -> None:
    assert samples_to_csv(ALL[2:3]).splitlines() == [
        f"{KEYS},id,privacy,utility,balanced,missing,rating_masked,rating_unmasked",
        f"{JUDGED},s1,0.7500,0.5000,0.6250,,5.0000,9.0000",
        f"{JUDGED},s2,0.2500,,,unparsed,,",
        f"{JUDGED},s3,,,,no_masking,,",
    ]


def test_tables_of_nothing_have_their_columns() -> None:
    assert to_csv([]).startswith("source,dataset,condition,")
    assert samples_to_csv([]).startswith("dataset,condition,")
    assert to_markdown([]).startswith("# Privacy and utility")


def test_where_the_files_are(tmp_path: Path) -> None:
    paths = write_utility(ALL, published_figures(), tmp_path)

    assert list(paths) == [
        tmp_path / "utility" / name for name in ("utility.csv", "utility.md", "samples.csv")
    ]
    assert read_folder(tmp_path) == {
        "utility/utility.csv": to_csv(ROWS).encode(),
        "utility/utility.md": to_markdown(ROWS).encode(),
        "utility/samples.csv": samples_to_csv(ALL).encode(),
    }
