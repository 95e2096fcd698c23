"""Paths, options and fixtures of all tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import settings

from tests.protocol_server import ProtocolServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY: Final = Path(__file__).resolve().parents[1]
GOLDEN: Final = REPOSITORY / "tests" / "golden"
CAPID: Final = REPOSITORY.parent / "shared" / "datasets" / "capid"

# The same examples in every run, and no time limit, which a busy machine could exceed.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite tests/golden/; review the diff"
    )


@pytest.fixture
def assert_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A function that compares a text with a file of tests/golden/."""

    def compare(name: str, actual: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual, encoding="utf-8")
        assert actual == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def protocol_server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as server:
        yield server


@pytest.fixture
def capid_folder() -> Path:
    """The folder of the released CAPID data; skips the test if it is missing."""
    if not CAPID.is_dir():
        pytest.skip(f"CAPID is not at {CAPID}")
    return CAPID
