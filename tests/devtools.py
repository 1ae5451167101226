"""Chromium that is driven as a reader would: pointer, keys, downloads, screenshots.

Speaks the DevTools protocol over a pair of pipes, so that no library is needed. One browser
serves many pages.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

DEADLINE_S = 60
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, descriptor in zip(ends, (3, 4)):
    os.dup2(end, descriptor)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Starts a browser, which reads commands from descriptor 3 and writes answers to 4."""


def browser() -> str:
    """Path of the browser; without one the test fails, because set-up installs it."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(f"none of {', '.join(BROWSERS)} is on the path; type  make setup")
    return found


class Browser:
    """A headless browser with one page; a context manager.

    Parameters
    ----------
    folder : Path
        For its profile, its home and its downloads.
    """

    def __init__(self, folder: Path) -> None:
        self.downloads = folder / "downloads"
        self.errors: list[str] = []
        self._number, self._completed, self._rest = 0, 0, b""
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        flags = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--disable-extensions", "--remote-debugging-pipe", "--hide-scrollbars"),
            f"--user-data-dir={folder / 'profile'}",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-SEc", START, str(to_read), str(to_write), browser(), *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_read, to_write),
            env={**os.environ, "HOME": str(folder)},
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self._alarm = time.monotonic() + DEADLINE_S
        self._session: str | None = None

    def __enter__(self) -> "Browser":
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _attach(self) -> None:
        """Make the one page."""
        self.downloads.mkdir()
        self.send(
            "Browser.setDownloadBehavior",
            behavior="allow", downloadPath=str(self.downloads), eventsEnabled=True,
        )  # fmt: skip
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def __exit__(self, *_: object) -> None:
        os.close(self._write)
        os.close(self._read)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(DEADLINE_S)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            left_s = max(0.0, self._alarm - time.monotonic())
            if not select.select([self._read], [], [], left_s)[0]:
                pytest.fail(f"Chromium did not answer within {DEADLINE_S} s")
            received = os.read(self._read, 1 << 20)
            if not received:
                pytest.fail("Chromium ended")
            self._rest += received
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def _heed(self, message: dict[str, Any]) -> None:
        """Keep what a page complains about, and what it has given away."""
        told = message.get("params", {})
        if message.get("method") == "Browser.downloadProgress" and told["state"] == "completed":
            self._completed += 1
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(told["exceptionDetails"].get("exception", told)))
        if message.get("method") == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.errors.append(told["entry"]["text"])

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its answer."""
        self._number += 1
        self._alarm = time.monotonic() + DEADLINE_S
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._number:
                assert "error" not in message, (method, message["error"])
                return dict(message["result"])
            self._heed(message)

    def open(
        self,
        file: Path,
        *,
        width_px: int = 1280,
        dark: bool = False,
        media: str = "",
        script: bool = True,
        still: bool = False,
    ) -> None:
        """Open a page and wait until it is there."""
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width_px, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        wishes = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"},
        ]
        self.send("Emulation.setEmulatedMedia", media=media, features=wishes)
        self.send("Page.navigate", url=file.as_uri())
        while True:
            message = self._message()
            self._heed(message)
            if message.get("method") == "Page.loadEventFired":
                return

    def measure(self, page: str, script: str, folder: Path, width_px: int, **how: bool) -> Any:
        """Open a page and return what a script at its end put, as JSON, into ``#measured``."""
        file = folder / "measured.html"
        file.write_text(page.replace("</body>", f"{script}</body>"), encoding="utf-8")
        self.open(file, width_px=width_px, **how)
        return json.loads(self.run("document.getElementById('measured').textContent"))

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def point(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        """Move the pointer to a part of an element, given as shares of its width and height."""
        self._at = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            f"return [b.x + b.width * {across}, b.y + b.height * {down}]; }})()"
        )
        self._mouse("mouseMoved")

    def _mouse(self, kind: str, **more: Any) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=self._at[0], y=self._at[1], **more)

    def click(self, selector: str) -> None:
        """Click the middle of an element."""
        self.point(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self._mouse(kind, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        code = {"Enter": 13, " ": 32, "Tab": 9}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code,
                **({"text": text} if text and kind == "keyDown" else {}),
            )  # fmt: skip

    def downloaded(self, name: str) -> str:
        """Wait for a file that the page gives away, and return its text."""
        self._alarm = time.monotonic() + DEADLINE_S
        while not self._completed:
            self._heed(self._message())
        self._completed -= 1
        return (self.downloads / name).read_text(encoding="utf-8")

    def screenshot(self, file: Path, *, whole: bool = True) -> None:
        """Write what the page looks like, as PNG."""
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, file: Path) -> None:
        """Print the page."""
        printed = self.send("Page.printToPDF", printBackground=False)
        file.write_bytes(base64.b64decode(printed["data"]))
