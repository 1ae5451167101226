"""A join value is in the cache with all its rows or not at all, whatever comes in which order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.host.semistream import (
    ByHand,
    ListStore,
    PushFeed,
    expected,
    extras_of,
    joined,
    keys_of,
    mixed_of,
    records_of,
    settings,
)

from streamjoin.engines.kernels.semi import layout as kernels
from streamjoin.engines.kernels.semi import migration
from streamjoin.engines.semi import tables as semi_tables
from streamjoin.engines.semi.settings import MIN_TABLE_BYTES, MIN_TABLE_TUPLES

ROWS = 8
MAX_TUPLES = 4000


class CacheMachine(RuleBasedStateMachine):
    """Pushes tuples and turns the loop by hand."""

    @initialize(
        r_keys=st.lists(st.integers(0, 9), min_size=1, max_size=60),
        factor=st.sampled_from([0.5, 1.0, 2.0]),
        memory=st.sampled_from([12_000, 30_000, None]),
        eviction=st.integers(1, 6),
        first_values=st.sampled_from([1, 4, 16]),
        narrow=st.booleans(),
    )
    def begin(
        self,
        r_keys: list[int],
        factor: float,
        memory: int | None,
        eviction: int,
        first_values: int,
        narrow: bool,
    ) -> None:
        self.first_values, semi_tables.FIRST_VALUES = semi_tables.FIRST_VALUES, first_values
        chosen = settings(memory, ROWS, switching_factor=factor, eviction_cycles=eviction)
        self.hand = ByHand(r_keys, chosen, MAX_TUPLES, narrow)
        self.join, self.store = self.hand.join, self.hand.store

    @rule(key=st.integers(0, 11), count=st.integers(1, 30))
    def arrive(self, key: int, count: int) -> None:
        self.hand.push(key, count)

    @precondition(lambda self: hasattr(self, "join") and self.hand.waiting())
    @rule(turns=st.integers(1, 40), key=st.integers(0, 11), each=st.integers(0, 12))
    def go_on(self, turns: int, key: int, each: int) -> None:
        for _ in range(turns):
            self.hand.push(key, each)
            if self.hand.waiting():
                self.hand.turn()

    @invariant()
    def cached_values_have_all_their_rows(self) -> None:
        if not hasattr(self, "join"):
            return
        tables = self.join.tables
        keys = keys_of(tables)
        for value in np.flatnonzero(tables.states == kernels.CACHED).tolist():
            rows = [row for row, *_ in records_of(tables, value)]
            assert rows == np.flatnonzero(self.store.keys == keys[value]).tolist()

    @invariant()
    def every_value_has_one_entry_and_every_tuple_is_counted_once(self) -> None:
        if not hasattr(self, "join"):
            return
        tables = self.join.tables
        numbers, arena, directory = tables.shared[:3]
        value_keys, nodes, keys = keys_of(tables), 0, []
        for entry in directory[directory != kernels.EMPTY]:
            if entry & kernels.SPECIAL:
                keys.append(value_keys[int(entry & kernels.VALUE_MASK)])
                continue
            address = int(entry & kernels.LOW)
            keys.append(int(arena[address]))
            count = int(arena[address + 2])
            nodes += count & int(kernels.COUNT_MASK)
            if count >> int(kernels.VALUE_SHIFT):
                value = (count >> int(kernels.VALUE_SHIFT)) - 1
                assert tables.values[value, kernels.HASH] == mixed_of(keys[-1]) & 0xFFFFFFFF
        used = [each for value in value_keys for each in (value, *extras_of(tables, value))]
        assert len(keys) == len(set(keys)) == numbers[kernels.ENTRIES]
        assert nodes == tables.live
        assert sorted(used) == np.flatnonzero(tables.states != kernels.FREE).tolist()
        assert len(used) + tables.free_values == len(tables.values)

    @invariant()
    def every_page_is_in_one_place(self) -> None:
        if not hasattr(self, "join"):
            return
        tables = self.join.tables
        numbers, arena = tables.shared[:2]
        queue, record_pages, free_pages = tables.shared[5:8]
        indices = int(numbers[kernels.FIRST_PAGE]) + np.arange(tables.node_pages)
        pages = [
            *queue[indices % len(queue)].tolist(),
            *record_pages[: tables.record_pages_used].tolist(),
            *free_pages[: tables.free_pages].tolist(),
        ]
        assert len(pages) == len(set(pages))
        assert set(range(tables.pages)) <= set(pages)
        assert all(page < len(arena) // tables.page_words for page in pages)
        assert (free_pages[: tables.free_pages] < tables.pages).all()

    def teardown(self) -> None:
        if not hasattr(self, "join"):
            return
        semi_tables.FIRST_VALUES = self.first_values
        self.hand.finish()
        keys = self.hand.feed.keys[: self.hand.feed.so_far]
        assert sorted(self.hand.pairs.found) == expected(self.store.keys, keys)


TestCache = CacheMachine.TestCase
TestCache.settings = hypothesis_settings(max_examples=30, stateful_step_count=20, deadline=None)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 3, 6])
def test_a_row_that_is_new_is_met_by_all_that_come_after_it_was_read(
    rows: int, narrow: bool
) -> None:
    """Whether its join value was absent or cached until then."""
    key, r_keys = 7, list(range(1000, 1037))
    hand = ByHand([*r_keys, *[key] * rows], settings(30_000, ROWS), 4000, narrow)
    known = kernels.CACHED if rows else kernels.ABSENT
    while hand.state(key) != known:
        hand.push(key, 40)
        hand.turn()
    hand.cycle(key)
    new = 3
    hand.store.keys[new] = key
    hand.push(key, 1)
    hand.turn()
    later = hand.feed.so_far
    for _ in range(20):
        hand.cycle(key)
    hand.finish()
    met = {s_row for r_row, s_row in hand.pairs.found if r_row == new}
    assert set(range(later, hand.feed.so_far)) <= met
    assert len(hand.pairs.found) == len(set(hand.pairs.found))


@pytest.mark.parametrize(("rows", "narrow"), [(3, False), (2, True), (3, True), (6, True)])
def test_a_row_that_has_left_is_not_met_by_what_comes_cycles_later(rows: int, narrow: bool) -> None:
    """It is the last one of its join value: all the others are where they were."""
    key, r_keys = 7, list(range(1000, 1037))
    hand = ByHand([*r_keys, *[key] * rows], settings(30_000, ROWS), 4000, narrow)
    while hand.state(key) != kernels.CACHED:
        hand.push(key, 40)
        hand.turn()
    gone = len(hand.store.keys) - 1
    hand.store.keys[gone] = 2000
    for _ in range(3):
        hand.cycle(key)
    later = hand.feed.so_far
    for _ in range(9):
        hand.cycle(key)
    hand.finish()
    met = [r_row for r_row, s_row in hand.pairs.found if s_row >= later]
    assert gone not in met
    others = {met.count(row) for row in range(gone - rows + 1, gone)}
    assert others == {hand.feed.so_far - later}
    assert hand.feed.so_far > later


def test_the_table_of_values_grows_where_most_of_them_stay_and_within_the_budget() -> None:
    rng = np.random.default_rng(14)
    store = ListStore(rng.permutation(np.arange(3000)).tolist())
    hot, even = rng.integers(0, 150, 60_000), rng.integers(0, 3000, 60_000)
    sizes = []
    for keys in (hot, even):
        pairs, join = joined(store, PushFeed(keys.tolist()), settings(120_000, 100))
        assert len(pairs.found) == len(set(pairs.found)) == len(keys)
        assert join.tables.nbytes + 2 * 100 * store.row_bytes <= 120_000
        sizes.append((len(join.tables.values), join.tables.pages))
    (hot_values, hot_pages), (even_values, even_pages) = sizes
    assert hot_values >= 150
    assert even_values * kernels.VALUE_BYTES < 480
    assert hot_pages < even_pages


def test_a_directory_that_is_enlarged_again_and_again_loses_no_entry() -> None:
    rng = np.random.default_rng(16)
    hand = ByHand(rng.integers(0, 300, 200).tolist(), settings(30_000, ROWS), MAX_TUPLES)
    while hand.feed.so_far < MAX_TUPLES - 1:
        hand.push(int(rng.zipf(1.5)) % 400, 7)
        hand.turn()
        if rng.random() < 0.2:
            before = hand.join.tables.shared.directory
            entries = before[before != kernels.EMPTY].tolist()
            hand.join.tables._add_entries(int(rng.integers(0, 40)))
            after = hand.join.tables.shared.directory
            assert after[after != kernels.EMPTY].tolist() == entries
    hand.finish()
    keys = hand.feed.keys[: hand.feed.so_far]
    assert sorted(hand.pairs.found) == expected(hand.store.keys, keys)


def test_a_value_that_needs_very_many_tuples_to_pass_is_cached_once_it_has_them() -> None:
    """As it must with wide rows, narrow tuples and much hysteresis."""
    hot, each = 3, 2 * migration.MAX_NODES
    hand = ByHand(list(range(40)), settings(10_000_000, ROWS, switching_factor=2500.0), 60 * each)
    for _ in range(7):  # nominated in the fourth, loaded in the fifth
        hand.cycle(hot, each)
    assert hand.state(hot) == kernels.CACHED


def test_values_leave_room_for_stream_tuples_however_wide_those_are() -> None:
    """A wide tuple takes more than a value does: there are more values than places for tuples."""
    rng = np.random.default_rng(15)
    store, feed = ListStore(list(range(60)) * 3), PushFeed(rng.integers(0, 60, 12_000).tolist())
    feed.words, feed.payload = 49, np.zeros(49, dtype=np.uint64)
    pairs, join = joined(store, feed, settings(24_000, 30, switching_factor=0.1))
    assert sorted(pairs.found) == expected(store.keys, feed.keys)
    assert len(join.tables.values) > join.tables.pages


@hypothesis_settings(deadline=None)
@given(
    wide=st.sampled_from([0, 1, 5, 13, 123, 1000]),
    kept=st.sampled_from([0, 1, 13, 40, 124, 1000]),
    times=st.floats(1, 30),
    caching=st.booleans(),
)
def test_tables_of_any_widths_stay_within_any_budget_that_is_accepted(
    wide: int, kept: int, times: float, caching: bool
) -> None:
    widest = 8 * max(kernels.NODE_HEADER + wide, 1 + kept)
    budget = int((MIN_TABLE_BYTES + MIN_TABLE_TUPLES * widest) * times)
    tables = semi_tables.Tables(wide, kept, budget, caching)
    assert tables.nbytes <= budget
    assert tables.pages >= 8
