"""The tables of the database. Texts and answers are JSON; times are seconds since 1970.

`sqlite_autoincrement` keeps SQLite from giving the id of a deleted row to a new one, which an open
page would take for the old one. It holds for tables that are made with it.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA: Final = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

FACTS: Final = Table(
    "facts",
    METADATA,
    Column("name", String(60), primary_key=True),
    Column("value", String(200), nullable=False),
)
"""Properties of the whole database, such as the version of its schema."""

ACCOUNTS: Final = Table(
    "accounts",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(60), nullable=False, unique=True),
    Column("role", String(20), nullable=False),
    # None for the local owner, who cannot log in.
    Column("password_hash", String(200)),
    Column("created", Float, nullable=False),
)
SESSIONS: Final = Table(
    "sessions",
    METADATA,
    # SHA-256 of the secret, so that a stolen database opens no session.
    Column("key", LargeBinary(32), primary_key=True),
    Column("account_id", ForeignKey("accounts.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("csrf_token", String(60), nullable=False),
    Column("expires", Float, nullable=False),
)

TOKENS: Final = Table(
    "tokens",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("key", LargeBinary(32), nullable=False, unique=True),
    Column("account_id", ForeignKey("accounts.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", String(60), nullable=False),
    Column("created", Float, nullable=False),
    sqlite_autoincrement=True,
)
"""Tokens that programs send (`Authorization: Bearer`)."""

# Annotation projects.

PROJECTS: Final = Table(
    "projects",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("dataset", String(200), nullable=False),
    # A `projects.Stages`.
    Column("stages", String(20), nullable=False),
    Column("annotators", Integer, nullable=False),
    Column("threshold", Float, nullable=False),
    Column("qualification", Integer, nullable=False),
    Column("pass_mark", Float, nullable=False),
    Column("system", String(200), nullable=False),
    Column("suggests", Boolean, nullable=False),
    Column("guidelines", Text, nullable=False),
    Column("has_gold", Boolean, nullable=False),
    # Why the system gave no suggestions; empty if it did.
    Column("trouble", String(500), nullable=False, default=""),
    Column("created", Float, nullable=False),
    sqlite_autoincrement=True,
)

SAMPLES: Final = Table(
    "samples",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("project_id", ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    # The sample ID of the dataset file.
    Column("name", String(500), nullable=False),
    Column("record", Text, nullable=False),
    Column("qualifies", Boolean, nullable=False),
    # Marks that the project's system made; None if it was not asked or did not answer.
    Column("suggestion", Text),
    # The marks that stage 2 asks about; None until stage 1 is settled.
    Column("asked", Text),
    UniqueConstraint("project_id", "position"),
    sqlite_autoincrement=True,
)

MEMBERS: Final = Table(
    "members",
    METADATA,
    Column("project_id", ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True),
    Column("account_id", ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
    # Whether the owner let the member pass the qualification round.
    Column("admitted", Boolean, nullable=False, default=False),
)

TASKS: Final = Table(
    "tasks",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("sample_id", ForeignKey("samples.id", ondelete="CASCADE"), nullable=False),
    Column("stage", Integer, nullable=False),
    # A `tasks.Part`.
    Column("part", String(20), nullable=False),
    # 1 to the number of annotators; each place is one person's.
    Column("place", Integer, nullable=False),
    Column("account_id", ForeignKey("accounts.id", ondelete="SET NULL"), index=True),
    # Kept after the account is deleted; imported annotations have no account.
    Column("annotator", String(200), nullable=False),
    Column("imported", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    Column("answer", Text, nullable=False),
    Column("done", Boolean, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("touched", Float, nullable=False),
    UniqueConstraint("sample_id", "stage", "part", "place"),
    UniqueConstraint("sample_id", "stage", "part", "account_id"),
    sqlite_autoincrement=True,
)

VERSIONS: Final = Table(
    "versions",
    METADATA,
    Column("task_id", ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("answer", Text, nullable=False),
    # The version that undo restores; None for the first.
    Column("before", Integer),
    Column("saved", Float, nullable=False),
)

OUTCOMES: Final = Table(
    "outcomes",
    METADATA,
    Column("sample_id", ForeignKey("samples.id", ondelete="CASCADE"), primary_key=True),
    Column("stage", Integer, primary_key=True),
    Column("kappa", Float, nullable=False),
    Column("f1", Float, nullable=False),
    # Whether all annotators agree, or an adjudicator has decided.
    Column("settled", Boolean, nullable=False),
)
"""One row for each sample and stage that all annotators have finished."""

# Reviews: pairs of texts before and after masking, and verdicts on them.

REVIEWS: Final = Table(
    "reviews",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False),
    # A `reviews.Kind`.
    Column("kind", String(20), nullable=False),
    Column("created", Float, nullable=False),
    sqlite_autoincrement=True,
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
    # JSON: the pieces of the text, each with its change.
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
    sqlite_autoincrement=True,
)

VERDICTS: Final = Table(
    "verdicts",
    METADATA,
    Column("item_id", ForeignKey("review_items.id", ondelete="CASCADE"), primary_key=True),
    Column("account_id", ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True),
    # A key of `reviews.VERDICT_WORDS`; empty until it is given.
    Column("verdict", String(20), nullable=False),
    # Ratings, 1 to 5; None until they are given.
    Column("privacy", Integer),
    Column("meaning", Integer),
    Column("comment", Text, nullable=False),
    Column("done", Boolean, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("saved", Float, nullable=False),
)
