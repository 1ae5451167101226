"""A relation in memory that can fail, a stream that is pushed, and what their join must give."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.semi import layout as kernels
from streamjoin.engines.semi.join import SemiStreamJoin
from streamjoin.engines.semi.reader import CyclePartition
from streamjoin.engines.semi.settings import Settings
from streamjoin.engines.semi.tables import Tables
from streamjoin.metrics import Meter
from streamjoin.relations import Partition, Projection, Store
from streamjoin.relations.base import packed

Words = NDArray[np.uint64]


class ListStore(Store):
    """Keys in memory; every row's payload is its number and a version, or nothing."""

    kind = "list"

    def __init__(self, keys: list[int], narrow: bool = False) -> None:
        self.narrow = narrow
        self.keys = np.array(keys, dtype=np.uint64)
        self.versions = np.zeros(len(keys), dtype=np.uint64)
        self.before_read: Callable[[int], None] = lambda first: None
        self.opened = 0
        super().__init__(Path("list"), Projection("key", () if narrow else ("row", "version")))

    def _open(self) -> None:
        self.opened += 1
        self.dtype = packed([] if self.narrow else [("row", "uint64"), ("version", "uint64")])

    @property
    def positions(self) -> int:
        return len(self.keys)

    def read(self, first: int, end: int) -> Partition:
        self.before_read(first)
        rows = np.arange(first, end, dtype=np.uint64)
        if self.narrow:
            return Partition(self.keys[first:end].copy(), rows, np.zeros(0, np.uint64), 0, 0)
        payload = np.stack([rows, self.versions[first:end]], axis=1).reshape(-1)
        return Partition(self.keys[first:end].copy(), rows, payload, 0, 2)

    def close(self) -> None:
        pass


class PushFeed:
    """Stream tuples of which the test says how many have arrived."""

    def __init__(self, keys: list[int], arrived: int | None = None, live: bool = False) -> None:
        self.keys = np.array(keys, dtype=np.uint64)
        self.payload = np.zeros(1, dtype=np.uint64)
        self.words = 1
        self.live = live
        self.so_far = len(keys) if arrived is None else arrived

    def arrived(self) -> int:
        return self.so_far

    def wait(self, taken: int) -> None:
        raise AssertionError(f"nobody comes after {taken}")


class Pairs:
    """Collects what a join emits."""

    def __init__(self) -> None:
        self.found: list[tuple[int, int]] = []

    def __call__(self, r_rows: NDArray[np.uint32], s_rows: NDArray[np.uint32]) -> None:
        self.found += zip(r_rows.tolist(), s_rows.tolist(), strict=True)


class ByHand:
    """A join of which a test pushes the tuples and turns the loop.

    Parameters
    ----------
    r_keys : list of int
        Keys of R.
    chosen : Settings
        How.
    max_tuples : int
        Stream tuples at most.
    narrow : bool
        Whether of R's rows only their numbers are kept.
    """

    def __init__(
        self, r_keys: list[int], chosen: Settings, max_tuples: int, narrow: bool = False
    ) -> None:
        self.store = ListStore(r_keys, narrow)
        self.feed = PushFeed([0] * max_tuples, arrived=0, live=True)
        self.pairs, meter = Pairs(), Meter()
        meter.start()
        self.join = SemiStreamJoin(self.store, self.feed, chosen, meter, self.pairs)
        self._rows, self._max_tuples = chosen.partition_rows, max_tuples
        self._index, self._partitions = 0, 0

    def push(self, key: int, count: int) -> None:
        """Let tuples of one key arrive; one is kept back, so that the stream does not end."""
        upto = min(self.feed.so_far + count, self._max_tuples - 1)
        self.feed.keys[self.feed.so_far : upto] = key
        self.feed.so_far = upto

    def turn(self) -> None:
        """One loop, with the partition that comes next."""
        if self._index == 0:
            self._partitions = -(-len(self.store.keys) // self._rows)
        first = self._index * self._rows
        rows = self.store.read(first, min(first + self._rows, len(self.store.keys)))
        assert self.join.turn(CyclePartition(self._index, self._partitions, rows, 0))
        self._index = (self._index + 1) % self._partitions

    def cycle(self, key: int, each: int = 1) -> None:
        """Loops to the end of this cycle; before each so many tuples of a key arrive."""
        self.push(key, each)
        self.turn()
        while self._index:
            self.push(key, each)
            self.turn()

    def waiting(self) -> bool:
        """Whether there is anything to join."""
        return self.join.tables.live > 0 or self.feed.so_far > self.join.tally.taken

    def finish(self) -> None:
        """Loops until nothing waits."""
        while self.waiting():
            self.turn()

    def state(self, key: int) -> int:
        """State of a join value; FREE where it has none of its own."""
        tables = self.join.tables
        return next(
            (int(tables.states[value]) for value, found in keys_of(tables).items() if found == key),
            int(kernels.FREE),
        )


MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)
ALL = (1 << 64) - 1


def key_of(mixed: int) -> int:
    """The key of which this is the hash: the hash's steps backwards."""
    last = mixed * pow(MULTIPLIERS[1], -1, 1 << 64) & ALL
    last ^= last >> 29 ^ last >> 58
    first = last * pow(MULTIPLIERS[0], -1, 1 << 64) & ALL
    return first ^ first >> 32


def mixed_of(key: int) -> int:
    """The hash of a key."""
    first = (key ^ key >> 32) * MULTIPLIERS[0] & ALL
    return (first ^ first >> 29) * MULTIPLIERS[1] & ALL


def keys_of(tables: Tables) -> dict[int, int]:
    """Join value of every value that the directory leads to."""
    keys: dict[int, int] = {}
    _, arena, directory = tables.shared[:3]
    for entry in directory[directory != kernels.EMPTY].tolist():
        if entry & int(kernels.SPECIAL):
            value = entry & int(kernels.VALUE_MASK)
            upper = (entry >> 32 & (1 << 30) - 1) << 34 | (entry >> 30 & 3) << 32
            keys[value] = key_of(upper | int(tables.values[value, kernels.HASH]))
        else:
            key, _, count = arena[entry & int(kernels.LOW) :][:3].tolist()
            if count >> int(kernels.VALUE_SHIFT):
                keys[(count >> int(kernels.VALUE_SHIFT)) - 1] = key
    return keys


def extras_of(tables: Tables, value: int) -> list[int]:
    """Extra values of a value, from the first to the last."""
    if tables.statuses[value] & int(kernels.FORM_MASK) != int(kernels.CHAIN):
        return []
    chain = [int(tables.values[value, kernels.NUMBER])]
    while not tables.statuses[chain[-1]] & int(kernels.LAST_EXTRA):
        chain.append(int(tables.values[chain[-1], kernels.NUMBER]))
    return chain


def cached_records(tables: Tables) -> list[list[int]]:
    """Records of all values in the cache: row number and payload words."""
    joined_here = int(kernels.STATE_MASK | kernels.BROKEN)
    chosen = np.flatnonzero((tables.statuses & joined_here) == int(kernels.CACHED))
    return [record for value in chosen.tolist() for record in records_of(tables, value)]


def records_of(tables: Tables, value: int) -> list[list[int]]:
    """Rows of a value in the cache: row number and payload words."""
    numbers, arena, record_pages = tables.numbers, tables.shared.arena, tables.shared.record_pages
    number, words = int(tables.values[value, kernels.NUMBER]), int(numbers[kernels.RECORD_WORDS])
    if tables.statuses[value] & int(kernels.FORM_MASK) != int(kernels.RECORDS):
        extras = extras_of(tables, value)
        rows = [int(tables.values[extra, kernels.HASH]) for extra in extras]
        return [
            [row] for row in (*rows, int(tables.values[(extras or [value])[-1], kernels.NUMBER]))
        ]
    records: list[list[int]] = []
    while True:
        page = int(record_pages[number // tables.page_records])
        at = page * tables.page_words + number % tables.page_records * words
        head, *payload = arena[at : at + words].tolist()
        records.append([head & int(kernels.LOW), *payload])
        if head & int(kernels.LAST):
            return records
        number += 1


def joined(store: Store, feed: PushFeed, settings: Settings) -> tuple[Pairs, SemiStreamJoin]:
    """Run a join to its end."""
    pairs, meter = Pairs(), Meter()
    meter.start()
    join = SemiStreamJoin(store, feed, settings, meter, pairs)
    try:
        join.run()
    finally:
        meter.stop()
    return pairs, join


def expected(r_keys: Words, s_keys: Words) -> list[tuple[int, int]]:
    """The plain double loop."""
    rows = {int(key): np.flatnonzero(r_keys == key).tolist() for key in np.unique(s_keys)}
    return sorted((r, s) for s, key in enumerate(s_keys.tolist()) for r in rows[key])


def settings(memory_bytes: int | None = 40_000, rows: int = 16, **more: Any) -> Settings:
    """Small, so that every boundary is met often."""
    return Settings(memory_bytes, rows, **{"caching": True, "filter_rows": 300, **more})


def hang(seconds: float) -> Callable[[int], None]:
    """A read that takes that long once it gets to the second partition."""
    return lambda first: time.sleep(seconds if first else 0)
