"""Bitstreams for boards with Vivado, where it is installed.

The scripts are in ``hw/ip`` and ``hw/boards`` of a checkout, the constraints in ``constraints``.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamjoin_hw import contract
from streamjoin_hw.build import MANIFEST_NAME, OutputError, emit_verilog, manifest
from streamjoin_hw.cache import publish, temporary_folder
from streamjoin_hw.contract import INTERFACE_VERSION, DesignParams, input_word_bits
from streamjoin_hw.design_options import UsageError
from streamjoin_hw.toolchain import ToolError

CLOCK_HZ = 100e6
"""What the block designs ask of the processor."""

JOBS = 2
DEADLINE_S = 6 * 3600

_ROOT = Path(__file__).resolve().parent.parent.parent
WRITTEN = ("streamjoin.bit", "streamjoin.hwh", "timing.rpt", "utilization.rpt", MANIFEST_NAME)
"""What a build leaves."""


@dataclass(frozen=True)
class Board:
    """A board that Vivado builds for; its preset has its name.

    Attributes
    ----------
    part : str
        The part, as Vivado calls it.
    """

    part: str


BOARDS = {
    "pynq-z2": Board("xc7z020clg400-1"),
    "zcu104": Board("xczu7ev-ffvc1156-2-e"),
    "kv260": Board("xck26-sfvc784-2LV-c"),
}


def tcl_quoted(text: str) -> str:
    """Write a text as one word of Tcl, whatever it holds."""
    return '"' + re.sub(r'([\\"$\[\]{};])', r"\\\1", text).replace("\n", "\\n") + '"'


def _design_script(params: DesignParams, board: str, verilog: Path) -> str:
    facts = {
        "root": str(_ROOT),
        "board": board,
        "part": BOARDS[board].part,
        "verilog": str(verilog),
        "version": f"{INTERFACE_VERSION}.0",
        # Vivado takes an IP for changed if this is another number.
        "revision": str(int(params.digest[:7], 16)),
        "description": f"{params.digest}: {json.dumps(params.to_dict())}",
        "in_bits": str(input_word_bits(params)),
        "out_bits": str(contract.result_word_bits(params)),
        "jobs": str(JOBS),
    }
    return "".join(f"set {name} {tcl_quoted(value)}\n" for name, value in facts.items())


def vivado_bitstream(
    params: DesignParams, board: str, out: Path, report: Callable[[str], None]
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
        Told what Vivado says, line by line.

    Returns
    -------
    Path
        The bitstream.

    Raises
    ------
    UsageError
        If the board is unknown or the folder is there.
    ToolError
        If there is no Vivado, or it fails.
    """
    if board not in BOARDS:
        raise UsageError(f"--board must be one of {', '.join(BOARDS)}, not {board!r}")
    if out.exists():
        raise UsageError(f"--out must name a folder that is not there yet, not {str(out)!r}")
    scripts = _ROOT / "hw" / "boards"
    if not (scripts / "build.tcl").is_file():
        raise ToolError("bitstreams are built in a checkout of the source, not from a package")
    vivado = shutil.which("vivado")
    if vivado is None:
        raise ToolError(
            f"a bitstream for {board} needs Vivado 2022.1 or newer on the path, from AMD: install "
            "it and source its settings64.sh"
        )
    try:
        made = temporary_folder(out)
    except OSError as error:
        raise OutputError(out, error, "name a folder that can be made") from None
    try:
        work, results = made / "work", made / "results"
        verilog = emit_verilog(params, work, board=True)
        (work / "design.tcl").write_text(_design_script(params, board, verilog))
        command = [vivado, "-mode", "batch", "-nojournal", "-log", str(work / "vivado.log")]
        command += ["-source", str(scripts / "build.tcl"), "-tclargs", str(work), str(results)]
        _run(command, work, report)
        figures = dict(
            line.split(maxsplit=1) for line in (results / "figures.txt").read_text().splitlines()
        )
        (results / "figures.txt").unlink()
        (results / MANIFEST_NAME).write_text(
            json.dumps(_described(params, figures), indent=2) + "\n"
        )
        missing = [name for name in WRITTEN if not (results / name).is_file()]
        if missing:
            raise ToolError(f"Vivado ended without {', '.join(missing)}")
        results.chmod(0o755)
        publish(results, out)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return out / "streamjoin.bit"


def _described(params: DesignParams, figures: dict[str, str]) -> dict[str, Any]:
    """Return the manifest with the clock that Vivado has met."""
    tool = f"Vivado {figures['vivado']}"
    slack = figures["worst_setup_slack_ns"]
    facts = manifest(params, {"vivado": figures["vivado"]})
    facts["clock"] = {
        "hz": CLOCK_HZ,
        "source": f"{tool}, after routing: met with {slack} ns to spare (timing.rpt)",
    }
    facts["resources"] = {"source": f"{tool}, after routing (utilization.rpt)"}
    return facts


def _run(command: list[str], work: Path, report: Callable[[str], None]) -> None:
    """Run Vivado, line by line; what it calls an error is the error's text."""
    errors = []
    env = {**os.environ, "LC_ALL": "C"}
    with subprocess.Popen(
        command,
        cwd=work,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None  # as it is piped
            for line in process.stdout:
                report(line.rstrip())
                if line.startswith("ERROR"):
                    errors.append(line.removeprefix("ERROR").lstrip(": ").rstrip())
            status = process.wait(timeout=DEADLINE_S)
        except BaseException:
            process.kill()
            raise
    if status:
        raise ToolError(f"Vivado failed: {errors[-1] if errors else f'status {status}'}")
