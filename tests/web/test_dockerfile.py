"""The text of the Dockerfile; the tests run without Docker."""

from __future__ import annotations

import json
import shlex
import tomllib
from typing import Final

from pii_bench.cli import parse_arguments
from pii_bench.web.settings import Settings
from tests.conftest import REPOSITORY

LINES: Final = (REPOSITORY / "Dockerfile").read_text(encoding="utf-8").splitlines()
IGNORED: Final = (REPOSITORY / ".dockerignore").read_text(encoding="utf-8").splitlines()
PROJECT: Final = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))


def instructions(name: str) -> list[str]:
    """Return the arguments of all uses of an instruction."""
    return [line.partition(" ")[2] for line in LINES if line.partition(" ")[0] == name]


def test_all_files_of_the_wheel_are_copied_into_the_image() -> None:
    pairs = (shlex.split(each) for each in instructions("COPY") if "--from" not in each)
    copied = {source for *sources, _ in pairs for source in sources}
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"]}
    needed |= {PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]}

    assert all((REPOSITORY / path).exists() for path in copied)
    assert IGNORED[0] == "*"
    assert copied == {line[1:] for line in IGNORED if line.startswith("!")}
    assert {path.split("/")[0] for path in needed} <= copied
    assert not [path for path in needed if path.startswith(("data/built", "data/texts/.lock"))]


def test_the_container_runs_as_the_user_that_owns_its_data() -> None:
    build, _, add = instructions("RUN")

    extras = build.partition("[")[2].partition("]")[0].split(",")
    assert {"ocr", "web"} == {*extras} <= {*PROJECT["project"]["optional-dependencies"]}
    assert "--uid 10001 --home-dir /data --create-home" in add
    assert instructions("USER") == ["10001"]
    assert instructions("WORKDIR")[-1:] == instructions("VOLUME") == ["/data"]
    assert "/" not in Settings().database


def test_the_container_is_reachable_and_has_a_health_check() -> None:
    entry = json.loads(instructions("ENTRYPOINT")[0])
    parsed = parse_arguments([*entry[1:], *json.loads(instructions("CMD")[0])])
    _, _, check = instructions("HEALTHCHECK")[0].partition(" CMD ")
    program = json.loads(check)[2]

    assert entry[0] in PROJECT["project"]["scripts"]
    assert not Settings(host=parsed.host).is_loopback
    assert instructions("EXPOSE") == [str(parsed.port)] == [str(Settings().port)]
    compile(program, "health", "exec")
    assert f"http://127.0.0.1:{Settings().port}/health" in program
    assert "127.0.0.1" in Settings(host=parsed.host).allowed_hosts
