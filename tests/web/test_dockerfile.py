"""The Dockerfile, line by line: there is no Docker where the tests run."""

from __future__ import annotations

import json
import shlex
import tomllib
from typing import Final

import pytest

from pii_bench.cli import parse_arguments
from pii_bench.web.settings import Settings, is_loopback
from tests.conftest import REPOSITORY

LINES: Final = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8").splitlines()
IGNORED: Final = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
PROJECT: Final = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))


def instructions(name: str) -> list[str]:
    """What stands behind an instruction, wherever it is given."""
    return [line.partition(" ")[2] for line in LINES if line.partition(" ")[0] == name]


def copied() -> set[str]:
    """The paths of the repository that are copied into the image that builds."""
    pairs = (shlex.split(each) for each in instructions("COPY") if "--from" not in each)
    return {source for *sources, _ in pairs for source in sources}


def test_every_line_is_an_instruction_that_is_checked_here() -> None:
    names = [line.partition(" ")[0] for line in LINES if line]

    assert names == [
        *("FROM", "WORKDIR", "COPY", "COPY", "COPY", "COPY", "RUN"),
        *("FROM", "RUN", "RUN", "COPY", "ENV", "WORKDIR", "VOLUME", "USER"),
        *("EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"),
    ]


def test_both_stages_have_a_python_that_the_package_takes() -> None:
    assert [each.split()[0] for each in instructions("FROM")] == ["python:3.11-slim"] * 2
    assert PROJECT["project"]["requires-python"] == ">=3.11"


def test_what_is_copied_exists_and_is_let_through() -> None:
    assert all((REPOSITORY / path).exists() for path in copied())
    assert IGNORED[0] == "*"
    assert copied() == {line[1:] for line in IGNORED if line.startswith("!")}


def test_all_that_the_wheel_holds_is_copied() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"]}
    needed |= {PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]}

    assert {path.split("/")[0] for path in needed} <= copied()
    assert not [path for path in needed if path.startswith(("data/built", "data/texts/.lock"))]


def test_the_package_is_installed_with_the_web_in_a_folder_that_is_taken_along() -> None:
    build, *_ = instructions("RUN")
    folder = "/opt/pii-bench"

    assert build == (
        f'python -m venv {folder} && {folder}/bin/pip install --no-cache-dir ".[ocr,web]"'
    )
    assert {"ocr", "web"} <= {*PROJECT["project"]["optional-dependencies"]}
    assert f"--from=build {folder} {folder}" in instructions("COPY")
    assert instructions("ENV") == [f"PATH={folder}/bin:$PATH PYTHONDONTWRITEBYTECODE=1"]


def test_tesseract_is_there_for_scans() -> None:
    _, install, _ = instructions("RUN")

    assert "apt-get install --yes --no-install-recommends tesseract-ocr &&" in install


def test_it_runs_as_a_user_that_owns_the_folder_of_the_database_alone() -> None:
    *_, add = instructions("RUN")

    assert add == "useradd --system --uid 10001 --home-dir /data --create-home pii-bench"
    assert instructions("USER") == ["10001"]
    assert instructions("WORKDIR") == ["/src", "/data"]
    assert instructions("VOLUME") == ["/data"]
    assert "/" not in Settings().database


def test_it_serves_where_other_machines_reach_it() -> None:
    entry = json.loads(instructions("ENTRYPOINT")[0])
    arguments = json.loads(instructions("CMD")[0])
    parsed = parse_arguments([*entry[1:], *arguments])

    assert entry[0] in PROJECT["project"]["scripts"]
    assert not is_loopback(parsed.host)
    assert instructions("EXPOSE") == [str(parsed.port)] == [str(Settings().port)]


def test_its_health_is_asked_as_the_server_answers() -> None:
    (check,) = instructions("HEALTHCHECK")
    command = json.loads(check.partition(" CMD ")[2])

    compile(command[2], "health", "exec")
    assert f"http://127.0.0.1:{Settings().port}/health" in command[2]
    assert "127.0.0.1" in Settings(host="0.0.0.0").allowed_hosts  # noqa: S104 -- it serves nothing


@pytest.mark.parametrize("word", ["ADD ", "sudo", "curl", "--privileged", "KEY", "TOKEN"])
def test_nothing_comes_from_elsewhere_and_no_secret_is_inside(word: str) -> None:
    assert not [line for line in LINES if word in line]
