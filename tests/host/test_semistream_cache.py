"""A join value is in the cache with all its rows or not at all, whatever comes in which order."""

from typing import Any

import numpy as np
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.host.semistream import ListStore, Pairs, PushFeed, expected, settings

from streamjoin.engines.kernels import semistream as kernels
from streamjoin.engines.semi.join import SemiStreamJoin
from streamjoin.engines.semi.reader import Stretch
from streamjoin.metrics import Meter

ROWS = 8
MOST_TUPLES = 4000


class CacheMachine(RuleBasedStateMachine):
    """Pushes tuples and turns the loop by hand."""

    @initialize(
        r_keys=st.lists(st.integers(0, 9), min_size=1, max_size=60),
        factor=st.sampled_from([0.5, 1.0, 2.0]),
        memory=st.sampled_from([12_000, 30_000, None]),
        eviction=st.integers(1, 6),
    )
    def begin(self, r_keys: list[int], factor: float, memory: int | None, eviction: int) -> None:
        self.store = ListStore(r_keys)
        self.feed = PushFeed([0] * MOST_TUPLES, arrived=0, live=True)
        self.pairs, meter = Pairs(), Meter()
        meter.start()
        chosen = settings(memory, ROWS, switching_factor=factor, eviction_cycles=eviction)
        self.join = SemiStreamJoin(self.store, self.feed, chosen, meter, self.pairs, carry=False)
        self.index = 0

    def turn(self) -> None:
        partitions = -(-len(self.store.keys) // ROWS)
        first = self.index * ROWS
        rows = self.store.read(first, min(first + ROWS, len(self.store.keys)))
        assert self.join.turn(Stretch(self.index, partitions, rows, 0))
        self.index = (self.index + 1) % partitions

    def waiting(self) -> bool:
        return self.join.tables.live > 0 or self.feed.so_far > self.join.tally.taken

    @rule(key=st.integers(0, 11), count=st.integers(1, 30))
    def arrive(self, key: int, count: int) -> None:
        upto = min(self.feed.so_far + count, MOST_TUPLES - 1)
        self.feed.keys[self.feed.so_far : upto] = key
        self.feed.so_far = upto

    @precondition(lambda self: hasattr(self, "join") and self.waiting())
    @rule(turns=st.integers(1, 40), key=st.integers(0, 11), each=st.integers(0, 12))
    def go_on(self, turns: int, key: int, each: int) -> None:
        for _ in range(turns):
            self.arrive(key, each)
            if self.waiting():
                self.turn()

    @invariant()
    def cached_values_have_all_their_rows(self) -> None:
        if not hasattr(self, "join"):
            return
        tables = self.join.tables
        values: Any = tables.values
        for value in np.flatnonzero(values[:, kernels.STATE] == kernels.CACHED).tolist():
            rows = self.records_of(value)
            assert rows == np.flatnonzero(self.store.keys == tables.value_keys[value]).tolist()

    @invariant()
    def every_value_has_one_entry_and_every_tuple_is_counted_once(self) -> None:
        if not hasattr(self, "join"):
            return
        numbers, arena, directory, value_keys, values = self.join.tables.shared[:5]
        keys, nodes = [], 0
        for entry in directory[directory != kernels.EMPTY]:
            place = int(entry & kernels.LOW)
            if entry & kernels.SPECIAL:
                assert values[place, kernels.STATE] != kernels.FREE
                keys.append(int(value_keys[place]))
                nodes += int(values[place, kernels.NODES])
            else:
                keys.append(int(arena[place]))
                nodes += int(arena[place + 2] & kernels.COUNT_MASK)
        assert len(keys) == len(set(keys)) == numbers[kernels.ENTRIES]
        assert nodes == self.join.tables.live
        used = int(np.count_nonzero(values[:, kernels.STATE] != kernels.FREE))
        assert used + self.join.tables.free_values == len(values)

    def records_of(self, value: int) -> list[int]:
        tables = self.join.tables
        arena, record_pages = tables.shared[1], tables.shared[7]
        first = int(tables.values[value, kernels.FIRST])
        found = []
        for number in range(first, first + int(tables.values[value, kernels.RECORDS])):
            page = int(record_pages[number // tables.page_records])
            within = number % tables.page_records * (tables.record_bytes // 8)
            found.append(int(arena[page * tables.page_words + within]))
        return found

    def teardown(self) -> None:
        if not hasattr(self, "join"):
            return
        while self.waiting():
            self.turn()
        keys = self.feed.keys[: self.feed.so_far]
        assert sorted(self.pairs.found) == expected(self.store.keys, keys)


TestCache = CacheMachine.TestCase
TestCache.settings = hypothesis_settings(max_examples=30, stateful_step_count=20, deadline=None)
