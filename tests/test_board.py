"""The board's driver under PYNQ itself, in environments of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bootstrap import python_of
from tests.board.outside import run

from streamjoin_common.contract.presets import PRESETS
from streamjoin_hw.flow.build import build_model

ROOT = Path(__file__).resolve().parent.parent
BOARD = ROOT / "tests" / "board"
SETUP_DEADLINE_S, TESTS_DEADLINE_S = 1800, 900

pytestmark = pytest.mark.timeout(SETUP_DEADLINE_S + TESTS_DEADLINE_S)


@pytest.fixture(scope="module")
def models() -> dict[str, str]:
    """Models of designs for boards, by preset."""
    presets = ("tiny", "tiny-band", "tiny-split", "tiny-hash")
    return {name: str(build_model(PRESETS[name], board=True)) for name in presets}


def environment(version: str, pytestconfig: pytest.Config) -> Path:
    """Set up ``.venv-board`` where it is missing or old; what it has to say is shown."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    command = [sys.executable, str(ROOT / "bootstrap.py"), "board", version]
    with capture.global_and_fixture_disabled():
        done = subprocess.run(command, timeout=SETUP_DEADLINE_S, check=False)
    assert done.returncode == 0, "see what setup said above"
    return ROOT / ".venv-board" / version


@pytest.mark.parametrize("version", ["3.1", pytest.param("4.0", marks=pytest.mark.slow)])
def test_the_driver_holds_under_pynq(
    version: str, models: dict[str, str], pytestconfig: pytest.Config
) -> None:
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("common", "host", "hw")),
        "STREAMJOIN_BOARD_MODELS": json.dumps(models),
    }
    python = str(environment(version, pytestconfig) / "bin" / "python")
    command = [python, "-m", "pytest", "-c", str(BOARD / "pytest.ini"), "--rootdir", str(BOARD)]
    command += ["-m", "not slow" if version == "3.1" else ""]
    done = subprocess.run(
        [*command, str(BOARD)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=TESTS_DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout


@pytest.mark.slow
def test_pip_installs_it_in_an_empty_environment_and_it_plays_a_recording(tmp_path: Path) -> None:
    """As on a board: pip chooses from its index; no compiler, nothing of the source tree."""
    python = python_of("3.10") or python_of("3.11")
    assert python is not None, "Python 3.10, which boards with PYNQ 3.1 have, is not here"
    run([python, "-m", "venv", "empty"], tmp_path, SETUP_DEADLINE_S)
    own = str(tmp_path / "empty" / "bin" / "python")
    install = [own, "-m", "pip", "--disable-pip-version-check", "-q", "install", f"{ROOT}[board]"]
    run(install, tmp_path, SETUP_DEADLINE_S, CC="false", CXX="false")
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = run([own, "-c", asked], tmp_path, SETUP_DEADLINE_S).strip()
    asked = "import importlib.metadata as m; print(m.version('pynq'), m.version('numpy'))"
    pynq, numpy = run([own, "-c", asked], tmp_path, SETUP_DEADLINE_S).split()
    assert pynq.startswith("3.1.")
    assert numpy.startswith("1.")
    play = [own, "-W", "ignore", str(BOARD / "recorded_device.py"), site]
    assert run(play, tmp_path, TESTS_DEADLINE_S).startswith("played ")
