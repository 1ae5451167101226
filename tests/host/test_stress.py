"""Random cases of some thousand tuples, for every engine of complete windows.

``make stress CASES=1000`` runs as many for each engine; a case is named by its seed, which is
printed, and ``SEED=`` repeats one.
"""

import os
import sys
from typing import Any

import numpy as np
import pytest

from streamjoin import oracle, run, verify
from streamjoin.engines import catalog
from streamjoin.engines.base import Engine, Knob
from streamjoin.engines.job import Job
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow, TumblingWindow

CASES = int(os.environ.get("CASES", "12"))
SEED = int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4), "little")
INTRA = ("npj", "prj", "mway", "mpass", "shj-jm", "shj-jb", "pmj-jm", "pmj-jb")
MAX_TUPLES = 2500
MAX_PAIRS = 400_000
TOP = (1 << 32) - 1

pytestmark = pytest.mark.timeout(60 + 2 * CASES)


def keys_of(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Keys of one of the shapes that hurt."""
    shape = rng.choice(["one", "unique", "zipf", "duplicates", "ends", "uniform", "few"])
    if shape == "one":
        return np.full(rows, rng.integers(0, TOP, endpoint=True))
    if shape == "unique":
        return rng.permutation(rows) + rng.integers(0, TOP - rows)
    if shape == "zipf":
        return np.minimum(rng.zipf(1.6, rows), TOP)
    if shape == "duplicates":
        return rng.permutation(np.arange(rows) // 100)
    if shape == "ends":
        return rng.choice(np.array([0, 1, TOP - 1, TOP, 1 << 31, (1 << 31) - 1]), rows)
    return rng.integers(0, {"uniform": max(1, rows), "few": 7}[shape], rows)


def times_of(rng: np.random.Generator, rows: int, span_us: int) -> np.ndarray:
    """Arrival times: spread, all at once, in bursts, or the last one late."""
    shape = rng.choice(["spread", "rest", "bursts", "late"])
    if shape == "rest" or rows == 0:
        return np.zeros(rows, dtype=np.int64)
    if shape == "bursts":
        return np.sort(rng.choice(rng.integers(0, span_us, 3), rows))
    times = np.sort(rng.integers(0, span_us, rows))
    if shape == "late":
        times[:-1] = 0
    return times


def knob_value(rng: np.random.Generator, knob: Knob) -> int | str:
    """The default half of the time, else any value that is not absurd here."""
    if rng.random() < 0.5:
        return knob.default
    if knob.choices:
        return str(rng.choice(list(knob.choices)))
    minimum, maximum = knob.minimum or 0, knob.maximum if knob.maximum is not None else 64
    return int(rng.integers(minimum, min(maximum, minimum + 64), endpoint=True))


def case_of(seed: int, engine: Engine) -> Job:
    """One random job; all of it follows from the seed."""
    rng = np.random.default_rng(seed)
    streams = []
    for source in ("r", "s"):
        rows = 0 if rng.random() < 0.05 else int(rng.integers(1, MAX_TUPLES))
        keys, times = keys_of(rng, rows), times_of(rng, rows, 4000)
        order = np.uint32 if rng.random() < 0.5 else np.int64
        streams.append((keys.astype(order), times.astype(np.int64), source))
    while _pairs_bound(streams) > MAX_PAIRS:
        streams = [(k[: len(k) // 2], t[: len(t) // 2], source) for k, t, source in streams]
    r, s = (Stream({"k": keys}, times, source) for keys, times, source in streams)
    window = AllWindow() if rng.random() < 0.4 else TumblingWindow(int(rng.integers(1, 5000)))
    asked = Job(
        r,
        s,
        Predicate.parse(on="k"),
        window,
        threads=int(rng.integers(1, 6)),
        arrival=str(rng.choice(["instant", "replay"])),
        speedup=float(rng.choice([1.0, 10.0])),
    )
    knobs: dict[str, Any] = {knob.name: knob_value(rng, knob) for knob in engine.knobs}
    return run.complete(engine, asked, knobs)


def _pairs_bound(streams: list[Any]) -> int:
    """Pairs under window ``all``."""
    (r_values, r_counts), (s_values, s_counts) = (
        np.unique(keys.astype(np.int64), return_counts=True) for keys, _, _ in streams
    )
    _, r_at, s_at = np.intersect1d(r_values, s_values, return_indices=True)
    return int(np.dot(r_counts[r_at], s_counts[s_at]))


@pytest.mark.parametrize("name", INTRA)
def test_random_windows_join_as_the_oracle_says(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = catalog.get(name)
    pairs = 0
    for number in range(CASES):
        seed = SEED + number
        job = case_of(seed, engine)
        try:
            outcome = run.run(engine, job)
            right = oracle.join(job.r, job.s, job.predicate, job.window)
            verify.check(outcome.pairs, right, name)
        except Exception as error:
            raise AssertionError(
                f"SEED={seed} CASES=1: {name}, {job.r.rows} x {job.s.rows}, {job.window.text}, "
                f"{job.threads} threads, {job.arrival}, {dict(job.knobs)}: {error}"
            ) from error
        pairs += len(right)
    with capsys.disabled():
        sys.stdout.write(f" {name}: {CASES} cases, {pairs} pairs, SEED={SEED} ")
    assert pairs > 0 or CASES < 5
