"""What ``pip install .[board]`` puts on a board runs the driver, without anything compiled."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recorded_device import RECORDING
from streams import check_exact, random_input

from streamjoin.device import pynq as driver

ROOT = Path(__file__).resolve().parents[2]
TUPLES, CHUNK_BYTES = 150, 33 * 8


def test_the_recording_is_of_this_interface(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """``RECORD=1`` records it anew."""
    monkeypatch.setattr(driver, "LOOK_S", 1e9)
    board, device = opened("tiny", chunk_bytes=CHUNK_BYTES)
    device.close()
    board.log, board._next_address = [], 0x1000_0000
    how = {"chunk_bytes": CHUNK_BYTES}
    with driver.PynqDevice(Path(device._overlay.bitfile_name), **how) as again:
        pairs = check_exact(again, random_input(again.params, TUPLES, keys=5, seed=1))
    assert pairs > 100
    fresh = {"preset": "tiny", "digest": again.params.digest, "tuples": TUPLES, **how}
    if os.environ.get("RECORD"):
        RECORDING.write_text(json.dumps({**fresh, "log": board.log}) + "\n")
    kept = json.loads(RECORDING.read_text())
    renew = "type  RECORD=1 with pytest tests/board/test_install.py"
    assert {name: kept[name] for name in fresh} == fresh, renew


def test_the_wheel_holds_what_a_board_needs(tmp_path: Path) -> None:
    """Installed without the source tree, and with the board's packages alone."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    options = [
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--target",
        str(tmp_path / "site"),
    ]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for command in (
        [*pip, *options, str(tmp_path / "site"), str(ROOT)],
        [sys.executable, str(RECORDING.with_name("recorded_device.py")), str(tmp_path / "site")],
    ):
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("played ")
