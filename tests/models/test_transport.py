from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pii_bench.models.transport import (
    no_certificates,
    open_http,
    parse_json,
    refusal,
    retry_after,
    safe_code,
)


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
    def test_what_servers_say(self, headers: dict[str, str], seconds: float | None) -> None:
        assert retry_after(headers) == seconds

    def test_a_date_to_come_is_the_time_until_then(self) -> None:
        date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
        assert retry_after({"retry-after": date}) == pytest.approx(3600, abs=60)

    @given(st.text(), st.text())
    def test_whatever_a_header_says_it_is_a_time_or_nothing(self, plain: str, ms: str) -> None:
        seconds = retry_after({"retry-after": plain, "retry-after-ms": ms})
        assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


class TestSafeCode:
    @pytest.mark.parametrize(
        ("values", "code"),
        [
            (("invalid_model",), "invalid_model"),
            ((None, "BadRequestError"), "BadRequestError"),
            (("1500", "invalid_model"), "invalid_model"),
            ((1500, "two words", "x" * 65), ""),
            (("sk-planted-key-0123456789",), ""),
            ((), ""),
        ],
    )
    def test_only_what_can_be_no_text_and_no_key(
        self, values: tuple[object, ...], code: str
    ) -> None:
        assert safe_code(*values) == code


@pytest.mark.parametrize(
    ("content", "body"),
    [
        (b'{"a": [1]}', {"a": [1]}),
        ("[]", []),
        (b"", None),
        (b"<html>", None),
        (b'"\xff"', None),
        (b"[" * 200_000, None),
    ],
)
def test_json_or_nothing(content: bytes | str, body: object) -> None:
    assert parse_json(content) == body


def test_a_refusal_says_who_refuses_what_and_what_helps() -> None:
    error = refusal("mistral", "m-1", "HTTP 401", "check the API key")
    assert str(error) == "provider 'mistral' refuses model 'm-1': HTTP 401: check the API key"


class TestConnections:
    @pytest.mark.parametrize(
        ("endpoint", "trusts"),
        [
            ("http://127.0.0.1:8000", False),
            ("http://localhost", False),
            ("https://a.example", True),
        ],
    )
    def test_the_environment_is_asked_for_no_loopback(self, endpoint: str, *, trusts: bool) -> None:
        http = open_http(endpoint, 5.0)
        asyncio.run(http.aclose())
        assert http.trust_env is trusts

    @pytest.mark.parametrize(("timeout", "connect"), [(120.0, 10.0), (3.0, 3.0)])
    def test_connecting_takes_at_most_ten_seconds(self, timeout: float, connect: float) -> None:
        http = open_http("https://a.example", timeout)
        asyncio.run(http.aclose())
        assert (http.timeout.read, http.timeout.connect) == (timeout, connect)

    def test_only_plain_http_to_this_machine_goes_without_certificates(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made: list[dict[str, object]] = []
        monkeypatch.setattr(httpx2, "AsyncClient", lambda **options: made.append(options))
        for endpoint in ("http://127.0.0.1", "https://127.0.0.1", "http://a.example"):
            open_http(endpoint, 5.0)
        assert [options["verify"] is True for options in made] == [False, True, True]
        assert no_certificates().cert_store_stats()["x509_ca"] == 0

    def test_importing_the_module_imports_no_client(self) -> None:
        code = "import pii_bench.models.transport, sys; sys.exit('httpx2' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603
