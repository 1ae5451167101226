"""Runs commands as they run where there is no source tree."""

import os
import subprocess
from pathlib import Path


def run(command: list[str], folder: Path, deadline_s: float, **env: str) -> str:
    """Run a command outside of the source tree; returns what it prints."""
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**outside, **env},
        capture_output=True,
        text=True,
        timeout=deadline_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    return done.stdout
