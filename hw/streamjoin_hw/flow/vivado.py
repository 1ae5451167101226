"""Bitstreams for boards with Vivado, where it is installed.

The scripts are in ``hw/ip`` and ``hw/boards`` of a checkout, the constraints in ``constraints``.
"""

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamjoin_common import contract
from streamjoin_common.contract import DesignParams, input_word_bits
from streamjoin_common.errors import MissingToolError, ToolError, UsageError
from streamjoin_common.installed import shipped
from streamjoin_common.storage import new_folder
from streamjoin_hw.flow.emit import MANIFEST_NAME, emit_verilog, source_revision, tool_versions
from streamjoin_hw.flow.toolchain import output_of

CLOCK_MHZ = 100.0
"""Clock of a design unless another is asked for."""

MIN_CLOCK_MHZ = 10.0

PERIOD = "-period 10.000"
"""The period in the IP's constraints, which the clock that is asked for replaces."""

JOBS = 2
DEADLINE_S = 6 * 3600

_ROOT = shipped.ROOT
REPORTED = ("streamjoin.bit", "streamjoin.hwh", "timing.rpt", "utilization.rpt")
WRITTEN = (*REPORTED, MANIFEST_NAME)
"""What a build leaves."""


@dataclass(frozen=True)
class Board:
    """A board that Vivado builds for; its preset has its name.

    Attributes
    ----------
    part : str
        The part, as Vivado calls it.
    max_clock_mhz : float
        The fastest clock that its processor gives the fabric.
    """

    part: str
    max_clock_mhz: float


_ZYNQ_7000_MHZ, _ULTRASCALE_MHZ = 250.0, 500.0
_BOARDS = (
    Board("xc7z020clg400-1", _ZYNQ_7000_MHZ),
    Board("xczu7ev-ffvc1156-2-e", _ULTRASCALE_MHZ),
    Board("xck26-sfvc784-2LV-c", _ULTRASCALE_MHZ),
)
BOARDS = dict(zip(contract.BOARDS, _BOARDS, strict=True))


def tcl_quoted(string: str) -> str:
    """Quote a string as one word of Tcl, whatever characters it holds."""
    return '"' + re.sub(r'([\\"$\[\]{};])', r"\\\1", string).replace("\n", "\\n") + '"'


def _constraints(work: Path, clock_mhz: float) -> Path:
    """Write the constraints that travel with the IP, for a clock."""
    template = (_ROOT / "constraints" / "ip" / "streamjoin_ooc.xdc").read_text()
    if PERIOD not in template:
        raise ToolError(f"constraints/ip/streamjoin_ooc.xdc has no {PERIOD!r} to set the clock by")
    path = work / "streamjoin_ooc.xdc"
    path.write_text(template.replace(PERIOD, f"-period {1e3 / clock_mhz:.3f}"))
    return path


def _design_script(params: DesignParams, board: str, verilog: Path, clock_mhz: float) -> str:
    facts = {
        "root": str(_ROOT),
        "board": board,
        "part": BOARDS[board].part,
        "clock_mhz": f"{clock_mhz:.10g}",
        "ip_constraints": str(_constraints(verilog.parent, clock_mhz)),
        "verilog": str(verilog),
        "version": f"{params.interface_version}.0",
        # Vivado takes an IP for changed if this is another number.
        "revision": str(int(params.digest[:7], 16)),
        "description": f"{params.digest}: {json.dumps(params.to_dict())}",
        "in_bits": str(input_word_bits(params)),
        "out_bits": str(contract.result_word_bits(params)),
        "jobs": str(JOBS),
    }
    return "".join(f"set {name} {tcl_quoted(value)}\n" for name, value in facts.items())


def vivado_bitstream(
    params: DesignParams,
    board: str,
    out: Path,
    report: Callable[[str], None],
    clock_mhz: float = CLOCK_MHZ,
) -> Path:
    """Build a design's bitstream for a board.

    Parameters
    ----------
    params : DesignParams
        The design.
    board : str
        One of :data:`BOARDS`.
    out : Path
        Folder that is not there yet: bitstream, ``.hwh``, manifest and reports appear in it
        together, or it does not appear.
    report : callable taking str
        Receives what Vivado prints, line by line.
    clock_mhz : float
        Clock that the processor gives the design, in MHz.

    Returns
    -------
    Path
        The bitstream.

    Raises
    ------
    UsageError
        If the board is unknown, has no such clock, or the folder is there.
    ToolError
        If there is no Vivado, or it fails.
    """
    if board not in BOARDS:
        raise UsageError(f"--board must be one of {', '.join(BOARDS)}, not {board!r}")
    fastest = BOARDS[board].max_clock_mhz
    if not MIN_CLOCK_MHZ <= clock_mhz <= fastest:
        raise UsageError(
            f"--clock must be from {MIN_CLOCK_MHZ:g} to {fastest:g} MHz on {board}, not "
            f"{clock_mhz:g}"
        )
    if out.exists():
        raise UsageError(
            f"--out must name a folder that is not there yet, not {str(out)!r}: "
            "remove it, or name another"
        )
    scripts = _ROOT / "hw" / "boards"
    if not (scripts / "build.tcl").is_file():
        raise ToolError("bitstreams are built in a checkout of the source, not from a package")
    vivado = shutil.which("vivado")
    if vivado is None:
        raise MissingToolError(
            f"a bitstream for {board} needs Vivado 2022.1 or newer on the path, from AMD: install "
            "it and source its settings64.sh"
        )
    with new_folder(out, replace=False) as results:
        work = results / "work"
        verilog = emit_verilog(params, work, board=True)
        (work / "design.tcl").write_text(_design_script(params, board, verilog, clock_mhz))
        command = [vivado, "-mode", "batch", "-nojournal", "-log", str(work / "vivado.log")]
        command += ["-source", str(scripts / "build.tcl"), "-tclargs", str(work), str(results)]
        _run(command, work, report)
        figures = _figures(results / "figures.txt")
        missing = [name for name in REPORTED if not (results / name).is_file()]
        if missing:
            raise ToolError(f"Vivado ended without {', '.join(missing)}")
        utilization = (results / "utilization.rpt").read_text(encoding="utf-8", errors="replace")
        facts = _described(params, board, figures, utilization)
        (results / MANIFEST_NAME).write_text(json.dumps(facts, indent=2) + "\n")
        shutil.rmtree(work)
    return out / "streamjoin.bit"


def _figures(path: Path) -> dict[str, str]:
    """Read what the build script has measured, and leave no trace of it."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        raise ToolError("Vivado ended well and has built nothing: see what it says above") from None
    path.unlink()
    return dict(line.split(maxsplit=1) for line in lines)


def _described(
    params: DesignParams, board: str, figures: dict[str, str], utilization: str
) -> dict[str, Any]:
    """Return the manifest with the clock that Vivado has met and what it has used."""
    tool = f"Vivado {figures['vivado']}"
    slack = figures["worst_setup_slack_ns"]
    clock = {
        "hz": float(figures["clock_hz"]),
        "source": f"{tool}, after routing: met with {slack} ns to spare (timing.rpt)",
    }
    resources = {
        "part": BOARDS[board].part,
        "source": f"{tool}, after routing, design and DMA (utilization.rpt)",
        **used(utilization),
    }
    return contract.manifest(
        params,
        source_revision=source_revision(),
        tools={**tool_versions(), "vivado": figures["vivado"]},
        resources=resources,
        clock=clock,
        board=board,
    )


RESOURCES = {
    "Slice LUTs": "lut",
    "CLB LUTs": "lut",
    "Slice Registers": "ff",
    "CLB Registers": "ff",
    "Block RAM Tile": "ramb36",
    "URAM": "uram",
    "DSPs": "dsp",
}
"""Rows of Vivado's report, of 7-series and UltraScale+ parts, and what a manifest calls them."""


def used(report: str) -> dict[str, dict[str, float]]:
    """Take what a design uses of a part out of ``report_utilization``'s tables.

    Parameters
    ----------
    report : str
        Tables of columns between bars, named ``Site Type``, ``Used``, ``Available`` and others.

    Returns
    -------
    dict of str to dict
        Of ``lut``, ``ff``, ``ramb36``, ``dsp`` and, where the part has it, ``uram``: ``used``,
        ``available`` and ``share``, 1 being all. Half a block RAM is 0.5.

    Raises
    ------
    ToolError
        If a row is missing or is no number.
    """
    resources: dict[str, dict[str, float]] = {}
    columns: list[str] = []
    for line in report.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if "Site Type" in cells:
            columns = cells
        row = dict(zip(columns, cells, strict=False))
        # An asterisk leads to a note below the table.
        name = RESOURCES.get(row.get("Site Type", "").rstrip("*"))
        if name is None or name in resources:
            continue
        try:
            count, available = float(row["Used"]), float(row["Available"])
            resources[name] = {
                "used": count,
                "available": available,
                "share": round(count / available, 4),
            }
        except (KeyError, ValueError, ZeroDivisionError):
            raise ToolError(f"Vivado's utilization.rpt has a row like no other: {line!r}") from None
    missing = sorted({"lut", "ff", "ramb36", "dsp"} - set(resources))
    if missing:
        raise ToolError(f"Vivado's utilization.rpt has no row for {', '.join(missing)}")
    return resources


def _run(command: list[str], work: Path, report: Callable[[str], None]) -> None:
    """Run Vivado, reporting each line; the last error that it prints is the one raised."""
    env = {**os.environ, "LC_ALL": "C"}
    output, status = output_of(
        command, env, DEADLINE_S, "Vivado", work, heard=lambda line: report(line.rstrip())
    )
    if status:
        errors = [line for line in output.splitlines() if line.startswith("ERROR")]
        said = errors[-1].removeprefix("ERROR").lstrip(": ").rstrip() if errors else ""
        raise ToolError(f"Vivado failed: {said or f'status {status}'}")
