"""The flat indexes of both windows, and the join of batches of arrivals over them.

Memory for each stream and window of W tuples: 18 bytes a tuple, chains at most as much again, and
48 bytes an arrival of a batch.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from streamjoin.engines.crew import Crew
from streamjoin.engines.sliding.flat.columns import Coded
from streamjoin.engines.sliding.flat.output import Buffer, Output
from streamjoin.engines.sliding.flat.team import PART, Team
from streamjoin.engines.sliding.flat.ways import CODE_BITS
from streamjoin.memory import aligned_words

if TYPE_CHECKING:
    from streamjoin.engines.kernels.flat.plans import Times

FILLED = 7
"""Mean live entries of a block, of 15."""

SHARED_PAIRS = 1 << 22
"""Maximum pairs that threads write in no order before their number is checked."""

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

SHARED_BATCHES = 16
"""Maximum batches that threads share as one: they meet the interpreter once for all."""

JUDGED = 1 << 9
"""Minimum arrivals by which a map is judged."""


class FlatIndex:
    """The flat indexes of both windows, and the join of batches over them.

    Parameters
    ----------
    columns : Coded
        The predicate's codes.
    times : Times
        Arrival times and the window.
    live : tuple of int
        Maximum tuples of R's and of S's window, each at least 1.
    order : str
        The order asked for. In ``inner`` the matches of an arrival are sorted by row; in ``none``
        threads do not restore the order of arrival.
    batch : int
        Maximum arrivals of a batch.
    threads : int
        Threads that share a batch.
    min_shared : int
        Minimum arrivals of a batch that threads share.
    keeps : bool
        Whether all pairs are kept where they are emitted.
    """

    def __init__(
        self,
        columns: Coded,
        times: "Times",
        live: tuple[int, int],
        *,
        order: str,
        batch: int,
        threads: int,
        min_shared: int,
        keeps: bool = False,
    ) -> None:
        from streamjoin.engines.kernels.flat import blocks, cuts, entries, joining, plans
        from streamjoin.engines.kernels.flat import live as at_once

        self._columns, self._times = columns, times
        self._inner, self._batch, self._at_once = order == "inner", batch, at_once
        self._order = order
        self._homes = [max(2, -(-tuples // FILLED)) for tuples in live]
        # After a cut, chains hold a block for every 15 live entries at most; then one is taken for
        # each insertion at most, and a batch begins only if there are enough.
        self._spare = [2 * tuples // blocks.ENTRIES + 64 for tuples in live]
        ahead = self._batch * (SHARED_BATCHES if threads > 1 else 1)
        rooms = [h + s + ahead + 1 for h, s in zip(self._homes, self._spare, strict=True)]
        self._bases = [0, rooms[0]]
        self._cuts = np.zeros(2 * cuts.CUT_WORDS, dtype=np.uint64)
        tables = np.zeros(2 * cuts.TABLE_WORDS, dtype=np.uint64)
        self.flat = entries.Flat(aligned_words(sum(rooms) * blocks.BLOCK), tables, self._cuts)
        self._plan = np.empty((self._batch, plans.PLAN_WORDS), dtype=np.uint32)
        self._states = np.zeros((1, joining.STATE_WORDS), dtype=np.uint64)
        self._output = Buffer(keeps)
        self._rows = (len(times.r_ts), len(times.s_ts))
        self.first_live = [0, 0]
        self._cut_at, self._crowd = [-1, -1], [0, 0]
        self._poor, self._patience = False, PATIENCE
        self._seen = self._scanned = self._candidates = 0
        self._notes = np.zeros(at_once.NOTES, dtype=np.int64)
        self._full, self._settled = [0, 0], False
        self._given, self._state = self._plain(), self._states[0]
        self._judged = min(JUDGED, batch)
        self._threads, self._min_shared = threads, min_shared
        self._team: Team | None = None
        self._together = 1
        self._emitted, self._rate = 0, 0.0  # pairs of threads, and those of a batch's arrival
        self.recuts = 0

    def forget(self, first_live: list[int]) -> None:
        """Begin anew with the rows from these on as the live ones."""
        self._settled, self._given = False, self._plain()
        self.first_live, self._cut_at = list(first_live), [-1, -1]
        self._poor, self._patience = False, PATIENCE
        self._seen = self._scanned = self._candidates = 0

    def slide(self, side: int, first: int) -> None:
        """Let a stream's rows from ``first`` on, all that are live, be those from 0 on."""
        from streamjoin.engines.kernels.flat import cuts, entries

        self.first_live[side] -= first
        if self._cut_at[side] >= 0:
            end, number = self._word(side, cuts.NEXT_FREE), 1 + (self._rows[0] if side else 0)
            entries.renumber(self.flat, self._bases[side], end, first + number, first)
            self._cut_at[side] = max(0, self._cut_at[side] - first)

    def _plain(self) -> tuple[Any, Any, Any, Any]:
        """Return the columns and the index as plain tuples."""
        columns = self._columns
        return tuple(self._times), tuple(columns.keys), tuple(self.flat), tuple(columns.terms)

    @property
    def is_shared(self) -> bool:
        """Whether threads can share look-ups: each is one range of codes."""
        return self._columns.keys.order_bits == CODE_BITS

    def begin_output(self) -> None:
        """Use the output buffer again: what was handed over has been copied."""
        self._output.begin()

    @property
    def bytes(self) -> int:
        """Bytes of the blocks and maps in use."""
        from streamjoin.engines.kernels.flat import blocks, cuts

        used = sum(int(self._word(side, cuts.NEXT_FREE)) - self._bases[side] for side in range(2))
        return used * blocks.BLOCK * 4 + (0 if self._columns.hashed else self.flat.tables.nbytes)

    def _word(self, side: int, word: int) -> int:
        from streamjoin.engines.kernels.flat.cuts import CUT_WORDS

        return int(self._cuts[side * CUT_WORDS + word])

    def join(self, r_rows: slice, s_rows: slice, meter: Output) -> None:
        """Join a batch of arrivals on one thread and emit its pairs."""
        with meter.phase("build_or_sort"):
            for side, rows in enumerate((r_rows, s_rows)):
                self._cut_if_due(side, rows)
        arrivals = r_rows.stop - r_rows.start + s_rows.stop - s_rows.start
        begin = (r_rows.start, s_rows.start)
        self._states[:] = 0
        self._join_alone(begin, arrivals, meter)
        self._note(arrivals - 1, self._states, arrivals)

    def join_shared(self, r_rows: slice, s_rows: slice, meter: Output, crew: Crew) -> None:
        """Join arrivals with several threads, in larger batches while the maps stay good."""
        from streamjoin.engines.kernels.flat import plans

        r_at, s_at = r_rows.start, s_rows.start
        while (left := r_rows.stop - r_at + s_rows.stop - s_at) > 0:
            arrivals, recuts = min(left, self._together * self._batch), self.recuts
            of_r = plans.r_rows_among(self._times, r_at, s_at, arrivals)
            r_batch, s_batch = slice(r_at, r_at + of_r), slice(s_at, s_at + arrivals - of_r)
            r_at, s_at = r_batch.stop, s_batch.stop
            if arrivals < self._min_shared:
                self.join(r_batch, s_batch, meter)
                continue
            with meter.phase("build_or_sort"):
                for side, rows in enumerate((r_batch, s_batch)):
                    self._cut_if_due(side, rows)
            self._join_batch(r_batch, s_batch, meter, crew)
            good = self.recuts == recuts and not self._poor
            self._together = min(SHARED_BATCHES, 2 * self._together) if good else 1

    def join_few(self, r_rows: tuple[int, int], s_rows: tuple[int, int], meter: Output) -> None:
        """Join a batch of arrivals, rows ``(first, end)``, by one kernel call where it can be."""
        (r_first, r_end), (s_first, s_end) = r_rows, s_rows
        arrivals = r_end - r_first + s_end - s_first
        if not self._settled or arrivals >= MOVED_ROWS:
            self._settled = False
            for side, (first, end) in enumerate((r_rows, s_rows)):
                self._cut_if_due(side, slice(first, end))
        output = self._output
        output.make_room(MIN_ROOM)
        times, keys, flat, terms = self._given
        self._at_once.join_few(
            times, keys, flat, terms, self._columns.checked, self._inner, (r_first, s_first),
            arrivals, self._plan, self._state, output.words, output.used, self._notes,
        )  # fmt: skip
        pairs, done, r_live, s_live, scanned, candidates, *free = self._notes.tolist()
        if done < arrivals:
            self._resume(self._handed_over(pairs, 0, arrivals, meter), arrivals, meter)
            self._note(arrivals - 1, self._states, arrivals)
            self._settled = False
            return
        output.emit(pairs, meter)
        self.first_live = [r_live, s_live]
        self._seen += arrivals
        self._scanned += scanned
        self._candidates += candidates
        if self._seen >= self._judged:
            self._judge()
        full, cut_at = self._full, self._cut_at
        known = not self._poor and cut_at[0] >= 0 and cut_at[1] >= 0
        self._settled = known and free[0] <= full[0] and free[1] <= full[1]

    def _join_alone(self, begin: tuple[int, int], arrivals: int, meter: Output) -> None:
        from streamjoin.engines.kernels.flat import plans

        with meter.phase("partition"):
            plans.plan(
                self._times, self._columns.keys, self.flat.tables, self._cuts, begin, 0, arrivals,
                self._plan,
            )  # fmt: skip
        self._resume(0, arrivals, meter)

    def _resume(self, done: int, arrivals: int, meter: Output) -> None:
        """Join the arrivals of a plan that are not done."""
        from streamjoin.engines.kernels.flat import joining

        columns, state = self._columns, self._states[0]
        keys = (columns.keys.r_keys, columns.keys.s_keys)
        while done < arrivals:
            self._output.make_room(MIN_ROOM)
            with meter.phase("probe"):
                pairs = joining.join_alone(
                    self.flat, keys, columns.terms, columns.checked, columns.keys.order_bits,
                    self._inner, self._plan, arrivals, state, self._output.words,
                    self._output.used,
                )  # fmt: skip
            done = self._handed_over(pairs, done, arrivals, meter)

    def _handed_over(self, pairs: int, before: int, arrivals: int, meter: Output) -> int:
        """Emit pairs, make room for more where it is needed, and return the arrivals done."""
        done = int(self._states[0, 0])
        output = self._output
        output.emit(pairs, meter)
        if done < arrivals:
            fresh = output.used == pairs and done == before
            output.make_room(2 * output.room if fresh else output.room)
        return done

    def _join_batch(self, r_rows: slice, s_rows: slice, meter: Output, crew: Crew) -> None:
        from streamjoin.engines.kernels.flat import plans
        from streamjoin.engines.kernels.flat.sharing import PAGE_WORDS

        team = self._team = self._team or Team(self._threads)
        columns, begin, ends = (
            self._columns,
            (r_rows.start, s_rows.start),
            (r_rows.stop, s_rows.stop),
        )
        arrivals = sum(ends) - sum(begin)
        given = (
            self._times, columns.keys, self.flat, columns.terms, columns.checked, begin, arrivals,
        )  # fmt: skip
        rows = (begin[0], ends[0]), (begin[1], ends[1])
        team.begin(self.flat, columns.keys, rows, self.recuts)
        parts, output, before = -(-arrivals // PART), self._output, self._emitted
        while team.parts_done < parts or team.holds_pairs:
            held = len(team.matches) // 4  # of all threads together, at most
            output.make_room(max(MIN_ROOM, held))
            stop = min(output.room, output.used + max(SHARED_PAIRS, held))
            likely = int(self._rate * arrivals) + before - self._emitted
            room = output.room_for(stop, likely, PAGE_WORDS)
            end = team.join(given, self._order, room, meter, crew)
            self._emitted += end - output.used
            output.emit(end - output.used, meter)
            if team.is_short(self._order):
                team.grow()
        self._rate = (self._emitted - before) / arrivals
        of_r = plans.r_rows_among(self._times, *begin, arrivals - 1)
        last = begin[0] + of_r, begin[1] + arrivals - 1 - of_r
        plans.plan(self._times, columns.keys, self.flat.tables, self._cuts, last, 0, 1, self._plan)
        self._note(0, team.states, arrivals)

    def _cut_if_due(self, side: int, rows: slice) -> None:
        """Cut a map for the first time, or again if it serves badly or chains have no blocks."""
        from streamjoin.engines.kernels.flat import cuts

        inserted = rows.start - self._cut_at[side]
        if self._cut_at[side] < 0:
            self._recut(side, rows, self._homes[side])
            nothing = rows.stop == min(self.first_live[side], rows.start)
            if nothing and not self._columns.hashed:  # to cut by: again, with the first rows
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
        return max(0, int(rows.start) - self.first_live[side])

    def _recut(self, side: int, rows: slice, homes: int) -> None:
        """Cut a map by the live rows and those of the next batch, and insert the live ones anew."""
        from streamjoin.engines.kernels.flat import blocks, cuts, entries

        first = min(self.first_live[side], rows.start)
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
        entries.refill(self.flat, words, keys, lows, highs, first, rows.start, number)
        self._cut_at[side] = rows.start
        self._full[side] = base + homes + self._spare[side]
        self._crowd[side] = 0 if self._columns.hashed else self._fullest(side, rows)
        self.recuts += 1

    def _note(self, last: int, states: Any, arrivals: int) -> None:
        """Note what is live after the ``last`` one planned, and if look-ups scan too much."""
        from streamjoin.engines.kernels.flat import joining, plans

        r_rows = self._rows[0]
        row, first, live = (
            int(self._plan[last, word]) - 1 for word in (plans.ROW, plans.FIRST, plans.EXPIRED)
        )
        of_s = row >= r_rows
        self.first_live = [first, live - r_rows] if of_s else [live, first - r_rows]
        self._seen += arrivals
        for state in states:
            self._scanned += int(state[joining.SCANNED])
            self._candidates += int(state[joining.CANDIDATES])
        if self._seen >= self._judged:
            self._judge()

    def _judge(self) -> None:
        """Say whether look-ups since the last time have scanned more than they needed."""
        poor = self._scanned > SCANNED * self._seen + self._candidates // 2
        self._seen = self._scanned = self._candidates = 0
        # Where keys are such that a cut does not help, the next one is put off.
        self._patience = min(64.0, 2 * self._patience) if poor and self._poor else PATIENCE
        self._poor = poor
