"""Measures the constants of the semi-stream joins' cost model on this machine, store by store.

Joins of several sizes are run, and the constants are those (least squares, none negative) that
explain the time of their steps best.
"""

import datetime
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin import run
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.engines.semi.cost import Costs
from streamjoin.relations import KINDS
from streamjoin.tuples import Stream
from streamjoin_common.installed.environment import environment
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow

R_ROWS = 100_000
S_TUPLES = 400_000
SKEWS = (0.0, 1.0)
PARTITION_ROWS = (1_000, 8_000)
MEMORY_KIB = (1_500, 6_000)
R_BYTES = (24, 120)
STEPS = 4000

ProgressCallback = Callable[[int, int], None]


def calibrate(on_progress: ProgressCallback, kinds: Iterable[str] = KINDS) -> dict[str, Any]:
    """Measure and fit.

    Returns
    -------
    dict
        ``costs`` by kind of store, ``evidence`` (every run's steps beside what the model says),
        ``environment``, ``created``.
    """
    settings = [
        (skew, rows, kib, width)
        for skew in SKEWS
        for rows in PARTITION_ROWS
        for kib in MEMORY_KIB
        for width in R_BYTES
        if 2 * rows * width < kib * 512
    ]
    chosen = list(kinds)
    total, done = len(chosen) * len(settings), 0
    costs, evidence = {}, []
    for kind in chosen:
        runs = []
        for skew, rows, kib, width in settings:
            on_progress(done, total)
            done += 1
            for engine in ("meshjoin", "ssbj"):
                knobs = {
                    "store": kind,
                    "partition_rows": rows,
                    "memory_kib": kib,
                    "r_bytes": width,
                    "s_bytes": 20,
                }
                runs.append({**_measure(engine, skew, knobs), **knobs, "skew": skew})
        costs[kind] = fit(runs).to_dict()
        evidence += runs
    on_progress(total, total)
    return {
        "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "environment": environment(),
        "costs": costs,
        "evidence": evidence,
    }


def _measure(name: str, skew: float, knobs: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    shares = np.cumsum(np.arange(1, R_ROWS + 1) ** -skew)
    s_keys = np.searchsorted(shares, rng.random(S_TUPLES) * shares[-1]).astype(np.int32)
    r_keys = rng.integers(0, R_ROWS, R_ROWS).astype(np.int32)
    streams = [
        Stream({"k": keys}, np.zeros(len(keys), dtype=np.int64), source)
        for keys, source in ((r_keys, "r"), (s_keys, "s"))
    ]
    job = Job(streams[0], streams[1], Predicate.parse(on="k"), AllWindow())
    engine = catalog.get(name)
    outcome = run.run(engine, run.complete(engine, job, knobs))
    metrics = outcome.metrics["semi_stream"]
    return {
        "engine": name,
        **metrics["work"],
        "loop_us": metrics["loop_us"],
        "read_us": metrics["read_us"],
    }


def fit(runs: list[dict[str, Any]]) -> Costs:
    """Fit the constants to the steps of these runs.

    Parameters
    ----------
    runs : list of dict
        ``work`` and ``loop_us`` of semi-stream runs on one kind of store.
    """

    def column(name: str) -> NDArray[np.float64]:
        return np.array([each[name] for each in runs], dtype=np.float64)

    def step(name: str) -> NDArray[np.float64]:
        return np.array([each["loop_us"][name] for each in runs]) * 1e3

    one = np.ones(len(runs))
    read, read_byte = _least([one, column("rows") * column("row_bytes")], column("read_us") * 1e3)
    cache = _least([one, column("cached"), column("queued"), column("cached_pairs")], step("cache"))
    disk = _least([one, column("rows"), column("pairs")], step("disk"))
    expire = _least([one, column("queued")], step("expire"))
    return Costs(
        read=read,
        read_byte=read_byte,
        loop=cache[0] + disk[0] + expire[0] + float(np.median(step("migrate"))),
        lookup=disk[1],
        hit=cache[1],
        append=cache[2],
        delete=expire[1],
        output=disk[2],
        cached_output=cache[3],
    )


def _least(columns: list[NDArray[np.float64]], right: NDArray[np.float64]) -> list[float]:
    """Least squares of relative errors, no coefficient below zero (projected gradient)."""
    weights = 1.0 / np.maximum(right, 1.0)
    left = np.stack(columns, axis=1) * weights[:, None]
    scale = np.maximum(np.linalg.norm(left, axis=0), 1e-30)
    left /= scale
    target = right * weights
    costs = np.maximum(np.linalg.lstsq(left, target, rcond=None)[0], 0.0)
    step = 1.0 / np.linalg.norm(left, 2) ** 2
    for _ in range(STEPS):
        costs = np.maximum(costs - step * (left.T @ (left @ costs - target)), 0.0)
    return [float(value) for value in costs / scale]
