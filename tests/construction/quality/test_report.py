from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pii_bench.construction.quality.measure import Measure, Unit
from pii_bench.construction.quality.report import measure_quality, render, shortcut_measure
from pii_bench.construction.quality.shortcuts import AllEntities
from pii_bench.errors import InputFileError
from tests.builders import sample_record, write_lines
from tests.construction.quality.asked import ask

if TYPE_CHECKING:
    from pathlib import Path


def test_a_goal_is_met_when_every_set_is_below_it() -> None:
    def is_met(single: float, multi: float) -> bool | None:
        return Measure("m", Unit.SCORE, {"single": single, "multi": multi}, goal=0.75).is_met

    assert is_met(0.74, 0.5) is True
    assert is_met(0.5, 0.75) is False
    assert Measure("m", Unit.COUNT, {"single": 3}).is_met is None


def test_a_shortcut_is_measured_on_every_set() -> None:
    asked = {
        "single": [ask("", "a", a="Age")],
        # Precision 1/3 and recall 1.
        "multi": [ask("", "a", a="Age", b="Date", c="Time")],
    }

    measure = shortcut_measure(AllEntities(), asked)

    assert measure.values == {"single": 1, "multi": 0.5}
    assert measure.goal == 0.75


def test_the_table() -> None:
    measures = [
        Measure("alike", Unit.SHARE, {"single": 0.0123, "multi": 0.004}, 0.01, {"multi": "so it"}),
        Measure("words", Unit.COUNT, {"single": 12345, "multi": 7}),
        Measure("F1", Unit.SCORE, {"single": 0.5, "multi": 0.25}, 0.75),
    ]

    assert render(measures) == (
        "| Measure   |   single |   multi |    Goal | Met   |\n"
        "|:----------|---------:|--------:|--------:|:------|\n"
        "| alike     |    1.23% |   0.40% | < 1.00% | no    |\n"
        "| words     |   12,345 |       7 |         |       |\n"
        "| F1        |    0.500 |   0.250 | < 0.750 | yes   |\n"
        "\n"
        "- alike, multi: `so it`"
    )


@pytest.mark.parametrize("missing", ["train-single", "train-multi", "dev-single", "dev-multi"])
def test_train_and_dev_must_be_built(tmp_path: Path, missing: str) -> None:
    for part in ("", "built/train-", "built/dev-"):
        for name in ("single", "multi"):
            write_lines(tmp_path / f"{part}{name}.jsonl", [sample_record()])
    (tmp_path / "built" / f"{missing}.jsonl").unlink()

    with pytest.raises(InputFileError, match=rf"{missing}\.jsonl: .* `pii-bench data build`"):
        measure_quality(tmp_path)
