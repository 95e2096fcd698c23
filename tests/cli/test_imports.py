"""Commands import no heavy package that they do not use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from tests.cli.command import run_python
from tests.protocol_server import completion

if TYPE_CHECKING:
    from tests.protocol_server import ProtocolServer

CODE: Final = """
import contextlib, io, json, sys
from pii_bench.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(json.dumps(list(sys.modules)))
"""
DEMO: Final = "--task query-related --dataset demo --limit 2"
SDKS: Final = "anthropic mistralai"


@pytest.mark.parametrize(
    ("command", "unused"),
    [
        ("--help", f"{SDKS} openai asyncio numpy pandas rich scipy"),
        (f"run --model openai/x --base-url URL {DEMO}", f"{SDKS} pandas rich scipy"),
        (f"run --model gold+all --dry-run {DEMO}", f"{SDKS} openai aiohttp httpx2"),
    ],
)
def test_a_command_imports_nothing_heavy_that_it_does_not_use(
    protocol_server: ProtocolServer, command: str, unused: str
) -> None:
    protocol_server.script(completion('### Answer: ["Halifax"]'))
    arguments = command.replace("URL", f"{protocol_server.url}/v1").split()

    modules = json.loads(run_python("-c", CODE, *arguments))

    packages = {name.partition(".")[0] for name in modules}
    assert not packages & set(unused.split())
    assert len(protocol_server.requests) == (2 if "URL" in command else 0)
