"""From a netlist to a routed design and its clock: nextpnr."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamjoin_common.errors import ToolError
from streamjoin_hw.flow import toolchain
from streamjoin_hw.flow.yowasp import environment, program
from streamjoin_hw.rtl.core_array import CORE_MODULE
from streamjoin_hw.studies.synth.area import NETLIST_NAME, Use
from streamjoin_hw.studies.synth.gather import gather
from streamjoin_hw.studies.synth.targets import Router, Target

PLACER = ("--placer-heap-timingweight", "60")
"""Options of nextpnr: six times its weight for paths that miss the clock, for the same time."""

ROUTING = ("--tmg-ripup",)
"""Options of nextpnr: wires of paths that miss the clock are routed anew, up to 50 times."""

REPORT_NAME = "route.json"
PLACES_NAME = "places.pdc"
PLACED_NAME = "placed.json"
BEST_NAME = "best.json"

SEEDS_APART = 1000
"""From the seed of one placement of a design to that of the next."""

_ILLEGAL_HZ = -1.0
"""Stands for the estimated clock of a placement that is not legal, below that of every other."""

_ESTIMATE = re.compile(r"Max frequency for clock\s.*: ([\d.]+) MHz")

STAGES = (
    (re.compile(r"Packing "), "pack"),
    (re.compile(r"Creating initial .*placement"), "place"),
    (re.compile(r"Routing "), "route"),
)
"""What nextpnr prints when a stage begins."""

_BY_CHANCE = "Unable to find legal placement"
"""What nextpnr says where another seed may do: it has tried too often in a part that is full."""

_FULL = (
    re.compile(rf"Unable to place cell|no BELs? remaining|{_BY_CHANCE}", re.I),
    re.compile(r"Too many IO|unable to place IO", re.I),
)


class RouteError(ToolError):
    """The design cannot be placed and routed on the part."""


@dataclass(frozen=True)
class Routed:
    """What place and route gave.

    Parameters
    ----------
    clock_hz : float
        The fastest clock that every path from register to register keeps.
    path : tuple of dict
        The longest such path: ``cell``, ``port``, ``kind`` (``logic`` or ``routing``), ``ns``.
    uses : dict of str to Use
        What it uses, as packed.
    router : Router
        What has routed it.
    placements : tuple of dict
        Those of which the best one was routed, if there were several: ``seed`` and
        ``estimated_hz``, the clock before routing, None where no legal placement was found.
    """

    clock_hz: float
    path: tuple[dict[str, Any], ...]
    uses: dict[str, Use]
    router: Router
    placements: tuple[dict[str, Any], ...] = ()


def place_and_route(
    target: Target,
    folder: Path,
    *,
    clock_hz: float,
    seed: int,
    deadline_s: float,
    placements: int = 1,
    constraints: Path | None = None,
    heard: Callable[[str], None] | None = None,
) -> Routed:
    """Place and route the netlist in a folder.

    Parameters
    ----------
    target : Target
        A part that can be routed.
    folder : Path
        Where ``netlist.json`` is; what the router writes is beside it.
    clock_hz : float
        The clock to aim at.
    seed : int
        Of the placer; its later placements have others (:data:`SEEDS_APART`).
    deadline_s : float
        Seconds that each run of nextpnr may take.
    placements : int
        Of so many the one with the highest estimate of its clock is routed. On a part whose tiles
        it knows :func:`~.gather.gather` keeps cores together by the best one before each.
    constraints : Path, optional
        Pins and clocks. Without, the ports are those of the harness, or are put on some pins.
    heard : callable taking str, optional
        Receives the name of each stage as it begins.

    Raises
    ------
    RouteError
        If the design does not fit or cannot be routed.
    ToolError
        If nextpnr is missing, takes too long or ends without a reason.
    """
    router = target.router
    if router is None:
        raise RouteError(f"no open tool places and routes a {target.part}")
    if constraints is not None:
        # Beside the netlist: the WebAssembly program has a /tmp of its own.
        shutil.copyfile(constraints, folder / constraints.name)
        pins = [router.pins, constraints.name]
    elif router.places:
        (folder / PLACES_NAME).write_text(router.places)
        pins = [router.pins, PLACES_NAME]
    else:
        pins = ["--lpf-allow-unconstrained"]
    if not router.takes_constant_carries:
        _without_constant_carries(folder / NETLIST_NAME)
    command = [
        program(f"yowasp-{router.program}"),
        *router.options,
        *(("--router", router.algorithm) if router.algorithm else ()),
        *(*PLACER, *ROUTING),
        *("--json", NETLIST_NAME),
        *("--freq", f"{clock_hz / 1e6:g}", "--timing-allow-fail"),
        *pins,
    ]

    def run(seed: int, *options: str, heard: Callable[[str], None] | None = None) -> str:
        words = [*command, "--seed", str(seed), *options]
        output, status = toolchain.output_of(
            words, environment(), deadline_s, "nextpnr", folder, heard=heard
        )
        if status:
            raise _failure(output, status, target)
        return output

    tried: list[dict[str, Any]] = []
    if placements > 1:
        tried = _placed(run, folder, seed, placements, heard, gathers=router.fixes_registers)
    best = max(tried, key=_estimate, default={"seed": seed})
    listener = None if heard is None else _Stages(heard)
    run(best["seed"], "--report", REPORT_NAME, *router.written, heard=listener)
    routed = read_report(json.loads((folder / REPORT_NAME).read_text()), router)
    return replace(routed, placements=tuple(tried))


def _placed(
    run: Callable[..., str],
    folder: Path,
    seed: int,
    placements: int,
    heard: Callable[[str], None] | None,
    *,
    gathers: bool,
) -> list[dict[str, Any]]:
    """Place a netlist several times, and leave the one whose clock is estimated highest.

    Raises
    ------
    RouteError
        If none is legal.
    """
    netlist, placed, best_placed = (
        folder / name for name in (NETLIST_NAME, PLACED_NAME, BEST_NAME)
    )
    best, best_hz, tried = netlist.read_bytes(), _ILLEGAL_HZ, list[dict[str, Any]]()
    for number in range(placements):
        if heard is not None:
            heard(f"placement {number + 1}")
        each = (seed + SEEDS_APART * number) % 2**31
        try:
            output = run(each, "--no-route", "--write", PLACED_NAME)
        except RouteError as error:
            is_last = number + 1 == placements
            if _BY_CHANCE not in str(error) or (is_last and best_hz == _ILLEGAL_HZ):
                raise
            tried.append({"seed": each, "estimated_hz": None})
        else:
            hz = min((float(found) * 1e6 for found in _ESTIMATE.findall(output)), default=0.0)
            if hz > best_hz:
                best, best_hz = netlist.read_bytes(), hz
                placed.replace(best_placed)
            tried.append({"seed": each, "estimated_hz": round(hz)})
        netlist.write_bytes(best)
        if gathers and number + 1 < placements and best_hz != _ILLEGAL_HZ:
            gather(netlist, best_placed, CORE_MODULE)
    return tried


def _estimate(tried: dict[str, Any]) -> float:
    """Return the estimated clock of a placement in Hz."""
    hz: float | None = tried["estimated_hz"]
    return _ILLEGAL_HZ if hz is None else hz


def _without_constant_carries(path: Path) -> None:
    """Leave the carry input of a chain's first cell open, where Yosys 0.70 ties it to a constant.

    The cell ignores it, and nextpnr-nexus 0.11.1 takes nothing but another cell's carry there.
    """
    netlist = json.loads(path.read_text())
    for module in netlist["modules"].values():
        cells = module["cells"].values()
        tied = {cell["connections"]["Z"][0] for cell in cells if cell["type"] in ("VLO", "VHI")}
        for cell in cells:
            carry = cell["connections"].get("CIN") if cell["type"] == "CCU2" else None
            if carry and (carry[0] in tied or isinstance(carry[0], str)):
                del cell["connections"]["CIN"], cell["port_directions"]["CIN"]
    path.write_text(json.dumps(netlist))


class _Stages:
    """Reads lines and reports stages, each once and none after a later one."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.report = report
        self.left = list(STAGES)

    def __call__(self, line: str) -> None:
        for position, (begins, stage) in enumerate(self.left):
            if begins.search(line):
                self.left = self.left[position + 1 :]
                self.report(stage)
                return


def _failure(output: str, status: int, target: Target) -> ToolError:
    """Return what is wrong: with the design, if nextpnr says so; it may also have been ended."""
    errors = [line for line in output.splitlines() if line.startswith("ERROR")]
    if not errors:
        return ToolError(
            f"nextpnr ended with status {status} and gave no reason; to try again, give the same "
            "command"
        )
    first = errors[0].removeprefix("ERROR:").strip()
    if any(each.search(first) for each in _FULL):
        return RouteError(f"the design does not fit the {target.part}: {first}")
    return RouteError(f"the design could not be placed and routed on the {target.part}: {first}")


def read_report(report: dict[str, Any], router: Router) -> Routed:
    """Read the report of a router.

    Raises
    ------
    RouteError
        If it names no clock.
    """
    if not report["fmax"]:
        raise RouteError("nextpnr found no path from register to register: there is no clock")
    clock, figures = min(report["fmax"].items(), key=lambda each: float(each[1]["achieved"]))
    # nextpnr marks as asynchronous what begins or ends at a pin.
    inside = [
        each
        for each in report["critical_paths"]
        if each["from"].endswith(clock) and each["to"].endswith(clock)
    ]
    path = tuple(
        {
            "kind": step["type"],
            "ns": round(float(step["delay"]), 3),
            "cell": step["to"]["cell"],
            "port": step["to"]["port"],
        }
        for step in (inside[0]["path"] if inside else ())
    )
    resources = {
        name: Use(*(int(report["utilization"][cell][what]) for what in ("used", "available")))
        for name, cell in router.cells.items()
    }
    return Routed(float(figures["achieved"]) * 1e6, path, resources, router)


def path_in_words(path: tuple[dict[str, Any], ...] | list[dict[str, Any]]) -> str:
    """Name a path's ends and what it is made of: ``core1 .. core3, 11 LUTs, 10.3 ns``."""
    if not path:
        return ""
    # A cell is named after the register or the net it makes, then after its kind.
    ends = [
        re.split(r"_(?:TRELLIS|LUT4|PFUMX|L6MUX|CCU2|DP16K|FD1P3)", path[i]["cell"])[0]
        for i in (0, -1)
    ]
    logic = sum(step["kind"] == "logic" for step in path)
    total = sum(step["ns"] for step in path)
    routing = sum(step["ns"] for step in path if step["kind"] == "routing")
    return (
        f"{ends[0]} to {ends[1]}: {total:.1f} ns, {logic} levels of logic, "
        f"{routing:.1f} ns of it on wires"
    )
