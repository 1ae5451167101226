"""Registers that are fixed near the middle of their core, by where a placement has put them."""

import json
from pathlib import Path
from typing import Any

import pytest

from streamjoin_hw.studies.synth import gather, route
from streamjoin_hw.studies.synth.targets import TARGETS

CORE = "core"


def cell(kind: str, inputs: dict[str, int], output: int) -> dict[str, Any]:
    ports = dict.fromkeys(inputs, "input") | {"Q": "output"}
    wires = {name: [bit] for name, bit in inputs.items()} | {"Q": [output]}
    return {"type": kind, "attributes": {}, "port_directions": ports, "connections": wires}


def written(folder: Path, where: dict[str, tuple[int, int]]) -> tuple[Path, Path]:
    """A design of two cores, and where a placement has put its cells.

    A core has 30 LUTs of one output, a register that one of them feeds, two that one feeds both,
    and three that none does.
    """
    luts = {f"lut{k}": cell("LUT4", {"A": 90 + k}, 10 + k) for k in range(30)}
    fed = {"fed": 10, "both0": 11, "both1": 11, **{f"plain{k}": 60 + k for k in range(3)}}
    registers = {
        name: cell("TRELLIS_FF", {"DI": bit}, 50 + k) for k, (name, bit) in enumerate(fed.items())
    }
    cores = {name: {"type": CORE} for name in ("a", "b")}
    netlist, placed = folder / "netlist.json", folder / "placed.json"
    modules = {"top": {"cells": cores}, CORE: {"cells": luts | registers}}
    netlist.write_text(json.dumps({"modules": modules}))
    cells = {}
    for core, column in (("a", 10), ("b", 40)):
        for number, name in enumerate([*luts, *registers]):
            x, y = where.get(f"{core}.{name}", (column + number % 2, 20 + number // 2 % 3))
            attributes = {"NEXTPNR_BEL": f"X{x}/Y{y}/SLICEB.FF1"}
            cells[f"{core}.{name}"] = {"attributes": attributes}
    cells["pin"] = {"attributes": {"NEXTPNR_BEL": "X0/Y0/PIOA"}}
    placed.write_text(json.dumps({"modules": {"top": {"cells": cells}}}))
    return netlist, placed


def fixed_in(netlist: Path) -> dict[str, str]:
    design = json.loads(netlist.read_text())["modules"]
    return {
        f"{instance}.{name}": attributes["BEL"]
        for instance, core in design["top"]["cells"].items()
        for name, each in design[core["type"]]["cells"].items()
        if "BEL" in (attributes := each["attributes"])
    }


def test_far_registers_are_fixed_in_tiles_near_the_middle_each_with_the_lut_that_feeds_it_alone(
    tmp_path: Path,
) -> None:
    names = ("plain0", "plain2", "fed", "both0", "both1", "lut3")
    far = {f"a.{name}": (60 + k, 70) for k, name in enumerate(names)}
    netlist, placed = written(tmp_path, far)
    assert gather.gather(netlist, placed, CORE) == 3
    fixed = fixed_in(netlist)
    registers = {"a.plain0", "a.plain2", "a.fed"}
    assert set(fixed) == {*registers, "a.lut0"}, "the other core has one module with no position"
    assert len({fixed[name] for name in registers}) == 3
    assert fixed["a.lut0"] == fixed["a.fed"].replace("FF0", "K0")
    for name in registers:
        tile, _, register = fixed[name].rpartition("/")
        assert register == "SLICEA.FF0"
        assert tile in {f"X{x}/Y{y}" for x in (10, 11) for y in (20, 21, 22)}


def test_what_was_fixed_stays_so_and_follows_the_middle(tmp_path: Path) -> None:
    netlist, placed = written(tmp_path, {"a.plain1": (70, 70)})
    assert gather.gather(netlist, placed, CORE) == 1
    design = netlist.read_text()
    # In the next placement the register is near the middle, and the core is elsewhere.
    there = {f"a.lut{k}": (100 + k % 2, 60 + k // 2 % 3) for k in range(30)}
    _, placed = written(tmp_path, {**there, "a.plain1": (100, 60), "a.plain0": (10, 20)})
    netlist.write_text(design)
    assert gather.gather(netlist, placed, CORE) == 4
    fixed = fixed_in(netlist)
    assert set(fixed) == {"a.plain0", "a.plain1", "a.plain2", "a.fed", "a.lut0"}
    assert all(bel.startswith("X10") for bel in fixed.values())


@pytest.mark.parametrize(("torn", "fixed"), [([], 0), (["left_region.plain1"], 1)])
def test_halves_of_a_core_may_lie_apart_and_are_kept_together_each(
    torn: list[str], fixed: int, tmp_path: Path
) -> None:
    netlist, placed = tmp_path / "netlist.json", tmp_path / "placed.json"
    cells, where = {}, {}
    for half, column in (("left_region", 10), ("right_region", 70)):
        for k in range(30):
            cells[f"{half}.lut{k}"] = cell("LUT4", {"A": 200 + len(cells)}, len(cells))
            cells[f"{half}.plain{k}"] = cell("TRELLIS_FF", {"DI": 200 + len(cells)}, len(cells))
            for name in (f"{half}.lut{k}", f"{half}.plain{k}"):
                where[name] = 80 - column if name in torn else column
    modules = {"top": {"cells": {"a": {"type": CORE}}}, CORE: {"cells": cells}}
    netlist.write_text(json.dumps({"modules": modules}))
    flat = {
        f"a.{name}": {"attributes": {"NEXTPNR_BEL": f"X{x}/Y20/SLICEB.FF1"}}
        for name, x in where.items()
    }
    placed.write_text(json.dumps({"modules": {"top": {"cells": flat}}}))
    assert gather.gather(netlist, placed, CORE) == fixed
    assert fixed_in(netlist) == {f"a.{name}": "X10/Y20/SLICEA.FF0" for name in torn}


def test_no_core_is_fixed_where_there_is_none(tmp_path: Path) -> None:
    netlist, placed = written(tmp_path, {})
    assert gather.gather(netlist, placed, "another") == 0
    assert fixed_in(netlist) == {}


def routed_of(
    monkeypatch: pytest.MonkeyPatch, folder: Path, clocks: dict[int, int | None], error: str = ""
) -> list[tuple[str, int, str]]:
    """Place with as many seeds as there are clocks in MHz, or an error of nextpnr's, and route."""
    netlist, ran = folder / "netlist.json", list[tuple[str, int, str]]()

    def run(words: list[str], *_: Any, **__: Any) -> tuple[str, int]:
        seed = int(words[words.index("--seed") + 1])
        if "--no-route" in words:
            ran.append(("place", seed, netlist.read_text()))
            if clocks[seed] is None:
                return f"ERROR: {error}\n", 255
            (folder / route.PLACED_NAME).write_text(f"as placed with seed {seed}")
            slow = f"Info: Max frequency for clock 'clk': {clocks[seed]}.00 MHz (FAIL at 200 MHz)"
            return f"{slow}\n{slow.replace('clk', 'fast').replace('1', '2')}\n", 0
        ran.append(("route", seed, netlist.read_text()))
        report = {
            "fmax": {"clk": {"achieved": 190}},
            "critical_paths": [],
            "utilization": {each: {"used": 1, "available": 2} for each in cells},
        }
        (folder / route.REPORT_NAME).write_text(json.dumps(report))
        return "", 0

    def gathered(file: Path, placed: Path, core: str) -> int:
        assert (file, core) == (netlist, "streamjoin_core")
        file.write_text(f"{file.read_text()} + {placed.read_text().split()[-1]}")
        return 1

    target = TARGETS["ecp5-85k"]
    assert target.router is not None
    cells = list(target.router.cells.values())
    monkeypatch.setattr(route.toolchain, "output_of", run)
    monkeypatch.setattr(route, "gather", gathered)
    netlist.write_text("made")
    heard: list[str] = []
    given: Any = {"clock_hz": 2e8, "seed": 2, "deadline_s": 60, "heard": heard.append}
    routed = route.place_and_route(target, folder, placements=len(clocks), **given)
    assert heard == [f"placement {number}" for number in range(1, len(clocks) + 1)]
    assert routed.clock_hz == 190e6
    estimates = {seed: mhz and mhz * 10**6 for seed, mhz in clocks.items()}
    assert list(routed.placements) == [
        {"seed": seed, "estimated_hz": hz} for seed, hz in estimates.items()
    ]
    return ran


def test_the_best_of_several_placements_is_routed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each after the first begins with what is gathered from the best one before it."""
    ran = routed_of(monkeypatch, tmp_path, {2: 150, 1002: 140, 2002: 160, 3002: 155})
    assert ran == [
        ("place", 2, "made"),
        ("place", 1002, "made + 2"),
        ("place", 2002, "made + 2"),
        ("place", 3002, "made + 2 + 2002"),
        ("route", 2002, "made + 2"),
    ]


ILLEGAL = "Unable to find legal placement for cell 'a' after 9 attempts, check utilisation."


def test_a_placement_that_is_not_legal_leaves_it_to_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clocks = {2: None, 1002: 140, 2002: None, 3002: 130}
    ran = routed_of(monkeypatch, tmp_path, clocks, ILLEGAL)
    assert ran == [
        ("place", 2, "made"),
        ("place", 1002, "made"),
        ("place", 2002, "made + 1002"),
        ("place", 3002, "made + 1002"),
        ("route", 1002, "made"),
    ]


@pytest.mark.parametrize(("error", "runs"), [(ILLEGAL, 3), ("Unable to place cell 'a'", 1)])
def test_no_legal_placement_is_an_error(
    error: str, runs: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where another seed can do nothing, none is tried."""
    tried: list[str] = []

    def run(words: list[str], *_: Any, **__: Any) -> tuple[str, int]:
        tried.append(words[words.index("--seed") + 1])
        return f"ERROR: {error}\n", 255

    monkeypatch.setattr(route.toolchain, "output_of", run)
    (tmp_path / "netlist.json").write_text("made")
    (tmp_path / route.BEST_NAME).write_text("of an earlier run")
    with pytest.raises(route.RouteError, match=error[:16]):
        route.place_and_route(
            TARGETS["ecp5-85k"], tmp_path, clock_hz=2e8, seed=2, deadline_s=60, placements=3
        )
    assert tried == ["2", "1002", "2002"][:runs]
