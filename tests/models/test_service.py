from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.errors import PiiBenchError
from pii_bench.models.anthropic_messages import AnthropicModel
from pii_bench.models.anthropic_messages import read_completion as read_message
from pii_bench.models.base import CallError, Completion
from pii_bench.models.mistral_chat import MistralModel
from pii_bench.models.mistral_chat import read_completion as read_answer
from pii_bench.models.openai_compatible import OpenAICompatibleModel
from pii_bench.models.openai_compatible import read_completion as read_chat_completion
from pii_bench.models.service import EndpointClient, ServiceModel, connection_failure, retry_after
from tests.protocol_server import ProtocolServer, completion

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "sk-planted-key-0123456789"


@pytest.mark.parametrize(
    ("error", "message", "unsent"),
    [
        # openai's aiohttp client raises it for a refused connection.
        (httpx2.ConnectTimeout(""), "connection", True),
        (httpx2.ConnectError(""), "connection", True),
        (httpx2.ReadError(""), "connection", False),
        (None, "connection", False),
        (httpx2.ReadTimeout(""), "timeout", False),
        (httpx2.PoolTimeout(""), "timeout", False),
    ],
)
def test_the_error_of_a_call_without_a_response(
    error: Exception | None, message: str, *, unsent: bool
) -> None:
    failure = connection_failure(error)

    assert (str(failure), failure.unsent) == (message, unsent)


@pytest.mark.parametrize(("timeout", "connect"), [(60.0, 10.0), (3.0, 3.0)])
def test_connecting_takes_at_most_ten_seconds_of_the_timeout(
    server: ProtocolServer, timeout: float, connect: float
) -> None:
    timeouts: list[object] = []

    async def record(request: httpx2.Request) -> None:
        timeouts.append(request.extensions["timeout"])

    async def run() -> None:
        async with EndpointClient(server.url, timeout, KEY) as client:
            client.event_hooks = {"request": [record]}
            # Mistral's SDK gives each request a timeout of its own.
            await client.post(server.url, json={}, timeout=99.0)

    server.script(completion("hello"))
    asyncio.run(run())
    assert timeouts == [{"connect": connect, "read": timeout, "write": timeout, "pool": timeout}]


@pytest.mark.parametrize(
    ("kind", "base_url", "endpoint"),
    [
        (OpenAICompatibleModel, "https://a.example/v1/", "https://a.example/v1"),
        *(
            (kind, f"https://a.example{path}", "https://a.example")
            for kind in (AnthropicModel, MistralModel)
            for path in ("", "/", "/v1", "/v1/")
        ),
    ],
)
def test_the_name_and_the_endpoint_of_a_model(
    kind: type[ServiceModel[Any]], base_url: str, endpoint: str
) -> None:
    model = kind("some", "m", api_key="!sk-Az09_~", base_url=base_url)
    asyncio.run(model.close())

    assert (model.name, model.model) == ("some/m", "m")
    assert (model.endpoint, model.identity) == (endpoint, {"endpoint": endpoint})


@pytest.mark.parametrize("kind", [AnthropicModel, MistralModel, OpenAICompatibleModel])
@pytest.mark.parametrize(
    "key",
    [
        "",
        f"{KEY}\n",
        f"{KEY} ",
        f"{KEY}\x7f",
        f"\N{LEFT DOUBLE QUOTATION MARK}{KEY}",
        f"Bearer {KEY}",
    ],
)
def test_a_key_that_is_not_valid_is_refused_without_showing_it(
    kind: type[ServiceModel[Any]], key: str
) -> None:
    with pytest.raises(PiiBenchError, match=r"PII_BENCH_API_KEY\) is empty") as caught:
        kind("some", "m", api_key=key, base_url="https://a.example")
    assert KEY not in str(caught.value)


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "type", "text", "thinking", "usage", "model"]
            ),
            inner | st.sampled_from(["text", "thinking"]),
        )
    ),
)


@pytest.mark.parametrize("read", [read_message, read_answer, read_chat_completion])
@given(content=JSON)
def test_any_json_is_a_completion_or_a_bad_response(
    read: Callable[[object], Completion], content: object
) -> None:
    for body in (content, {"content": content, "choices": [{"message": {"content": content}}]}):
        try:
            outcome: Completion | str = read(body)
        except CallError as error:
            outcome = error.kind
        assert isinstance(outcome, Completion) or outcome == "bad_response"


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({"retry-after": "7"}, 7.0),
            ({"retry-after": "0"}, 0.0),
            ({"retry-after": "1.5"}, 1.5),
            ({"retry-after-ms": "250"}, 0.25),
            ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
            ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
            ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
            ({}, None),
            ({"retry-after": "-1"}, None),
            ({"retry-after": "nan"}, None),
            ({"retry-after": "inf"}, None),
            ({"retry-after": "soon"}, None),
            ({"retry-after": "Wed, 21 Oct 2015 07:28:00"}, None),
            ({"retry-after": "Wed, 21 Oct 99999999999999999999 07:28:00 GMT"}, None),
        ],
    )
    def test_values(self, headers: dict[str, str], seconds: float | None) -> None:
        assert retry_after(headers) == seconds

    def test_a_future_date(self) -> None:
        date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
        assert retry_after({"retry-after": date}) == pytest.approx(3600, abs=60)

    @given(st.text(), st.text())
    def test_other_values_are_a_time_or_none(self, plain: str, ms: str) -> None:
        seconds = retry_after({"retry-after": plain, "retry-after-ms": ms})
        assert seconds is None or (seconds >= 0 and math.isfinite(seconds))
