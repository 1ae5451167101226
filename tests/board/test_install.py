"""What ``pip install .[board]`` puts on a board runs the driver, without anything compiled."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from outside import run
from recorded_device import RECORDING
from streams import check_exact, random_input

from streamjoin.device import pynq as driver

ROOT = Path(__file__).resolve().parents[2]
TUPLES, CHUNK_BYTES = 150, 33 * 8
DEADLINE_S = 200


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the project is installed, as its wheel; the packages that it needs are there."""
    folder = tmp_path_factory.mktemp("installed")
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    run([*pip, *options, str(ROOT)], folder, DEADLINE_S)
    # As a 32-bit board reads it: the requirements that are not for it do not count.
    (metadata,) = target.glob("streamjoin-*.dist-info/METADATA")
    text = metadata.read_text()
    for_others = r"^Requires-Dist: .*platform_machine != 'armv7l'\n"
    assert re.search(for_others, text, re.MULTILINE)
    metadata.write_text(re.sub(for_others, "", text, flags=re.MULTILINE))
    return target


def test_the_recording_is_of_this_interface(opened: Any) -> None:
    """``RECORD=1`` records it anew."""
    board, device = opened("tiny", chunk_bytes=CHUNK_BYTES)
    device.close()
    board.log, board._next_address = [], 0x1000_0000
    how = {"chunk_bytes": CHUNK_BYTES}
    with driver.PynqDevice(Path(device._loaded._overlay.bitfile_name), **how) as again:
        pairs = check_exact(again, random_input(again.params, TUPLES, keys=5, seed=1))
    assert pairs > 100
    fresh = {"preset": "tiny", "digest": again.params.digest, "tuples": TUPLES, **how}
    if os.environ.get("RECORD"):
        RECORDING.write_text(json.dumps({**fresh, "log": board.log}) + "\n")
    kept = json.loads(RECORDING.read_text())
    renew = "type  RECORD=1 .venv/bin/pytest tests/test_board.py"
    assert {name: kept[name] for name in fresh} == fresh, renew
    assert [tuple(each) for each in kept["log"]] == board.log, renew


def test_the_wheel_holds_what_a_board_needs(site: Path, tmp_path: Path) -> None:
    """Without the source tree, with the board's packages alone, on recorded traffic."""
    play = [sys.executable, str(RECORDING.with_name("recorded_device.py")), str(site)]
    assert run(play, tmp_path, DEADLINE_S).startswith("played ")


def test_pynq_delivers_the_notebooks_of_the_wheel(site: Path, tmp_path: Path) -> None:
    code = "from pynq._cli.get_notebooks import main; main()"
    get = [sys.executable, "-W", "ignore", "-c", code, "streamjoin", "--ignore-overlays"]
    run([*get, "--path", str(tmp_path / "there")], tmp_path, DEADLINE_S, PYTHONPATH=str(site))
    assert list((tmp_path / "there").rglob("streamjoin.ipynb"))
