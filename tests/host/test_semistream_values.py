"""Values hold parts of hashes and row numbers: nothing is mistaken, whatever keys and rows come."""

from collections import Counter

import numpy as np
import pytest
from tests.host.semistream import (
    ByHand,
    ListStore,
    PushFeed,
    expected,
    joined,
    key_of,
    keys_of,
    mixed_of,
    records_of,
    settings,
)

from streamjoin.engines.kernels.semi import layout as kernels

ROWS = 8
MAX_TUPLES = 3000


def test_the_hash_is_a_bijection_of_the_keys() -> None:
    keys = [0, 1, (1 << 64) - 1, 1 << 63, *np.random.default_rng(1).integers(0, 1 << 62, 1000)]
    assert [key_of(mixed_of(int(key))) for key in keys] == [int(key) for key in keys]


# What of two hashes differs: bits of the directory's tag alone, of its rest, of the value's part.
@pytest.mark.parametrize("steps", [1 << 34, 1 << 32, 1 << 31, 1], ids=str)
@pytest.mark.parametrize("narrow", [False, True])
def test_keys_whose_hashes_differ_in_a_few_bits_are_told_apart(steps: int, narrow: bool) -> None:
    base = 0x0123456789ABCDEF
    alike = [key_of(base + steps * number) for number in range(4)]
    others = list(range(1000, 1060))
    r_keys = [*alike[:3], alike[1], *others]  # the last one has no row
    hand = ByHand(r_keys, settings(40_000, ROWS), MAX_TUPLES, narrow)
    rng = np.random.default_rng(3)
    while hand.feed.so_far < MAX_TUPLES - 1:
        hand.push(alike[int(rng.integers(4))], int(rng.integers(1, 6)))
        hand.turn()
    assert {hand.state(key) for key in alike[:3]} == {int(kernels.CACHED)}
    hand.finish()
    keys = hand.feed.keys[: hand.feed.so_far]
    assert sorted(hand.pairs.found) == expected(hand.store.keys, keys)


@pytest.mark.parametrize("rows", range(1, 8))
def test_any_number_of_row_numbers_is_cached(rows: int) -> None:
    """Up to four of them in values, more in records."""
    key, others = 7, list(range(1000, 1040))
    hand = ByHand([*others, *[key] * rows], settings(40_000, ROWS), MAX_TUPLES, narrow=True)
    while hand.state(key) != kernels.CACHED:
        hand.push(key, 30)
        hand.turn()
    tables = hand.join.tables
    (value,) = (number for number, found in keys_of(tables).items() if found == key)
    assert [row for row, *_ in records_of(tables, value)] == list(range(40, 40 + rows))
    form = tables.statuses[value] & int(kernels.FORM_MASK)
    assert (form == kernels.RECORDS) == (rows > kernels.MAX_INLINE)
    hand.finish()


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6])
def test_rows_that_change_in_number_or_order_leave_the_cache(rows: int) -> None:
    """The first row of the join value moves: as many are read as before, all others as before."""
    key = 7
    r_keys = list(range(1000, 1037))
    r_keys[: 4 * rows : 4] = [key] * rows
    hand = ByHand(r_keys, settings(40_000, ROWS), MAX_TUPLES, narrow=True)
    while hand.state(key) != kernels.CACHED:
        hand.push(key, 30)
        hand.turn()
    hand.cycle(key)  # to its end, so that a whole cycle begins
    assert hand.join.cache is not None
    broken, (moved_from, moved_to) = hand.join.cache.broken, (0, 1)
    hand.store.keys[moved_from], hand.store.keys[moved_to] = 3, key
    later = hand.feed.so_far
    hand.cycle(key)
    hand.cycle(key)
    assert hand.join.cache.broken == broken + 1
    for _ in range(6):
        hand.cycle(key)
    hand.finish()
    met = Counter(r_row for r_row, s_row in hand.pairs.found if s_row >= later + 30)
    assert met[moved_from] == 0
    assert {met[row] for row in (1, *range(4, 4 * rows, 4))} == {hand.feed.so_far - later - 30}


def test_a_cached_value_with_one_row_takes_ten_bytes_and_an_entry() -> None:
    rng = np.random.default_rng(5)
    store = ListStore(rng.permutation(np.arange(2000)).tolist(), narrow=True)
    feed = PushFeed(rng.integers(0, 400, 60_000).tolist())
    pairs, join = joined(store, feed, settings(60_000, 100))
    assert len(pairs.found) == 60_000
    assert join.details()["cached"]["values"] >= 400
    assert join.tables.records == 0
    values = len(join.tables.values)
    assert join.tables.components()["h_r"] == 10 * values


@pytest.mark.parametrize("seed", range(8))
def test_rows_that_stay_are_met_once_and_rows_that_change_never_twice(seed: int) -> None:
    """Thirty random joins of each seed, while some rows of R change their keys in every loop."""
    rng = np.random.default_rng(seed)
    for _ in range(30):
        _change_while_joining(rng)


def _change_while_joining(rng: np.random.Generator) -> None:
    distinct, rows = int(rng.integers(2, 14)), int(rng.integers(9, 70))
    r_keys = rng.integers(0, distinct, rows)
    volatile = np.flatnonzero(rng.random(rows) < rng.choice([0, 0.05, 0.3]))
    memory = rng.choice([12_000, 20_000, 40_000, 0])
    chosen = settings(
        int(memory) or None,
        ROWS,
        eviction_cycles=int(rng.integers(1, 9)),
        switching_factor=float(rng.choice([0.3, 1.0, 3.0])),
        filter_bits=int(rng.choice([0, 4])),
    )
    hand = ByHand(r_keys.tolist(), chosen, 900, narrow=bool(rng.random() < 0.7))
    held = [{int(key)} for key in r_keys]
    hot = rng.integers(0, distinct + 2, 3)
    while hand.feed.so_far < 899:
        key = rng.choice(hot) if rng.random() < 0.7 else rng.integers(0, distinct + 2)
        hand.push(int(key), int(rng.integers(1, 9)))
        hand.turn()
        if rng.random() < 0.02:
            hot = rng.integers(0, distinct + 2, 3)
        if len(volatile) and rng.random() < 0.1:
            row = int(rng.choice(volatile))
            hand.store.keys[row] = rng.integers(0, distinct + 2)
            held[row].add(int(hand.store.keys[row]))
    hand.finish()
    s_keys = hand.feed.keys[: hand.feed.so_far]
    assert max(Counter(hand.pairs.found).values(), default=1) == 1
    stay = np.setdiff1d(np.arange(rows), volatile)
    right = [(int(stay[r]), s) for r, s in expected(r_keys[stay].astype(np.uint64), s_keys)]
    assert sorted(pair for pair in hand.pairs.found if pair[0] in set(stay.tolist())) == right
    assert all(int(s_keys[s]) in held[r] for r, s in hand.pairs.found)
