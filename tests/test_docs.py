"""What the pages quote is what the data holds."""

from __future__ import annotations

import re
from pathlib import Path

from pii_bench.datasets.catalog import load_dataset

PAGE = Path(__file__).parents[1] / "docs" / "frontier.md"


def test_the_page_on_frontier_quotes_the_set() -> None:
    samples = {sample.id: sample for sample in load_dataset("frontier").samples}
    quoted = re.findall(
        r"^## (\S+)\n.*?^`(frontier-\d+)`\n\n```text\n(.*?)\n```\n\n> (.*?)\n\nNeeded: (.*?)\.\n",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )

    assert len(quoted) == 9
    for reason, sample_id, text, query, needed in quoted:
        sample = samples[sample_id]
        texts = [" ".join(related.text.split()) for related in sample.related]
        assert reason in sample.meta["reasons"]
        assert (text, query) == (sample.description, sample.query)
        assert needed == (", ".join(f"`{each}`" for each in texts) or "nothing")
