"""A chat completions server that costs next to nothing: one answer, after a delay.

`python -m tests.perf.server` prints its port and serves until it is killed; `GET /count` tells
how many answers were given. It must be in another process than what is measured, and is
quicker where uvloop is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
from typing import Final, cast

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
_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"


def _reply(body: object) -> bytes:
    encoded = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(encoded)}"
    return head.encode() + _END_OF_HEAD + encoded


_ANSWERED: Final = _reply(_COMPLETION)


class Connection(asyncio.Protocol):
    """One connection, kept alive.

    Args:
        delay: seconds before an answer.
    """

    answered = 0
    """By all connections together."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's is none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (size := _size_of_first(self._received)) is not None:
            counts = self._received.startswith(b"GET /count")
            del self._received[:size]
            if counts:
                self._transport.write(_reply(Connection.answered))
            else:
                asyncio.get_running_loop().call_later(self._delay, self._answer)

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(_ANSWERED)
            Connection.answered += 1


def _size_of_first(received: bytearray) -> int | None:
    """Bytes of the first request; None where it is not there as a whole."""
    end = received.find(_END_OF_HEAD)
    if end < 0:
        return None
    head = bytes(received[:end]).lower()
    at = head.find(_LENGTH)
    length = int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0]) if at >= 0 else 0
    size = end + len(_END_OF_HEAD) + length
    return size if len(received) >= size else None


async def _serve(delay: float) -> None:
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(delay), "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - who started it reads it
    await server.serve_forever()


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
