from __future__ import annotations

from matplotlib.colors import to_rgb

from pii_bench.analysis.agreement import Agreement
from pii_bench.analysis.figures.agreement import draw_agreement
from pii_bench.tasks import Task
from tests.analysis.figures.drawn import rows, texts


def agreement(
    a: str, b: str, rho: float | None, *, sources: tuple[str, str] = ("run", "run")
) -> Agreement:
    return Agreement(Task.MASKING, "f1", sources[0], a, sources[1], b, 4, rho, 0.875)


def test_a_cell_says_rho_pcs_and_how_many() -> None:
    figure = draw_agreement([agreement("single", "multi", 0.8)])

    assert "ρ 0.80\nPCS 0.88\nn = 4" in texts(figure)
    assert figure.axes[0].get_xlabel() == "Ours"


def test_a_cell_without_rho_is_white_and_a_larger_rho_darker() -> None:
    cells = [
        agreement("single", "multi", None),
        agreement("single", "hard", 0.2),
        agreement("single", "distract", 0.9),
    ]

    panel = draw_agreement(cells).axes[0]

    none, little, much = (to_rgb(cell.get_facecolor()) for cell in panel.patches)
    assert none == (1, 1, 1)
    assert none > little > much > (0.5, 0.5, 0.5)  # black letters stand on it


def test_ours_the_published_and_both_have_tables_of_their_own() -> None:
    cells = [
        agreement("single", "multi", 0.8, sources=("run+reference", "run")),
        agreement("single", "multi", 0.8, sources=("published", "published")),
        agreement("single", "single", 0.8, sources=("run", "published")),
    ]

    figure = draw_agreement(cells)

    assert [panel.get_xlabel() for panel in figure.axes] == [
        "Ours",
        "Published",
        "Ours (rows) and published",
    ]
    assert [rows(panel) for panel in figure.axes] == [["single"]] * 3
