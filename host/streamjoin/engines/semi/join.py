"""The loop of MESHJOIN and SSBJ: a chunk of the stream, a partition of R, the oldest chunk out.

MESHJOIN as in the SSBJ paper's section 2.2: every chunk of stream tuples stays for one cycle
through R, chunks are staggered, and a chunk's size is fixed when it is made. SSBJ (algorithm 1)
probes the cache first and migrates join values between two cycles.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.semi import expiry, steps
from streamjoin.engines.kernels.semi.layout import (
    AT,
    FILTER_WORDS,
    FROM_CACHE,
    FULL_OUTPUT,
    MISSED,
    NEXT,
    NO_ENTRY,
    NO_PAGE,
    NODE_HEADER,
    PAGE_NODES,
    POSITION,
    QUOTA,
    REJECTED,
    WITHIN,
)
from streamjoin.engines.semi.cache import NO_VALUES, Cache
from streamjoin.engines.semi.cost import Loop
from streamjoin.engines.semi.filter import KeyFilter, filter_words
from streamjoin.engines.semi.layout import WORD_BYTES
from streamjoin.engines.semi.reader import CyclePartition, Reader
from streamjoin.engines.semi.settings import Feed, Settings
from streamjoin.engines.semi.tables import NO_LIMIT, Tables
from streamjoin.engines.semi.tally import Tally, Timed, service_rate, tuples_per_cycle
from streamjoin.errors import EngineError
from streamjoin.metrics import Meter
from streamjoin.relations import Store

LOOP_TUPLES = 1 << 18
"""Maximum stream tuples of a loop, which bounds the delay of results and of the partition."""

OUTPUT_PAIRS = 1 << 17
MIN_ROOM_PAIRS = 1 << 13
RESERVE_EVERY = 16
"""Times in a cycle that the pages which the cache will need are counted."""

MAX_POINTS = 512

Uint32s = NDArray[np.uint32]
Sink = Callable[[Uint32s, Uint32s], None]


class SemiStreamJoin:
    """Joins a stream with a store.

    Parameters
    ----------
    store : Store
        R.
    feed : Feed
        S.
    settings : Settings
        Options.
    meter : Meter
        Clock and phases.
    sink : callable
        Called with the rows of R and of S of pairs.
    """

    def __init__(
        self,
        store: Store,
        feed: Feed,
        settings: Settings,
        meter: Meter,
        sink: Sink,
    ) -> None:
        self._store, self._feed, self._settings = store, feed, settings
        self._meter, self._sink = meter, sink
        node_bytes = (NODE_HEADER + feed.words) * WORD_BYTES
        table_bytes = settings.table_bytes(store, node_bytes)
        bits = settings.filter_bits if settings.caching else 0
        words = filter_words(settings.filter_rows, bits, table_bytes)
        self.tables = Tables(feed.words, store.payload_words, table_bytes, settings.caching, words)
        self.filter = KeyFilter(self.tables)
        self.cache = (
            Cache(self.tables, settings.switching_factor, settings.eviction_cycles)
            if settings.caching
            else None
        )
        self.tally = Tally()
        self._chunks: deque[tuple[tuple[int, int], int]] = deque()
        self._reserved_pages = 0
        self._left_over = 0.0
        self._cycle = 0
        self._out_r, self._out_s = _new_output()

    def run(self) -> None:
        """Join until the stream has ended and its last tuple has seen all of R."""
        reader = Reader(self._store, self._settings.partition_rows, self._settings.deadline_s)
        try:
            while self.turn(self._wait_for(reader)):
                pass
        finally:
            reader.close()

    def turn(self, partition: CyclePartition) -> bool:
        """Do one loop with the next partition; return False if nothing is left to do."""
        self._shed()
        if self.tables.live == 0:
            while self._feed.arrived() == self._taken:
                if self._taken == len(self._feed.keys):
                    return False
                self.filter.pause()
                self._feed.wait(self._taken)
        if partition.index == 0:
            self._new_cycle()
        here = (self._cycle, partition.index)
        with self._timed("expire"):
            self._expire_before((self._cycle - 1, partition.index))
        if (
            self.cache is not None
            and self.tally.loops % max(1, partition.partitions // RESERVE_EVERY) == 0
        ):
            self._reserved_pages = self.cache.wanted_pages()
        before = self.tables.live
        with self._timed("cache"), self._meter.phase("build_or_sort"):
            self._take(partition.partitions)
        if self.tables.live > before:
            self._chunks.append((here, int(self.tables.numbers[NEXT])))
        with self._timed("disk"), self._meter.phase("probe"):
            self._probe(partition)
        self._count(partition)
        return True

    @property
    def _taken(self) -> int:
        return self.tally.taken

    def _wait_for(self, reader: Reader) -> CyclePartition:
        with self._timed("wait"), self._meter.phase("wait"):
            partition = reader.next()
        self.tally.read_ns += partition.read_ns
        return partition

    def _new_cycle(self) -> None:
        self._cycle += 1
        self.tally.cycles = self._cycle
        if self.cache is not None:
            with self._timed("migrate"):
                self.tables.reclaim_pages()
                self.filter.new_cycle(self.tally.partitions)
                self.cache.new_cycle()
        numbers = self.tables.numbers
        records = float(self.cache.counts()["records"]) if self.cache is not None else 0.0
        point = [self._meter.now_us(), float(self._taken), float(numbers[FROM_CACHE]), records]
        self.tally.curve.append(point)
        self.tally.cycle_taken.append(self._taken)
        if len(self.tally.curve) > MAX_POINTS:
            self.tally.curve = self.tally.curve[::2]

    def _expire_before(self, entered: tuple[int, int]) -> None:
        """Delete chunks that entered at or before that loop: they have met every partition."""
        upto = None
        while self._chunks and self._chunks[0][0] <= entered:
            _, upto = self._chunks.popleft()
        if upto is not None:
            start_uses = self.cache.start_uses if self.cache is not None else NO_VALUES
            expiry.expire(upto, start_uses, self.tables.shared)

    def _quota(self, partitions: int) -> int:
        """Return the tuples that H_S may take now: the chunk's size."""
        tables = self.tables
        if tables.grows:
            return NO_LIMIT
        page_nodes = int(tables.numbers[PAGE_NODES])
        free = max(0, tables.free_pages - self._reserved_pages) * page_nodes
        # A chunk stays for all partitions, and the next one enters before it expires. The fraction
        # of a tuple is carried over to the next chunk: with a small budget it is a large part.
        exact = (tables.live + free) / (partitions + 1) + self._left_over
        share = max(1, int(exact))
        self._left_over = max(0.0, exact - share)
        return max(share, free // 2) if self._feed.live else share

    def work(self) -> Loop:
        """Return the average work of a loop."""
        tally, numbers = self.tally, self.tables.numbers
        loops = max(1, tally.loops)
        return Loop(
            tally.rows / loops,
            self._store.read_bytes,
            float(numbers[FROM_CACHE] + numbers[MISSED] + numbers[REJECTED]) / loops,
            float(numbers[NEXT]) / loops,
            tally.pairs / loops,
            tally.cached_pairs / loops,
        )

    def _take(self, partitions: int) -> None:
        tables, feed, numbers = self.tables, self._feed, self.tables.numbers
        end = min(feed.arrived(), self._taken + LOOP_TUPLES)
        numbers[QUOTA] = min(NO_LIMIT, int(numbers[NEXT]) + self._quota(partitions))
        numbers[POSITION], numbers[WITHIN] = self._taken, 0
        while True:
            pairs, status = steps.take(
                feed.keys, end, 0, feed.payload, tables.shared, self._out_r, self._out_s
            )
            self._emit(pairs)
            self.tally.cached_pairs += pairs
            self.tally.taken = int(numbers[POSITION])
            if status in {NO_PAGE, NO_ENTRY} and tables.grows:
                tables.grow()
            elif status != FULL_OUTPUT:
                break
        if status in {NO_PAGE, NO_ENTRY} and tables.live == 0:
            raise EngineError(
                f"the budget of {self._settings.memory_bytes} bytes is full of cached rows and "
                "holds no stream tuple: give more memory"
            )

    def _probe(self, partition: CyclePartition) -> None:
        numbers, rows = self.tables.numbers, partition.rows
        numbers[POSITION], numbers[WITHIN], numbers[AT] = 0, 0, 0
        status = FULL_OUTPUT
        while status == FULL_OUTPUT:
            pairs, status = steps.probe(
                rows.keys,
                rows.rows,
                rows.payload,
                rows.first,
                rows.stride,
                self.tables.shared,
                self._out_r,
                self._out_s,
            )
            self._emit(pairs)
            self.tally.pairs += pairs

    def _shed(self) -> None:
        """Drop and count the oldest waiting tuples beyond the limit."""
        waiting = self._feed.arrived() - self._taken
        self.tally.max_waiting = max(self.tally.max_waiting, waiting)
        limit = self._settings.shed_beyond
        if limit and waiting > limit:
            self.tally.shed += waiting - limit
            self.tally.taken += waiting - limit

    def _emit(self, pairs: int) -> None:
        """Pass on the pairs that a kernel wrote; their memory is not written again."""
        if pairs:
            self._sink(self._out_r[:pairs], self._out_s[:pairs])
            self._out_r, self._out_s = self._out_r[pairs:], self._out_s[pairs:]
        if len(self._out_r) < MIN_ROOM_PAIRS:
            self._out_r, self._out_s = _new_output()

    def _timed(self, step: str) -> Timed:
        return Timed(self._meter, self.tally.step_ns, step)

    def _count(self, partition: CyclePartition) -> None:
        tally = self.tally
        tally.loops += 1
        tally.rows += len(partition.rows)
        tally.partitions = partition.partitions
        buffers = 2 * self._settings.partition_rows * self._store.read_bytes
        components = {**self.tables.components(), "buffers": buffers}
        total = sum(components.values())
        used = total - components["free"]
        if used > sum(tally.components.values()) - tally.components.get("free", 0):
            tally.components = components
        if total > tally.max_bytes:
            self._meter.holds(total - tally.max_bytes)
            tally.max_bytes = total

    def details(self) -> dict[str, Any]:
        """Return the metrics of a semi-stream join."""
        numbers, tally = self.tables.numbers, self.tally
        metrics = {
            "service_rate_tuples_per_s": service_rate(tally.curve, tally.taken),
            "tuples_per_cycle": tuples_per_cycle(tally.cycle_taken, tally.taken),
            "cycles": tally.cycles,
            "loops": tally.loops,
            "partitions": tally.partitions,
            "partition_rows": self._settings.partition_rows,
            "loop_us": {
                step: spent / 1e3 / max(1, tally.loops) for step, spent in tally.step_ns.items()
            },
            "work": asdict(self.work()),
            "read_us": tally.read_ns / 1e3 / max(1, tally.loops),
            "memory_bytes": dict(tally.components),
            "budget_bytes": self._settings.memory_bytes,
            "cache_share": float(numbers[FROM_CACHE] + numbers[MISSED]) / max(1, tally.taken),
            "shed_tuples": tally.shed,
            "most_waiting_tuples": tally.max_waiting,
        }
        if self.cache is not None:
            cache = self.cache
            metrics |= {
                "cached": cache.counts(),
                "switched_values": cache.switched,
                "evicted_values": cache.evicted,
                "broken_values": cache.broken,
                "filter": {
                    "bytes": int(numbers[FILTER_WORDS]) * WORD_BYTES,
                    "share": float(numbers[REJECTED]) / max(1, tally.taken),
                    "used_cycles": self.filter.used_cycles,
                    "cleared": self.filter.cleared,
                },
            }
        return metrics


def _new_output() -> tuple[Uint32s, Uint32s]:
    return np.empty(OUTPUT_PAIRS, dtype=np.uint32), np.empty(OUTPUT_PAIRS, dtype=np.uint32)
