"""The flat window index alone: its map, its chains, and what random cases rarely reach."""

import time
from typing import Any

import numpy as np
import pytest

from streamjoin import oracle, run, verify
from streamjoin.engines import catalog
from streamjoin.engines.crew import Crew
from streamjoin.engines.job import Job
from streamjoin.engines.kernels.flat import cuts, joining
from streamjoin.engines.sliding.flat import engine as flat_engine
from streamjoin.engines.sliding.flat import index as flat_index
from streamjoin.engines.sliding.flat import team as flat_team
from streamjoin.metrics import Meter
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window

BAND = Predicate.parse(band="k=k:2:3")
EDGES = np.array([-(1 << 31), 1 - (1 << 31), 0, (1 << 31) - 2, (1 << 31) - 1], dtype=np.int64)


@pytest.mark.parametrize("seed", range(3))
def test_a_map_keeps_the_order_of_codes_and_fills_blocks_evenly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    crowd = rng.integers(1 << 30, (1 << 30) + 5000, 20_000)
    samples = [rng.integers(0, 1 << 32, 20_000), crowd, np.append(crowd, [0, (1 << 32) - 1])]
    sample, blocks = samples[seed].astype(np.uint32), 500
    words, tables = np.zeros(cuts.CUT_WORDS, np.uint64), np.zeros(cuts.TABLE_WORDS, np.uint64)
    cuts.cut_evenly(sample, blocks, 0, words, tables)
    asked = np.sort(np.append(sample, [0, (1 << 32) - 1]).astype(np.uint32))
    by = cuts.Map(*map(np.uint64, cuts.map_of(words, np.uint64(0))))
    found = [int(cuts.block_of(tables, by, code)) for code in asked[::7]]
    assert found == sorted(found)
    assert 0 <= found[0] <= found[-1] < blocks
    assert np.bincount(found, minlength=blocks).max() * 7 < 6 * len(sample) / blocks


def test_groups_of_any_length_are_sorted() -> None:
    rng = np.random.default_rng(3)
    for count in (0, 1, 2, 24, 25, 300):
        rows = rng.integers(0, 1000, count + 2).astype(np.uint32)
        right = [rows[0], *sorted(rows[1 : count + 1]), rows[count + 1]]
        joining.sort(rows, np.uint64(1), np.uint64(count + 1))
        assert rows.tolist() == right


def keys_of(name: str, count: int, rng: np.random.Generator) -> Any:
    """Keys that crowd, move, or lie at the ends of their type."""
    if name == "all equal":
        return np.full(count, 7)
    if name == "moving":
        return np.arange(count) * 5 + rng.integers(0, 9, count)
    return rng.choice(EDGES, count)


@pytest.mark.parametrize("order", ["none", "outer", "inner"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_hard_keys_in_small_batches_give_the_oracles_result(
    threads: int, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "MIN_RECUT": 8,
        "OUTPUT_PAIRS": 64,
        "MIN_ROOM": 16,
    }.items():
        monkeypatch.setattr(flat_index, name, value)
    monkeypatch.setattr(flat_engine, "MIN_SHARED", 2)
    monkeypatch.setattr(flat_team, "MATCH_PAIRS", 64)
    monkeypatch.setattr(flat_team, "PART", 16)
    monkeypatch.setattr(flat_index, "PART", 16)
    monkeypatch.setattr(flat_index, "MOVED_ROWS", 16)
    engine, rng = catalog.get("ibwj-flat"), np.random.default_rng(1)
    for name in ("all equal", "moving", "ends"):
        ts = [np.sort(rng.integers(0, 60, 150)).astype(np.int64) for _ in range(2)]
        r, s = (Stream({"k": keys_of(name, 150, rng)}, each, "x") for each in ts)
        for window in ("count:90,20", "time:9us,30us", "all"):
            job = Job(r, s, BAND, parse_window(window), threads=threads, order=order)
            job = run.complete(engine, job, {"batch": 40})
            pairs = run.run(engine, job).pairs
            verify.check(pairs, oracle.join(r, s, BAND, job.window), f"{name}, {window}")
            verify.check_order(pairs, job, engine.promise(job))
            assert engine.promise(job) == ("outer" if (order, threads) == ("none", 1) else order)


def test_an_interrupt_while_threads_are_sent_to_work_ends_those_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.arange(100)
    r, s = (Stream({"k": rows}, rows, "x") for _ in range(2))
    job = Job(r, s, BAND, parse_window("all"), threads=2)
    job = run.complete(catalog.get("ibwj-flat"), job, {"batch": 200})
    crew, submitted = Crew(2), []
    index, submit = flat_engine.index_of(job, crew, 1), crew._pools[0].submit

    def interrupted(*call: Any) -> Any:
        submitted.append(submit(*call))
        deadline_s = time.monotonic() + 30
        while not submitted[0].running() and time.monotonic() < deadline_s:
            time.sleep(1e-3)
        raise KeyboardInterrupt  # the other thread never arrives at the first barrier

    monkeypatch.setattr(crew._pools[0], "submit", interrupted)
    with crew, pytest.raises(KeyboardInterrupt):
        index.join_shared(slice(0, 100), slice(0, 100), Meter(), crew)
    assert submitted[0].done()
