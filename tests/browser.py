"""A browser without a window, driven through the pipe of its debugging protocol: no driver has to be installed."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
_FLAGS += ("--remote-debugging-pipe", "--hide-scrollbars", "--disable-extensions", "--disable-background-networking")
_START = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(one), fcntl.F_DUPFD, 10) for one in sys.argv[1:3])
os.dup2(read, 3)  # on which the browser hears
os.dup2(write, 4)  # and speaks
os.execv(sys.argv[3], sys.argv[3:])
"""


def browser() -> str | None:
    """Return a browser of the Chromium family that is installed."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One page of a browser."""

    def __init__(self, ears: IO[bytes], mouth: IO[bytes]) -> None:
        self._ears, self._mouth, self._session, self._number, self._rest = ears, mouth, "", 0, b""
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Give an order and return its result; what the page reports meanwhile is noted."""
        self._number += 1
        order = {"id": self._number, "method": method, "params": params}
        if self._session:
            order["sessionId"] = self._session
        self._mouth.write(json.dumps(order).encode() + b"\0")
        self._mouth.flush()
        while True:
            said = self._hear()
            if said.get("id") == self._number:
                assert "error" not in said, said["error"]
                result: dict[str, Any] = said["result"]
                return result
            self._note(said.get("method", ""), said.get("params", {}))

    def _hear(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._ears.fileno(), 1 << 20)
            assert piece, "the browser has gone"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        said: dict[str, Any] = json.loads(message)
        return said

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"]["exception"].get("description", str(params)))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path: Path, dark: bool = False, width: int = 1400, height: int = 1000) -> float:
        """Open a file and return the seconds until it says that it is ready."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[feature])
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        started = time.perf_counter()
        self.ask("Page.navigate", url=path.resolve().as_uri())
        while self.run("document.documentElement?.dataset.ready") != "true":
            assert time.perf_counter() - started < 60, f"the page does not get ready: {self.errors}"
            time.sleep(0.01)
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.perf_counter() - started

    def run(self, script: str) -> Any:
        """Return what an expression gives, or what it promises."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def key(self, name: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def point(self, selector: str, click: bool = False) -> None:
        """Move the mouse onto an element, and press its button if asked."""
        box = self.run(f"(({selector}).getBoundingClientRect()).toJSON()")
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", **place)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def close(self) -> None:
        """End the browser."""
        self._session = ""
        self.ask("Browser.close")

    def picture(self, path: Path) -> None:
        """Write what is seen to a file (PNG)."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))


@contextlib.contextmanager
def opened() -> Iterator[Page]:
    """Start a browser, and end it."""
    found = browser()
    assert found, "there is no browser"
    (to_read, write), (read, to_write) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-c", _START, str(to_read), str(to_write), found, *_FLAGS]
        process = subprocess.Popen(
            [*command, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        with process, os.fdopen(read, "rb") as ears, os.fdopen(write, "wb") as mouth:
            try:
                page = Page(ears, mouth)
                yield page
                page.close()
                process.wait(30)
            finally:
                process.kill()
