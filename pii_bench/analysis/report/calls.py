"""What a chat model was asked and said: prompt, raw answer, tokens, seconds, cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pii_bench.datasets.sample import Entity, Sample, Subject
from pii_bench.errors import PiiBenchError
from pii_bench.models.calls.budget import cost
from pii_bench.prompting.strategies import DETECTION, STRATEGIES, load_prompt
from pii_bench.ranking.costs import price_of
from pii_bench.runs.store import read_lines

if TYPE_CHECKING:
    from pii_bench.ranking.stored import Run
    from pii_bench.systems.base import SystemCard

# Where the page puts description, query and choices: code points for private use.
_PLACES: Final = Sample(
    "", "\ue000", "\ue001", (Subject("A", (Entity("\ue002", "PER", spans=((0, 1),)),)),), ()
)
_BETWEEN_DRAWS: Final = "\n\n--- next draw ---\n\n"


def prompt_of(card: SystemCard) -> str:
    """What a chat model was told, with marks for what is a sample's own.

    Empty for a system without a prompt, and where today's prompt is another.
    """
    name = card.prompt.partition("+")[0]
    strategy = DETECTION if name == DETECTION.name else STRATEGIES.get(name)
    if not card.prompt_sha256 or strategy is None:
        return ""
    try:
        prompt = load_prompt(strategy, output=card.output, taxonomy=card.taxonomy or "paper")
    except PiiBenchError:  # a taxonomy of its own that is no longer there
        return ""
    if prompt.sha256 != card.prompt_sha256:
        return ""
    return "\n\n".join(message.content for message in prompt.messages(_PLACES))


def calls_of(run: Run) -> dict[str, list[str | int | float | None]]:
    """Sample id to raw answer, tokens in and out, seconds, and USD at the prices of today.

    Empty for what has no prompt: its answer is what the page shows as found and chosen.
    """
    if run.files is None or not run.manifest.system.prompt_sha256:
        return {}
    price = price_of(run.manifest.system.model)
    found: dict[str, list[str | int | float | None]] = {}
    for _, record in read_lines(run.files.responses, unreadable=[]):
        said = record.completions
        if not said:
            continue
        counted = [(each.usage, each.batched) for each in said if each.usage is not None]
        whole = len(counted) == len(said)
        seconds = [each.seconds for each in said if each.seconds is not None]
        usd = None if price is None else sum(cost(usage, price, by) for usage, by in counted)
        found[record.id] = [
            _BETWEEN_DRAWS.join(each.text for each in said),
            sum(usage.input_tokens for usage, _ in counted) if whole else None,
            sum(usage.output_tokens for usage, _ in counted) if whole else None,
            # Draws are asked for at the same time.
            round(max(seconds), 2) if seconds else None,
            None if usd is None or not whole else round(usd, 6),
        ]
    return found
