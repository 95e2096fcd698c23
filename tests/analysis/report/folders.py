"""Results folders to make reports of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.datasets.catalog import Dataset, load_dataset
from pii_bench.prompting.targets import detection_answer, related_answer
from tests.builders import sample_record, write_lines
from tests.ranking.stored_runs import store_run

if TYPE_CHECKING:
    from pathlib import Path

NOTHING: Final = "### Answer: []"


def demo_results(folder: Path) -> Dataset:
    """Two runs on demo, which is ours: `fake/one:naive` is right, `fake/two:naive` says nothing."""
    demo = load_dataset("demo")
    found = {sample.id: detection_answer(sample) for sample in demo.samples}
    related = {sample.id: related_answer(sample) for sample in demo.samples}
    for model, chosen in (("fake/one", related), ("fake/two", dict.fromkeys(related, NOTHING))):
        store_run(folder / "runs", demo, "detection", found, model=model)
        store_run(folder / "runs", demo, "naive", chosen, model=model)
    return demo


def own_dataset(path: Path, descriptions: list[str]) -> Dataset:
    """A file of a user: samples `s1`, `s2` ... without any PII, who ask whether they are old."""
    records = [
        sample_record(f"s{number}", description=text, subjects=[], related=[])
        for number, text in enumerate(descriptions, start=1)
    ]
    write_lines(path, records)
    return load_dataset(str(path))
