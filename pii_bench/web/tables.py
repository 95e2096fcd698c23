"""The tables of accounts and sessions, and the `METADATA` to which other modules add theirs.

A module with tables of its own makes them with this `METADATA` and is named in
`pii_bench.web.database`, which creates all of them.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Float, ForeignKey, Integer, LargeBinary, MetaData, String, Table

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
"""What is true of the whole database, such as the version of its schema."""

ACCOUNTS: Final = Table(
    "accounts",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String(60), nullable=False, unique=True),
    Column("role", String(20), nullable=False),
    # None: no login as this account (the local owner).
    Column("password_hash", String(200)),
    Column("created", Float, nullable=False),
)
"""People; `created` in seconds since 1970, as all times are here."""

SESSIONS: Final = Table(
    "sessions",
    METADATA,
    # SHA-256: who reads the database can open no session.
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
)
"""What programs identify themselves with (`Authorization: Bearer`)."""
