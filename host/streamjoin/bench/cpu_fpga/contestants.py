"""Who takes part: CPU engines, and designs that fit boards.

They fit by their stored synthesis; one that has none, the scan of two bands, by its block RAM.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from streamjoin.bench.cpu_fpga.boards import BOARDS, KV260, PYNQ_Z2, ZCU104, Board
from streamjoin.bench.cpu_fpga.inputs import QUERIES, Query
from streamjoin_common.contract import DesignParams, TermKind
from streamjoin_common.contract.presets import PRESETS, REFERENCE_BAND

EQUALITY, BAND, BAND_2D = (query.name for query in QUERIES)


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
    board : Board, optional
        Where the design fits; None for a CPU engine.
    design : DesignParams, optional
        Parameters that the knobs are taken from.
    preset : str
        Name of the design's stored synthesis; empty without one.
    knobs : dict
        The engine's.
    slow : bool
        Whether its model takes minutes to compile: it takes part at the full size alone.
    beyond : int
        It takes part in windows of more tuples than these, which a smaller design holds.
    """

    name: str
    engine: str
    how: str
    queries: tuple[str, ...]
    board: Board | None = None
    design: DesignParams | None = None
    preset: str = ""
    knobs: Mapping[str, str | int] = field(default_factory=dict)
    slow: bool = False
    beyond: int = 0

    @property
    def is_fpga(self) -> bool:
        """Whether it is a design."""
        return self.design is not None

    @property
    def takes_bands(self) -> bool:
        """Whether it is a design that compares by bands, also where an equality is asked for."""
        return self.design is not None and self.design.terms[0].kind is TermKind.BAND

    def holds(self, window: int) -> bool:
        """Whether it takes part in windows of so many tuples: its own are large enough."""
        return self.design is None or self.beyond < window <= self.design.window_capacity

    def takes(self, query: Query) -> bool:
        """Whether it can join by a query's predicate."""
        return query.name in self.queries


def _design(
    board: Board, how: str, query: str, design: DesignParams, preset: str, *, slow: bool = False
) -> Contestant:
    knobs: dict[str, str | int] = {"segment_tuples": design.segment_tuples, "lanes": design.lanes}
    if design.design == "splitjoin":
        knobs |= {"cores": design.cores, "probes": design.probes}
        knobs |= {"comparators": design.comparators}
    else:
        knobs |= {"buckets": design.buckets, "ways": design.ways}
    if design.design == "splitjoin-hash":
        knobs |= {"lead_tuples": design.lead_tuples, "own_buckets": design.own_buckets}
        knobs |= {"beat_results": design.beat_results}
    knobs["clock_mhz"] = int(board.clock_mhz)
    kind = "index" if design.has_index else "scan"
    name, engine = f"{board.name}, {how}", f"fpga-{design.design}"
    return Contestant(name, engine, kind, (query,), board, design, preset, knobs, slow)


_SCAN_2D = replace(
    PRESETS["pynq-z2"],
    terms=REFERENCE_BAND,
    cores=9,
    segment_tuples=508,
    lanes=4,
    probes=4,
    comparators="own",
)
"""Nine cores are what the block RAM of an XC7Z020 holds, by decision 13."""

_INDEXES = (
    ("hash index", EQUALITY, "pynq-z2-hash"),
    ("ordered index", BAND, "pynq-z2-index"),
    ("ordered index", BAND_2D, "pynq-z2-index-2d"),
)
"""Designs that fill the smallest part; each larger one has room for them, too."""


CONTESTANTS = (
    Contestant("CPU core, hash", "ibwj-flat", "index", (EQUALITY,)),
    Contestant("CPU core, ordered index", "ibwj-flat", "index", (BAND, BAND_2D)),
    Contestant("CPU core, scan", "kang", "scan", (EQUALITY, BAND, BAND_2D)),
    *(
        _design(board, how, query, PRESETS[preset], preset)
        for board in BOARDS
        for how, query, preset in _INDEXES
    ),
    replace(
        _design(ZCU104, "large ordered index", BAND, PRESETS["zcu104-index"], "zcu104-index"),
        queries=(EQUALITY, BAND),
        beyond=PRESETS["pynq-z2-index"].window_capacity,
    ),
    _design(PYNQ_Z2, "scan", EQUALITY, PRESETS["pynq-z2"], "pynq-z2"),
    _design(PYNQ_Z2, "scan", BAND_2D, _SCAN_2D, ""),
    _design(KV260, "scan", EQUALITY, PRESETS["kv260"], "kv260", slow=True),
    _design(ZCU104, "scan", EQUALITY, PRESETS["zcu104"], "zcu104", slow=True),
)
"""The fastest CPU engine of each kind on one thread, and the designs by board.

An ordered index takes an equality as a band of width 0: a hash index holds more in less area, but
none is known that holds the largest windows.
"""


def area_of(who: str, query: str) -> dict[str, float] | None:
    """Return the shares of its part that a design takes, by its stored synthesis as it is now.

    Parameters
    ----------
    who, query : str
        The contestant's name, and that of a query.

    Returns
    -------
    dict or None
        ``lut``, ``ramb18`` and, where it is used, ``uram``; None for a design that was not
        synthesised.
    """
    for each in CONTESTANTS:
        if each.name == who and query in each.queries and each.board and each.preset:
            return each.board.area(each.preset)
    return None
