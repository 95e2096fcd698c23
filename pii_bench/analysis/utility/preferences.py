"""Judges' preferences between texts rewritten by a model and texts masked according to gold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pii_bench.analysis.utility.chats import (
    Preference,
    TextPair,
    read_preference,
    text_questions,
)
from pii_bench.analysis.utility.stored import (
    FOLDER,
    MASK_UNRELATED,
    mask_by_gold,
    read_rewritings,
    read_text_judges,
)
from pii_bench.datasets.catalog import load_dataset
from pii_bench.datasets.sample import applicable
from pii_bench.errors import PiiBenchError
from pii_bench.escaping import csv_text, markdown_table
from pii_bench.files import write_whole
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pii_bench.analysis.utility.stored import Maskings, StoredChat
    from pii_bench.datasets.sample import Sample

EXPLANATION: Final = """\
A judge compares two versions of a text for the query: the rewritten one and the one that is masked
according to gold (`mask-query-unrelated`). It is asked in both orders: a win, loss or tie is the
same verdict in both, a flip is not. Preferred is the share of wins, with ties and flips counting
half. Failed rewritings count only as samples.
"""


@dataclass(frozen=True, slots=True)
class PreferenceRow:
    """The verdicts of one judge on the rewritten texts of one model on one dataset.

    Attributes:
        condition: model and prompt that rewrote the texts.
        samples: number of samples with a query.
        texts: number of rewritten texts that the judge was asked about.
        unparsed: number of verdicts that name no version in one order or both.
        missing: number of calls that failed or were not made.
        signature: the line that reproduces the row.
    """

    dataset: str
    condition: str
    judge: str
    samples: int
    texts: int
    counts: Counter[Preference] = field(default_factory=Counter)
    unparsed: int = 0
    missing: int = 0
    signature: str = ""

    @property
    def preferred(self) -> float | None:
        """The share of wins, ties and flips counting half; None without verdicts."""
        halves = self.counts[Preference.TIE] + self.counts[Preference.FLIP]
        judged = self.counts.total()
        return (self.counts[Preference.WIN] + halves / 2) / judged if judged else None


def text_pairs(samples: Sequence[Sample], rewritings: Maskings) -> dict[str, TextPair]:
    """Return both versions of the samples that have a rewritten text, by id."""
    masked = mask_by_gold(MASK_UNRELATED, [each for each in samples if each.id in rewritings])
    return {
        sample_id: TextPair(rewritten=rewritings[sample_id].text, masked=masking.text)
        for sample_id, masking in masked.items()
    }


def collect_preferences(results: Path, left_out: list[str]) -> list[PreferenceRow]:
    """Return a row for each stored run of a judge of texts.

    `left_out` receives a message for each run or line that cannot be used.
    """
    rows = []
    for run in read_text_judges(results, left_out):
        try:
            rows.append(_row(results, run))
        except PiiBenchError as error:
            left_out.append(run.left_out(error))
    return sorted(rows, key=lambda row: (row.dataset, row.condition, row.judge))


def _row(results: Path, run: StoredChat) -> PreferenceRow:
    dataset = load_dataset(run.manifest.dataset.source)
    if dataset.sha256 != run.manifest.dataset.sha256:
        raise PiiBenchError("the dataset has changed since this run; run it again")
    if len(run.masked_by) != 2:
        raise PiiBenchError("its manifest does not name the run that rewrote the texts")
    model, prompt = run.masked_by
    samples = applicable(Task.REWRITE, dataset.samples)
    pairs = text_pairs(samples, read_rewritings(results, model, prompt, dataset))
    # With --limit only some were asked about.
    pairs = {sample_id: pair for sample_id, pair in pairs.items() if sample_id in run.records}
    responses = run.responses(text_questions(pairs, (model, prompt)), samples)
    verdicts = [read_preference(each) for each in responses.values() if each is not None]
    return PreferenceRow(
        dataset=run.dataset,
        condition=run.condition,
        judge=run.model,
        samples=len(samples),
        texts=len(pairs),
        counts=Counter(verdict for verdict in verdicts if verdict is not None),
        unparsed=verdicts.count(None),
        missing=len(pairs) - len(verdicts),
        signature=run.signature(Task.REWRITE),
    )


def preferences_to_csv(rows: Sequence[PreferenceRow]) -> str:
    """Return CSV with one line for each of at least one row."""
    records = [
        {
            "dataset": row.dataset,
            "condition": row.condition,
            "judge": row.judge,
            "samples": row.samples,
            "texts": row.texts,
            **{each: row.counts[each] for each in Preference},
            "unparsed": row.unparsed,
            "missing": row.missing,
            "preferred": row.preferred,
            "signature": row.signature,
        }
        for row in rows
    ]
    return csv_text(list(records[0]), (record.values() for record in records))


def preferences_to_table(rows: Sequence[PreferenceRow]) -> str:
    """Return rows as a Markdown table."""
    header = ("Dataset", "Rewritten by", "Judge", "Texts", "Wins", "Losses", "Ties", "Flips")
    lines = [
        (
            *(row.dataset, row.condition, row.judge, f"{row.texts}/{row.samples}"),
            *(str(row.counts[each]) for each in Preference),
            *(str(row.unparsed), str(row.missing)),
            "-" if row.preferred is None else f"{row.preferred:.3f}",
        )
        for row in rows
    ]
    return markdown_table((*header, "Unparsed", "Missing", "Preferred"), lines)


def write_preferences(rows: Sequence[PreferenceRow], results: Path) -> tuple[Path, ...]:
    """Write `texts.csv` and `texts.md` into `<results>/utility` if there are rows.

    Raises:
        ResultsError: a file cannot be written.
    """
    if not rows:
        return ()
    table, page = results / FOLDER / "texts.csv", results / FOLDER / "texts.md"
    write_whole(table, preferences_to_csv(rows))
    body = f"# Which text is better\n\n{EXPLANATION}\n{preferences_to_table(rows)}\n"
    write_whole(page, body)
    return table, page
