from __future__ import annotations

from dataclasses import replace
from importlib import util
from typing import TYPE_CHECKING

import pytest

from pii_bench.analysis import figures
from pii_bench.analysis.figures import draw, draw_figures
from pii_bench.analysis.results import Analysis, analyse
from pii_bench.errors import MissingExtraError
from pii_bench.ranking.external import published_rows
from pii_bench.tasks import Task
from tests.analysis.evaluated import answer, asked, detected, evaluated, run_name

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the figures that would be written."""
    names: list[str] = []

    def keep(_: Figure, folder: Path, name: str) -> list[Path]:
        names.append(name)
        return [folder / name]

    monkeypatch.setattr(draw, "save", keep)
    return names


def results(*datasets: str) -> Analysis:
    runs = []
    for dataset in datasets:
        samples = [asked(f"{dataset}-{number}", "32") for number in range(2)]
        found = {sample.id: detected({"32": "DEM"}) for sample in samples}
        related = {sample.id: answer("32") for sample in samples}
        detection = run_name(dataset, task=Task.DETECTION, strategy="detection")
        runs += [
            evaluated(detection, samples, found),
            evaluated(run_name(dataset), samples, related),
        ]
    return analyse(runs, published_rows())


def test_all_figures_of_a_system_on_all_sets(drawn: list[str], tmp_path: Path) -> None:
    paths = draw_figures(results("single", "multi", "hard", "distract"), tmp_path)

    assert sorted(drawn) == [
        "categories-detection",
        "categories-query-related",
        "curves-detection-ent-f1",
        "curves-detection-strict-f1",
        "curves-query-related-f1",
        "drops-detection-ent-f1",
        "drops-detection-strict-f1",
        "drops-query-related-f1",
        "types-detection",
        "types-query-related",
    ]
    assert paths == [tmp_path / name for name in drawn]


def test_of_one_set_there_are_no_drops(drawn: list[str], tmp_path: Path) -> None:
    draw_figures(results("demo"), tmp_path)

    assert {name.partition("-")[0] for name in drawn} == {"curves", "types", "categories"}


def test_versions_of_samples_have_a_figure_of_their_own(drawn: list[str], tmp_path: Path) -> None:
    samples = [asked("demo-1", "32"), asked("demo-2", "32")]
    versions = [
        replace(
            sample,
            id=f"{sample.id}.typos",
            meta={"perturbation": {"kind": "typos", "dataset": "demo", "source": sample.id}},
        )
        for sample in samples
    ]
    runs = [
        evaluated(run_name(name), own, {sample.id: answer("32") for sample in own})
        for name, own in (("demo", samples), ("versions", versions))
    ]

    draw_figures(analyse(runs, []), tmp_path)

    assert [name for name in drawn if name.startswith("robustness")] == [
        "robustness-query-related-f1"
    ]


def test_of_the_published_figures_alone_nothing_is_drawn(drawn: list[str], tmp_path: Path) -> None:
    assert draw_figures(results(), tmp_path) == []
    assert drawn == []


def test_without_matplotlib_it_says_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda _: None)
    assert util.find_spec("matplotlib") is not None

    with pytest.raises(MissingExtraError, match=r"pip install 'pii-bench\[figures\]'"):
        draw_figures(results(), tmp_path)
