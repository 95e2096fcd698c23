from __future__ import annotations

import traceback

import pytest

from pii_bench.errors import PiiBenchError
from pii_bench.models.endpoints import is_loopback, normalise_base_url

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
