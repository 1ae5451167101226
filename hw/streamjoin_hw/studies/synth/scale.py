"""Clock and area against the number of cores, a record for each point.

The study of handshake join, section 6.4 and figure 18: the segments of a core stay as they are
while cores are added, and so do clock and LUTs of a core if the design scales. A placement depends
on its seed by several percent, so the clock of a point is the median of several. A placement that
is there and still true is kept, so that an interrupted study resumes where it was.

As a control the cores of a point can be those of smaller designs side by side, which nothing
connects: what these lose in clock the tools lose.
"""

import dataclasses
import itertools
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from streamjoin_common import storage
from streamjoin_common.contract import DesignParams
from streamjoin_common.documents import read_json
from streamjoin_common.errors import ToolError, UsageError
from streamjoin_hw.studies.synth.record import RECORD_VERSION, failure, record
from streamjoin_hw.studies.synth.settings import Settings, tools, verilog_digest, verilog_of
from streamjoin_hw.studies.synth.targets import Target

PAPER_LUTS_A_CORE = round((0.0278 - 0.0154) * 474_240 / 9)
"""LUTs that a further core costs in the paper.

Table 1 of handshake join: 1.54 % of the device with one core, 2.78 % with ten, windows of 100
tuples in all. The device is an XC6VLX760T with 474,240 LUTs (Xilinx DS150, table 1). The keys are
32 bits, segments are registers, and one stored tuple is compared in a cycle.
"""


def point_file(folder: Path, cores: int, seed: int) -> Path:
    """Return the file of a placement."""
    return folder / f"cores-{cores:04}-seed-{seed}.json"


def cores_of(recorded: dict[str, Any]) -> int:
    """Return the cores of a record, those of all copies of its design."""
    cores: int = recorded["params"]["cores"] * recorded["settings"].get("copies", 1)
    return cores


@dataclasses.dataclass(frozen=True)
class Point:
    """A number of cores and its placements.

    Parameters
    ----------
    cores : int
        How many.
    records : tuple of dict
        Of its placements, the slowest first; what was not routed counts as slowest.
    """

    cores: int
    records: tuple[dict[str, Any], ...]

    @property
    def median(self) -> dict[str, Any]:
        """The record of the median clock; of an even number of them the slower one."""
        return self.records[(len(self.records) - 1) // 2]

    @property
    def clocks_hz(self) -> list[float]:
        """The clocks of what was routed, the slowest first."""
        return [each["clock"]["hz"] for each in self.records if each["clock"]["hz"]]


def points(records: Sequence[dict[str, Any]]) -> list[Point]:
    """Put records together by number of cores."""
    groups: dict[int, list[dict[str, Any]]] = {}
    for each in sorted(records, key=lambda each: each["clock"]["hz"] or 0):
        groups.setdefault(cores_of(each), []).append(each)
    return [Point(cores, tuple(group)) for cores, group in sorted(groups.items())]


def is_current(
    recorded: dict[str, Any], target: Target, settings: Settings, params: DesignParams
) -> bool:
    """Return whether a record is what synthesising the design again would give.

    One of a design that took too long is current until more time is given; one without a result
    for another reason is not.
    """
    if recorded.get("version") != RECORD_VERSION or recorded["settings"] != settings.identity(
        target, params
    ):
        return False
    more_time = settings.deadline_s > recorded["deadline_s"]
    if recorded["failed"] and (more_time or not recorded.get("timed_out")):
        return False
    same_tools: bool = recorded["tools"] == tools(target, settings)
    return same_tools and recorded["verilog_sha256"] == verilog_digest(verilog_of(params, settings))


ASKED = ("clock_hz", "placements", "flat", "top", "copies")
"""What of a record's settings a user has chosen, beside its target, its seed and its design."""


Planned = tuple[int, DesignParams, Settings]
"""A placement: the cores of its point, its design, and how."""


def planned(
    base: DesignParams,
    counts: Sequence[int],
    settings: Sequence[Settings],
    each_has: int | None = None,
) -> list[Planned]:
    """Return the placements of a study, as in :func:`sweep`."""
    made = []
    for cores, given in itertools.product(counts, settings):
        params = dataclasses.replace(base, cores=each_has or cores)
        made.append((cores, params, dataclasses.replace(given, copies=cores // params.cores)))
    return made


OBJECTS = ("params", "settings", "resources", "clock", "tools", "seconds")
PLAIN = (
    *("version", "target", "part", "verilog_sha256", "method", "deadline_s"),
    *("resources_source", "does_not_fit", "failed"),
)
"""What a study reads of a record, objects and others."""


def _is_record(kept: dict[str, Any]) -> bool:
    """Return whether a file holds what a study reads of a record."""
    return (
        kept.keys() >= {*PLAIN}
        and all(isinstance(kept.get(name), dict) for name in OBJECTS)
        and isinstance(kept["deadline_s"], int | float)
    )


def refuse_others(
    folder: Path, target: Target, placements: Sequence[Planned], *, renews: bool = False
) -> None:
    """Refuse to write over what is no record, or one of another study or an earlier design.

    Parameters
    ----------
    folder, target, placements : Path, Target, sequence of Planned
        Where the records are, and what they are to be of.
    renews : bool
        Whether records of this study that are of an earlier design may be replaced.

    Raises
    ------
    UsageError
        Naming the file, and what to type.
    """
    for cores, params, each in placements:
        path = point_file(folder, cores, each.seed)
        if not os.path.lexists(path):
            continue
        recorded = _kept(path)
        if recorded is None or not _is_record(recorded):
            raise UsageError(f"{path} is no record of a study: give --out another folder")
        identity = each.identity(target, params)
        made = {"target": recorded["target"], **recorded["params"]}
        asked = {"target": target.name, **json.loads(json.dumps(params.to_dict()))}
        made |= {name: recorded["settings"].get(name) for name in ASKED}
        asked |= {name: identity.get(name) for name in ASKED}
        # Some parameters are not named where they are as by default.
        for name in [*asked, *made]:
            if made.get(name) != asked.get(name):
                raise UsageError(
                    f"{path} is of another study, with {name} {_shown(name, made.get(name))} and "
                    f"not {_shown(name, asked.get(name))}: give --out another folder"
                )
        if renews or recorded["failed"] or is_current(recorded, target, each, params):
            continue
        raise UsageError(
            f"{path} is of an earlier design, flow or tool: give --out another folder, or add "
            "--renew to replace such records"
        )


def _shown(name: str, value: Any) -> str:
    """Return a setting for a sentence; a clock in Hz has no fraction."""
    if value is None:
        return "1" if name in ("placements", "copies") else "as by default"
    return f"{value:.0f}" if isinstance(value, float) else str(value)


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
    settings: Sequence[Settings],
    *,
    folder: Path,
    report: Callable[[str], None],
    ended: Callable[[int], None],
    each_has: int | None = None,
) -> list[dict[str, Any]]:
    """Synthesise a design with each number of cores.

    Parameters
    ----------
    base : DesignParams
        The design; its number of cores does not count.
    counts : sequence of int
        Numbers of cores.
    target, settings : Target, sequence of Settings
        For what, and how; the settings differ in their seeds.
    folder : Path
        Where the placements are kept, a file each.
    report : callable taking str
        Receives the name of each stage as it begins.
    ended : callable taking int
        Receives the number of placements that are done.
    each_has : int, optional
        Cores of a design; so many designs side by side have the cores of a point, a multiple of it.

    Returns
    -------
    list of dict
        The records in the order of ``counts``, then of ``settings``. ``failed`` is a sentence
        where a tool gave up.

    Raises
    ------
    ToolError
        If a tool gives up where an earlier result would be lost; it is kept.
    StorageError
        If a point cannot be written.
    """
    placements = planned(base, counts, settings, each_has)
    records, total = [], len(placements)
    for done, (cores, params, each) in enumerate(placements, start=1):
        path = point_file(folder, cores, each.seed)
        earlier = recorded = _kept(path)
        if recorded is None or not is_current(recorded, target, each, params):
            what = f"{done} of {total}, {cores} core{'s' if cores > 1 else ''}, seed {each.seed}"
            try:
                recorded = record(params, target, each, _prefixed(report, what))
            except ToolError as error:
                if earlier is not None and not earlier["failed"]:
                    raise
                recorded = failure(params, target, each, error)
            storage.write_text(path, json.dumps(recorded, indent=2) + "\n")
        records.append(recorded)
        ended(done)
    return records


def luts_a_core(records: Sequence[dict[str, Any]]) -> float | None:
    """Return the LUTs that a further core costs: the slope of a straight line through all points.

    None with fewer than two points.
    """
    used = [
        (cores_of(each), each["resources"]["lut"]["used"]) for each in records if each["resources"]
    ]
    if len({cores for cores, _ in used}) < 2:
        return None
    mean_x = sum(x for x, _ in used) / len(used)
    mean_y = sum(y for _, y in used) / len(used)
    spread = sum((x - mean_x) ** 2 for x, _ in used)
    slope: float = sum((x - mean_x) * (y - mean_y) for x, y in used) / spread
    return slope


def clock_loss(records: Sequence[dict[str, Any]]) -> tuple[int, int, float] | None:
    """Return the minimum and maximum cores that were routed, and the share of the clock lost.

    Of median clocks. None if fewer than two were routed.
    """
    routed = [each for each in points(records) if each.median["clock"]["hz"]]
    if len(routed) < 2:
        return None
    few, many = routed[0], routed[-1]
    return few.cores, many.cores, 1 - many.median["clock"]["hz"] / few.median["clock"]["hz"]
