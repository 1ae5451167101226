"""What claims are of: figures that are read from a record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]


def is_right(record: Record) -> bool:
    """Whether the result of a record was checked and is right: only then it has figures."""
    return record.get("status") == "ok" and record.get("checked") is True


def _at(*path: str) -> Callable[[Record], float | None]:
    """Return what reads a number at a path of a record, or None where it is not."""

    def get(record: Record) -> float | None:
        value: Any = record
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return None if value is None else float(value)

    return get


def _reached(share: float) -> Callable[[Record], float | None]:
    """Return what reads the milliseconds after which a share of all matches was produced."""

    def get(record: Record) -> float | None:
        curve = record.get("progress") or []
        return next((float(ms) for done, ms in curve if done >= share - 1e-9), None)

    return get


def _cpu_share(record: Record) -> float | None:
    cpu_s, wall_s = _at("cpu_s", "median")(record), _at("wall_s", "median")(record)
    return cpu_s / wall_s / record["threads"] if cpu_s is not None and wall_s else None


def _phase_share(name: str) -> Callable[[Record], float | None]:
    def get(record: Record) -> float | None:
        phases = record.get("phases_ms") or {}
        whole = sum(ms for ms in phases.values() if ms is not None)
        return phases[name] / whole if whole and phases.get(name) is not None else None

    return get


def _memory(record: Record) -> float | None:
    """Bytes of an algorithm's own structures; of a semi-stream join without what is free."""
    held = (record.get("semi_stream") or {}).get("memory_bytes")
    if not held:
        return _at("structure_bytes")(record)
    return float(sum(value for name, value in held.items() if name != "free"))


def _model_share(record: Record) -> float | None:
    """Smaller by larger of the time of a loop as computed and as measured."""
    semi = record.get("semi_stream") or {}
    model, steps = (semi.get("cost_model") or {}).get("loop_us"), semi.get("loop_us")
    took = sum(steps.values()) if steps else None
    return min(model, took) / max(model, took) if model and took else None


@dataclass(frozen=True)
class Measure:
    """A figure of a record.

    ``get`` reads it, None where the record does not have it; where ``less_is_better``, a ratio says
    how much less the first one is.
    """

    get: Callable[[Record], float | None]
    less_is_better: bool = True


MEASURES = {
    "throughput": Measure(_at("throughput_tuples_per_s", "median"), less_is_better=False),
    "latency": Measure(_at("latency_us", "p95")),
    "median_latency": Measure(_at("latency_us", "p50")),
    "half": Measure(_reached(0.5)),
    "service_rate": Measure(_at("semi_stream", "service_rate_tuples_per_s"), less_is_better=False),
    "cpu": Measure(_at("cpu_s", "median")),
    "memory": Measure(_memory),
    "peak": Measure(_at("peak_bytes")),
    "l1d_misses": Measure(_at("counters", "l1d_read_misses")),
    "partition": Measure(_at("phases_ms", "partition")),
    "build": Measure(_at("phases_ms", "build_or_sort")),
    "merge": Measure(_at("phases_ms", "merge")),
    "probe": Measure(_at("phases_ms", "probe")),
    "wait_share": Measure(_phase_share("wait")),
    "merge_share": Measure(_phase_share("merge")),
    "cpu_share": Measure(_cpu_share),
    "cache_share": Measure(_at("semi_stream", "cache_share"), less_is_better=False),
    "model_share": Measure(_model_share, less_is_better=False),
}
"""What claims are of, by name."""

SHARES = tuple(name for name in MEASURES if name.endswith("_share"))
