"""Pages in headless Chromium: a script measures what a reader would see."""

import html
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

DEADLINE_S = 60
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browser() -> str:
    """Path of the browser; without one the test fails, because set-up installs it."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(f"none of {', '.join(BROWSERS)} is on the path; type  make setup")
    return found


def measure(
    page: str, script: str, folder: Path, width_px: int, *flags: str, dark: bool = False
) -> Any:
    """Open a page and return what a script found in it.

    The script runs at the page's end and puts its answer, as JSON, into an element ``measured``
    of the page around it: the page is framed, because no window of the browser is narrower than
    500 pixels.
    """
    file = folder / "measured.html"
    framed = html.escape(page.replace("</body>", f"{script}</body>"))
    frame = f'<iframe style="border:0;width:{width_px}px;height:900px" srcdoc="{framed}"></iframe>'
    file.write_text(
        '<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f'<body style="margin:0">{frame}',
        encoding="utf-8",
    )
    command = [
        browser(),
        *["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
        *["--disable-background-networking", "--disable-component-update", "--disable-sync"],
        f"--user-data-dir={folder / 'profile'}",
        "--window-size=1400,1000",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        *flags,
        "--dump-dom",
        file.as_uri(),
    ]
    # A home of its own: the browser must not write into the user's.
    environment = {**os.environ, "HOME": str(folder)}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            dom, messages = process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            pytest.fail(f"Chromium did not end within {DEADLINE_S} s")
    found = re.search(r'<pre id="measured">(.*?)</pre>', dom, re.DOTALL)
    assert found, f"the page did not measure itself: {messages[-2000:]}"
    return json.loads(html.unescape(found[1]))
