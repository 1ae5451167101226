"""Live joins: tuples pushed in pieces of a few sizes, the results taken after each push.

Two streams of uniform 64-bit keys, one pair a tuple, join over count windows that were filled
before. Every push together with taking its results is one call, timed by the CPU time of its thread
and by the wall clock. The digest of all pairs is held against another engine's join of the whole.
"""

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.api import join
from streamjoin.errors import MismatchError
from streamjoin.live.joiner import StreamJoiner

SEED = 1
WINDOW_TUPLES = 1 << 16
ENGINE, JUDGE = "auto", "ibwj-pim"
WARM_CALLS = 20
"""Calls that are not counted, after the windows are full."""


class Calls(NamedTuple):
    """Calls of each size: of 1, 100 and 10,000 tuples."""

    quick: int
    full: int


CASES = {1: Calls(10_000, 100_000), 100: Calls(5_000, 20_000), 10_000: Calls(200, 1_000)}
"""Calls that are timed, by the tuples of each."""


class Timed(NamedTuple):
    """Nanoseconds of each call."""

    cpu_ns: NDArray[np.int64]
    wall_ns: NDArray[np.int64]


def measure(tuples: int, size: str, rounds: int, threads: int) -> dict[str, Any]:
    """Time one case.

    Returns
    -------
    dict
        ``tuples`` of a call, ``calls``, ``pairs``, ``digest``, and medians over the rounds:
        ``tuples_per_s`` by CPU time, and microseconds of a call, ``cpu_us`` and ``wall_us``, each
        with ``p50``, ``p99``, ``p99.9`` and ``max``.

    Raises
    ------
    MismatchError
        If the pairs are not those of the other engine.
    """
    calls = getattr(CASES[tuples], size)
    pieces = (calls + WARM_CALLS) // 2
    rows, rng = WINDOW_TUPLES + pieces * tuples, np.random.default_rng(SEED)
    keys = rng.integers(0, WINDOW_TUPLES, (2, rows))
    right = _whole(keys, tuples)
    timed = []
    for _ in range(rounds):
        times, found = _pushed(keys, tuples, threads)
        if found != right:
            raise MismatchError(
                f"live, {tuples} tuples a call: pairs and digest {found} differ from {right}"
            )
        timed.append(times)
    per_s = [tuples * len(each.cpu_ns) / (each.cpu_ns.sum() / 1e9) for each in timed]
    return {
        "tuples": tuples,
        "calls": len(timed[0].cpu_ns),
        "pairs": right[0],
        "digest": right[1],
        "tuples_per_s": float(np.median(per_s)),
        "cpu_us": _percentiles([each.cpu_ns for each in timed]),
        "wall_us": _percentiles([each.wall_ns for each in timed]),
    }


def _percentiles(rounds: list[NDArray[np.int64]]) -> dict[str, float]:
    asked = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
    return {
        name: float(np.median([np.percentile(times, at) for times in rounds]) / 1e3)
        for name, at in asked.items()
    }


def _whole(keys: NDArray[np.int64], tuples: int) -> tuple[int, str]:
    """Join all at once; the arrival times are the numbers of the pushes."""
    piece = 1 + (np.arange(keys.shape[1]) - WINDOW_TUPLES) // tuples
    piece[:WINDOW_TUPLES] = 0
    r, s = {"k": keys[0], "ts": 2 * piece}, {"k": keys[1], "ts": 2 * piece + 1}
    result = join(r, s, on="k", window=f"count:{WINDOW_TUPLES}", engine=JUDGE)
    return len(result), str(result.metrics["digest"])


def _pushed(keys: NDArray[np.int64], tuples: int, threads: int) -> tuple[Timed, tuple[int, str]]:
    cpu_ns, wall_ns = [], []
    with StreamJoiner(
        on="k", window=f"count:{WINDOW_TUPLES}", engine=ENGINE, threads=threads
    ) as joiner:
        pushes = (joiner.push_r, joiner.push_s)
        for push, column in zip(pushes, keys, strict=True):
            push({"k": column[:WINDOW_TUPLES]})
        for _ in joiner.results():
            pass
        for at in range(WINDOW_TUPLES, keys.shape[1], tuples):
            for push, column in zip(pushes, keys, strict=True):
                data = {"k": column[at : at + tuples]}
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
