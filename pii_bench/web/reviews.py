"""Reviews: people compare texts before and after masking or rewriting, and judge each pair.

A review of a masked run shows what leaked and what was hidden without need. In a blind review
people judge privacy and meaning of texts of any system, in random order and without system names.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import groupby
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import ConfigDict, Field
from sqlalchemy import delete, insert, select

from pii_bench.errors import PiiBenchError
from pii_bench.files import RecordError, get, is_encodable
from pii_bench.masking import mask
from pii_bench.ranking.scores import Scores, intervals
from pii_bench.runs.evaluation import traces_of
from pii_bench.scorer import normalise
from pii_bench.web.database import find_row, insert_row
from pii_bench.web.membership import Shared
from pii_bench.web.tables import REVIEW_ITEMS, REVIEW_MEMBERS, REVIEWS, VERDICTS
from pii_bench.web.votes import Ballot, agreement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

    from pii_bench.datasets.sample import Sample
    from pii_bench.ranking.scores import Interval
    from pii_bench.systems.predictions import Prediction
    from pii_bench.web.accounts import User
    from pii_bench.web.database import Database
    from pii_bench.web.votes import Agreement

    Pieces = list[tuple[str, str]]

LONGEST_COMMENT: Final = 2000
SCALE: Final = range(1, 6)
VERDICT_WORDS: Final = {
    "good": "Good: it hides what it should and keeps what the question needs",
    "leaks": "It leaks something",
    "vain": "It hides something without need",
    "both": "Both",
}
"""The verdicts on a masked text, with their wording on the page."""


class Kind(StrEnum):
    """The questions of a review: a verdict on a masked text, or a blind rating."""

    MASKED = "masked"
    BLIND = "blind"


@dataclass(frozen=True, slots=True)
class Pair:
    """A text before and after, in pieces of (text, status); most pieces have an empty status.

    `hidden`: personal, not needed, masked. `leaked`: personal, not needed, readable. `kept`:
    needed and readable. `vain`: masked, though needed or not personal.
    """

    name: str
    system: str
    query: str | None
    before: Pieces
    after: Pieces


@dataclass(frozen=True, slots=True)
class Review:
    """A stored review."""

    id: int
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Item:
    """A stored pair."""

    id: int
    pair: Pair


@dataclass(frozen=True, slots=True)
class Judgement:
    """A reviewer's answers about an item, as a browser sends them; open ones are empty or None."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", hide_input_in_errors=True)

    verdict: str = ""
    privacy: int | None = None
    meaning: int | None = None
    comment: str = ""
    done: bool = False
    seconds: Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)] = 0.0

    def check(self, kind: Kind) -> None:
        """Validate the answers for a kind of review.

        Raises:
            PiiBenchError: an answer is not allowed, or the judgement is done and lacks one.
        """
        if self.verdict and self.verdict not in VERDICT_WORDS:
            raise PiiBenchError(f"the verdict must be one of {', '.join(VERDICT_WORDS)}")
        for score in (self.privacy, self.meaning):
            if score is not None and score not in SCALE:
                raise PiiBenchError("privacy and meaning must be 1 to 5")
        if len(self.comment) > LONGEST_COMMENT:
            raise PiiBenchError(f"a comment must have at most {LONGEST_COMMENT:,} characters")
        if not is_encodable(self.comment):
            raise PiiBenchError("a comment must not have half of a surrogate pair")
        answers = [self.verdict or None] if kind is Kind.MASKED else [self.privacy, self.meaning]
        if self.done and None in answers:
            raise PiiBenchError("Choose an answer to each question first.")


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean rating of texts and its 95 % interval; a text has the mean of its ratings.

    The interval is None if all judged texts are versions of one text.
    """

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Result:
    """The judgements of one system, with counts of verdicts and means of ratings, if any."""

    system: str
    judgements: int
    people: int
    verdicts: Mapping[str, int]
    privacy: Mean | None
    meaning: Mean | None


def masked_pair(sample: Sample, prediction: Prediction, system: str) -> Pair | None:
    """Return a sample before and after a prediction masks it; None if it has no masked text."""
    if prediction.subjects is None or prediction.related is None:
        return None
    text = sample.description
    entities = [pair for subject in prediction.subjects for pair in subject]
    masked = mask(text, entities, prediction.related)
    statuses = _statuses(sample, [(span.start, span.end) for span in masked.spans])
    before = _pieces(text, statuses, 0, len(text))
    after: Pieces = []
    position = 0
    for span in masked.spans:
        after += _pieces(text, statuses, position, span.start)
        hidden = "hidden" in statuses[span.start : span.end]
        after.append((span.tag, "hidden" if hidden else "vain"))
        position = span.end
    after += _pieces(text, statuses, position, len(text))
    return Pair(sample.id, system, sample.query, before, after)


def rewritten_pair(sample: Sample, prediction: Prediction, system: str) -> Pair | None:
    """Return a sample before and after a prediction rewrites it; None if there is no new text."""
    text, rewritten = sample.description, prediction.rewritten
    traces = traces_of(sample, rewritten)
    if rewritten is None or traces is None:
        return None
    statuses = [""] * len(text)
    # Needed entities come last: where two overlap, their status counts.
    for found in sorted(traces, key=lambda found: found.text.needed):
        if found.text.needed:
            status = "kept" if found.trace.whole else "vain"
        else:
            status = "leaked" if found.leaks else "hidden"
        for start, end in found.text.spans:
            statuses[start:end] = [status] * (end - start)
    before = _pieces(text, statuses, 0, len(text))
    return Pair(sample.id, system, sample.query, before, [(rewritten, "")])


def _statuses(sample: Sample, masked: Sequence[tuple[int, int]]) -> list[str]:
    """Return the status of each character of a masked sample."""
    text = sample.description
    is_masked = [False] * len(text)
    for start, end in masked:
        is_masked[start:end] = [True] * (end - start)
    statuses = ["vain" if masked else "" for masked in is_masked]
    needed = {normalise(related.text) for related in sample.related}
    # Needed entities come last: where two overlap, their status counts.
    for entity in sorted(sample.entities, key=lambda entity: normalise(entity.text) in needed):
        is_needed = normalise(entity.text) in needed
        for start, end in entity.spans:
            readable = any(not is_masked[n] and not text[n].isspace() for n in range(start, end))
            for n in range(start, end):
                if is_needed:
                    statuses[n] = "vain" if is_masked[n] else "kept"
                else:
                    statuses[n] = "leaked" if readable else "hidden"
    return statuses


def _pieces(text: str, statuses: Sequence[str], start: int, end: int) -> Pieces:
    """Split `text[start:end]` into runs of one status."""
    return [
        ("".join(text[n] for n in run), status)
        for status, run in groupby(range(start, end), key=lambda n: statuses[n])
    ]


def parse_pairs(records: Iterable[tuple[int, dict[str, Any]]]) -> list[Pair]:
    """Parse numbered records of texts before and after, of any system.

    Raises:
        PiiBenchError: a record lacks a key, or a value has the wrong type or half of a
            surrogate pair.
    """
    pairs = []
    for line, record in records:
        if not is_encodable(record):
            raise PiiBenchError(f"line {line}: a text must not have half of a surrogate pair")
        try:
            pairs.append(
                Pair(
                    name=get(record, "id", str)[:500],
                    system=get(record, "system", str)[:300] if "system" in record else "unnamed",
                    query=None if record.get("query") is None else get(record, "query", str),
                    before=[(get(record, "before", str), "")],
                    after=[(get(record, "after", str), "")],
                )
            )
        except RecordError as error:
            raise PiiBenchError(f"line {line}: {error}") from None
    return pairs


def create_review(database: Database, name: str, kind: Kind, pairs: Sequence[Pair]) -> Review:
    """Store a review.

    Raises:
        PiiBenchError: the name is empty or too long, or there are no pairs.
    """
    if kind is Kind.BLIND:
        # Statuses would give away what a system masked.
        pairs = [
            replace(pair, before=[(_text(pair.before), "")], after=[(_text(pair.after), "")])
            for pair in pairs
        ]
    if not name.strip() or len(name) > 200:
        raise PiiBenchError("the name of a review must have 1 to 200 characters")
    if not pairs:
        raise PiiBenchError("there is nothing to review: no sample has a text before and after")
    with database.writing() as connection:
        review_id = insert_row(
            connection, REVIEWS, name=name.strip(), kind=kind.value, created=time.time()
        )
        connection.execute(
            insert(REVIEW_ITEMS),
            [
                {
                    **asdict(pair),
                    "review_id": review_id,
                    "position": position,
                    "before": json.dumps(pair.before, ensure_ascii=False),
                    "after": json.dumps(pair.after, ensure_ascii=False),
                }
                for position, pair in enumerate(pairs)
            ],
        )
    return Review(review_id, name.strip(), kind)


def _text(pieces: Pieces) -> str:
    return "".join(text for text, _ in pieces)


def _review(row: Any) -> Review:
    return Review(row.id, row.name, Kind(row.kind))


SHARED_REVIEWS: Final = Shared(REVIEWS, REVIEW_MEMBERS, REVIEW_MEMBERS.c.review_id, _review)


def order_of(connection: Connection, review: Review, account_id: int) -> list[int]:
    """Return the item ids in the order in which a reviewer sees them; blind reviews shuffle it."""
    query = (
        select(REVIEW_ITEMS.c.id)
        .where(REVIEW_ITEMS.c.review_id == review.id)
        .order_by(REVIEW_ITEMS.c.position)
    )
    item_ids = list(connection.scalars(query))
    if review.kind is Kind.BLIND:
        Random(f"{review.id}/{account_id}").shuffle(item_ids)
    return item_ids


def find_item(connection: Connection, user: User, item_id: int) -> tuple[Item, Review]:
    """Return an item and its review, if the user may see it."""
    row = find_row(connection, REVIEW_ITEMS, item_id)
    return _item(row), SHARED_REVIEWS.get_visible(connection, user, row.review_id)


def _item(row: Any) -> Item:
    before = [(text, status) for text, status in json.loads(row.before)]
    after = [(text, status) for text, status in json.loads(row.after)]
    return Item(row.id, Pair(row.name, row.system, row.query, before, after))


def judgements_of(connection: Connection, review: Review, account_id: int) -> dict[int, Judgement]:
    """Return the judgements of one reviewer by item id."""
    query = (
        select(VERDICTS)
        .join(REVIEW_ITEMS)
        .where(REVIEW_ITEMS.c.review_id == review.id, VERDICTS.c.account_id == account_id)
    )
    return {row.item_id: _judgement(row) for row in connection.execute(query)}


def _judgement(row: Any) -> Judgement:
    return Judgement(row.verdict, row.privacy, row.meaning, row.comment, row.done, row.seconds)


def save_judgement(
    connection: Connection, item: Item, account_id: int, judgement: Judgement
) -> None:
    """Save a judgement in place of the reviewer's earlier one."""
    key = (VERDICTS.c.item_id == item.id) & (VERDICTS.c.account_id == account_id)
    values = {"item_id": item.id, "account_id": account_id, "saved": time.time()}
    connection.execute(delete(VERDICTS).where(key))
    connection.execute(insert(VERDICTS).values(**asdict(judgement), **values))


def finished_judgements(
    connection: Connection, review: Review
) -> list[tuple[Item, int, Judgement]]:
    """Return all finished judgements as (item, account id, judgement)."""
    query = (
        select(VERDICTS, REVIEW_ITEMS)
        .join_from(VERDICTS, REVIEW_ITEMS)
        .where(REVIEW_ITEMS.c.review_id == review.id, VERDICTS.c.done.is_(True))
        .order_by(REVIEW_ITEMS.c.position, VERDICTS.c.account_id)
    )
    return [(_item(row), row.account_id, _judgement(row)) for row in connection.execute(query)]


def results_of(judgements: Sequence[tuple[Item, int, Judgement]]) -> list[Result]:
    """Return the results of each system, sorted by system."""
    results = []
    for system in sorted({item.pair.system for item, _, _ in judgements}):
        rows = [row for row in judgements if row[0].pair.system == system]
        verdicts = Counter(judgement.verdict for _, _, judgement in rows)
        results.append(
            Result(
                system=system,
                judgements=len(rows),
                people=len({account_id for _, account_id, _ in rows}),
                verdicts={verdict: verdicts[verdict] for verdict in VERDICT_WORDS},
                privacy=_mean([(item, judgement.privacy) for item, _, judgement in rows]),
                meaning=_mean([(item, judgement.meaning) for item, _, judgement in rows]),
            )
        )
    return results


def agreement_of(
    judgements: Sequence[tuple[Item, int, Judgement]], kind: Kind
) -> dict[str, Agreement]:
    """Return the agreement on each question, over the texts that two or more people judged.

    Kappa is nominal: ratings of 4 and 5 differ as much as 1 and 5.
    """
    questions = ("verdict",) if kind is Kind.MASKED else ("privacy", "meaning")
    result = {}
    for question in questions:
        ballots = []
        for item, account_id, judgement in judgements:
            answer = getattr(judgement, question)
            ballots.append(Ballot(str(item.id), str(account_id), (answer,), frozenset({answer})))
        result[question] = agreement(ballots)
    return result


def _mean(ratings: Iterable[tuple[Item, int | None]]) -> Mean | None:
    by_item: dict[int, list[int]] = {}
    texts: dict[int, str] = {}
    for item, rating in ratings:
        if rating is not None:
            by_item.setdefault(item.id, []).append(rating)
            texts[item.id] = _text(item.pair.before)
    if not by_item:
        return None
    # As in the leaderboard, the queries about one text are one cluster.
    scores = Scores(
        tuple(str(item_id) for item_id in by_item),
        tuple(texts.values()),
        tuple(fmean(values) for values in by_item.values()),
    )
    (interval,) = intervals([scores])
    return Mean(scores.figure, interval)
