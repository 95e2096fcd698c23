"""What a run imports, which is most of what a short one takes."""

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
    heavy = {"anthropic", "httpcore2", "mistralai", "pandas", "rich", "scipy"}
    assert not packages & heavy
    # Of the SDK, which is needed, its client alone.
    assert not {name for name in modules if name.startswith("openai.types.chat")}


def test_what_only_the_end_of_a_run_needs_does_not_delay_its_first_call() -> None:
    code = "import sys, pii_bench.cli.run; print({'numpy', 'tabulate'} & sys.modules.keys())"
    done = subprocess.run(  # noqa: S603 -- our own interpreter and code
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "set()"
