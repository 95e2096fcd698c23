from __future__ import annotations

from colorsys import rgb_to_hls
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from matplotlib import rc_context
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from pii_bench.analysis.figures.style import GREY, SERIES, STYLE, save
from pii_bench.files import ResultsError

if TYPE_CHECKING:
    from pathlib import Path


def figure() -> Figure:
    with rc_context(dict(STYLE)):
        made = Figure(figsize=(1, 1))
        panel = made.subplots()
        panel.plot([0, 1], [1, 0], marker="o")
        panel.set_xlabel("Entities")
        panel.set_clip_on(True)
    return made


def test_equal_figures_give_equal_bytes_without_a_date(tmp_path: Path) -> None:
    first = save(figure(), tmp_path / "a", "curve")
    second = save(figure(), tmp_path / "b", "curve")

    assert [path.name for path in first] == ["curve.svg", "curve.png"]
    for path, other in zip(first, second, strict=True):
        assert path.read_bytes() == other.read_bytes()
    assert b"<dc:date>" not in first[0].read_bytes()
    assert b"Software" not in first[1].read_bytes()


def test_the_size_in_print_is_that_asked_for(tmp_path: Path) -> None:
    svg, png = save(figure(), tmp_path, "curve")

    assert b'width="72pt" height="72pt"' in svg.read_bytes()
    assert png.read_bytes()[16:24] == (300).to_bytes(4) * 2  # dots, at 300 an inch


def test_a_figure_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "analysis").write_text("a file")

    with pytest.raises(ResultsError, match=r"curve\.svg: cannot be written"):
        save(figure(), tmp_path / "analysis", "curve")


def test_no_two_series_share_marker_dashes_or_colour() -> None:
    for first, second in combinations(SERIES, 2):
        assert first.marker != second.marker
        assert first.dashes != second.dashes
        assert first.color != second.color


def test_remarks_are_dark_enough_to_read() -> None:
    assert rgb_to_hls(*to_rgb(GREY))[1] < 0.4
