"""Servers in this process, with and without accounts, and Chromium."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from argon2 import PasswordHasher

from pii_bench.web import accounts
from pii_bench.web.accounts import Role, add_account
from pii_bench.web.database import Database
from pii_bench.web.settings import Settings
from tests.web.chromium import chromium
from tests.web.server import PASSWORD, Server, new_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.web.server import Browser


@pytest.fixture(autouse=True, scope="session")
def fast_hashes() -> Iterator[None]:
    """Hash passwords with the cheapest parameters."""
    with pytest.MonkeyPatch.context() as patch:
        hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        patch.setattr(accounts, "_HASHER", hasher)
        patch.setattr(accounts, "_DUMMY_HASH", hasher.hash("dummy"))
        yield


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with the accounts of `team`."""
    where = new_database(tmp_path_factory.mktemp("people"), "people")
    database = Database(where)
    for name, role in (
        ("olga", Role.OWNER),
        ("adam", Role.ADJUDICATOR),
        ("ann", Role.ANNOTATOR),
        ("bob", Role.ANNOTATOR),
    ):
        add_account(database, name, role, PASSWORD)
    database.close()
    return where


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Server]:
    """A server on the loopback, without accounts."""
    with ExitStack() as stack:
        yield Server(Settings(database=new_database(tmp_path, "local"), workers=0), stack)


@pytest.fixture
def team(people: str, tmp_path: Path) -> Iterator[Server]:
    """A server with an owner `olga`, an adjudicator `adam`, and annotators `ann` and `bob`."""
    with ExitStack() as stack:
        yield Server(Settings(database=new_database(tmp_path, "team", people), workers=0), stack)


@pytest.fixture
def olga(team: Server) -> Browser:
    return team.browser("olga")


@pytest.fixture
def adam(team: Server) -> Browser:
    return team.browser("adam")


@pytest.fixture
def ann(team: Server) -> Browser:
    return team.browser("ann")


@pytest.fixture
def bob(team: Server) -> Browser:
    return team.browser("bob")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium."""
    with chromium() as launched:
        yield launched


@pytest.fixture(params=[1280, 390])
def width(request: pytest.FixtureRequest) -> int:
    """Width of a laptop, and of a phone."""
    pixels: int = request.param
    return pixels
