"""Every engine by name; modules are imported when an engine is asked for.

Other packages of this project add engines through the entry-point group ``streamjoin.engines``.
"""

import functools
from importlib import import_module
from importlib.metadata import entry_points

from streamjoin.engines.base import Engine
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.tuples import Stream
from streamjoin_common.language.order import ORDERS
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window
from streamjoin_common.spelling import to_do
from streamjoin_common.suggestions import known_names

_CLASSES = {
    "npj": "streamjoin.engines.intra.npj:Npj",
    "prj": "streamjoin.engines.intra.prj:Prj",
    "mway": "streamjoin.engines.intra.sortmerge:MWay",
    "mpass": "streamjoin.engines.intra.sortmerge:MPass",
    "shj-jm": "streamjoin.engines.intra.shj:ShjJm",
    "shj-jb": "streamjoin.engines.intra.shj:ShjJb",
    "pmj-jm": "streamjoin.engines.intra.pmj:PmjJm",
    "pmj-jb": "streamjoin.engines.intra.pmj:PmjJb",
    "meshjoin": "streamjoin.engines.semi.engine:MeshJoin",
    "ssbj": "streamjoin.engines.semi.engine:Ssbj",
    "kang": "streamjoin.engines.sliding.kang:Kang",
    "splitjoin": "streamjoin.engines.sliding.splitjoin:SplitJoin",
    "llhj": "streamjoin.engines.sliding.llhj:Llhj",
    "handshake": "streamjoin.engines.sliding.handshake:Handshake",
    "ibwj-bptree": "streamjoin.engines.sliding.windowtrees:BPlusTreeJoin",
    "ibwj-chain": "streamjoin.engines.sliding.windowtrees:ChainJoin",
    "ibwj-im": "streamjoin.engines.sliding.mergetrees:ImTreeJoin",
    "ibwj-pim": "streamjoin.engines.sliding.mergetrees:PimTreeJoin",
    "ibwj-flat": "streamjoin.engines.sliding.flat.engine:FlatJoin",
    "fpga-handshake": "streamjoin.engines.fpga.handshake:FpgaHandshake",
    "fpga-splitjoin": "streamjoin.engines.fpga.splitjoin:FpgaSplitJoin",
    "fpga-splitjoin-hash": "streamjoin.engines.fpga.splitjoin_hash:FpgaSplitJoinHash",
    "fpga-splitjoin-index": "streamjoin.engines.fpga.splitjoin_index:FpgaSplitJoinIndex",
    "duckdb": "streamjoin.engines.yardsticks.duckdb:DuckDb",
    "polars": "streamjoin.engines.yardsticks.frames:Polars",
    "pyarrow": "streamjoin.engines.yardsticks.frames:PyArrow",
    "pandas": "streamjoin.engines.yardsticks.frames:Pandas",
    "oracle": "streamjoin.engines.yardsticks.definition:Oracle",
}

_OF_KIND = {
    "hash": "npj",
    "radix": "prj",
    "partitioned": "prj",
    "sort": "mway",
    "sort-merge": "mway",
    "merge": "mway",
    "symmetric": "shj-jm",
    "nested-loop": "kang",
    "low-latency": "llhj",
    "pim-tree": "ibwj-pim",
    "index": "ibwj-flat",
    "fpga": "fpga-splitjoin",
}
"""Names of kinds of join, each with the engine that is meant most often."""


@functools.cache
def _class_paths() -> dict[str, str]:
    """Return each engine's module and class, as ``module:class``."""
    added = {entry.name: entry.value for entry in entry_points(group="streamjoin.engines")}
    return {**_CLASSES, **added}


def names() -> list[str]:
    """Names of all engines, in the catalog's order."""
    return list(_class_paths())


def get(name: str) -> Engine:
    """Return an engine.

    Raises
    ------
    InputError
        If no engine has that name.
    """
    if not isinstance(name, str) or name not in _class_paths():
        to_list = to_do("sj.engines()", "streamjoin engines")
        kind = str(name).lower().replace("_", "-").removesuffix("-join")
        end = known_names(name, names(), to_list)
        if kind in _OF_KIND:
            end = f": did you mean {_OF_KIND[kind]}? To list all, {to_list}"
        raise InputError(f"there is no engine {name!r}{end}")
    module, _, attribute = _class_paths()[name].partition(":")
    engine: Engine = getattr(import_module(module), attribute)()
    return engine


def live(name: str) -> Engine:
    """Return an engine that joins live, for ``auto`` one that keeps its windows.

    Raises
    ------
    InputError, UnsupportedError
        If no engine has that name, or it does not join live.
    """
    engine = get("ibwj-flat" if name == "auto" else name)
    if not engine.capabilities.live:
        able = ", ".join(other for other in names() if get(other).capabilities.live)
        raise UnsupportedError(f"{name} does not join live: choose auto or one of {able}")
    return engine


def check_store(engine: Engine, r: Stream) -> None:
    """Refuse a relation in a store where an engine takes R from memory.

    Raises
    ------
    UnsupportedError
        Naming the engines that read stores.
    """
    if r.in_memory or engine.capabilities.stores:
        return
    able = ", ".join(name for name in names() if get(name).capabilities.stores)
    raise UnsupportedError(
        f"{engine.name} reads no store, and R is {r.source}: take one of {able}, or give R as a "
        "file"
    )


def choose(predicate: Predicate, window: Window, order: str = "none") -> Engine:
    """Choose for ``engine="auto"``: a hash join where one fits, else a scan.

    Parameters
    ----------
    predicate, window
        Predicate and window that it must support.
    order : str
        Order that it must promise.

    Raises
    ------
    InputError
        If no engine that can run here fits.
    """
    reasons = []
    for name in ("npj", "kang", "oracle"):
        engine = get(name)
        can = engine.capabilities
        if predicate.kind not in can.predicates or window.kind not in can.windows:
            continue
        if ORDERS.index(can.order) < ORDERS.index(order):
            continue
        reason = engine.unusable()
        if reason is None:
            return engine
        reasons.append(f"{name}: {reason}")
    raise InputError("no engine fits: " + "; ".join(reasons))
