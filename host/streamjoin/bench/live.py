"""Live joins: tuples pushed in pieces of a few sizes, the results taken after each push.

Two streams of uniform values, about one pair a tuple, join over count windows that were filled
before. Every push together with taking its results is one call, timed by the CPU time of its thread
and by the wall clock. The digest of all pairs is held against another engine's join of the whole.
"""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.api import join
from streamjoin.errors import MismatchError
from streamjoin.live.joiner import StreamJoiner

SEED = 1
WINDOW_TUPLES = 1 << 16
ENGINE = "auto"
WARM_CALLS = 20
"""Calls that are not counted, after the windows are full."""


class Calls(NamedTuple):
    """Calls of each size: of 1, 100 and 10,000 tuples."""

    quick: int
    full: int


CASES = {1: Calls(10_000, 100_000), 100: Calls(5_000, 20_000), 10_000: Calls(200, 1_000)}
"""Calls that are timed, by the tuples of each."""


Columns = dict[str, NDArray[Any]]


class Predicate(NamedTuple):
    """A predicate, and columns for which a tuple has about one match.

    Attributes
    ----------
    columns : callable
        Makes the columns of R and of S from a generator, a number of rows, and the window.
    judge : str
        The engine that joins the whole for comparison.
    on, band
        As of :class:`~streamjoin.StreamJoiner`.
    """

    columns: Callable[[np.random.Generator, int, int], tuple[Columns, Columns]]
    judge: str
    on: str | list[str] | None = None
    band: str | list[str] | None = None


def _integers(rng: np.random.Generator, rows: int, window: int) -> tuple[Columns, Columns]:
    r, s = rng.integers(0, window, (2, rows))
    return {"k": r}, {"k": s}


def _mixed_signs(rng: np.random.Generator, rows: int, window: int) -> tuple[Columns, Columns]:
    r, s = rng.integers(0, window, (2, rows))
    return {"k": r}, {"k": s.astype(np.uint64)}


def _sparse(rng: np.random.Generator, rows: int, window: int) -> tuple[Columns, Columns]:
    r, s = rng.integers(0, 65 * window, (2, rows))
    return {"x": r}, {"x": s}


def _reals(rng: np.random.Generator, rows: int, window: int) -> tuple[Columns, Columns]:
    r, s = rng.random((2, rows)) * window
    return {"x": r}, {"x": s}


def _two_kinds(rng: np.random.Generator, rows: int, window: int) -> tuple[Columns, Columns]:
    r, s = rng.integers(0, math.isqrt(window), (2, 2, rows))
    return {"k": r[0], "g": r[1]}, {"k": s[0], "g": s[1]}


def _kinds_and_reals(rng: np.random.Generator, rows: int, window: int) -> tuple[Columns, Columns]:
    kinds, reals = rng.integers(0, 64, (2, rows)), rng.random((2, rows)) * (window / 64)
    return {"k": kinds[0], "x": reals[0]}, {"k": kinds[1], "x": reals[1]}


def _two_bands(rng: np.random.Generator, rows: int, window: int) -> tuple[Columns, Columns]:
    whole, reals = rng.integers(0, 32 * window, (2, rows)), rng.random((2, rows))
    return {"x": whole[0], "y": reals[0]}, {"x": whole[1], "y": reals[1]}


def _strings(rng: np.random.Generator, rows: int, window: int) -> tuple[Columns, Columns]:
    names = np.array([f"name {number}" for number in range(window)], dtype=object)
    r, s = rng.integers(0, window, (2, rows))
    return {"k": names[r]}, {"k": names[s]}


PREDICATES = {
    "int64": Predicate(_integers, "ibwj-pim", on="k"),
    "uint64": Predicate(_mixed_signs, "ibwj-pim", on="k"),
    "int64-band": Predicate(_sparse, "ibwj-pim", band="x=x:32:32"),
    "float64-band": Predicate(_reals, "kang", band="x=x:0.5:0.5"),
    "two-equalities": Predicate(_two_kinds, "ibwj-pim", on=["k", "g"]),
    "equality-band": Predicate(_kinds_and_reals, "kang", on="k", band="x=x:0.5:0.5"),
    "two-bands": Predicate(_two_bands, "kang", band=["x=x:2048:2048", "y=y:0.004:0.004"]),
    "strings": Predicate(_strings, "ibwj-pim", on="k"),
}
"""Predicates by name: equality of int64, of int64 and uint64, bands, two equalities, an equality of
64 values and a band, a band of int64 and one of float64, equality of strings."""


class Timed(NamedTuple):
    """Nanoseconds of each call."""

    cpu_ns: NDArray[np.int64]
    wall_ns: NDArray[np.int64]


def measure(
    tuples: int, size: str, rounds: int, threads: int, predicate: str = "int64"
) -> dict[str, Any]:
    """Time one case.

    Returns
    -------
    dict
        ``predicate``, its name, ``engine``, ``window``, ``n_r``, ``n_s``, ``tuples`` of a call,
        ``calls``, ``pairs``, ``digest``, and medians over the rounds: ``tuples_per_s`` by CPU time,
        and microseconds of a call, ``cpu_us`` and ``wall_us``, each with ``p50``, ``p99``,
        ``p99.9`` and ``max``. ``each_round`` has seconds of a call in each round: means of wall and
        CPU time, ``total_s`` and ``cpu_s``, and ``p99_cpu_s``.

    Raises
    ------
    MismatchError
        If the pairs are not those of the other engine.
    """
    asked = PREDICATES[predicate]
    calls = getattr(CASES[tuples], size)
    pieces = (calls + WARM_CALLS) // 2
    rows, rng = WINDOW_TUPLES + pieces * tuples, np.random.default_rng(SEED)
    columns = asked.columns(rng, rows, WINDOW_TUPLES)
    right = _whole(asked, columns, rows, tuples)
    timed = []
    for _ in range(rounds):
        times, found = _pushed(asked, columns, rows, tuples, threads)
        if found != right:
            raise MismatchError(
                f"live, {predicate}, {tuples} tuples a call: pairs and digest {found} differ from "
                f"{right}"
            )
        timed.append(times)
    per_s = [tuples * len(each.cpu_ns) / (each.cpu_ns.sum() / 1e9) for each in timed]
    return {
        "predicate": predicate,
        "engine": ENGINE,
        "window": _window(),
        "n_r": rows,
        "n_s": rows,
        "tuples": tuples,
        "calls": len(timed[0].cpu_ns),
        "pairs": right[0],
        "digest": right[1],
        "tuples_per_s": float(np.median(per_s)),
        "cpu_us": _percentiles([each.cpu_ns for each in timed]),
        "wall_us": _percentiles([each.wall_ns for each in timed]),
        "each_round": {
            "total_s": [float(each.wall_ns.mean()) / 1e9 for each in timed],
            "cpu_s": [float(each.cpu_ns.mean()) / 1e9 for each in timed],
            "p99_cpu_s": [float(np.percentile(each.cpu_ns, 99.0)) / 1e9 for each in timed],
        },
    }


def _window() -> str:
    return f"count:{WINDOW_TUPLES}"


def _percentiles(rounds: list[NDArray[np.int64]]) -> dict[str, float]:
    asked = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
    return {
        name: float(np.median([np.percentile(times, at) for times in rounds]) / 1e3)
        for name, at in asked.items()
    }


def _whole(
    asked: Predicate, columns: tuple[Columns, Columns], rows: int, tuples: int
) -> tuple[int, str]:
    """Join all at once; the arrival times are the numbers of the pushes."""
    piece = 1 + (np.arange(rows) - WINDOW_TUPLES) // tuples
    piece[:WINDOW_TUPLES] = 0
    r, s = {**columns[0], "ts": 2 * piece}, {**columns[1], "ts": 2 * piece + 1}
    result = join(r, s, on=asked.on, band=asked.band, window=_window(), engine=asked.judge)
    return len(result), str(result.metrics["digest"])


def _part(columns: Columns, first: int, end: int) -> Columns:
    return {name: column[first:end] for name, column in columns.items()}


def _pushed(
    asked: Predicate, columns: tuple[Columns, Columns], rows: int, tuples: int, threads: int
) -> tuple[Timed, tuple[int, str]]:
    cpu_ns, wall_ns = [], []
    with StreamJoiner(
        on=asked.on, band=asked.band, window=_window(), engine=ENGINE, threads=threads
    ) as joiner:
        pushes = (joiner.push_r, joiner.push_s)
        for push, of_side in zip(pushes, columns, strict=True):
            push(_part(of_side, 0, WINDOW_TUPLES))
        for _ in joiner.results():
            pass
        for at in range(WINDOW_TUPLES, rows, tuples):
            for push, of_side in zip(pushes, columns, strict=True):
                data = _part(of_side, at, at + tuples)
                began, began_cpu = time.perf_counter_ns(), time.thread_time_ns()
                push(data)
                for _ in joiner.results():
                    pass
                ended_cpu, ended = time.thread_time_ns(), time.perf_counter_ns()
                cpu_ns.append(ended_cpu - began_cpu)
                wall_ns.append(ended - began)
        metrics = joiner.metrics
        joiner.end()
    counted = slice(WARM_CALLS, None)
    timed = Timed(np.array(cpu_ns)[counted], np.array(wall_ns)[counted])
    return timed, (metrics["pairs"], metrics["digest"])
