"""Which of two versions of a text judges prefer: written anew, or masked as gold tells."""

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
from pii_bench.runs.records import Signature
from pii_bench.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pii_bench.analysis.utility.stored import Maskings, StoredChat
    from pii_bench.datasets.sample import Sample


@dataclass(frozen=True, slots=True)
class PreferenceRow:
    """What one judge says of the rewritten texts of one model on one dataset.

    Attributes:
        condition: who wrote the texts anew.
        samples: of the dataset, those with a query.
        texts: those of them that were asked about, so have a rewritten text.
        counts: how many of these have each outcome.
        unparsed: how many verdicts, in one order or both, say nothing.
        missing: how many calls failed or were not made.
        signature: the line that reproduces the row.
    """

    dataset: str
    condition: str
    judge: str
    samples: int
    texts: int
    counts: Mapping[Preference, int] = field(default_factory=dict)
    unparsed: int = 0
    missing: int = 0
    signature: str = ""

    @property
    def preferred(self) -> float | None:
        """Wins and half of ties and flips, of all that are judged; 0.5 is no preference."""
        judged = sum(self.counts.values())
        halves = self.counts.get(Preference.TIE, 0) + self.counts.get(Preference.FLIP, 0)
        return (self.counts.get(Preference.WIN, 0) + halves / 2) / judged if judged else None


def text_pairs(samples: Sequence[Sample], written: Maskings) -> dict[str, TextPair]:
    """The versions of the samples that have a rewritten text, by id."""
    chosen = [sample for sample in samples if sample.id in written]
    masked = mask_by_gold(MASK_UNRELATED, chosen)
    return {each.id: TextPair(written[each.id].text, masked[each.id].text) for each in chosen}


def collect_preferences(results: Path, left_out: list[str]) -> list[PreferenceRow]:
    """The rows of all stored runs of judges of texts.

    Args:
        results: the folder.
        left_out: is told of runs and lines that cannot be used, each with the reason.
    """
    rows = []
    for run in read_text_judges(results, left_out):
        try:
            rows.append(_row(results, run))
        except PiiBenchError as error:
            about = run.manifest
            left_out.append(f"{FOLDER}: {about.system.model} on {about.dataset.name}: {error}")
    return sorted(rows, key=lambda row: (row.dataset, row.condition, row.judge))


def _row(results: Path, run: StoredChat) -> PreferenceRow:
    manifest = run.manifest
    card = manifest.system
    dataset = load_dataset(manifest.dataset.source)
    if dataset.sha256 != manifest.dataset.sha256:
        raise PiiBenchError("the dataset has changed")
    name, condition = run.about
    model, prompt = run.masked_by
    samples = applicable(Task.REWRITE, dataset.samples)
    pairs = text_pairs(samples, read_rewritings(results, model, prompt, dataset))
    # With --limit only some were asked about.
    pairs = {each: pair for each, pair in pairs.items() if each in run.records}
    responses = run.responses(text_questions(pairs, (model, prompt)), samples)
    told = [None if each is None else read_preference(each) for each in responses.values()]
    failed = sum(each is None for each in responses.values())
    return PreferenceRow(
        dataset=name,
        condition=condition,
        judge=card.model,
        samples=len(samples),
        texts=len(pairs),
        counts=Counter(each for each in told if each is not None),
        unparsed=sum(each is None for each in told) - failed,
        missing=len(pairs) - len(responses) + failed,
        signature=str(
            Signature(
                dataset=name,
                dataset_sha256=dataset.sha256,
                task=Task.REWRITE,
                strategy=condition,
                prompts={card.prompt: card.prompt_sha256},
                model=card.model,
                returned=sorted(run.returned),
                settings=card.settings,
            )
        ),
    )


_COLUMNS: Final = (
    *("dataset", "condition", "judge", "samples", "texts", *Preference),
    *("unparsed", "missing", "preferred", "signature"),
)

EXPLANATION: Final = """\
A judge says which of two versions of a text is better for the query: the rewritten one, or the one
that is masked as gold tells (`mask-query-unrelated`). It is asked in both orders: a win, a loss or
a tie is one in both, and where the orders disagree it is a flip. Preferred: wins and half of ties
and flips. Rewritings that failed are in no count but that of the samples.
"""


def preferences_to_csv(rows: Sequence[PreferenceRow]) -> str:
    """One line per row."""
    return csv_text(
        _COLUMNS,
        (
            [
                *(row.dataset, row.condition, row.judge, row.samples, row.texts),
                *(row.counts.get(each, 0) for each in Preference),
                *(row.unparsed, row.missing, row.preferred, row.signature),
            ]
            for row in rows
        ),
    )


def preferences_to_table(rows: Sequence[PreferenceRow]) -> str:
    """The rows as a Markdown table."""
    header = ("Dataset", "Rewritten by", "Judge", "Texts", "Wins", "Losses", "Ties", "Flips")
    lines = [
        (
            *(row.dataset, row.condition, row.judge, f"{row.texts}/{row.samples}"),
            *(str(row.counts.get(each, 0)) for each in Preference),
            *(str(row.unparsed), str(row.missing)),
            "-" if row.preferred is None else f"{row.preferred:.3f}",
        )
        for row in rows
    ]
    return markdown_table((*header, "Unparsed", "Missing", "Preferred"), lines)


def write_preferences(rows: Sequence[PreferenceRow], results: Path) -> tuple[Path, ...]:
    """Write `texts.csv` and `texts.md` into `<results>/utility`, if there are rows.

    Raises:
        ResultsError: they cannot be written.
    """
    if not rows:
        return ()
    table, page = (results / FOLDER / name for name in ("texts.csv", "texts.md"))
    write_whole(table, preferences_to_csv(rows))
    body = f"# Which text is better\n\n{EXPLANATION}\n{preferences_to_table(rows)}\n"
    write_whole(page, body)
    return table, page
