"""The tables of reviews: pairs of texts, and what people say of them."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Boolean, Column, Float, ForeignKey, Integer, String, Table, Text

from pii_bench.web.tables import METADATA

REVIEWS: Final = Table(
    "reviews",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False),
    # Of `reviews.Kind`.
    Column("kind", String(20), nullable=False),
    Column("created", Float, nullable=False),
)

REVIEW_MEMBERS: Final = Table(
    "review_members",
    METADATA,
    Column("review_id", ForeignKey("reviews.id", ondelete="CASCADE"), primary_key=True),
    Column("account_id", ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
)

REVIEW_ITEMS: Final = Table(
    "review_items",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("review_id", ForeignKey("reviews.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("position", Integer, nullable=False),
    Column("name", String(500), nullable=False),
    Column("system", String(300), nullable=False),
    Column("query", Text),
    # Pieces of the texts before and after, each with what became of it, as JSON.
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
)

VERDICTS: Final = Table(
    "verdicts",
    METADATA,
    Column("item_id", ForeignKey("review_items.id", ondelete="CASCADE"), primary_key=True),
    Column("account_id", ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
    # Of `reviews.Verdict`; empty as long as it is open.
    Column("verdict", String(20), nullable=False),
    # 1 to 5; None as long as they are open.
    Column("privacy", Integer),
    Column("meaning", Integer),
    Column("comment", Text, nullable=False),
    Column("done", Boolean, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("saved", Float, nullable=False),
)
