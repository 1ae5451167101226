"""MESHJOIN and SSBJ: exact over every store, within their budget, cached by the inequality."""

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.host.semistream import (
    ListStore,
    PushFeed,
    cached_records,
    expected,
    joined,
    keys_of,
    settings,
)

import streamjoin as sj
from streamjoin.errors import InputError
from streamjoin.relations import KINDS

if TYPE_CHECKING:
    from streamjoin.engines.semi.tables import Tables

ENGINES = ("meshjoin", "ssbj")


def zipf(rng: np.random.Generator, values: int, tuples: int, skew: float = 1.0) -> np.ndarray:
    shares = np.cumsum(np.arange(1, values + 1) ** -skew)
    return np.searchsorted(shares, rng.random(tuples) * shares[-1])


@pytest.mark.parametrize("kept_bytes", [0, 16])
@pytest.mark.parametrize("kind", KINDS, indirect=True)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_store_gives_the_oracles_result(engine: str, kind: str, kept_bytes: int) -> None:
    rng = np.random.default_rng(4)
    r, s = {"k": rng.integers(0, 900, 2000)}, {"k": zipf(rng, 900, 20_000)}
    knobs = {"store": kind, "memory_kib": 128, "partition_rows": 100, "r_bytes": 40, "s_bytes": 20}
    knobs["kept_bytes"] = kept_bytes
    result = sj.join(r, s, on="k", engine=engine, knobs=knobs, check=True)
    metrics = result.metrics["semi_stream"]
    assert metrics["store"] == kind
    assert metrics["partitions"] == 20
    if engine == "ssbj":
        assert metrics["cached"]["values"] > 0
        assert metrics["cache_share"] > 0.05


@pytest.mark.parametrize("caching", [False, True])
@hypothesis_settings(max_examples=60, deadline=None)
@given(
    r_keys=st.lists(st.integers(0, 12), max_size=120),
    s_keys=st.lists(st.integers(0, 15), max_size=400),
    rows=st.integers(1, 40),
    memory=st.sampled_from([16_000, 40_000, None]),
)
def test_heavy_duplicates_and_misses_are_joined_exactly(
    caching: bool, r_keys: list[int], s_keys: list[int], rows: int, memory: int | None
) -> None:
    store, feed = ListStore(r_keys), PushFeed(s_keys)
    pairs, join = joined(store, feed, settings(memory, rows, caching=caching))
    assert sorted(pairs.found) == expected(store.keys, feed.keys)
    assert all(row == kept for row, kept, _ in cached_records(join.tables))


def test_keys_that_differ_in_their_upper_half_only_are_different() -> None:
    keys = [high << 32 | low for high in range(40) for low in range(3)]
    store, feed = ListStore(keys), PushFeed(keys * 20)
    pairs, _ = joined(store, feed, settings())
    assert sorted(pairs.found) == expected(store.keys, feed.keys)


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("memory", [30_000, 100_000, 1_000_000])
def test_all_arrays_together_stay_within_the_budget(memory: int, caching: bool) -> None:
    rng = np.random.default_rng(6)
    store, feed = (
        ListStore(rng.integers(0, 500, 2000).tolist()),
        PushFeed(zipf(rng, 600, 30_000).tolist()),
    )
    chosen = settings(memory, 50, caching=caching)
    pairs, join = joined(store, feed, chosen)
    buffers = 2 * 50 * store.row_bytes
    assert join.tables.nbytes + buffers <= memory
    assert join.tables.nbytes + buffers > 0.9 * memory
    metrics = join.details()["memory_bytes"]
    assert set(metrics) == {"h_s", "h_r", "filter", "queue", "free", "buffers"}
    assert sum(metrics.values()) <= memory
    assert len(pairs.found) == len(expected(store.keys, feed.keys))


def test_pages_are_counted_whichever_table_has_them() -> None:
    rng = np.random.default_rng(7)
    store = ListStore(rng.integers(0, 300, 600).tolist())
    _, join = joined(store, PushFeed(zipf(rng, 300, 20_000).tolist()), settings(60_000, 30))
    tables: Tables = join.tables
    assert tables.free_pages + tables.node_pages + tables.record_pages_used == tables.pages
    assert join.cache is not None
    assert join.cache.switched > 0


@pytest.mark.parametrize("kept_bytes", [8, 41])
def test_no_more_than_a_row_and_no_less_than_its_key_and_number_is_kept(kept_bytes: int) -> None:
    knobs = {"r_bytes": 40, "kept_bytes": kept_bytes}
    with pytest.raises(
        InputError, match=rf"^kept_bytes must be 0 or from 16 to r_bytes, 40, not {kept_bytes}$"
    ):
        sj.join({"k": [1]}, {"k": [1]}, on="k", engine="ssbj", knobs=knobs)


def test_what_is_not_kept_leaves_room_for_more_of_the_cache() -> None:
    rng = np.random.default_rng(12)
    r, s = {"k": rng.integers(0, 9000, 20_000)}, {"k": zipf(rng, 9000, 80_000)}
    knobs = {"store": "raw", "memory_kib": 128, "partition_rows": 50, "r_bytes": 400}
    whole, part = (
        sj.join(r, s, on="k", engine="ssbj", knobs=knobs | kept).metrics["semi_stream"]
        for kept in ({"kept_bytes": 400}, {})
    )
    assert part["cached"]["records"] > 2 * whole["cached"]["records"]
    assert part["cache_share"] > whole["cache_share"] + 0.1


def test_a_budget_that_holds_no_partition_and_chunk_is_refused_with_what_would_do() -> None:
    with pytest.raises(InputError, match=r"does not hold two disk buffers of 1000 rows \(64000 "):
        joined(ListStore([1, 2, 3]), PushFeed([1]), settings(20_000, 1000))
    with pytest.raises(InputError, match=r"set memory_kib=\d+ or more, or fewer partition_rows$"):
        sj.join(
            {"k": np.arange(9)},
            {"k": np.arange(9)},
            on="k",
            engine="ssbj",
            knobs={"memory_kib": 4, "partition_rows": 1000},
        )


@pytest.mark.parametrize(
    ("rows", "knobs"),
    [
        (0, {"r_bytes": 1 << 16, "kept_bytes": 1 << 16}),
        (1, {"r_bytes": 1 << 16, "s_bytes": 1 << 16}),
        pytest.param(500, {"r_bytes": 1 << 16, "kept_bytes": 1 << 16}, marks=pytest.mark.slow),
        (100, {"s_bytes": 1 << 16, "memory_kib": 64, "partition_rows": 1}),
        (500, {"partition_rows": 1 << 24, "memory_kib": 1}),
    ],
)
def test_the_budget_that_a_refusal_names_is_enough(rows: int, knobs: dict[str, int]) -> None:
    r, s = {"k": np.arange(rows)}, {"k": np.arange(600)}
    with pytest.raises(InputError) as refused:
        sj.join(r, s, on="k", engine="ssbj", knobs={"partition_rows": rows, **knobs})
    named = re.search(r"set memory_kib=(\d+) ", str(refused.value))
    assert named is not None
    knobs = {"partition_rows": rows, **knobs, "memory_kib": int(named[1])}
    result = sj.join(r, s, on="k", engine="ssbj", knobs=knobs)
    assert len(result.r_rows) == rows
    held = result.metrics["semi_stream"]["memory_bytes"]
    assert sum(held.values()) <= 1024 * knobs["memory_kib"]


def test_no_more_memory_is_taken_than_all_tuples_need() -> None:
    keys = {"k": np.arange(2000)}
    for engine in ("meshjoin", "ssbj"):
        result = sj.join(keys, keys, on="k", engine=engine, knobs={"memory_kib": 1 << 40})
        assert len(result.r_rows) == 2000
        assert result.metrics["semi_stream"]["budget_bytes"] < 1 << 22


def test_with_memory_for_all_of_r_ssbj_becomes_a_main_memory_join() -> None:
    """Theorem 3: at a rate for which H_S would need more than R, all of R is in the cache."""
    rng = np.random.default_rng(8)
    r_keys = rng.permutation(np.repeat(np.arange(200), 2))
    s_keys = rng.integers(0, 200, 300_000)
    store, feed = ListStore(r_keys.tolist()), PushFeed(s_keys.tolist())
    pairs, join = joined(store, feed, settings(400_000, 40))
    metrics = join.details()
    assert metrics["cached"] == {"values": 200, "records": 400, "absent": 0}
    assert len(pairs.found) == len(set(pairs.found)) == 600_000
    # The last tuples all met the cache: the queue had run empty before the stream ended.
    assert metrics["cache_share"] > 0.4
    assert join.tables.live == 0
    last = next(point for point in reversed(join.tally.curve) if point[1] < 300_000)
    assert round(metrics["cache_share"] * 300_000) - last[2] == 300_000 - last[1] > 0


def test_hot_keys_that_change_are_evicted_and_replaced() -> None:
    """R is too large for the cache to hold all of it."""
    rng = np.random.default_rng(9)
    store = ListStore(rng.permutation(np.arange(1200)).tolist())
    first = zipf(rng, 1200, 60_000)
    second = 1199 - zipf(rng, 1200, 60_000)
    feed = PushFeed(np.concatenate([first, second]).tolist())
    pairs, join = joined(store, feed, settings(40_000, 40, eviction_cycles=4))
    metrics = join.details()
    assert metrics["evicted_values"] > 0
    keys = keys_of(join.tables)
    cached = [keys[value] for value in np.flatnonzero(join.tables.states == 3).tolist()]
    assert len(cached) > 0
    assert np.median(cached) > 600, "the cache holds what was hot before"
    assert len(pairs.found) == len(set(pairs.found)) == 120_000


def test_values_without_a_master_row_wait_for_nothing_once_they_are_known() -> None:
    rng = np.random.default_rng(10)
    store = ListStore(list(range(1000, 1400)))
    feed = PushFeed(zipf(rng, 300, 30_000).tolist())
    pairs, join = joined(store, feed, settings(40_000, 40))
    assert pairs.found == []
    metrics = join.details()
    assert metrics["cached"]["absent"] > 0
    assert metrics["cache_share"] > 0.5


def test_a_value_that_was_absent_is_found_once_r_has_it() -> None:
    store = ListStore(list(range(1000, 1200)))
    feed = PushFeed([7] * 40_000)
    reads = 0

    def insert(first: int) -> None:
        nonlocal reads
        reads += 1
        if reads == 200:
            store.keys = np.append(store.keys, np.uint64(7))
            store.versions = np.append(store.versions, np.uint64(0))

    store.before_read = insert
    pairs, join = joined(store, feed, settings(30_000, 40))
    assert {row for row, _ in pairs.found} <= {200}
    assert len(pairs.found) == len(set(pairs.found))
    if join.tally.loops > 260:
        assert pairs.found


@pytest.mark.parametrize("engine", ENGINES)
def test_the_chunk_grows_with_the_arrival_rate(engine: str) -> None:
    rng = np.random.default_rng(11)
    r = {"k": rng.integers(0, 5000, 20_000)}
    held = []
    for rate in (20_000, 200_000):
        s = {"k": zipf(rng, 5000, rate // 2), "ts": np.arange(rate // 2) * (1_000_000 // rate)}
        result = sj.join(
            r, s, on="k", engine=engine, arrival="replay", knobs={"partition_rows": 500}
        )
        metrics = result.metrics["semi_stream"]
        assert metrics["budget_bytes"] is None
        held.append(metrics["memory_bytes"]["h_s"])
    assert held[1] > held[0]


def test_a_stream_faster_than_the_service_waits_and_the_backlog_is_told() -> None:
    store, feed = ListStore(list(range(3000))), PushFeed(list(range(3000)) * 4, live=True)
    pairs, join = joined(store, feed, settings(30_000, 100, caching=False))
    assert len(pairs.found) == 12_000
    assert join.details()["most_waiting_tuples"] == 12_000
    assert join.details()["shed_tuples"] == 0


def test_what_is_shed_is_counted_and_nothing_else_is_lost() -> None:
    store, feed = ListStore(list(range(3000))), PushFeed(list(range(3000)) * 4, live=True)
    pairs, join = joined(store, feed, settings(30_000, 100, caching=False, shed_beyond=5000))
    metrics = join.details()
    assert metrics["shed_tuples"] == 7000
    assert len(pairs.found) == 12_000 - 7000
    assert {s_row for _, s_row in pairs.found} == set(range(7000, 12_000))


@pytest.mark.parametrize("percent", [10, 1000])
def test_any_switching_factor_gives_the_same_result(percent: int) -> None:
    rng = np.random.default_rng(12)
    r, s = {"k": rng.integers(0, 300, 1000)}, {"k": zipf(rng, 300, 20_000)}
    knobs = {"memory_kib": 64, "partition_rows": 50, "switching_percent": percent}
    sj.join(r, s, on="k", engine="ssbj", knobs=knobs, check=True)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_stream_keys_that_r_lacks_are_as_different_for_the_cache_as_they_are(dtype: type) -> None:
    """Though no result tells them apart: one hot key in their place would be served at once."""
    r = {"k": np.arange(1000, dtype=dtype), "j": np.arange(1000, dtype=dtype)}
    keys = np.arange(10_000, 40_000, dtype=dtype)
    for on in (["k"], ["k", "j"]):
        s = {"k": keys, "j": keys}
        metrics = sj.join(r, s, on=on, engine="ssbj", knobs={"memory_kib": 64}).metrics[
            "semi_stream"
        ]
        assert metrics["cache_share"] == 0


def test_a_join_that_sheds_is_not_verified_but_refused_before_it_runs() -> None:
    r = {"k": np.arange(10)}
    with pytest.raises(InputError, match=r"drop shed_beyond, or the check$"):
        sj.join(r, r, on="k", engine="ssbj", check=True, knobs={"shed_beyond": 5})
