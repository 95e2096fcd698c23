"""Debian's Chromium without a screen, driven over WebDriver with what Python has."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

INSTALL: Final = "apt-get install chromium chromium-driver"

# Chromium's own services stay off, so that whatever is asked for, the page asks for.
_FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--force-prefers-reduced-motion", "--window-size=1400,1000"),
)
_ELEMENT: Final = "element-6066-11e4-a52e-4f735466cecf"


def missing() -> str | None:
    """What to install where there is no browser."""
    found = shutil.which("chromium") and shutil.which("chromedriver")
    return None if found else f"no browser: {INSTALL}"


class Browser:
    """A browser with a new profile of its own.

    Args:
        profile: an empty folder.
        flags: what else it is started with.
    """

    def __init__(self, profile: Path, *flags: str) -> None:
        self._flags = [*_FLAGS, f"--user-data-dir={profile}", *flags]

    def __enter__(self) -> Self:
        driver = shutil.which("chromedriver") or "chromedriver"
        self._driver = subprocess.Popen(  # noqa: S603 -- Debian's driver
            [driver, "--port=0"], stdout=subprocess.PIPE, text=True
        )
        if self._driver.stdout is None:
            raise RuntimeError("no output of the driver")
        port = next(
            found[1]
            for line in self._driver.stdout
            if (found := re.search(r"started successfully on port (\d+)", line))
        )
        self._url = f"http://127.0.0.1:{port}/session"
        options = {"args": self._flags, "binary": shutil.which("chromium")}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._ask("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self._url += f"/{made['sessionId']}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._ask("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait()
            if self._driver.stdout is not None:
                self._driver.stdout.close()

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file anew, with a fragment of its address."""
        self._ask("POST", "/url", {"url": "about:blank"})
        self._ask("POST", "/url", {"url": f"{page.as_uri()}#{fragment}"})

    def back(self) -> None:
        """What the back button does."""
        self._ask("POST", "/back", {})
        self._settle()

    def run(self, script: str, *arguments: object) -> Any:
        """What the body of a function returns."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def click(self, selector: str, number: int = 0) -> None:
        """Click one of the elements of a selector, as a user does."""
        found = self._ask("POST", "/elements", {"using": "css selector", "value": selector})
        self._ask("POST", f"/element/{found[number][_ELEMENT]}/click", {})
        self._settle()

    def type(self, selector: str, keys: str) -> None:
        """Type into an element."""
        found = self._ask("POST", "/element", {"using": "css selector", "value": selector})
        self._ask("POST", f"/element/{found[_ELEMENT]}/value", {"text": keys})
        self._settle()

    def choose(self, name: str, label: str) -> None:
        """Choose an option of a field by what it says."""
        place = self.run(
            "return [...document.getElementsByName(arguments[0])[0].options]"
            ".findIndex(option => option.text === arguments[1])",
            name,
            label,
        )
        self.click(f"[name={name}] option", place)

    def texts(self, selector: str) -> list[str]:
        """What the visible elements of a selector say."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter(node => node.checkVisibility()).map(node => node.textContent.trim())",
            selector,
        )
        return found

    def complaints(self) -> list[str]:
        """What the console was told since the last time: errors and what the policy forbade."""
        entries = self._ask("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries]

    def emulate(self, command: str, **parameters: object) -> None:
        """A command of the DevTools protocol."""
        body = {"cmd": command, "params": parameters}
        self._ask("POST", "/goog/cdp/execute", body)

    def screenshot(self, path: Path) -> None:
        """What is seen, as PNG."""
        path.write_bytes(base64.b64decode(self._ask("GET", "/screenshot")))

    def _settle(self) -> None:
        """Let the page react: to a new address it does so a moment later."""
        script = "const [done] = arguments; setTimeout(() => requestAnimationFrame(done), 20)"
        self._ask("POST", "/execute/async", {"script": script, "args": []})

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 -- the driver on this machine
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310 -- likewise
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            with error:
                said = json.load(error)["value"]
        raise AssertionError(f"{path}: {said['error']}: {said['message']}")
