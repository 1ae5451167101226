"""Clock and area against the number of cores, a record for each point.

The study of handshake join, section 6.4 and figure 18: the segments of a core stay as they are
while cores are added, and so do clock and LUTs of a core if the design scales. A point that is
there and still true is kept, so that an interrupted study resumes where it was.
"""

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from streamjoin_common import storage
from streamjoin_common.contract import DesignParams
from streamjoin_common.documents import read_json
from streamjoin_common.errors import ToolError
from streamjoin_hw.studies.synth.record import RECORD_VERSION, failure, record
from streamjoin_hw.studies.synth.settings import Settings, tools, verilog_digest, verilog_of
from streamjoin_hw.studies.synth.targets import Target

PAPER_LUTS_A_CORE = round((0.0278 - 0.0154) * 474_240 / 9)
"""LUTs that a further core costs in the paper.

Table 1 of handshake join: 1.54 % of the device with one core, 2.78 % with ten, windows of 100
tuples in all. The device is an XC6VLX760T with 474,240 LUTs (Xilinx DS150, table 1). The keys are
32 bits, segments are registers, and one stored tuple is compared in a cycle.
"""


def point_file(folder: Path, cores: int) -> Path:
    """Return the file of a point."""
    return folder / f"cores-{cores:04}.json"


def is_current(
    recorded: dict[str, Any], target: Target, settings: Settings, params: DesignParams
) -> bool:
    """Return whether a record is what synthesising the design again would give.

    One of a design that took too long is current until more time is given.
    """
    if recorded.get("version") != RECORD_VERSION or recorded["settings"] != settings.identity(
        target
    ):
        return False
    if recorded["failed"] and settings.deadline_s > recorded["deadline_s"]:
        return False
    same_tools: bool = recorded["tools"] == tools(target, settings)
    return same_tools and recorded["verilog_sha256"] == verilog_digest(verilog_of(params, settings))


def _kept(path: Path) -> dict[str, Any] | None:
    try:
        recorded = read_json(path)
    except (OSError, ValueError):
        return None
    return recorded if isinstance(recorded, dict) else None


def _prefixed(report: Callable[[str], None], what: str) -> Callable[[str], None]:
    return lambda stage: report(f"{what}, {stage}")


def sweep(
    base: DesignParams,
    counts: Sequence[int],
    target: Target,
    settings: Settings,
    *,
    folder: Path,
    report: Callable[[str], None],
    ended: Callable[[int], None],
) -> list[dict[str, Any]]:
    """Synthesise a design with each number of cores.

    Parameters
    ----------
    base : DesignParams
        The design; its number of cores does not count.
    counts : sequence of int
        Numbers of cores.
    target, settings : Target, Settings
        For what, and how.
    folder : Path
        Where the points are kept, a file each.
    report : callable taking str
        Receives the name of each stage as it begins.
    ended : callable taking int
        Receives the number of points that are done.

    Returns
    -------
    list of dict
        The records in the order of ``counts``. ``failed`` is a sentence where a tool gave up.

    Raises
    ------
    StorageError
        If a point cannot be written.
    """
    records = []
    for done, cores in enumerate(counts, start=1):
        params = dataclasses.replace(base, cores=cores)
        path = point_file(folder, cores)
        recorded = _kept(path)
        if recorded is None or not is_current(recorded, target, settings, params):
            try:
                recorded = record(params, target, settings, _prefixed(report, f"{cores} cores"))
            except ToolError as error:
                recorded = failure(params, target, settings, str(error))
            storage.write_text(path, json.dumps(recorded, indent=2) + "\n")
        records.append(recorded)
        ended(done)
    return records


def luts_a_core(records: Sequence[dict[str, Any]]) -> float | None:
    """Return the LUTs that a further core costs: the slope of a straight line through all points.

    None with fewer than two points.
    """
    points = [
        (each["params"]["cores"], each["resources"]["lut"]["used"])
        for each in records
        if each["resources"]
    ]
    if len({cores for cores, _ in points}) < 2:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope: float = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return slope


def clock_loss(records: Sequence[dict[str, Any]]) -> tuple[int, int, float] | None:
    """Return the minimum and maximum cores that were routed, and the share of the clock lost.

    None if fewer than two were.
    """
    routed = sorted(
        (each["params"]["cores"], each["clock"]["hz"]) for each in records if each["clock"]["hz"]
    )
    if len(routed) < 2:
        return None
    (few, first), (many, last) = routed[0], routed[-1]
    return few, many, 1 - last / first
