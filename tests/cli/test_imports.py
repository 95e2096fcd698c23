"""What a run imports: no SDK that it does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.cli.command import environment
from tests.protocol_server import completion

if TYPE_CHECKING:
    from tests.protocol_server import ProtocolServer

CODE = """
import contextlib, io, json, sys
from pii_bench.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(sys.argv[1:])
print(json.dumps([code, list(sys.modules)]))
"""


def test_a_run_imports_nothing_heavy_that_it_does_not_use(protocol_server: ProtocolServer) -> None:
    protocol_server.script(completion('### Answer: ["Halifax"]'))
    options = ("--task", "query-related", "--dataset", "demo", "--limit", "2")
    asked = ("--model", "openai/x", "--base-url", f"{protocol_server.url}/v1")

    done = subprocess.run(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-c", CODE, "run", *asked, *options],
        check=True,
        capture_output=True,
        text=True,
        env=environment(),
    )
    code, modules = json.loads(done.stdout)

    assert code == 0
    packages = {name.partition(".")[0] for name in modules}
    assert not packages & {"anthropic", "mistralai", "pandas", "rich", "scipy"}


def test_no_sdk_is_imported_where_nobody_is_called() -> None:
    options = ("run", "--model", "gold+all", "--dataset", "demo", "--dry-run")
    done = subprocess.run(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-c", CODE, *options],
        check=True,
        capture_output=True,
        text=True,
        env=environment(),
    )
    code, modules = json.loads(done.stdout)

    assert code == 0
    packages = {name.partition(".")[0] for name in modules}
    assert not packages & {"aiohttp", "anthropic", "httpx2", "mistralai", "openai"}
