"""FuseSoC reads the core file and LiteX the design, in an environment of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from streamjoin_common.contract import registers
from streamjoin_common.contract.presets import PRESETS
from streamjoin_hw.flow import toolchain
from streamjoin_hw.flow.core_file import core_identifier
from streamjoin_hw.flow.emit import VERILOG_NAME, emit_verilog

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
SETUP_DEADLINE_S, STEP_DEADLINE_S = 1800, 300

LITEX_WARNINGS = ("CASEINCOMPLETE", "WIDTH", "CASEOVERLAP", "COMBDLY", "PINMISSING", "TIMESCALEMOD")
"""What Verilator says of LiteX's own Verilog."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(SETUP_DEADLINE_S + 4 * STEP_DEADLINE_S)]
# The core file's names and the example's are checked in tests/hw/test_core_file.py.


@pytest.fixture(scope="module")
def programs(pytestconfig: pytest.Config) -> Path:
    """Set up ``.venv-soc`` where it is missing or old; what it has to say is shown."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    command = [sys.executable, str(ROOT / "bootstrap.py"), "soc"]
    with capture.global_and_fixture_disabled():
        done = subprocess.run(command, timeout=SETUP_DEADLINE_S, check=False)
    assert done.returncode == 0, "see what setup said above"
    return ROOT / ".venv-soc" / "bin"


def run(command: list[str], folder: Path, **env: str) -> str:
    """Run a command with Verilator on the path; returns what it prints."""
    # FuseSoC and LiteX keep what they know of libraries in the home folder: it is one of ours.
    env = {**os.environ, **toolchain.verilator().env(), "HOME": str(folder), **env}
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=STEP_DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-5_000:]
    return done.stdout + done.stderr


def test_fusesoc_lints_a_design_and_runs_the_driver_that_depends_on_it(
    programs: Path, tmp_path: Path
) -> None:
    emit_verilog(PRESETS["tiny-split"], tmp_path / "design")
    fusesoc = [str(programs / "fusesoc"), "--cores-root", str(tmp_path / "design")]
    name = core_identifier("streamjoin_top")
    listed = run([*fusesoc, "core", "list"], tmp_path)
    assert name in listed
    assert PRESETS["tiny-split"].digest in listed
    run([*fusesoc, "run", "--target", "lint", name], tmp_path)
    driver = ["--cores-root", str(EXAMPLES), "run", "streamjoin:examples:verilated_driver"]
    assert " pairs, all as expected\n" in run([*fusesoc, *driver], tmp_path)


@pytest.mark.parametrize("preset", ["tiny", "tiny-hash"])
def test_a_design_in_a_litex_system_joins(programs: Path, tmp_path: Path, preset: str) -> None:
    """The driver reaches the registers through LiteX's bus, at the address LiteX has given."""
    design = emit_verilog(PRESETS[preset], tmp_path / "design").parent
    sources = os.pathsep.join(str(ROOT / name) for name in ("common", "hw"))
    example = [str(programs / "python"), str(EXAMPLES / "litex_soc.py"), str(design), "system"]
    run(example, tmp_path, PYTHONPATH=sources)
    system = tmp_path / "system"
    constants = (system / "soc.h").read_text()
    for each in registers(PRESETS[preset]):
        assert f"#define STREAMJOIN_REG_{each.name.upper()} {each.offset}\n" in constants
    command = [str(toolchain.verilator().path), "--cc", "--exe", "--build"]
    command += [f"-Wno-{each}" for each in LITEX_WARNINGS]
    # Not by -include mem.h: g++ takes Verilator's precompiled header as the first one alone.
    base = re.search(r"#define STREAMJOIN_BASE (\w+)", (system / "mem.h").read_text())
    assert base is not None
    assert int(base[1].rstrip("L"), 0) > 0
    command += ["-CFLAGS", f"-I{design} -DSTREAMJOIN_BASE={base[1]}", "--Mdir", "obj"]
    command += ["--prefix", "Vstreamjoin_top", "--top-module", "streamjoin_soc"]
    command += [str(design / VERILOG_NAME), str(system / "streamjoin_soc.v")]
    run([*command, str(EXAMPLES / "verilated_driver.cpp")], tmp_path)
    assert run(["obj/Vstreamjoin_top"], tmp_path).endswith(" pairs, all as expected\n")


def test_litex_is_told_of_a_folder_that_holds_no_design(programs: Path, tmp_path: Path) -> None:
    code = (
        "from litex.build.generic_platform import GenericPlatform\n"
        "from streamjoin_common.errors import UsageError\n"
        "from streamjoin_hw.flow.litex import StreamJoin\n"
        "try: StreamJoin(GenericPlatform('', [], name='x'), 'nowhere')\n"
        "except UsageError as error: print(error)\n"
    )
    sources = os.pathsep.join(str(ROOT / name) for name in ("common", "hw"))
    said = run([str(programs / "python"), "-c", code], tmp_path, PYTHONPATH=sources)
    assert said.startswith("nowhere/manifest.json cannot be read (No such file or directory): name")
