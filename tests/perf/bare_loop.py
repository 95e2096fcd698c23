"""The least that asks: `AsyncOpenAI` in a loop, nothing retried, paced, saved or scored.

`python -m tests.perf.bare_loop REQUESTS BASE_URL CONCURRENCY`
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from openai import AsyncOpenAI


async def ask(prompts: list[str], base_url: str, concurrency: int) -> None:
    waiting = iter(prompts)

    async with AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0) as client:

        async def work() -> None:
            for prompt in waiting:
                completion = await client.chat.completions.create(
                    model="x",
                    messages=[{"role": "user", "content": prompt}],
                    temperature=0.0,
                    max_tokens=2048,
                )
                assert completion.choices[0].message.content

        await asyncio.gather(*(work() for _ in range(concurrency)))


def main() -> None:
    requests, base_url, concurrency = sys.argv[1:]
    with Path(requests).open(encoding="utf-8") as file:
        prompts = [json.loads(line)["prompt"] for line in file]
    asyncio.run(ask(prompts, base_url, int(concurrency)))


if __name__ == "__main__":
    main()
