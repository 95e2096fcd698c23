"""Chromium, and `pii-bench serve` in a separate process."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2
import pytest

from tests.cli.command import COMMAND, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

# Folder for screenshots, if any are wanted.
SHOTS: Final = os.environ.get("PII_BENCH_SCREENSHOTS")
CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def free_port() -> int:
    """Return a free TCP port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def started(folder: Path, *options: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start `pii-bench serve` in a folder and wait until it answers; return it and its URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 -- our own command
            [*COMMAND, "serve", "--port", str(port), *options],
            cwd=folder,
            env=environment(),
            stdout=log,
            stderr=log,
        )
    for _ in range(300):
        assert process.poll() is None, "the server has ended"
        try:
            httpx2.get(f"{url}/health")
        except httpx2.TransportError:
            time.sleep(0.2)
        else:
            return process, url
    process.kill()
    pytest.fail("the server does not answer")


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[str]:
    """Run `pii-bench serve` in a folder and yield its URL."""
    process, url = started(folder, *options)
    try:
        yield url
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a browser, or skip the test if there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def complaints(page: Any) -> list[str]:
    """Return a list to which the errors on the page's console are added from now on."""
    messages: list[str] = []
    page.on("console", lambda line: messages.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: messages.append(str(error)))
    return messages


def look(page: Any, name: str) -> None:
    """Check a page with axe-core and for horizontal scrolling; save a screenshot if wanted."""
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    # axe is injected by the debugger, so the page's policy does not block it.
    violations = axe.Axe().run(page).response["violations"]
    serious = [
        f"{each['id']}: {node['html'][:120]} {node.get('failureSummary', '')[:200]}"
        for each in violations
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
    assert serious == []
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
