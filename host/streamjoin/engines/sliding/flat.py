"""Index-based window join over a flat index: blocks of a cache line of keys and one of rows.

The index of a window is a map from a code to a block, and blocks of 15 entries. An arriving tuple
looks up one block, or a few neighbours, of the opposite window with a vector comparison of keys and
rows, and overwrites an expired entry of a block of its own window. Nothing is deleted, merged or
locked: an entry whose row is not in the window is skipped exactly. The blocks that arrivals need
are prefetched ahead. For an equality the map is a hash. For a band it keeps the order of codes and
is cut so that blocks are equally full, from a histogram of a sample (PIM-Tree's immutable tree does
that by sorting). When look-ups scan more blocks than their matches need, as the keys have moved, or
the chains have used up their blocks, the map is cut again and the live rows are inserted anew.

With several threads each owns a range of each index's blocks for a batch. All run one kernel a
batch: plan, join, and restore the order of arrival
(:mod:`~streamjoin.engines.kernels.flat.sharing`).

Memory for each stream and window of W tuples: 18 bytes a tuple, chains at most as much again, and
36 bytes an arrival of a batch.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamjoin.engines.arrivals import batches, max_live
from streamjoin.engines.base import Capabilities, Engine, Knob, Report, without_numba
from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.engines.encode import prepare_keys
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.flatcolumns import FlatColumns
from streamjoin.engines.sliding.flatteam import Team
from streamjoin.metrics import Meter
from streamjoin_common.language.windows import AllWindow, CountWindow, TimeWindow, TumblingWindow

if TYPE_CHECKING:
    from streamjoin.engines.kernels.flat.plans import Times

FILLED = 7
"""Mean live entries of a block, of 15."""

OUTPUT_PAIRS = 1 << 20
"""Pairs of an output buffer, which is handed over as it is filled."""

MIN_ROOM = 1 << 12
"""Minimum pairs for which an output buffer is used on."""

SAMPLE_ROWS = 1 << 18
"""Maximum rows from which the map is cut."""

MIN_RECUT = 1 << 10
"""Minimum insertions between two cuts of a map."""

MOVED_ROWS = 1 << 9
"""Keys of a batch that are sampled to see whether they have moved."""

PATIENCE = 0.25
"""Insertions between two cuts of a map, as a share of the live rows."""

SCANNED = 2
"""Blocks that an arrival may scan, besides one for every two candidates, before a map is poor."""

MIN_SHARED = 1 << 11
"""Minimum arrivals of a batch that threads share: fewer are not worth waking them up."""

STAGGER = 80
"""Spare words between the rows of a plan, so that they do not share sets of the caches."""

ALIGNED_WORDS = 32


def _aligned(words: int) -> Codes:
    """Return zeros that begin at an even cache line."""
    zeros = np.zeros(words + ALIGNED_WORDS, dtype=np.uint32)
    return zeros[(-zeros.ctypes.data // 4) % ALIGNED_WORDS :][:words]


def _times(job: Job) -> "Times":
    from streamjoin.engines.kernels.flat.plans import Times
    from streamjoin.engines.kernels.sliding import numbering

    kind, lengths = numbering.ALL, (0, 0)
    if isinstance(job.window, CountWindow):
        kind, lengths = numbering.COUNT, (job.window.r_tuples, job.window.s_tuples)
    elif isinstance(job.window, TimeWindow):
        kind, lengths = numbering.TIME, (job.window.r_us, job.window.s_us)
    elif isinstance(job.window, TumblingWindow):
        kind, lengths = numbering.TUMBLING, (job.window.length_us, job.window.length_us)
    return Times(job.r.ts, job.s.ts, kind, *lengths, *job.carried)


def _most_live(job: Job, of_r: bool) -> int:
    """Return the maximum tuples of a stream that its window holds, at least 1."""
    rows = job.r.rows if of_r else job.s.rows
    if isinstance(job.window, CountWindow):
        rows = min(rows, job.window.r_tuples if of_r else job.window.s_tuples)
    elif not isinstance(job.window, AllWindow):
        rows = int(max_live(job.r.ts if of_r else job.s.ts, job.window, of_r))
    return max(1, rows)


class FlatIndex:
    """The flat indexes of both windows, and the join of batches over them.

    Parameters
    ----------
    job : Job
        What is joined.
    crew : Crew
        Threads that code the columns.
    min_shared : int
        Minimum arrivals of a batch that threads share.
    """

    def __init__(self, job: Job, crew: Crew, min_shared: int) -> None:
        from streamjoin.engines.kernels.flat import blocks, cuts, joining, plans

        self._columns = FlatColumns(job, crew)
        self._times = _times(job)
        live = (_most_live(job, of_r=True), _most_live(job, of_r=False))
        self._inner = job.order == "inner"
        self._batch = min(int(job.knobs["batch"]), max(1, job.tuples))
        self._homes = [max(2, -(-tuples // FILLED)) for tuples in live]
        # After a cut, chains hold a block for every 15 live entries at most; then one is taken for
        # each insertion at most, and a batch begins only if there are enough.
        self._spare = [2 * tuples // blocks.ENTRIES + 64 for tuples in live]
        rooms = [h + s + self._batch + 1 for h, s in zip(self._homes, self._spare, strict=True)]
        self._bases = [0, rooms[0]]
        self._cuts = np.zeros(2 * cuts.CUT_WORDS, dtype=np.uint64)
        tables = np.zeros(2 * cuts.TABLE_WORDS, dtype=np.uint64)
        self.flat = joining.Flat(_aligned(sum(rooms) * blocks.BLOCK), tables, self._cuts)
        self._plan = np.empty((plans.PLAN_ROWS, self._batch + STAGGER), dtype=np.uint32)
        self._states = np.zeros((job.threads, joining.STATE_WORDS), dtype=np.uint64)
        self._out = np.empty(0, dtype=np.uint32)
        self._used = 0
        self._rows = (job.r.rows, job.s.rows)
        self._first_live = [0, 0]
        self._cut_at, self._crowd = [-1, -1], [0, 0]
        self._poor, self._patience = False, PATIENCE
        self._threads, self._min_shared = job.threads, min_shared
        self._team: Team | None = None
        self.recuts = 0

    @property
    def bytes(self) -> int:
        """Bytes of the blocks and maps in use."""
        from streamjoin.engines.kernels.flat import blocks, cuts

        used = sum(int(self._word(side, cuts.NEXT_FREE)) - self._bases[side] for side in range(2))
        return used * blocks.BLOCK * 4 + (0 if self._columns.hashed else self.flat.tables.nbytes)

    def _word(self, side: int, word: int) -> int:
        from streamjoin.engines.kernels.flat.cuts import CUT_WORDS

        return int(self._cuts[side * CUT_WORDS + word])

    def join(self, r_rows: slice, s_rows: slice, meter: Meter, crew: Crew) -> None:
        """Join a batch of arrivals and emit its pairs."""
        with meter.phase("build_or_sort"):
            for side, rows in enumerate((r_rows, s_rows)):
                self._cut_if_due(side, rows)
        arrivals = r_rows.stop - r_rows.start + s_rows.stop - s_rows.start
        begin = (r_rows.start, s_rows.start)
        self._states[:] = 0
        if self._threads > 1 and arrivals >= self._min_shared:
            self._join_shared(begin, arrivals, meter, crew)
        else:
            self._join_alone(begin, arrivals, meter)
        self._note(arrivals)

    def _join_alone(self, begin: tuple[int, int], arrivals: int, meter: Meter) -> None:
        from streamjoin.engines.kernels.flat import joining, plans

        columns, state = self._columns, self._states[0]
        with meter.phase("partition"):
            plans.plan(
                self._times, columns.keys, self.flat.tables, self._cuts, begin, 0, arrivals,
                self._plan,
            )  # fmt: skip
        keys = (columns.keys.r_keys, columns.keys.s_keys)
        while int(state[joining.DONE]) < arrivals:
            self._make_room(MIN_ROOM)
            before = int(state[joining.DONE])
            with meter.phase("probe"):
                pairs = joining.join_alone(
                    self.flat, keys, columns.terms, columns.checked, self._inner, self._plan,
                    arrivals, state, self._out, self._used,
                )  # fmt: skip
            self._emit(pairs, meter)
            if int(state[joining.DONE]) < arrivals:
                fresh = self._used == pairs and int(state[joining.DONE]) == before
                self._make_room(len(self._out) if fresh else len(self._out) // 2)

    def _make_room(self, pairs: int) -> None:
        """Begin a new output buffer if the old one has not room for so many pairs."""
        room = len(self._out) // 2
        if room - self._used < pairs:
            self._out = np.empty(2 * max(OUTPUT_PAIRS, pairs), dtype=np.uint32)
            self._used = 0

    def _emit(self, pairs: int, meter: Meter) -> None:
        if pairs:
            room, first = len(self._out) // 2, self._used
            self._used += pairs
            s_first = room + first
            meter.emit(self._out[first : first + pairs], self._out[s_first : s_first + pairs])

    def _join_shared(self, begin: tuple[int, int], arrivals: int, meter: Meter, crew: Crew) -> None:
        from streamjoin.engines.kernels.flat import joining, sharing

        self._team = self._team or Team(self._threads, self._batch)
        team, columns = self._team, self._columns
        states = self._states.reshape(-1)
        resumed = False
        while True:
            team.barriers[:] = 0
            self._make_room(len(team.matches))
            settings = (
                self._times, columns.keys, self.flat, columns.terms, columns.checked, self._inner,
                begin, arrivals, self._plan, team.barriers, team.bins, team.owners, states,
                team.counts, team.sums, team.cursors, team.items, team.matches, self._out,
                self._used, resumed,
            )  # fmt: skip

            def work(thread: int, settings: tuple[Any, ...] = settings) -> None:
                with team.ends_together(), meter.phase("probe"):
                    sharing.join_shared(thread, *settings)

            with team.ends_together():  # an interrupt may leave a thread without work
                crew.each(work, range(self._threads))
            if (self._states[:, joining.DONE] == arrivals).all():
                break
            team.grow(self._states[:, joining.WRITTEN])
            resumed = True
        self._emit(int(self._states[:, joining.WRITTEN].sum()), meter)

    def _cut_if_due(self, side: int, rows: slice) -> None:
        """Cut a map for the first time, or again if it serves badly or chains have no blocks."""
        from streamjoin.engines.kernels.flat import cuts

        inserted = rows.start - self._cut_at[side]
        if self._cut_at[side] < 0:
            self._recut(side, rows, self._homes[side])
            if rows.start == rows.stop:  # nothing to cut by: again, with the first rows
                self._cut_at[side] = -1
        elif (self._poor or self._moved(side, rows)) and inserted >= max(
            MIN_RECUT, self._patience * self._held(side, rows)
        ):
            homes = (self._held(side, rows) + rows.stop - rows.start) * 5 // 4 // FILLED + 2
            self._recut(side, rows, min(homes, self._homes[side]))
        else:
            homes = self._word(side, cuts.BLOCKS)
            chained = self._word(side, cuts.NEXT_FREE) - self._bases[side] - homes
            if chained > self._spare[side]:
                self._recut(side, rows, self._homes[side])

    def _fullest(self, side: int, rows: slice) -> int:
        """Return how many of a batch's sampled keys share a group of blocks."""
        from streamjoin.engines.kernels.flat import cuts

        step = max(1, (rows.stop - rows.start) // MOVED_ROWS)
        keys, lows, highs = self._columns.of(side)
        sampled = slice(rows.start, rows.stop, step)
        sample = keys[sampled][lows[sampled] <= highs[sampled]]
        return int(cuts.fullest(sample, side * cuts.CUT_WORDS, self._cuts, self.flat.tables))

    def _moved(self, side: int, rows: slice) -> bool:
        """Whether a batch's keys crowd more than those by which the map was cut."""
        if self._columns.hashed or rows.stop - rows.start < MOVED_ROWS:
            return False
        return self._fullest(side, rows) > 2 * self._crowd[side] + MOVED_ROWS // 32

    def _held(self, side: int, rows: slice) -> int:
        return max(0, int(rows.start) - self._first_live[side])

    def _recut(self, side: int, rows: slice, homes: int) -> None:
        """Cut a map by the live rows and those of the next batch, and insert the live ones anew."""
        from streamjoin.engines.kernels.flat import blocks, cuts, joining

        first = min(self._first_live[side], rows.start)
        keys, lows, highs = self._columns.of(side)
        base, words = self._bases[side], side * cuts.CUT_WORDS
        used = max(base, self._word(side, cuts.NEXT_FREE))
        self.flat.slots[base * blocks.BLOCK : used * blocks.BLOCK] = 0
        self._cuts[words + cuts.BASE] = base
        self._cuts[words + cuts.BLOCKS] = homes
        self._cuts[words + cuts.NEXT_FREE] = base + homes
        self._cuts[words + cuts.HASHED] = self._columns.hashed
        self._cuts[words + cuts.TABLE] = side * cuts.TABLE_WORDS
        if not self._columns.hashed:
            step = max(1, (rows.stop - first) // SAMPLE_ROWS)
            sampled = slice(first, rows.stop, step)
            sample = keys[sampled][lows[sampled] <= highs[sampled]]
            cuts.cut_evenly(sample, homes, words, self._cuts, self.flat.tables)
        number = 1 + (self._rows[0] if side else 0)
        joining.refill(self.flat, words, keys, lows, highs, first, rows.start, number)
        self._cut_at[side] = rows.start
        self._crowd[side] = 0 if self._columns.hashed else self._fullest(side, rows)
        self.recuts += 1

    def _note(self, arrivals: int) -> None:
        """Note what is live after a batch, and whether look-ups scan more than they need."""
        from streamjoin.engines.kernels.flat import joining, plans

        r_rows = self._rows[0]
        row, first, live = (
            int(self._plan[word, arrivals - 1]) - 1
            for word in (plans.ROW, plans.FIRST, plans.EXPIRED)
        )
        of_s = row >= r_rows
        self._first_live = [first, live - r_rows] if of_s else [live, first - r_rows]
        scanned = int(self._states[:, joining.SCANNED].sum())
        candidates = int(self._states[:, joining.CANDIDATES].sum())
        poor = scanned > SCANNED * arrivals + candidates // 2
        # Where keys are such that a cut does not help, the next one is put off.
        self._patience = min(64.0, 2 * self._patience) if poor and self._poor else PATIENCE
        self._poor = poor


class FlatJoin(Engine):
    """Index-based window join over flat blocks: a map, a vector scan, nothing to merge."""

    name: ClassVar[str] = "ibwj-flat"
    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="inner",
        platform="cpu",
        parallel=True,
        live=True,
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("batch", 1 << 16, "Maximum arrivals that are joined at once.", 1, 1 << 20),
    )

    def unusable(self) -> str | None:
        """Say so where Numba has no wheel."""
        return without_numba()

    def promise(self, job: Job) -> str:
        """Order within an arrival's matches is made where it is asked for."""
        return "inner" if job.order == "inner" else "outer"

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels, or load them from the cache, by joining one tuple with another."""
        if job.predicate.kind == "equi":
            prepare_keys(job.r, job.s, job.predicate)
        r, s = (each.take(np.arange(min(1, each.rows))) for each in (job.r, job.s))
        few = replace(job, r=r, s=s, carried=(0, 0), arrival="instant", max_pairs=None)
        for threads in {1, job.threads}:
            self._run(replace(few, threads=threads), Meter(), 0)

    def run(self, job: Job, prepared: None, meter: Meter) -> None:
        """Join the arrivals, batch by batch."""
        self._run(job, meter, MIN_SHARED)

    @staticmethod
    def _run(job: Job, meter: Meter, min_shared: int) -> None:
        held = 0
        with Crew(job.threads) as crew:
            with meter.phase("partition"):
                index = FlatIndex(job, crew, min_shared)
            for r_rows, s_rows in batches(job, meter, int(job.knobs["batch"])):
                index.join(r_rows, s_rows, meter, crew)
                meter.holds(max(0, index.bytes - held))
                held = max(held, index.bytes)
