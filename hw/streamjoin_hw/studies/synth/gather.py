"""Keeps together what belongs to a core, where the placer has torn it.

nextpnr places by wires. A core's windows are wired to its neighbours' windows, its results to its
neighbours' results, and the two parts of one core end up to 60 tiles apart. So a design is placed
first to see which registers lie far from the middle of their core. These are fixed near it, a tile
each, with the LUT that feeds a register alone, and the design is placed again: whatever they are
wired to comes along. Halves of a core of SplitJoin, which have no wire to each other, are kept
together each.
"""

import copy
import json
import math
import re
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

ANCHORS = 24
"""Maximum registers of a core that are fixed."""

CELLS_A_TILE = 16
"""Cells of a full tile of an ECP5: LUTs and flip-flops."""

FAR = 2.0
"""From which distance to the core's middle a register is far, in sides of a square full of it."""

METHOD = "registers and the LUTs that feed them, by halves"
"""What is fixed, in a word for the identity of records."""

FIXED = "BEL"
"""Attribute by which nextpnr takes a position."""

HALF = re.compile(r"(?:core\.)?(\w+_region)\.")
"""What the cells of a half of a core are called."""

_PLACED = "NEXTPNR_BEL"
_TILE = re.compile(r"X(\d+)/Y(\d+)/SLICE")

Tile = tuple[int, int]


def gather(netlist: Path, placed: Path, core: str) -> int:
    """Fix registers of a netlist by where a placement of it has put them.

    Parameters
    ----------
    netlist : Path
        What Yosys wrote for an ECP5, with cores as modules; it is replaced.
    placed : Path
        What nextpnr wrote after placing it.
    core : str
        The module of a core. Each core gets one of its own.

    Returns
    -------
    int
        How many registers are fixed.
    """
    design = json.loads(netlist.read_text())
    (flat,) = json.loads(placed.read_text())["modules"].values()
    tiles = {
        name: (int(found[1]), int(found[2]))
        for name, cell in flat["cells"].items()
        if (found := _TILE.match(cell["attributes"].get(_PLACED, "")))
    }
    free, fixed = set(tiles.values()), 0
    modules = design["modules"]
    for top in list(modules.values()):
        for instance, cell in top["cells"].items():
            if cell["type"].partition("$")[0] != core:
                continue
            module = modules[cell["type"]]
            if cell["type"] == core:
                cell["type"] = f"{core}${instance}"
                module = modules[cell["type"]] = copy.deepcopy(module)
            inside = {
                name: tiles[path]
                for name in module["cells"]
                if (path := f"{instance}.{name}") in tiles
            }
            for part in _parts(inside):
                fixed += _fix(module["cells"], part, free)
    netlist.write_text(json.dumps(design))
    return fixed


def _parts(tiles: dict[str, Tile]) -> list[dict[str, Tile]]:
    """Return the cells that are to lie together: those of each half, or of a core without halves.

    Halves have no wire to each other, and need not be near.
    """
    halves: dict[str, dict[str, Tile]] = {}
    for name, tile in tiles.items():
        if half := HALF.match(name):
            halves.setdefault(half[1], {})[name] = tile
    return list(halves.values()) or [tiles]


def _fix(cells: dict[str, Any], tiles: dict[str, Tile], free: set[Tile]) -> int:
    """Fix registers of one core by the tiles of a part's cells; take them out of the free ones."""
    if not tiles:
        return 0
    middle = tuple(statistics.median(tile[axis] for tile in tiles.values()) for axis in (0, 1))

    def distance(tile: Tile) -> float:
        return abs(tile[0] - middle[0]) + abs(tile[1] - middle[1])

    far = FAR * math.sqrt(len(tiles) / CELLS_A_TILE)
    feeders = _feeders(cells)
    movable = [name for name in feeders if name in tiles]
    # What was fixed before stays so, as it would go back to where it was.
    before = [name for name in movable if FIXED in cells[name]["attributes"]]
    new = {name for name in movable if distance(tiles[name]) > far} - set(before)
    farthest = sorted(new, key=lambda name: (-distance(tiles[name]), name))
    chosen = [*before, *farthest][:ANCHORS]
    near = sorted(free, key=lambda tile: (distance(tile), tile))
    for name, tile in zip(chosen, near, strict=False):
        free.remove(tile)
        fixed = f"X{tile[0]}/Y{tile[1]}/SLICEA"
        cells[name]["attributes"][FIXED] = f"{fixed}.FF0"
        if feeder := feeders[name]:
            cells[feeder]["attributes"][FIXED] = f"{fixed}.K0"
    return min(len(chosen), len(near))


def _feeders(cells: dict[str, Any]) -> dict[str, str | None]:
    """Return the registers that can be fixed, each with the LUT that feeds it alone, if any.

    Those that are fed by something else, as a carry or a memory, would stay beside that.
    """
    made: dict[Any, str] = {}
    takers = Counter[Any]()
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                takers.update(bits)
            elif cell["type"] != "TRELLIS_FF":
                made |= dict.fromkeys(bits, name)
    feeders: dict[str, str | None] = {}
    for name, cell in sorted(cells.items()):
        if cell["type"] != "TRELLIS_FF":
            continue
        wires = cell["connections"]
        fed = [bit for bit in (*wires.get("DI", []), *wires.get("M", [])) if bit in made]
        if not fed:
            feeders[name] = None
        elif takers[fed[0]] == 1 and cells[made[fed[0]]]["type"] == "LUT4":
            feeders[name] = made[fed[0]]
    return feeders
