"""Every test has a process of its own: a module is imported once."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

IMPORT = "from pii_bench.models.aiohttp_import import import_without_certificates as load; load()"
CONTEXTS = "from aiohttp.connector import _SSL_CONTEXT_VERIFIED, _SSL_CONTEXT_UNVERIFIED"
COUNT = "print(_SSL_CONTEXT_VERIFIED.cert_store_stats()['x509'])"

AUTHORITY = """\
-----BEGIN CERTIFICATE-----
MIIBijCCAS+gAwIBAgIUUPL7vmca4EJPf3sFG+af25JsD1cwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOcGlpLWJlbmNoIHRlc3QwIBcNMjYxMTIwMTIwMjAzWhgPMjEy
NjEwMjcxMjAyMDNaMBkxFzAVBgNVBAMMDnBpaS1iZW5jaCB0ZXN0MFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEHt7f9FBulC5CKJFNTxrlW32JQx4kqvwg800bftCd
7807mbns3TRW2gME9fl9cspkC1qiSH5lcb6KuyQS4l5pMKNTMFEwHQYDVR0OBBYE
FGReLmMWrYesBvnOM+dSM3LVWKLDMB8GA1UdIwQYMBaAFGReLmMWrYesBvnOM+dS
M3LVWKLDMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAI5w0LRC
6blA09ui9QF82Ff9IFlIUE4UrWcueApqBLARAiEAjPz+SfxHXtx8h23E0aglZer1
Z3se6Hbq+kTCM6T74xg=
-----END CERTIFICATE-----
"""


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A machine that trusts one authority."""
    path = tmp_path / "authority.pem"
    path.write_text(AUTHORITY)
    return path


def run(authority: Path, *lines: str) -> list[str]:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", "-c", "\n".join(["import ssl", *lines])],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SSL_CERT_FILE": str(authority), "SSL_CERT_DIR": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_no_certificates_are_read_at_import(authority: Path) -> None:
    assert run(authority, IMPORT, CONTEXTS, COUNT) == ["0"]


@pytest.mark.parametrize(
    "use",
    [
        "_SSL_CONTEXT_VERIFIED.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname='a.b')",
        "import socket; _SSL_CONTEXT_VERIFIED.wrap_socket(socket.socket(), server_hostname='a.b')",
    ],
)
def test_the_first_use_of_a_context_reads_them(authority: Path, use: str) -> None:
    of_ours = run(authority, IMPORT, CONTEXTS, use, COUNT, "print(type(_SSL_CONTEXT_VERIFIED))")
    of_theirs = run(authority, CONTEXTS, COUNT, "print(type(_SSL_CONTEXT_VERIFIED))")
    assert of_ours == of_theirs


def test_who_was_trusted_before_is_trusted_after(authority: Path) -> None:
    settings = "print(_SSL_CONTEXT_VERIFIED.verify_mode, _SSL_CONTEXT_UNVERIFIED.verify_mode)"
    hosts = "print(_SSL_CONTEXT_VERIFIED.check_hostname, _SSL_CONTEXT_UNVERIFIED.check_hostname)"
    ours = run(authority, IMPORT, CONTEXTS, settings, hosts)
    assert ours == run(authority, CONTEXTS, settings, hosts)


def test_other_contexts_read_them_as_ever(authority: Path) -> None:
    made = "print(ssl.create_default_context().cert_store_stats()['x509'])"
    assert run(authority, IMPORT, made) == ["1"]


def test_an_aiohttp_that_is_imported_already_is_left_alone(authority: Path) -> None:
    assert run(authority, "import aiohttp", IMPORT, CONTEXTS, COUNT) == ["1"]


def test_a_run_reads_none_where_there_is_no_tls(authority: Path) -> None:
    opened = "from pii_bench.models.openai_compatible import open_client"
    client = "client = open_client('http://127.0.0.1:1/v1', 'k', 1.0)"
    assert run(authority, opened, client, CONTEXTS, COUNT) == ["0"]
