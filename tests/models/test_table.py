from __future__ import annotations

import datetime as dt
import re
import traceback
from typing import TYPE_CHECKING

import pytest

from pii_bench.errors import InputFileError, PiiBenchError
from pii_bench.models.table import (
    MODELS,
    ModelCard,
    ModelStatus,
    Price,
    find_card,
    is_loopback,
    normalise_base_url,
    read_table,
)

if TYPE_CHECKING:
    from pathlib import Path


KEY = "sk-planted-key-0123456789"


class TestBaseURL:
    @pytest.mark.parametrize(
        ("url", "normal"),
        [
            ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
            ("HTTPS://API.Example.org", "https://api.example.org"),
            ("https://api.example.org/Some/Path//", "https://api.example.org/Some/Path"),
            ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
            ("http://my_host.lan.:80/v1", "http://my_host.lan.:80/v1"),
            ("https://xn--bcher-kva.example/v1", "https://xn--bcher-kva.example/v1"),
        ],
    )
    def test_one_form_for_one_endpoint(self, url: str, normal: str) -> None:
        assert normalise_base_url(url) == normal

    @pytest.mark.parametrize(
        ("url", "says"),
        [
            ("", "must start with http"),
            ("localhost:8000/v1", "must start with http"),
            ("ftp://example.org", "must start with http"),
            ("http://", "no valid host"),
            ("http:///v1", "no valid host"),
            ("http://a host/v1", "no valid host"),
            # A client reads it as `localhost`; who looks at it does not.
            ("http://\u24dbocalhost/v1", "host must be ASCII"),
            ("http://b\u00fccher.example/v1", "host must be ASCII"),
            ("http://a..example/v1", "no valid host"),
            ("http://-.example:8000\x00/v1", "not valid"),
            ("http://example.org/\x00", "not valid"),
            ("http://[v1.x]/v1", "valid"),
            (f"http://{'a' * 64}.example/v1", "no valid host"),
            (f"http://example.org/{'a' * 70_000}", "not valid"),
            ("http://example.org:port", "not valid"),
            ("http://example.org:99999", "not valid"),
            ("http://[::1", "not valid"),
            (f"https://user:{KEY}@example.org/v1", "user information"),
            (f"https://{KEY}@example.org/v1", "user information"),
            (f"https://example.org/v1?api_key={KEY}", "query"),
            (f"https://example.org/v1#{KEY}", "query"),
        ],
    )
    def test_what_is_refused_is_never_quoted(self, url: str, says: str) -> None:
        with pytest.raises(PiiBenchError, match=says) as caught:
            normalise_base_url(url)
        assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("endpoint", "loopback"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1:9", True),
        ("http://127.3.2.1", True),
        ("http://[::1]:8080/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://192.168.0.7:8000", False),
        ("http://localhost.example.org", False),
    ],
)
def test_only_this_machine_is_loopback(endpoint: str, loopback: bool) -> None:
    assert is_loopback(endpoint) is loopback


ROW = """
[small]
provider = "openai"
id = "small-1"
source = "https://example.org/small"
"""
PRICE = """
[small.price]
input = 1.5
output = 3
date = 2026-11-01
source = "https://example.org/prices"
"""


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "models.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_a_row_leaves_out_is_unknown(tmp_path: Path) -> None:
    card = read_table(table(tmp_path, ROW))["small"]

    assert card == ModelCard("small", "openai", "small-1", "https://example.org/small")
    assert (card.price, card.context, card.max_output) == (None, None, None)
    assert card.full_name == "openai/small-1"


def test_a_row_with_everything(tmp_path: Path) -> None:
    text = f"""{ROW}
date = 2026-11-02
context = 8_192
max_output = 4_096
reasons = true
accepts_temperature = false
needs_base_url = true
status = "deprecated"
retirement = 2027-01-14
substitute = "other"
note = "a note"
{PRICE}
cached_input = 0.15
cache_write = 1.875
batch_factor = 0.5

[other]
provider = "mistral"
id = "small-1"
source = "https://example.org/other"
"""
    assert read_table(table(tmp_path, text))["small"] == ModelCard(
        alias="small",
        provider="openai",
        id="small-1",
        source="https://example.org/small",
        date=dt.date(2026, 11, 2),
        price=Price(
            input=1.5,
            output=3,
            date=dt.date(2026, 11, 1),
            source="https://example.org/prices",
            cached_input=0.15,
            cache_write=1.875,
            batch_factor=0.5,
        ),
        context=8192,
        max_output=4096,
        reasons=True,
        accepts_temperature=False,
        needs_base_url=True,
        status=ModelStatus.DEPRECATED,
        retirement=dt.date(2027, 1, 14),
        substitute="other",
        note="a note",
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (ROW + "contxt = 9", "model 'small': unknown key 'contxt'; did you mean 'context'? ("),
        (ROW + "[small.price]\nin = 1", "model 'small': price: unknown key 'in'"),
        (ROW.replace('id = "small-1"', ""), "model 'small': 'id' is missing"),
        (
            ROW + PRICE.replace("date = 2026-11-01", ""),
            "model 'small': price: 'date' is missing",
        ),
        (ROW + 'context = "9"', "model 'small': 'context' must be int, not str"),
        (ROW + "context = true", "model 'small': 'context' must be int, not bool"),
        (
            ROW + "retirement = 2027-01-14T00:00:00",
            "model 'small': 'retirement' must be date, not datetime",
        ),
        (ROW + PRICE.replace("1.5", '"1.5"'), "price: 'input' must be int or float, not str"),
        (ROW + PRICE.replace("1.5", "-1.5"), "model 'small': price: 'input' must not be below 0"),
        (ROW + PRICE + "batch_factor = 0.0", "'batch_factor' must be above 0 and at most 1"),
        (ROW + PRICE + "batch_factor = 50", "'batch_factor' must be above 0 and at most 1"),
        (ROW + 'status = "retird"', "unknown status 'retird'; did you mean 'retired'?"),
        (
            ROW + 'status = "retired"\nsubstitute = "small"',
            "model 'small': the substitute 'small' is retired itself",
        ),
        (
            ROW + 'status = "deprecated"',
            "model 'small' is deprecated: it needs 'retirement' and 'substitute'",
        ),
        (ROW + 'substitute = "smal"', "unknown substitute 'smal'; did you mean 'small'?"),
        (
            ROW + ROW.replace("[small]", "[tiny]"),
            "model 'tiny': openai/small-1 is 'small' already",
        ),
        ("small = 1", "model 'small' must be a table"),
        ("[small", "not valid TOML: "),
    ],
)
def test_a_broken_table_is_refused_with_the_file_and_the_row(
    tmp_path: Path, text: str, what: str
) -> None:
    path = table(tmp_path, text)

    with pytest.raises(InputFileError, match=re.escape(what)) as caught:
        read_table(path)

    assert str(caught.value).startswith(f"{path}: ")


def test_a_table_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_bytes(b"\xff")

    with pytest.raises(InputFileError, match="not valid TOML"):
        read_table(path)


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="No such file"):
        read_table(tmp_path / "models.toml")


@pytest.mark.parametrize(
    ("more", "standing"),
    [
        ("", "current"),
        (
            'status = "deprecated"\nretirement = 2027-01-14\nsubstitute = "other"',
            "deprecated, until 2027-01-14: use other",
        ),
        ("needs_base_url = true", "needs --base-url"),
        ('needs_base_url = true\nsubstitute = "other"', "needs --base-url, or use other"),
    ],
)
def test_the_standing_of_a_model_in_words(tmp_path: Path, more: str, standing: str) -> None:
    other = ROW.replace("[small]", "[other]").replace("small-1", "other-1")

    assert read_table(table(tmp_path, ROW + more + other))["small"].standing == standing


def test_a_card_is_found_by_provider_and_id_together() -> None:
    card = find_card("openai", "gpt-4o-2024-08-06")

    assert card is MODELS["gpt4o"]
    assert find_card("deepseek", "gpt-4o-2024-08-06") is None


def test_every_model_of_the_paper_has_a_row() -> None:
    assert {
        "gpt4o",
        "claude-3.5-sonnet",
        "deepseek-v3",
        "llama-3.1-70b-instruct",
        "qwen2.5-72b-instruct",
        "llama-3.1-8b-instruct",
        "qwen2.5-7b-instruct",
        "qwen2.5-3b-instruct",
        "qwen2.5-1.5b-instruct",
        "qwen2.5-0.5b-instruct",
        "gpt-5",
        "deepseek-v3.2",
        "deepseek-r1",
        "qwen3-30b-instruct",
        "qwen3-30b-thinking",
        "qwen3-8b-think",
        "qwen3-8b-no-think",
    } <= set(MODELS)


def test_what_runs_here_costs_nothing_and_what_runs_on_ones_own_server_is_unknown() -> None:
    free = MODELS["smollm2"].price

    assert free is not None
    assert (free.input, free.output, free.source) == (0, 0, "runs on this machine")
    assert {card.price for card in MODELS.values() if card.needs_base_url} == {None}
    assert all(
        card.price is None or card.price.input > 0
        for card in MODELS.values()
        if card.provider != "local"
    )


def test_an_alias_needs_no_slash_and_no_other_name_of_a_system() -> None:
    assert not [alias for alias in MODELS if set(alias) & set("/+: ")]
