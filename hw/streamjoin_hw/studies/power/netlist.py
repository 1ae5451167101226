"""From Verilog to 6-input LUTs, registers and memories whose nets can be watched: Yosys.

The cells are those that every FPGA has, not a part's own: there are no carry chains (adders are
LUTs), and what a LUT memory reads is the output of a LUT. The core is one module, made once, as in
``streamjoin hw synth``. The netlist gets four output ports that carry the nets of each kind
(:data:`KINDS`); ``model/activity.h`` counts on them.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from streamjoin_common.errors import ToolError
from streamjoin_hw.flow.yowasp import yosys
from streamjoin_hw.rtl.core_array import CORE_MODULE
from streamjoin_hw.studies.synth.area import EQUALITY

KINDS = ("register", "lut", "lut_ram", "block_ram")
"""What is counted, in the order of ``model/activity.h``: toggles of register outputs, toggles of
LUT outputs, bits written to LUT memory, accesses to slices of block RAM."""

CELLS = ("registers", "luts", "lut_ram_bits", "block_ram_slices")
"""What a netlist consists of."""

LUT_WORDS = 64
"""Words that a 6-input LUT holds. A memory that may be either is block RAM if it has more."""

SLICE_BITS = 9
"""Width of the block RAM that an access is counted by; a wider word takes several."""

DEADLINE_S = 1800
_MIN_PORT_BITS = 65
"""Minimum bits of a watched port: more than a machine word, so that Verilator makes an array."""

_PLAIN, _WATCHED, GATES_NAME = "plain.json", "watched.json", "gates.v"


def script(verilog: str, top: str) -> list[str]:
    """Return the commands that make a netlist of a file."""
    return [
        f"read_verilog {verilog}",
        f"hierarchy -check -top {top}",
        "proc",
        f"setattr -mod -set keep_hierarchy 1 {CORE_MODULE}",
        "flatten",
        "opt_expr",
        "opt_clean",
        f"techmap -map {EQUALITY.name} -D GROUP=3",
        "opt -nodffe -nosdff",
        "fsm",
        "opt",
        "wreduce",
        "peepopt",
        "opt_clean",
        "alumacc",
        "share",
        "opt",
        "memory_collect",
        "memory_map -rom-only",
        "memory_map a:ram_style=registers",
        # Only block RAM has a register of its own behind its read port.
        f"select -set deep t:$mem_v2 r:SIZE>{LUT_WORDS} %i a:ram_style=distributed %d",
        "select -set blocks @deep t:$mem_v2 a:ram_style=block %i %u",
        "memory_dff @blocks",
        "opt_clean",
        "opt -fast -full",
        "opt -undriven -fine",
        "techmap",
        "opt -fast",
        "abc -lut 6",
        "opt_clean -purge",
        "check -assert",
        f"write_json {_PLAIN}",
    ]


def flow_digest() -> str:
    """Return the identity of how gates are made."""
    source = "\n".join([*script("", ""), EQUALITY.read_text(), Path(__file__).read_text()])
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def _number(bits: str) -> int:
    return int(bits, 2)


def _watched_memory(cell: dict[str, Any], nets: dict[str, list[Any]]) -> tuple[int, int]:
    """Add a memory's nets; returns its bits in LUTs and the slices of its block RAM."""
    parameters, wires = cell["parameters"], cell["connections"]
    width, words = _number(parameters["WIDTH"]), _number(parameters["SIZE"])
    # A memory is block RAM if it reads into registers of its own, all ports being alike.
    if not _number(parameters["RD_CLK_ENABLE"]):
        nets["lut"] += wires["RD_DATA"]
        nets["lut_ram"] += wires["WR_EN"]
        return width * words, 0
    slices = -(-width // SLICE_BITS)
    for enable in wires["RD_EN"]:
        nets["block_ram"] += slices * [enable]
    for port in range(_number(parameters["WR_PORTS"])):
        # One bit of each slice stands for it: where words are written in parts, those are wider.
        enables = wires["WR_EN"][port * width : (port + 1) * width]
        nets["block_ram"] += enables[::SLICE_BITS]
    return 0, slices


def _new_wires(module: dict[str, Any], count: int) -> list[int]:
    """Return numbers that no net of a module has yet."""
    used = [net["bits"] for net in module["netnames"].values()]
    used += [bits for cell in module["cells"].values() for bits in cell["connections"].values()]
    first = 1 + max(bit for bits in used for bit in bits if isinstance(bit, int))
    return list(range(first, first + count))


def _show(module: dict[str, Any], port: str, wires: list[Any]) -> None:
    """Give a module an output port with some of its nets."""
    wires = wires + ["0"] * (_MIN_PORT_BITS - len(wires))
    # A cell of their own between nets and port: else they would take its name, and one wide signal
    # would stand for all of them.
    shown = _new_wires(module, len(wires))
    module["ports"][port] = {"direction": "output", "bits": shown}
    module["cells"][f"show_{port}"] = {
        "type": "$pos",
        "parameters": {
            "A_SIGNED": "0",
            "A_WIDTH": f"{len(wires):032b}",
            "Y_WIDTH": f"{len(wires):032b}",
        },
        "attributes": {},
        "port_directions": {"A": "input", "Y": "output"},
        "connections": {"A": wires, "Y": shown},
    }


def watch(design: dict[str, Any], top: str) -> dict[str, int]:
    """Give a netlist output ports with the nets that are counted.

    Parameters
    ----------
    design : dict
        A netlist as Yosys writes it in JSON; changed.
    top : str
        Its module.

    Returns
    -------
    dict
        How many registers and LUTs there are, bits of LUT memory, slices of block RAM.

    Raises
    ------
    ToolError
        If there is a cell of another kind.
    """
    done: dict[str, dict[str, int]] = {}

    def watched(name: str) -> dict[str, int]:
        """Give a module, and before it those in it, the ports; count its cells."""
        if name in done:
            return done[name]
        module = design["modules"][name]
        nets: dict[str, list[Any]] = {kind: [] for kind in KINDS}
        cells = dict.fromkeys(CELLS, 0)
        for cell in module["cells"].values():
            kind, held = cell["type"], {}
            if kind.startswith("$_") and "DFF" in kind:
                nets["register"] += cell["connections"]["Q"]
                held = {"registers": 1}
            elif kind == "$lut":
                nets["lut"] += cell["connections"]["Y"]
                held = {"luts": 1}
            elif kind == "$mem_v2":
                bits, slices = _watched_memory(cell, nets)
                held = {"lut_ram_bits": bits, "block_ram_slices": slices}
            elif kind in design["modules"]:
                held = watched(kind)
                for each in KINDS:
                    port = f"watch_{each}"
                    count = len(design["modules"][kind]["ports"][port]["bits"])
                    cell["port_directions"][port] = "output"
                    cell["connections"][port] = _new_wires(module, count)
                    nets[each] += cell["connections"][port]
            else:
                raise ToolError(f"Yosys left a cell of the kind {kind}, which cannot be counted")
            for each, many in held.items():
                cells[each] += many
        for kind, wires in nets.items():
            _show(module, f"watch_{kind}", wires)
        done[name] = cells
        return cells

    return watched(top)


def gates(verilog: Path, top: str) -> tuple[Path, dict[str, int]]:
    """Make gates of a design, beside its Verilog.

    Parameters
    ----------
    verilog : Path
        The design, its clock and ports as they are.
    top : str
        Its top level.

    Returns
    -------
    Path, dict
        The netlist as Verilog, whose nets can be watched, and what :func:`watch` returned.

    Raises
    ------
    ToolError
        If Yosys fails, takes too long, or leaves cells of another kind.
    """
    folder = verilog.parent
    (folder / EQUALITY.name).write_text(EQUALITY.read_text())
    yosys(script(verilog.name, top), folder, "Yosys", DEADLINE_S)
    design = json.loads((folder / _PLAIN).read_text())
    cells = watch(design, top)
    (folder / _WATCHED).write_text(json.dumps(design))
    commands = [f"read_json {_WATCHED}", f"write_verilog -noattr {GATES_NAME}"]
    yosys(commands, folder, "Yosys", DEADLINE_S)
    for name in (EQUALITY.name, _PLAIN, _WATCHED, "script.ys"):
        (folder / name).unlink()
    return folder / GATES_NAME, cells
