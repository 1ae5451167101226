"""Who takes part: CPU engines, and designs that fit boards by their stored synthesis."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from streamjoin.bench.cpu_fpga.inputs import QUERIES, Query
from streamjoin_common.contract import DesignParams
from streamjoin_common.contract.presets import PRESETS, REFERENCE_BAND

EQUALITY, BAND, BAND_2D = (query.name for query in QUERIES)

CLOCK_MHZ = {"pynq-z2": 100, "kv260": 200}
"""Clocks by board. They are assumed: no open tool routes these parts."""


@dataclass(frozen=True)
class Contestant:
    """An engine with its knobs.

    Attributes
    ----------
    name : str
        As tables and charts call it.
    engine : str
        Its name in the catalog.
    how : str
        ``"scan"`` compares with whole windows, ``"index"`` looks up.
    queries : tuple of str
        Names of the queries that it takes.
    board : str
        Where the design fits; empty for a CPU engine.
    design : DesignParams, optional
        Parameters that the knobs are taken from.
    preset : str
        Name of the design's stored synthesis; empty without one.
    clock_mhz : float
        Clock that is assumed for the design.
    knobs : dict
        The engine's.
    """

    name: str
    engine: str
    how: str
    queries: tuple[str, ...]
    board: str = ""
    design: DesignParams | None = None
    preset: str = ""
    clock_mhz: float = 0.0
    knobs: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def is_fpga(self) -> bool:
        """Whether it is a design."""
        return self.design is not None

    def holds(self, window: int) -> bool:
        """Whether its windows are large enough."""
        return self.design is None or window <= self.design.window_capacity

    def takes(self, query: Query) -> bool:
        """Whether it can join by a query's predicate."""
        return query.name in self.queries


def _design(name: str, query: str, board: str, design: DesignParams, preset: str) -> Contestant:
    knobs: dict[str, str | int] = {"segment": design.segment_tuples, "lanes": design.lanes}
    if design.design == "splitjoin":
        knobs |= {"cores": design.cores, "probes": design.probes}
        knobs |= {"comparators": design.comparators}
    else:
        knobs |= {"buckets": design.buckets, "ways": design.ways}
    knobs["clock_mhz"] = CLOCK_MHZ[board]
    how = "index" if design.has_index else "scan"
    mhz = float(CLOCK_MHZ[board])
    engine = f"fpga-{design.design}"
    return Contestant(name, engine, how, (query,), board, design, preset, mhz, knobs)


def _on_pynq_z2() -> list[Contestant]:
    scan_2d = replace(
        PRESETS["pynq-z2"],
        terms=REFERENCE_BAND,
        cores=9,
        segment_tuples=508,
        lanes=4,
        probes=4,
        comparators="own",
    )
    named = (
        ("hash index", EQUALITY, PRESETS["pynq-z2-hash"], "pynq-z2-hash"),
        ("ordered index", BAND, PRESETS["pynq-z2-index"], "pynq-z2-index"),
        ("ordered index", BAND_2D, PRESETS["pynq-z2-index-2d"], "pynq-z2-index-2d"),
        ("scan", EQUALITY, PRESETS["pynq-z2"], "pynq-z2"),
        ("scan", BAND_2D, scan_2d, ""),
    )
    return [
        _design(f"PYNQ-Z2, {name}", query, "pynq-z2", design, preset)
        for name, query, design, preset in named
    ]


CONTESTANTS = (
    Contestant("CPU, index", "ibwj-flat", "index", (EQUALITY, BAND, BAND_2D)),
    Contestant("CPU, scan", "splitjoin", "scan", (EQUALITY, BAND, BAND_2D)),
    *_on_pynq_z2(),
    _design("KV260, scan", EQUALITY, "kv260", PRESETS["kv260"], "kv260"),
)
"""All of them. A design's stored synthesis is in ``benchmarks/synth`` or in decision 13 or 23."""
