from __future__ import annotations

from pii_bench.analysis.figures.tradeoff import chosen
from pii_bench.analysis.tradeoffs import Tradeoff, tradeoffs
from pii_bench.tasks import Task
from tests.analysis.evaluated import answer, asked, evaluated, run_name

SUBJECTS = ((("Ann Lee", "PER"), ("32", "DEM")),)


def test_a_run_of_masking_has_both_parts_of_h() -> None:
    """The query needs 32 and Halifax, which was not found and so can be read; Ann is masked."""
    sample = asked("a", "Halifax", "32")
    run = evaluated(run_name(task=Task.MASKING), [sample], {"a": answer("32", subjects=SUBJECTS)})
    other = evaluated(run_name(), [sample], {"a": answer("32")})

    assert tradeoffs([run, other]) == [Tradeoff(run.name, protection=1.0, retention=1.0)]


def test_nothing_is_drawn_of_one_system_or_of_incomplete_ones() -> None:
    one, two, other = (
        Tradeoff(run_name(dataset, task=Task.MASKING, model=model), 0.5, protection)
        for dataset, model, protection in (
            ("single", "fake/one", 0.2),
            ("single", "fake/two", 0.9),
            ("multi", "fake/one", 0.5),
        )
    )
    part = Tradeoff(run_name(task=Task.MASKING, model="fake/part", complete=False), 1.0, 1.0)

    assert chosen([one, part, other]) == []
    assert chosen([one, two, part, other]) == [two, one]
