from __future__ import annotations

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.models.base import Message
from pii_bench.models.budget import Range
from pii_bench.models.tuning import Example, Format, training_usd, tuning_file

ONE = Example("s1", (Message("system", "Be brief."), Message("user", "Göteborg?\n")), '["yes"]')
MESSAGES = (
    '{"messages": [{"role": "system", "content": "Be brief."}, '
    '{"role": "user", "content": "Göteborg?\\n"}, '
    '{"role": "assistant", "content": "[\\"yes\\"]"}]}\n'
)
PROMPT_AND_COMPLETION = (
    '{"prompt": [{"role": "system", "content": "Be brief."}, '
    '{"role": "user", "content": "Göteborg?\\n"}], '
    '"completion": [{"role": "assistant", "content": "[\\"yes\\"]"}]}\n'
)


@pytest.mark.parametrize(
    ("form", "line"),
    [
        (Format.OPENAI, MESSAGES),
        (Format.MISTRAL, MESSAGES),
        (Format.TRANSFORMERS, PROMPT_AND_COMPLETION),
    ],
)
def test_a_line_of_each_format(form: Format, line: str) -> None:
    assert tuning_file([ONE] * 10, form).text == line * 10


def test_tokens_are_counted_or_estimated_from_bytes() -> None:
    # 9 characters, 10 in 11 bytes, 7 characters.
    assert tuning_file([ONE], Format.MISTRAL, len).tokens == Range(26, 26, 26)
    assert tuning_file([ONE], Format.MISTRAL).tokens == Range(6, 8, 27)


@pytest.mark.parametrize(
    ("number", "form", "message"),
    [
        (9, Format.OPENAI, "^9 examples; openai takes at least 10$"),
        (0, Format.TRANSFORMERS, "^0 examples; transformers takes at least 1$"),
    ],
)
def test_a_file_needs_examples(number: int, form: Format, message: str) -> None:
    with pytest.raises(PiiBenchError, match=message):
        tuning_file([ONE] * number, form)


def test_openai_limits_the_length_of_an_example() -> None:
    long = Example("s2", (Message("user", "x" * 65_536),), "")
    longer = Example("s3", (Message("user", "x" * 65_537),), "")

    assert tuning_file([ONE] * 9 + [long], Format.OPENAI, len).examples == 10
    with pytest.raises(PiiBenchError, match="'s3' has about 65,537 tokens; openai takes at most"):
        tuning_file([ONE] * 9 + [longer], Format.OPENAI, len)
    assert tuning_file([longer], Format.MISTRAL, len).examples == 1


@pytest.mark.slow
@pytest.mark.parametrize("form", [Format.OPENAI, Format.MISTRAL])
def test_the_size_of_a_file_is_limited(form: Format) -> None:
    large = Example("s1", (Message("user", "x" * 60_000_000),), "")

    with pytest.raises(PiiBenchError, match="takes at most 512,000,000 a file"):
        tuning_file([large] * 10, form, lambda _: 1)


def test_prices_are_per_token_and_epoch_and_mistrals_at_least_four_dollars() -> None:
    tokens = Range(1_000_000, 2_000_000, 5_000_000)

    openai = training_usd(tokens, 3, Format.OPENAI)
    assert openai["gpt-4.1-nano-2025-04-14"] == Range(4.5, 9.0, 22.5)
    assert training_usd(tokens, 1, Format.MISTRAL)["open-mistral-nemo"] == Range(4.0, 4.0, 5.0)
    assert training_usd(tokens, 1, Format.TRANSFORMERS) == {}
