"""Attacks by a chat server that sends invalid or malicious responses."""

from __future__ import annotations

import json
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from tests.anthropic_replies import message_body, text_block
from tests.builders import sample_record, write_lines
from tests.mistral_replies import answer_body
from tests.protocol_server import RESET, ProtocolServer, Reply, completion
from tests.torture.process import KEY, PLANTED, Ended, Trial, pii_bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    Body = dict[str, Any]

ANSWER: Final = '### Answer: ["32"]'
GIANT: Final = 10**400
HOSTILE: Final = "=1+1\x1b]0;x\x07\u202e<script>alert(1)</script>|\ud800`$x^{$\n# c"

# Only the cached count is impossible, so the cost of a call follows from the other counts.
_CACHED: Final = "cached beyond the input"
_SAMPLES: Final = 8
# At this price a call with a prompt of 1,500 bytes costs at most about 3.5 USD.
_PRICE: Final = "1000,1000"
_CAP: Final = "12"


def _openai(text: object = ANSWER, **parts: Any) -> Body:
    body = completion("").body
    assert isinstance(body, dict)
    body["choices"][0]["message"]["content"] = text
    return body | parts


def _anthropic(text: object = ANSWER, **parts: Any) -> Body:
    blocks = [text_block(text)] if isinstance(text, str) else [{"type": "text", "text": text}]
    return message_body(*blocks) | parts


def _mistral(text: object = ANSWER, **parts: Any) -> Body:
    return answer_body(text) | parts


BODIES: Final[Mapping[str, Callable[..., Body]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "mistral": _mistral,
}
_COUNTS: Final = {
    "openai": ("prompt_tokens", "completion_tokens"),
    "anthropic": ("input_tokens", "output_tokens"),
    "mistral": ("prompt_tokens", "completion_tokens"),
}


def usage_bodies(provider: str) -> dict[str, Body]:
    """Return response bodies with impossible token counts, by name."""
    body = BODIES[provider]
    names = _COUNTS[provider]
    pairs: dict[str, tuple[object, object]] = {
        "true": (True, True),
        "negative": (-1_000_000, -1_000_000),
        "negative input": (-1_000_000, 7),
        "zero": (0, 0),
        "zero output with a text": (11, 0),
        "400 digits": (GIANT, GIANT),
        "400 digits below zero": (-GIANT, -GIANT),
        "fractions": (0.5, 0.5),
        "texts": ("1", "1"),
        "lists": ([1], [1]),
        "null": (None, None),
    }
    usage = dict(body()["usage"])
    # The total of a body counts as output what the two numbers leave out.
    usage.pop("total_tokens", None)
    found = {
        name: body(usage={**usage, **dict(zip(names, pair, strict=True))})
        for name, pair in pairs.items()
    }
    cached: Mapping[str, Body] = {
        "openai": {"prompt_tokens_details": {"cached_tokens": 10**9}},
        "anthropic": {"cache_read_input_tokens": -(10**9)},
        "mistral": {"prompt_tokens_details": {"cached_tokens": 10**9}},
    }
    found[_CACHED] = body(usage={**body()["usage"], **cached[provider]})
    found["a list of counts"] = body(usage=[1, 2])
    found["a text as usage"] = body(usage="many")
    if provider == "mistral":
        # Mistral's SDK converts these to 1.
        del found["true"], found["texts"]
    return found


def bodies(provider: str) -> dict[str, Reply]:
    """Return invalid or malicious replies, by name."""
    body = BODIES[provider]
    whole = json.dumps(body()).encode()
    deep = b'{"id": ' + b"[" * 200_000
    quoted = {"message": f"bad key {KEY} for {PLANTED}", "type": HOSTILE, "code": [HOSTILE]}
    return {
        "nothing": Reply(body=b""),
        "half of it": Reply(body=whole[: len(whole) // 2]),
        "HTML": Reply(body=b"<html><script>alert(1)</script>"),
        "null": Reply(body=None),
        "a number": Reply(body=7),
        "a list": Reply(body=[body()]),
        "an empty object": Reply(body={}),
        "bytes that are no UTF-8": Reply(body=b'{"id": "\xff\xfe"}'),
        "brackets 200,000 deep": Reply(body=deep),
        "a number of 5,000 digits": Reply(body=b'{"created": ' + b"9" * 5000 + b"}"),
        "NaN and infinity": Reply(body=b'{"created": NaN, "id": Infinity}'),
        "no text": Reply(body=body(None)),
        "a number as text": Reply(body=body(12)),
        "an object as text": Reply(body=body({"a": 1})),
        "a text of surrogates": Reply(body=body("\ud800" * 1000)),
        "a text of escape sequences": Reply(body=body(HOSTILE * 100)),
        "a text of a million brackets": Reply(body=body("[" * 1_000_000)),
        "a text of 100,000 marks": Reply(body=body('["e' + "\u0301\u0316" * 50_000 + '"]')),
        "5,000 subjects": Reply(
            body=body("\n".join(f'Subject{n}{{"a{n} b": "PER"}}' for n in range(5000)))
        ),
        "a hostile model id": Reply(body=body(model=HOSTILE)),
        "a model id of a megabyte": Reply(body=body(model="m" * 1_000_000)),
        "a list as model id": Reply(body=body(model=["m"])),
        "choices that are no list": Reply(body=body(choices=7, content=7)),
        "no choices": Reply(body=body(choices=[], content=[])),
        "an error of 200": Reply(body={"error": quoted}),
        "an error that quotes key and text": Reply(status=400, body={"error": quoted}),
        "an error whose code is a list": Reply(
            status=403,
            body={"type": "error", "error": {"type": "x", "details": {"error_code": ["x"]}}},
        ),
        "an error that is a list": Reply(status=422, body=[quoted]),
        "an error of a megabyte": Reply(status=400, body={"error": {"message": "x" * 1_000_000}}),
    }


def transports(provider: str) -> dict[str, Reply]:
    """Return replies with a faulty transport, by name."""
    whole = json.dumps(BODIES[provider]()).encode()
    plain = {"Content-Type": "application/json"}
    return {
        "gzip of 1 GB": Reply(body=_bomb(), headers={"Content-Encoding": "gzip"}),
        "gzip that is none": Reply(body=whole, headers={"Content-Encoding": "gzip"}),
        "an unknown encoding": Reply(body=whole, headers={"Content-Encoding": "x"}),
        "an unknown character set": Reply(
            body=whole, headers={"Content-Type": "application/json; charset=x"}
        ),
        "a connection that breaks": RESET,
        "an answer that never ends": Reply(body=whole, trickle=1.0),
        "wait for ever": Reply(status=429, body={}, headers={"Retry-After": "1e99"}),
        "wait a negative time": Reply(status=429, body={}, headers={"Retry-After": "-7"}),
        "wait no time that is one": Reply(
            status=503, body={}, headers={"Retry-After": HOSTILE[:3]}
        ),
        "status 999": Reply(status=999, body=whole, headers=plain),
        "status 204": Reply(status=204, body=b""),
        "a redirect to itself": Reply(status=307, headers={"Location": "/v1/chat/completions"}),
    }


@lru_cache(maxsize=1)
def _bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    block = b" " * (1 << 20)
    return b"".join([*(packer.compress(block) for _ in range(1024)), packer.flush()])


def attack_usage(folder: Path) -> Iterator[Trial]:
    """Send impossible token counts to runs with a cost cap, then run again."""
    for provider in BODIES:
        most = _calls_within_cap(folder / f"{provider}-honest", provider)
        found = usage_bodies(provider)
        tries = {f"{provider}: {name}": Reply(body=body) for name, body in found.items()}
        yield from _all(folder / provider, tries, partial(_try_usage, provider, most))


def attack_bodies(folder: Path) -> Iterator[Trial]:
    """Send invalid or malicious bodies."""
    yield from _attack_chats(folder, bodies)


def attack_transports(folder: Path) -> Iterator[Trial]:
    """Send valid bodies over a faulty transport."""
    yield from _attack_chats(folder, transports)


def _attack_chats(folder: Path, replies: Callable[[str], Mapping[str, Reply]]) -> Iterator[Trial]:
    for provider in BODIES:
        tries = {f"{provider}: {name}": reply for name, reply in replies(provider).items()}
        yield from _all(folder / provider, tries, partial(_try_chat, provider))


def attack_redirects(folder: Path) -> Iterator[Trial]:
    """Redirect calls to another host."""
    for provider in BODIES:
        for status in (301, 302, 303, 307, 308):
            name = f"{provider}: {status}"
            with ProtocolServer() as thief:
                thief.script(Reply(body=BODIES[provider]()))
                reply = Reply(status=status, headers={"Location": f"{thief.url}/v1/steal"})
                trial = _try_chat(provider, folder / name.replace(": ", "-"), name, reply)
                seen = json.dumps([[dict(r.headers), r.body] for r in thief.requests])
            held = {"no key goes to another host": KEY not in seen}
            yield Trial(name, (*trial.broken, *Trial.of(name, held).broken))


def _all(
    folder: Path,
    tries: Mapping[str, Reply],
    attempt: Callable[[Path, str, Reply], Trial],
) -> Iterator[Trial]:
    # The processes mostly wait between retries, so several can run at once.
    with ThreadPoolExecutor(4) as pool:
        futures = [
            pool.submit(attempt, folder / str(number), name, reply)
            for number, (name, reply) in enumerate(tries.items())
        ]
        for future in futures:
            yield future.result()


def _write_samples(folder: Path, count: int) -> None:
    records = [
        sample_record(
            f"s{number}",
            description=f"{PLANTED} is 32. She is number {number}.",
            subjects=[
                {
                    "id": "A",
                    "entities": [{"text": PLANTED, "type": "PER"}, {"text": "32", "type": "DEM"}],
                }
            ],
        )
        for number in range(count)
    ]
    write_lines(folder / "set.jsonl", records)


def _chat(provider: str, folder: Path, server: ProtocolServer, *options: str) -> Ended:
    return pii_bench(
        folder,
        *("run", "--model", f"{provider}/m", "--base-url", f"{server.url}/v1"),
        *("--dataset", "set.jsonl", "--task", "query-related", "--timeout", "5"),
        *("--concurrency", "1", *options),
    )


def _sound_run(folder: Path) -> None:
    """Store a run of another model, which every leaderboard must show."""
    answers = write_lines(folder / "sound.jsonl", [{"id": "s0", "text": ANSWER}])
    task = ("--task", "query-related", "--dataset", "set.jsonl")
    pii_bench(folder, "run", "--model", f"replay:{answers}", *task)


def _calls_within_cap(folder: Path, provider: str) -> int:
    """Return the number of calls within the cap if the server reports no token counts."""
    _write_samples(folder, _SAMPLES)
    with ProtocolServer() as server:
        server.script(Reply(body=BODIES[provider](usage=None)))
        _chat(provider, folder, server, "--price", _PRICE, "--max-usd", _CAP)
        return len(server.requests)


def _try_usage(provider: str, most: int, folder: Path, name: str, reply: Reply) -> Trial:
    _write_samples(folder, _SAMPLES)
    _sound_run(folder)
    with ProtocolServer() as server:
        server.script(reply)
        first = _chat(provider, folder, server, "--price", _PRICE, "--max-usd", _CAP)
        calls = len(server.requests)
        lines = _answered(folder, provider)
        server.requests.clear()
        again = _chat(provider, folder, server, "--price", _PRICE, "--max-usd", _CAP)
        asked = {str(request.body) for request in server.requests}
    board = pii_bench(folder, "leaderboard")
    allowed = _SAMPLES if name.endswith(_CACHED) else most
    return Trial.of(
        name,
        {
            **first.checks(),
            "no more calls than the cap allows": calls <= allowed,
            "what is spent is not below zero": _spent(folder, provider) >= 0,
            **{f"a second run: {what}": held for what, held in again.checks().items()},
            "nothing that is stored is asked again": lines + len(asked) <= _SAMPLES,
            **_board_checks(board),
        },
    )


def _try_chat(provider: str, folder: Path, name: str, reply: Reply) -> Trial:
    _write_samples(folder, 1)
    _sound_run(folder)
    with ProtocolServer() as server:
        server.script(reply)
        ended = _chat(provider, folder, server)
    board = pii_bench(folder, "leaderboard")
    page = pii_bench(folder, "report", "--texts")
    html = (folder / "results" / "report.html").read_text(encoding="utf-8")
    return Trial.of(
        name,
        {
            **ended.checks(),
            "at most 512 MB": ended.megabytes < 512,
            **_board_checks(board),
            **{
                f"report: {what}": held
                for what, held in page.checks().items()
                if "text" not in what
            },
            "no script of a server in the report": "<script>alert" not in html,
        },
    )


def _answered(folder: Path, provider: str) -> int:
    paths = (folder / "results" / "runs").glob(f"{provider}--*/*/*.jsonl")
    lines = [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]
    return sum("error" not in line for line in lines)


def _spent(folder: Path, provider: str) -> float:
    """Return the lowest cost in USD that a manifest reports."""
    paths = (folder / "results" / "runs").glob(f"{provider}--*/*/*.run.json")
    totals = [json.loads(path.read_bytes())["totals"] for path in paths]
    return min((each["usd"] or 0.0 for each in totals if each), default=0.0)


def _board_checks(board: Ended) -> dict[str, bool]:
    checks = {f"leaderboard: {what}": held for what, held in board.checks((0, 1)).items()}
    return checks | {"leaderboard: the sound run is shown": "rows of ours" in board.out}
