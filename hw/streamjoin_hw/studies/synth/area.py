"""From Verilog to a netlist of a part's cells, and how many there are: Yosys."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamjoin_common.contract import DesignParams
from streamjoin_hw.flow.compact import uncleared
from streamjoin_hw.flow.yowasp import yosys
from streamjoin_hw.rtl.core_array import CORE_MODULE
from streamjoin_hw.rtl.top import TOP_MODULE
from streamjoin_hw.studies.synth.targets import RESOURCE_NAMES, Target

CORE_ONCE = "core once"
"""The core is synthesised as a module of its own and counted as often as there are cores."""

FLAT = "flat"
"""The whole design is synthesised as one module."""

NETLIST_NAME = "netlist.json"
_COUNTS_NAME = "counts.json"
EQUALITY = Path(__file__).with_name("equal.v")
"""Equality in few LUTs, by hand."""

COMPARISON = Path(__file__).with_name("compare.v")
"""Comparison in few LUTs, by hand."""


@dataclass(frozen=True)
class Use:
    """How much of a resource a design uses of a part's."""

    used: int
    available: int

    @property
    def share(self) -> float:
        """Share of the part's, 1 being all."""
        return self.used / self.available

    def as_json(self) -> dict[str, float]:
        """Return it in JSON values."""
        return {"used": self.used, "available": self.available, "share": round(self.share, 4)}


def uses(target: Target, counts: Mapping[str, int]) -> dict[str, Use]:
    """Return what the cells of a netlist use of a part.

    Parameters
    ----------
    target : Target
        The part.
    counts : dict of str to int
        How many there are of each cell.
    """
    in_use = {}
    for name, available in target.available.items():
        cells = target.cells[name]
        in_use[name] = Use(
            sum(cells.get(cell, 0) * many for cell, many in counts.items()), available
        )
    return in_use


def lacking(in_use: Mapping[str, Use], part: str) -> str:
    """Say in a sentence what a part has too little of; empty if the design fits."""
    over = [name for name, use in in_use.items() if use.used > use.available]
    if not over:
        return ""
    parts = [
        f"{in_use[name].used:,} {RESOURCE_NAMES[name]} of {in_use[name].available:,} "
        f"({in_use[name].share:.1f} times as many)"
        for name in over
    ]
    return f"the design does not fit the {part}: it needs {' and '.join(parts)}"


def by_hand(target: Target, params: DesignParams) -> dict[Path, str]:
    """Return the files of logic made by hand that a design is mapped to, and their options.

    Comparisons are left to Yosys where they are few.
    """
    files = {EQUALITY: target.equality}
    if params.has_point_windows and target.comparison:
        files[COMPARISON] = target.comparison
    return files


def script(
    target: Target, verilog: str, *, made: Mapping[Path, str], top: str, flat: bool
) -> list[str]:
    """Return the commands that synthesise a file."""
    commands = [
        f"read_verilog {verilog}",
        f"hierarchy -check -top {top}",
        "proc",
    ]
    if not flat:
        commands.append(f"setattr -mod -set keep_hierarchy 1 {CORE_MODULE}")
    netlist = f" -json {NETLIST_NAME}" if target.has_timing else ""
    return [
        *commands,
        "flatten",
        "opt_expr",
        "opt_clean",
        *(f"techmap -map {file.name} {options}" for file, options in made.items()),
        f"{target.synthesis} -top {top}{netlist}",
        f"tee -q -o {_COUNTS_NAME} stat -json",
    ]


def flow_digest(target: Target, params: DesignParams) -> str:
    """Return the identity of the commands of Yosys, as 8 hexadecimal digits."""
    made = by_hand(target, params)
    commands = script(target, "", made=made, top="", flat=False)
    content = "\n".join([*commands, *(file.read_text() for file in made)])
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def synthesise(
    target: Target,
    verilog: Path,
    *,
    made: Mapping[Path, str] | None = None,
    top: str = TOP_MODULE,
    flat: bool = False,
    deadline_s: float,
) -> dict[str, int]:
    """Synthesise a design and count its cells.

    Parameters
    ----------
    target : Target
        The part.
    verilog : Path
        The design. A netlist, ``netlist.json``, is written beside it for a part that can be routed.
    made : dict of Path to str, optional
        What :func:`by_hand` returns for the design; without, equality alone.
    top : str
        Its top level.
    flat : bool
        Synthesise it as one module, not the core once.
    deadline_s : float
        Seconds that it may take.

    Returns
    -------
    dict of str to int
        How many there are of each cell.

    Raises
    ------
    ToolError
        If Yosys fails or takes too long.
    """
    folder = verilog.parent
    made = {EQUALITY: target.equality} if made is None else made
    for file in made:
        (folder / file.name).write_text(file.read_text())
    read = verilog.with_stem(f"{verilog.stem}_read")
    read.write_text(uncleared(verilog.read_text()))
    commands = script(target, read.name, made=made, top=top, flat=flat)
    yosys(commands, folder, "Yosys", deadline_s)
    counts = json.loads((folder / _COUNTS_NAME).read_text())["design"]["num_cells_by_type"]
    return {name: many for name, many in counts.items() if not name.startswith("$")}
