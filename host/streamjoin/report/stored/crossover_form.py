"""The form of a stored record of ``bench cpu-fpga``: what pages are made of is checked first."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from streamjoin.bench.cpu_fpga.inputs import QUERIES
from streamjoin.bench.sustained import LOADS
from streamjoin.errors import InputError
from streamjoin_common.documents import DocumentError, read_json

TOLERANCE = 1e-3
"""Share by which a design's rate may differ from its cycles at its clock: both were rounded."""

SIZES = ("quick", "full")


class _At:
    """A place in a file, for sentences that name what they refuse."""

    def __init__(self, path: Path, where: str) -> None:
        self.path, self.where = path, where

    def refuse(self, what: str) -> NoReturn:
        raise InputError(f"{self.path}: {self.where}{what}")

    def mapping(self, value: Any, what: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            self.refuse(f"{what} must be an object, not {value!r:.40}")
        return value

    def above_0(self, values: Mapping[str, Any], *names: str) -> None:
        for name in names:
            if not _is_above_0(values.get(name)):
                self.refuse(f"{name} must be a number above 0, not {values.get(name)!r:.40}")


def read(path: Path) -> dict[str, Any]:
    """Read a stored record.

    Raises
    ------
    InputError
        If it is none, or a figure in it cannot be; the sentence names the point.
    """
    whole = _At(path, "")
    try:
        run = read_json(path)
    except DocumentError as error:
        whole.refuse(error.reason)
    except OSError as error:
        whole.refuse(f"cannot be read ({error.strerror})")
    found = dict(whole.mapping(run, "a record"))
    if found.get("size") not in SIZES:
        whole.refuse(f"size must be one of {', '.join(SIZES)}, not {found.get('size')!r:.40}")
    whole.mapping(found.get("environment"), "environment")
    points = found.get("points")
    if not isinstance(points, list) or not points:
        whole.refuse("has no points")
    seen: set[tuple[Any, ...]] = set()
    for number, point in enumerate(points):
        _check_point(_At(path, f"points[{number}]: "), point, seen)
    return found


def is_one(path: Path) -> bool:
    """Whether a file holds points of CPU beside FPGA, as a run keeps or stores them."""
    try:
        found = read_json(path)
    except (DocumentError, OSError):
        return False
    return isinstance(found, dict) and "points" in found and "format" not in found


def _check_point(at: _At, given: Any, seen: set[tuple[Any, ...]]) -> None:
    point = at.mapping(given, "a point")
    names = [query.name for query in QUERIES]
    if point.get("query") not in names:
        at.refuse(f"query must be one of {', '.join(names)}, not {point.get('query')!r:.40}")
    if type(point.get("window")) is not int or point["window"] < 1:
        at.refuse(f"window must be an integer from 1, not {point.get('window')!r:.40}")
    if not isinstance(point.get("who"), str) or type(point.get("is_fpga")) is not bool:
        at.refuse("who must be a string, and is_fpga true or false")
    at.where += f"{point['query']}, {point['window']}, {point['who']}: "
    key = point["query"], point["window"], point["who"]
    if key in seen:
        at.refuse("is there twice")
    seen.add(key)
    at.above_0(point, "rate_tuples_per_s")
    at.above_0(point, *({"joules_per_million", "comparisons_per_cycle"} & set(point)))
    if point["is_fpga"]:
        _check_design(at, point)
    _check_latencies(at, point)
    measured = at.mapping(point.get("measured"), "measured")
    took_s, load = measured.get("took_s"), measured.get("load_average")
    if not _is_number(took_s) or not (load is None or _is_number(load)):
        at.refuse(f"took_s and load_average must be numbers from 0, not {took_s!r} and {load!r}")
    if not all(isinstance(measured.get(name), str) for name in ("at", "revision")):
        at.refuse("measured must say at and revision, each a string")


def _check_design(at: _At, point: Mapping[str, Any]) -> None:
    """Check a design's figures: its rate follows from its cycles, and so does its port's."""
    at.above_0(point, "cycles_per_tuple", "clock_mhz")
    transfer = at.mapping(point.get("transfer"), "transfer")
    at.above_0(transfer, "rate_tuples_per_s", "added_us")
    rate = point["rate_tuples_per_s"]
    follows = point["clock_mhz"] * 1e6 / point["cycles_per_tuple"]
    if abs(rate - follows) > TOLERANCE * follows:
        at.refuse(
            f"rate_tuples_per_s must be clock_mhz by cycles_per_tuple, {follows:.5g}, "
            f"not {rate:.5g}"
        )
    if transfer["rate_tuples_per_s"] > (1 + TOLERANCE) * rate:
        at.refuse("transfer.rate_tuples_per_s must be no more than rate_tuples_per_s")


def _check_latencies(at: _At, point: Mapping[str, Any]) -> None:
    """Check the quantiles at each load; None where there were no matches."""
    latencies = at.mapping(point.get("latency_us"), "latency_us")
    loads = [f"{load:.0%}" for load in LOADS]
    if list(latencies) != loads:
        at.refuse(f"latency_us must be at {', '.join(loads)}, not at {', '.join(latencies)}")
    for load in loads:
        quantiles = at.mapping(latencies[load], f"latency_us at {load}")
        p50: Any = quantiles.get("p50")
        p99: Any = quantiles.get("p99")
        if p50 is None and p99 is None and set(quantiles) >= {"p50", "p99"}:
            continue
        if not (_is_above_0(p50) and _is_above_0(p99)) or p50 > p99:
            at.refuse(
                f"p50 and p99 at {load} must be numbers above 0, the first no larger, "
                f"not {p50!r:.40} and {p99!r:.40}"
            )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= sys.float_info.max


def _is_above_0(value: Any) -> bool:
    return _is_number(value) and value > 0
