"""Reviews: people look at texts before and after, and say what they think of it.

A review of a masked run shows what leaked and what was hidden in vain. In a blind review people
judge privacy and meaning of texts of any systems, in an order of their own and without names.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import groupby
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import ConfigDict, Field
from sqlalchemy import delete, insert, select, update

from pii_bench.errors import PiiBenchError
from pii_bench.files import RecordError, get
from pii_bench.masking import mask
from pii_bench.ranking.scores import Scores, intervals
from pii_bench.scorer import normalise
from pii_bench.scorer.locate import locator_of
from pii_bench.scorer.masked_text import GoldTexts, tell
from pii_bench.web.accounts import Role
from pii_bench.web.database import NotThereError
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
    "vain": "It hides something in vain",
    "both": "Both",
}
"""What somebody can say of a masked text, and how a page asks it."""


class Kind(StrEnum):
    """What people are asked."""

    MASKED = "masked"
    BLIND = "blind"


class ReviewError(PiiBenchError):
    """A review that cannot be made so, or a judgement that is none."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A text before and after, in pieces with what became of each (empty: nothing).

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
    review_id: int
    pair: Pair


@dataclass(frozen=True, slots=True)
class Judgement:
    """What somebody said of an item, as a browser sends it; empty or None what is open."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", hide_input_in_errors=True)

    verdict: str = ""
    privacy: int | None = None
    meaning: int | None = None
    comment: str = ""
    done: bool = False
    seconds: Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)] = 0.0

    def check(self, kind: Kind) -> None:
        """Refuse what is no judgement.

        Raises:
            ReviewError: a figure, verdict or comment that is not allowed, or one that is missing
                though it is done.
        """
        if self.verdict and self.verdict not in VERDICT_WORDS:
            raise ReviewError(f"a verdict is one of {', '.join(VERDICT_WORDS)}")
        for score in (self.privacy, self.meaning):
            if score is not None and score not in SCALE:
                raise ReviewError("privacy and meaning are 1 to 5")
        if len(self.comment) > LONGEST_COMMENT:
            raise ReviewError(f"a comment has at most {LONGEST_COMMENT:,} characters")
        lacking = not self.verdict if kind is Kind.MASKED else None in (self.privacy, self.meaning)
        if self.done and lacking:
            raise ReviewError("Choose an answer to each question first.")


@dataclass(frozen=True, slots=True)
class Mean:
    """Mean of texts, of which each has the mean of its judges, and its 95 % interval.

    The interval is None where all judged texts are versions of one.
    """

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Result:
    """What people said of one system.

    Attributes:
        verdicts: how often each was given.
        privacy: 1 to 5; None where it was not given; `meaning` likewise.
    """

    system: str
    judgements: int
    people: int
    verdicts: Mapping[str, int]
    privacy: Mean | None
    meaning: Mean | None


def masked_pair(sample: Sample, prediction: Prediction, system: str) -> Pair | None:
    """A sample as a prediction masks it; None where it has no masked text."""
    if prediction.subjects is None or prediction.related is None:
        return None
    text = sample.description
    entities = [pair for subject in prediction.subjects for pair in subject]
    masked = mask(text, entities, prediction.related, locator=locator_of(text))
    fate = _fates(sample, [(span.start, span.end) for span in masked.spans])
    before = _pieces(text, fate, 0, len(text))
    after: list[tuple[str, str]] = []
    place = 0
    for span in masked.spans:
        after += _pieces(text, fate, place, span.start)
        inside = set(fate[span.start : span.end])
        after.append((span.tag, "hidden" if "hidden" in inside else "vain"))
        place = span.end
    after += _pieces(text, fate, place, len(text))
    return Pair(sample.id, system, sample.query, before, after)


def rewritten_pair(sample: Sample, prediction: Prediction, system: str) -> Pair | None:
    """A sample as a prediction writes it anew; None where it has no new text."""
    text, written = sample.description, prediction.rewritten
    if written is None:
        return None
    entities = [(each.text, each.spans) for each in sample.entities]
    gold = GoldTexts(text, entities, [related.text for related in sample.related])
    fate = [""] * len(text)
    traces = tell(text, written, gold, sample.query or "")
    for told in sorted(traces, key=lambda each: each.text.needed):
        if told.text.needed:
            kind = "kept" if told.trace.whole else "vain"
        else:
            kind = "leaked" if told.leaks else "hidden"
        for start, end in told.text.spans:
            fate[start:end] = [kind] * (end - start)
    return Pair(sample.id, system, sample.query, _pieces(text, fate, 0, len(text)), [(written, "")])


def _fates(sample: Sample, masked: Sequence[tuple[int, int]]) -> list[str]:
    """What became of each character."""
    text = sample.description
    covered = bytearray(len(text))
    for start, end in masked:
        covered[start:end] = b"\1" * (end - start)
    fate = ["vain" if each else "" for each in covered]
    needed = {normalise(related.text) for related in sample.related}
    for entity in sorted(sample.entities, key=lambda each: normalise(each.text) in needed):
        is_needed = normalise(entity.text) in needed
        for start, end in entity.spans or locator_of(text).spans(entity.text):
            readable = any(not covered[n] and not text[n].isspace() for n in range(start, end))
            for n in range(start, end):
                if is_needed:
                    fate[n] = "vain" if covered[n] else "kept"
                else:
                    fate[n] = "leaked" if readable else "hidden"
    return fate


def _pieces(text: str, fate: Sequence[str], start: int, end: int) -> Pieces:
    return [
        ("".join(text[n] for n in places), kind)
        for kind, places in groupby(range(start, end), key=lambda n: fate[n])
    ]


def pairs_of_records(records: Iterable[tuple[int, dict[str, Any]]]) -> list[Pair]:
    """The lines of a file of texts before and after, of any system: rewritten, masked or other.

    Raises:
        ReviewError: in a line a key is missing or of another kind.
    """
    pairs = []
    for line, record in records:
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
            raise ReviewError(f"line {line}: {error}") from None
    return pairs


def create_review(database: Database, name: str, kind: Kind, pairs: Iterable[Pair]) -> Review:
    """Make a review.

    Raises:
        ReviewError: it has no name or nothing to look at.
    """
    # Colours would tell judges who are to see none what to say.
    made = [_plain(pair) if kind is Kind.BLIND else pair for pair in pairs]
    if not name.strip() or len(name) > 200:
        raise ReviewError("a review has a name of 1 to 200 characters")
    if not made:
        raise ReviewError("there is nothing to review: no sample has a text before and after")
    with database.writing() as connection:
        result = connection.execute(
            insert(REVIEWS).values(name=name.strip(), kind=kind.value, created=time.time())
        )
        (review_id,) = result.inserted_primary_key or (0,)
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
                for position, pair in enumerate(made)
            ],
        )
    return Review(review_id, name.strip(), kind)


def _plain(pair: Pair) -> Pair:
    before, after = ("".join(text for text, _ in each) for each in (pair.before, pair.after))
    return replace(pair, before=[(before, "")], after=[(after, "")])


def reviews_of(connection: Connection, user: User) -> list[Review]:
    """The reviews that somebody may see."""
    query = select(REVIEWS).order_by(REVIEWS.c.created.desc())
    if not user.role.allows(Role.OWNER):
        own = select(REVIEW_MEMBERS.c.review_id).where(REVIEW_MEMBERS.c.account_id == user.id)
        query = query.where(REVIEWS.c.id.in_(own))
    return [_review(row) for row in connection.execute(query)]


def visible_review(connection: Connection, user: User, review_id: int) -> Review:
    """A review that somebody owns or takes part in.

    Raises:
        NotThereError: there is none.
    """
    row = connection.execute(select(REVIEWS).where(REVIEWS.c.id == review_id)).one_or_none()
    if row is None:
        raise NotThereError
    review = _review(row)
    if not user.role.allows(Role.OWNER) and user.id not in reviewers_of(connection, review):
        raise NotThereError
    return review


def _review(row: Any) -> Review:
    return Review(row.id, row.name, Kind(row.kind))


def reviewers_of(connection: Connection, review: Review) -> set[int]:
    """The accounts that take part."""
    query = select(REVIEW_MEMBERS.c.account_id).where(REVIEW_MEMBERS.c.review_id == review.id)
    return set(connection.scalars(query))


def add_reviewer(database: Database, review: Review, account_id: int) -> None:
    """Let somebody take part."""
    with database.writing() as connection:
        if account_id not in reviewers_of(connection, review):
            connection.execute(
                insert(REVIEW_MEMBERS).values(review_id=review.id, account_id=account_id)
            )


def remove_reviewer(database: Database, review: Review, account_id: int) -> None:
    """Take somebody out; what they said stays."""
    database.write(
        delete(REVIEW_MEMBERS).where(
            REVIEW_MEMBERS.c.review_id == review.id, REVIEW_MEMBERS.c.account_id == account_id
        )
    )


def order_of(connection: Connection, review: Review, account_id: int) -> list[int]:
    """The items in the order in which somebody sees them; in a blind review one of their own."""
    query = (
        select(REVIEW_ITEMS.c.id)
        .where(REVIEW_ITEMS.c.review_id == review.id)
        .order_by(REVIEW_ITEMS.c.position)
    )
    found = list(connection.scalars(query))
    if review.kind is Kind.BLIND:
        Random(f"{review.id}/{account_id}").shuffle(found)
    return found


def find_item(connection: Connection, user: User, item_id: int) -> tuple[Item, Review]:
    """An item of a review that somebody owns or takes part in.

    Raises:
        NotThereError: there is none.
    """
    row = connection.execute(select(REVIEW_ITEMS).where(REVIEW_ITEMS.c.id == item_id)).one_or_none()
    if row is None:
        raise NotThereError
    return _item(row), visible_review(connection, user, row.review_id)


def _item(row: Any) -> Item:
    pieces = [[(text, kind) for text, kind in json.loads(each)] for each in (row.before, row.after)]
    return Item(row.id, row.review_id, Pair(row.name, row.system, row.query, *pieces))


def judgements_of(connection: Connection, review: Review, account_id: int) -> dict[int, Judgement]:
    """What somebody said, by item."""
    query = (
        select(VERDICTS)
        .join(REVIEW_ITEMS, REVIEW_ITEMS.c.id == VERDICTS.c.item_id)
        .where(REVIEW_ITEMS.c.review_id == review.id, VERDICTS.c.account_id == account_id)
    )
    return {row.item_id: _judgement(row) for row in connection.execute(query)}


def _judgement(row: Any) -> Judgement:
    return Judgement(row.verdict, row.privacy, row.meaning, row.comment, row.done, row.seconds)


def judge(connection: Connection, item: Item, account_id: int, said: Judgement) -> None:
    """Keep what somebody says of an item, in place of what they said before."""
    key = (VERDICTS.c.item_id == item.id) & (VERDICTS.c.account_id == account_id)
    values = {**asdict(said), "saved": time.time()}
    changed = connection.execute(update(VERDICTS).where(key).values(**values))
    if not changed.rowcount:
        connection.execute(
            insert(VERDICTS).values(item_id=item.id, account_id=account_id, **values)
        )


def every_judgement(connection: Connection, review: Review) -> list[tuple[Item, int, Judgement]]:
    """All finished judgements: item, account, what was said."""
    query = (
        select(VERDICTS, REVIEW_ITEMS)
        .join(REVIEW_ITEMS, REVIEW_ITEMS.c.id == VERDICTS.c.item_id)
        .where(REVIEW_ITEMS.c.review_id == review.id, VERDICTS.c.done.is_(True))
        .order_by(REVIEW_ITEMS.c.position, VERDICTS.c.account_id)
    )
    return [(_item(row), row.account_id, _judgement(row)) for row in connection.execute(query)]


def results_of(judgements: Sequence[tuple[Item, int, Judgement]]) -> list[Result]:
    """What people said of each system, by its name."""
    by_system: dict[str, list[tuple[Item, int, Judgement]]] = {}
    for each in judgements:
        by_system.setdefault(each[0].pair.system, []).append(each)
    return [
        Result(
            system=system,
            judgements=len(own),
            people=len({account_id for _, account_id, _ in own}),
            verdicts={v: sum(said.verdict == v for _, _, said in own) for v in VERDICT_WORDS},
            privacy=_mean([(item, said.privacy) for item, _, said in own]),
            meaning=_mean([(item, said.meaning) for item, _, said in own]),
        )
        for system, own in sorted(by_system.items())
    ]


def agreement_of(
    judgements: Sequence[tuple[Item, int, Judgement]], kind: Kind
) -> dict[str, Agreement]:
    """Agreement of judges on each question, over the texts that two or more judged.

    Kappa takes figures as names: 4 and 5 differ as much as 1 and 5.
    """
    asked = ("verdict",) if kind is Kind.MASKED else ("privacy", "meaning")
    found = {}
    for question in asked:
        ballots = []
        for item, account_id, said in judgements:
            answer = getattr(said, question)
            ballots.append(Ballot(str(item.id), str(account_id), (answer,), frozenset({answer})))
        found[question] = agreement(ballots)
    return found


def delete_review(database: Database, review: Review) -> None:
    """Delete a review with all its texts, from the database file too."""
    database.write(delete(REVIEWS).where(REVIEWS.c.id == review.id))
    database.purge()


def _mean(said: Iterable[tuple[Item, int | None]]) -> Mean | None:
    by_item: dict[int, list[int]] = {}
    texts: dict[int, str] = {}
    for item, value in said:
        if value is not None:
            by_item.setdefault(item.id, []).append(value)
            texts[item.id] = "".join(text for text, _ in item.pair.before)
    if not by_item:
        return None
    # Several queries about one text are one cluster, as in the leaderboard.
    names = tuple(map(str, by_item))
    scores = Scores(
        names, tuple(texts[id_] for id_ in by_item), tuple(map(fmean, by_item.values()))
    )
    (interval,) = intervals([scores])
    return Mean(scores.figure, interval)
