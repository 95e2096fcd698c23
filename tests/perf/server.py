"""A chat completions server that gives one answer, after a delay.

`python -m tests.perf.server` prints its port and serves until it is killed; `GET /count` tells
how many answers were given. It must be in another process than what is measured, and is
quicker where uvloop is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
from typing import Final

from aiohttp import web

ANSWER: Final = 'The query is about the work.\n### Answer: ["Halifax", "32 years old"]'

_COMPLETION: Final = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_800_000_000,
    "model": "scripted",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": ANSWER, "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 400, "completion_tokens": 20, "total_tokens": 420},
}


async def _serve(delay: float) -> None:
    answered = 0

    async def complete(_: web.Request) -> web.Response:
        nonlocal answered
        await asyncio.sleep(delay)
        answered += 1
        return web.json_response(_COMPLETION)

    async def count(_: web.Request) -> web.Response:
        return web.json_response(answered)

    application = web.Application()
    application.router.add_post("/v1/chat/completions", complete)
    application.router.add_get("/count", count)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(runner.addresses[0][1], flush=True)  # noqa: T201 - who started it reads it
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay", type=float, default=0.1, metavar="SECONDS")
    delay = parser.parse_args().delay
    if importlib.util.find_spec("uvloop"):
        import uvloop

        uvloop.run(_serve(delay))
    else:
        asyncio.run(_serve(delay))


if __name__ == "__main__":
    main()
