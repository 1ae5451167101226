"""Index-based window joins over IM-Tree and PIM-Tree: PIM-Tree, sections 3.2, 3.3 and 4.

A window's index is an immutable tree and mutable B+-trees, into which arriving tuples are inserted.
When these hold ``merge_ratio`` of the window they are merged into a new immutable tree, without
expired tuples. ``ibwj-im`` has one mutable tree; ``ibwj-pim`` has one for the key range of each
node of the immutable tree at ``insertion_depth``, each with a lock, so that threads work in
parallel.

The parallel join (section 4.1) takes tasks of ``task`` tuples from a common counter, keeps an edge
for each stream and propagates results in arrival order. The number of threads follows the work: a
batch has one for every four tasks, and a single thread is used where merges are small. Departures
from the study:

- a helper propagates the results of a batch during the next batch, instead of any idle thread; the
  helper also numbers the arrivals of the batch after that;
- a search that leaves a mutable tree continues in the next one by its number, so leaves are not
  linked across trees and last leaves need no flag;
- all threads insert the rows that waited for a merge, not the merging thread alone;
- a batch waits for its merge, so that a merge runs in parallel with one batch at most;
- with a single thread, joining stops during a merge.

Memory for each stream and window of W tuples: two immutable trees of 8.1 bytes a tuple (the next
merge writes to one of them), and 12 to 24 bytes a tuple in mutable trees, for ``merge_ratio`` W
tuples, plus a batch where threads share. Each mutable tree takes 8 bytes and, where threads share,
a cache line for its lock.
"""

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.base import Capabilities, Knob
from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.ibwj import BATCH, IndexJoin, Output, WindowIndex
from streamjoin.metrics import Meter

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from streamjoin.engines.kernels.trees.probing import Arrivals, Columns

Addresses = NDArray[np.uint64]
NO_ADDRESSES: Addresses = np.empty(0, dtype=np.uint64)
NO_CODES: Codes = np.empty(0, dtype=np.uint32)

MIN_MERGED = 256
"""Minimum tuples of a merge, however small the window: fewer are not worth the call."""

MIN_SHARED = 1 << 14
"""Minimum tuples of a merge for which threads share an index: for fewer, they would wait for one
another at merges, and a single thread is faster."""

TASKS_EACH = 4
"""Tasks of a batch for each thread that is woken up."""

MAX_DEPTH = 6
NEVER = (1 << 64) - 1
RATIOS = ("1/8", "1", "1/2", "1/4", "1/16", "1/32", "1/64", "1/128")

MERGE_RATIO = Knob("merge_ratio", "1/8", "Share of a window to merge at.", choices=RATIOS)
TASK = Knob("task", 32, "Arrivals that a thread takes at once.", 1, 1 << 10)


class _Thread:
    """State of one thread of a join: its position in a task, and its pairs."""

    def __init__(self, number: int, task: int) -> None:
        from streamjoin.engines.kernels.trees import mergetrees

        self.number = number
        words = int(mergetrees.PLAN) + task * int(mergetrees.PLAN_WORDS)
        self.state = np.zeros(words, dtype=np.uint64)
        self.output = Output()
        self.pairs: list[Codes] = [np.empty((2, 0), dtype=np.uint32)]

    def keep(self, matches: int) -> None:
        """Keep the pairs of the buffer until they are propagated."""
        from streamjoin.engines.kernels.trees import mergetrees

        self.pairs.append(self.output.room[:, :matches].copy())
        self.state[mergetrees.WRITTEN] += np.uint64(matches)


class MergeTreeIndex(WindowIndex):
    """IM-Trees (insertion depth 0) or PIM-Trees of both windows.

    Parameters
    ----------
    columns : Columns
        Index keys, ranges to probe, and the predicate's codes.
    live : tuple of int
        Maximum tuples that each window holds.
    ratio : Fraction
        Merge ratio.
    depth : int
        Insertion depth, at most the depth of the immutable tree's deepest inner nodes.
    task, batch : int
        Arrivals of a task, and maximum arrivals that are joined at once.
    threads : int
        Threads that join.
    """

    def __init__(
        self,
        columns: "Columns",
        live: tuple[int, int],
        *,
        ratio: Fraction,
        depth: int,
        task: int,
        batch: int,
        threads: int = 1,
    ) -> None:
        from streamjoin.engines.kernels.trees import btree, immutable, mergejoin, mergetrees, nodes

        self._join, self._state = mergejoin, mergetrees
        self._btree, self._immutable = btree, immutable
        self._columns, self._depth, self._task = columns, depth, task
        self._limits = [max(MIN_MERGED, int(ratio * tuples)) for tuples in live]
        if max(self._limits) < MIN_SHARED:
            threads = 1
        self._threads = [_Thread(number, task) for number in range(threads)]
        self._shared = threads > 1
        self._emitting: Future[None] | None = None
        # When the limit is reached, sharing threads may finish their tasks, and a batch may wait.
        max_entries = max(self._limits) + task + (2 * batch if self._shared else 0)
        trees = immutable.reserve(4, max(live))
        parts = min(nodes.NODE**depth, -(-max(live) // nodes.NODE) + 1)
        forest = btree.plant(2 * parts, 2, btree.leaves_for(max_entries, nodes.NODE // 2) + parts)
        locked = 2 * parts + 1 if self._shared else 0
        locks = np.zeros(locked * int(mergetrees.LOCK_WORDS), dtype=np.uint32)
        state = np.zeros(mergetrees.STATE_WORDS, dtype=np.uint64)
        self.index = mergetrees.MergeTrees(trees, forest, locks, state)
        self._expired = [0, columns.r.shape[1]]
        self._taken = [0, columns.r.shape[1]]
        for side in range(2):
            self._set(side, mergetrees.TREE, 2 * side)
            self._set(side, mergetrees.HELD, NEVER)
            self._set(side, mergetrees.LIMIT, self._limits[side])
            self._merge(side)  # of nothing, to compile the kernel before the measured time
            self._swap(side)

    def _set(self, side: int, word: np.uint64, value: int) -> None:
        address = self._state.SIDES + np.uint64(side) * self._state.SIDE_WORDS + word
        self.index.state[address] = value

    def _tree(self, side: int) -> int:
        words = self._state
        return int(self.index.state[words.SIDES + np.uint64(side) * words.SIDE_WORDS])

    def _entries(self, side: int) -> int:
        words = self._btree.REGION_WORDS
        return int(self.index.forest.counters[np.uint64(side) * words + self._btree.ENTRIES])

    def join(self, arrivals: "Arrivals", meter: Meter, crew: Crew) -> None:
        """Join arrivals and emit their pairs."""
        self.index.state[self._state.NEXT] = self.index.state[self._state.EDGE] = 0
        if self._shared:
            self._join_together(arrivals, meter, crew)
        else:
            self._join_alone(arrivals, meter)

    def _join_alone(self, arrivals: "Arrivals", meter: Meter) -> None:
        thread = self._threads[0]
        why = self._join.FULL
        while why != self._join.DONE:
            with meter.phase("probe"):
                why, matches = self._call(arrivals, thread)
            thread.output.emit(matches, meter)
            if why == self._join.FULL and not matches:
                thread.output.grow()
            elif why == self._join.MERGE:
                self._note(arrivals)
                for side in self._full():
                    with meter.phase("merge"):
                        self._merge(side)
                    self._swap(side)

    def _call(
        self,
        arrivals: "Arrivals",
        thread: _Thread,
        finished: Codes = NO_CODES,
        addresses: Addresses = NO_ADDRESSES,
        counts: Codes = NO_CODES,
    ) -> tuple[int, int]:
        return self._join.join(
            self._columns,
            arrivals,
            self.index,
            self._task,
            self._shared,
            thread.state,
            thread.number,
            finished,
            addresses,
            counts,
            thread.output.room,
        )

    def _full(self) -> list[int]:
        return [side for side in range(2) if self._entries(side) >= self._limits[side]]

    def _note(self, arrivals: "Arrivals") -> None:
        """Note which rows the arrivals taken so far have expired, and which are to be indexed."""
        taken = min(int(self.index.state[self._state.NEXT]), len(arrivals.rows))
        lasts = self._join.last_of_each(arrivals.rows, taken, self._columns.r.shape[1])
        for side, last in enumerate(lasts):
            if last >= 0:
                self._expired[side] = int(arrivals.expired[last])
                self._taken[side] = int(arrivals.rows[last]) + 1

    def _merge(self, side: int) -> None:
        """Build a new immutable tree beside the old one."""
        parts = len(self.index.forest.roots) // 2
        old = self._tree(side)
        self._immutable.merge(
            self.index.trees,
            old,
            old ^ 1,
            self.index.forest,
            side * parts,
            (side + 1) * parts,
            self._expired[side],
        )

    def _swap(self, side: int) -> None:
        """Replace the old immutable tree and the mutable trees by the new immutable tree."""
        words, immutable = self._state, self._immutable
        parts = len(self.index.forest.roots) // 2
        tree = self._tree(side) ^ 1
        self._btree.clear(self.index.forest, side, side * parts, (side + 1) * parts)
        depths = int(
            self.index.trees.shapes[np.uint64(tree) * immutable.SHAPE_WORDS + immutable.DEPTHS]
        )
        self._set(side, words.TREE, tree)
        self._set(side, words.DEPTH, min(self._depth, max(0, depths - 1)))

    def _join_together(self, arrivals: "Arrivals", meter: Meter, crew: Crew) -> None:
        words = self._state
        tasks = -(-len(arrivals.rows) // self._task)
        threads = self._threads[: max(1, -(-tasks // TASKS_EACH))]
        addresses = np.empty(len(arrivals.rows), dtype=np.uint64)
        counts = np.empty(len(arrivals.rows), dtype=np.uint32)
        finished = np.zeros(tasks, dtype=np.uint32)

        def work(thread: _Thread) -> None:
            why = self._join.FULL
            while why == self._join.FULL:
                crew.check()
                with meter.phase("probe"):
                    why, matches = self._call(arrivals, thread, finished, addresses, counts)
                if why == self._join.FULL and not matches:
                    thread.output.grow()
                elif matches:
                    thread.keep(matches)

        while True:
            if len(threads) > 1:
                crew.each(work, threads)
            else:
                work(threads[0])
            self._note(arrivals)
            full = self._full()
            if full:
                self._merge_beside(full[0], work, meter, crew)
                self._catch_up(full[0], arrivals)
            elif int(self.index.state[words.NEXT]) >= len(arrivals.rows):
                break
        self._propagate(addresses, counts, meter, crew)

    def _merge_beside(
        self, side: int, work: "Callable[[_Thread], None]", meter: Meter, crew: Crew
    ) -> None:
        """Merge in one thread while the others join without inserting (section 4.2)."""
        words, state = self._state, self.index.state
        self._set(side, words.FROZEN, 1)
        self._set(side, words.HELD, self._taken[side])
        for each in range(2):
            self._set(each, words.LIMIT, NEVER)

        def merge_or_work(thread: _Thread) -> None:
            if thread.number:
                work(thread)
                return
            try:
                with meter.phase("merge"):
                    self._merge(side)
            finally:
                state[words.STOP] = 1  # the others return after their current task

        crew.each(merge_or_work, self._threads)
        self._swap(side)
        state[words.STOP] = 0
        self._set(side, words.FROZEN, 0)
        for each in range(2):
            self._set(each, words.LIMIT, self._limits[each])

    def _catch_up(self, side: int, arrivals: "Arrivals") -> None:
        """Schedule the insertion of the rows that arrived during a merge."""
        words, state, waiting = self._state, self.index.state, self._taken[side]
        self._note(arrivals)
        state[words.PENDING] = state[words.PENDING_DONE] = waiting
        state[words.PENDING_END] = self._taken[side]
        if waiting == self._taken[side]:
            self._set(side, words.HELD, NEVER)

    def _propagate(self, addresses: Addresses, counts: Codes, meter: Meter, crew: Crew) -> None:
        """Emit the pairs of all threads in arrival order, in parallel with the next batch."""
        words = self._state
        written = [int(thread.state[words.WRITTEN]) for thread in self._threads]
        kept = [pairs for thread in self._threads for pairs in thread.pairs]
        bases = np.cumsum([0, *written[:-1]]).astype(np.uint64)
        for thread in self._threads:
            thread.pairs = [np.empty((2, 0), dtype=np.uint32)]
            thread.state[words.WRITTEN] = 0

        def emit() -> None:
            pairs = np.concatenate(kept, axis=1)
            ordered = np.empty_like(pairs)
            self._join.in_order(addresses, counts, bases, pairs, ordered)
            meter.emit(ordered[0], ordered[1])

        self.finish()  # at most one batch's pairs wait
        self._emitting = crew.beside(emit)

    def finish(self) -> None:
        """Wait until all pairs are emitted."""
        if self._emitting is not None:
            Crew.result(self._emitting)
            self._emitting = None

    @property
    def bytes(self) -> int:
        """Bytes of the entries, the nodes in use, the locks and the roots."""
        index = self.index
        roots = index.forest.roots.nbytes + index.forest.heights.nbytes
        return (
            self._immutable.bytes_in_use(index.trees)
            + self._btree.bytes_in_use(index.forest)
            + index.locks.nbytes
            + roots
        )


class MergeTreeJoin(IndexJoin):
    """A join over merge trees; a subclass sets the depth at which they take insertions."""

    capabilities: ClassVar[Capabilities] = replace(IndexJoin.capabilities, parallel=True)

    def index(self, columns: "Columns", live: tuple[int, int], job: Job) -> WindowIndex:
        """Make a merge tree for each window."""
        return MergeTreeIndex(
            columns,
            live,
            ratio=Fraction(str(job.knobs["merge_ratio"])),
            depth=int(job.knobs.get("insertion_depth", 0)),
            task=int(job.knobs["task"]),
            batch=int(job.knobs["batch"]),
            threads=job.threads,
        )


class ImTreeJoin(MergeTreeJoin):
    """Index-based window join over IM-Trees: a mutable tree, merged into an immutable one."""

    name: ClassVar[str] = "ibwj-im"
    knobs: ClassVar[tuple[Knob, ...]] = (MERGE_RATIO, TASK, BATCH)


class PimTreeJoin(MergeTreeJoin):
    """Index-based window join over PIM-Trees: IM-Trees whose mutable part is partitioned."""

    name: ClassVar[str] = "ibwj-pim"
    knobs: ClassVar[tuple[Knob, ...]] = (
        MERGE_RATIO,
        Knob("insertion_depth", 2, "Depth whose nodes have a mutable tree each.", 0, MAX_DEPTH),
        TASK,
        BATCH,
    )
