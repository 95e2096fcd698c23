"""Every command of the README runs as printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.cli.command import environment
from tests.conftest import REPOSITORY
from tests.protocol_server import completion

if TYPE_CHECKING:
    from pathlib import Path

    from tests.protocol_server import ProtocolServer

README: Final = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BLOCKS: Final = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)

# `make test` runs what this is a part of.
LEFT_OUT: Final = re.compile(r"(?m)^make test\b.*$")


def bash(script: str, folder: Path, **variables: str) -> str:
    """Run lines as one shell would; the first that fails ends it.

    Returns:
        Standard output.
    """
    done = subprocess.run(  # noqa: S603 - the README's own lines
        ["/bin/bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_lines_of_the_command_run_in_order(tmp_path: Path) -> None:
    command = tmp_path / "bin" / "pii-bench"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pii_bench "$@"\n')
    command.chmod(0o755)
    lines = [line for kind, block in BLOCKS if not kind for line in block.splitlines()]
    ours = [line for line in lines if line.startswith(("pii-bench ", "echo "))]
    path = f"{command.parent}:{os.environ['PATH']}"

    output = bash("\n".join(ours), tmp_path, PATH=path)

    assert [line.split()[:2] for line in ours if "pii-bench" in line.split()[0]] == [
        ["pii-bench", "run"],
        ["pii-bench", "mask"],
        ["pii-bench", "mask"],
    ]
    shown = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    assert output.splitlines()[-2:] == shown


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_each_block_runs_in_a_fresh_copy_and_environment(
    tmp_path: Path, protocol_server: ProtocolServer
) -> None:
    """Two samples of each dataset; a server here answers for the provider."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (REPOSITORY / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, tmp_path / name)
    protocol_server.script(completion("### Answer: []"))
    script = ["unset PYTHONPATH VIRTUAL_ENV"]
    for kind, block in BLOCKS:
        text = LEFT_OUT.sub("", block)
        if kind == "python":
            text = f"python - <<'END'\n{block}END"
        elif "MODEL=" in text:
            text = f"export BASE_URL={protocol_server.url}/v1\n{text}\nunset BASE_URL"
        script.append(text)

    bash("\n".join(script), tmp_path, LIMIT="2")

    assert len(protocol_server.requests) > 4
    assert (tmp_path / "results" / "leaderboard.csv").exists()
