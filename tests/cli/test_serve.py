"""`pii-bench serve`: refused options and accounts."""

from __future__ import annotations

import io
import socket
from typing import TYPE_CHECKING

import pytest

from pii_bench.cli import main
from pii_bench.web.accounts import Role, check_password
from pii_bench.web.database import Database

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Capsys


def test_an_owner_is_added_with_a_password_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a good password\n"))

    assert main(["serve", "--add-owner", "olga"]) == 0

    assert capsys.readouterr().out == "olga is an owner\n"
    database = Database(str(tmp_path / "pii-bench.sqlite"))
    account = check_password(database, "olga", "a good password")
    database.close()
    assert account is not None
    assert account.role is Role.OWNER


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--host", "0.0.0.0"], "--add-owner NAME"),  # noqa: S104 -- it is refused
        (["--model", "encodr"], "unknown"),
        (["--model", "gold"], "gold"),
        (["--upstream", "opanai"], "did you mean 'openai'?"),
        (["--upstream", "openai"], "OPENAI_API_KEY"),
        (["--database", "nothing://x"], "no driver"),
        (["--add-owner", "a b"], "cannot be taken"),
        (["--backup", "x"], "no such database"),
    ],
)
def test_wrong_options_are_refused_before_serving(
    options: list[str], what: str, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a good password\n"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])

    assert main(["serve", "--workers", "1", "--port", port, *options]) == 2

    assert what in capsys.readouterr().err


def test_a_port_in_use_is_refused_before_serving(capsys: Capsys) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        assert main(["serve", "--workers", "1", "--port", str(port)]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert f"--host 127.0.0.1 --port {port}: Address already in use" in line
