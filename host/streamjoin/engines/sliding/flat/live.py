"""The flat index of a live join: buffers of tuples, and indexes that stay from call to call.

Each stream has buffers with room for a few windows. Arrivals are appended to them; when they are
full, the live tuples are moved to their front, over others, and keep their codes and their places
in the indexes. After a call that failed the indexes are made anew from the buffers.

Memory beside the indexes: 29 bytes a row of the buffers and 8 for each term, 24 if one is a band.
Buffers have up to 2.5 times as many rows as tuples were live when they were made.
"""

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.engines.job import Job
from streamjoin.engines.session import Arriving, Fits, Kept, NumberedPairs, Session
from streamjoin.engines.sliding.flat.buffers import Buffers
from streamjoin.engines.sliding.flat.coding import Coding
from streamjoin.engines.sliding.flat.dictionary import Dictionary, in_words
from streamjoin.engines.sliding.flat.index import FlatIndex
from streamjoin.engines.sliding.flat.ways import compile_strips
from streamjoin.engines.sliding.flat.words import words_of
from streamjoin.errors import check_room
from streamjoin.tuples import Int64s, Stream, arrival_positions

if TYPE_CHECKING:
    from streamjoin.engines.kernels.flat.plans import Keys, Times

MIN_LIVE = 1 << 10
"""Minimum live tuples of a stream for which there is room."""

MIN_BATCH = 1 << 10
"""Minimum arrivals of a batch for which there is room."""

ROOM = 2
"""Rows of the buffers for each live tuple for which there is room."""

WATCHED = 0.25
"""Arrivals, as a share of the windows, after which codes are looked at whether they still serve."""

NO_ROWS = np.empty((2, 0), dtype=np.uint32)
NO_NAMES = np.empty((3, 0), dtype=np.int64)


def as_arriving(stream: Stream) -> Arriving:
    """Return the tuples of a stream."""
    numbers = np.arange(stream.rows) if stream.numbers is None else stream.numbers
    return Arriving(stream.columns, stream.ts, numbers, stream.missing)


class _Columns:
    """Both streams' buffers as an index takes them."""

    def __init__(self, r: Buffers, s: Buffers, coding: Coding) -> None:
        from streamjoin.engines.kernels.flat import plans
        from streamjoin.engines.kernels.flat.checking import Terms

        self._coding = coding
        self._keys = plans.Keys(r.keys, r.lows, r.highs, s.keys, s.lows, s.highs, 0)
        self.terms: Terms = Terms(r.values, s.from_values, s.to_values)

    @property
    def keys(self) -> "Keys":
        return self._keys._replace(order_bits=self._coding.order_bits)

    @property
    def hashed(self) -> bool:
        return self._coding.hashed

    @property
    def checked(self) -> bool:
        return self._coding.checked

    def of(self, side: int) -> tuple[Codes, Codes, Codes]:
        keys = self.keys
        if side:
            return keys.s_keys, keys.s_lows, keys.s_highs
        return keys.r_keys, keys.r_lows, keys.r_highs


class _Pairs:
    """Takes the index's pairs, copies them, and names them."""

    def __init__(self, buffers: list[Buffers], fits: Fits) -> None:
        self._buffers, self._fits, self._count, self._digest = buffers, fits, 0, 0
        self._rows: list[Codes] = []
        self._named: list[Int64s] = []

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Measure nothing."""
        return nullcontext()

    def emit(self, r_rows: Any, s_rows: Any) -> None:
        """Keep pairs."""
        pairs = len(r_rows)
        self._count += pairs
        check_room(self._count, *self._fits)
        named, rows = np.empty((3, pairs), dtype=np.int64), np.empty((2, pairs), dtype=np.uint32)
        r, s = self._buffers
        self._digest += _kernels().name_pairs(
            r_rows, s_rows, r.ts, s.ts, r.numbers, s.numbers, rows, named
        )
        self._rows.append(rows)
        self._named.append(named)

    def numbered(self) -> NumberedPairs:
        """Return all."""
        bases = (self._buffers[0].base, self._buffers[1].base)
        if not self._rows:
            rows, named = NO_ROWS, NO_NAMES
        elif len(self._rows) == 1:
            rows, named = self._rows[0], self._named[0]
        else:
            rows = np.concatenate(self._rows, axis=1)
            named = np.concatenate(self._named, axis=1)
        return NumberedPairs(rows[0], rows[1], bases, named, self._digest % (1 << 64))


class FlatSession(Session):
    """A flat index that is kept.

    Parameters
    ----------
    job : Job
        Carried tuples, types, predicate, window and options.
    times : Times
        The window; its arrival times are not used.
    min_shared : int
        Minimum arrivals of a batch that threads share.
    """

    def __init__(self, job: Job, times: "Times", min_shared: int) -> None:
        self._words = words_of(job.r, job.s, job.predicate)
        self._coding = coding = Coding(self._words)
        if coding.has_choice:
            compile_strips()
        self._times, self._min_shared = times, min_shared
        self._order, self._threads = job.order, job.threads
        self._max_batch = int(job.knobs["batch"])
        terms = job.predicate.terms
        self._names = ([term.r_column for term in terms], [term.s_column for term in terms])
        texts = any(
            stream.held(name).dtype.kind == "O"
            for stream, names in zip((job.r, job.s), self._names, strict=True)
            for name in names
        )
        self._dictionary = Dictionary() if texts else None
        self._live, self._batch, self._chosen, self._since = [0, 0], 0, False, 0
        self._buffers = [Buffers(1, len(names), coding.ranged) for names in self._names]
        self._at: Kept | None = None
        self._index = self._make_room(Kept((0, 0), (0, 0)), (job.r.rows, job.s.rows))
        ends = [
            self._appended(side, 0, as_arriving(stream))[0]
            for side, stream in enumerate((job.r, job.s))
        ]
        self.kept = Kept((0, 0), (ends[0], ends[1]))

    def join(
        self, kept: Kept, r: Arriving | None, s: Arriving | None, fits: Fits
    ) -> tuple[NumberedPairs, Kept]:
        """Join arriving tuples; of several calls with one ``kept`` the last one counts."""
        arriving = (0 if r is None else len(r.ts), 0 if s is None else len(s.ts))
        at, self._at = self._at, None
        if not self._has_room(kept, arriving):
            self._make_room(kept, arriving)
        if at is not kept:
            self._forget(kept)
        bases = (self._buffers[0].base, self._buffers[1].base)
        begin = [kept.end[0] - bases[0], kept.end[1] - bases[1]]
        ends = list(begin)
        if r is not None:
            ends[0] = self._append(0, ends[0], r)
        if s is not None:
            ends[1] = self._append(1, ends[1], s)
        self._since += sum(arriving)
        if self._since > WATCHED * sum(self._live):
            self._since = 0
            serves = self._coding.serves(self._buffers, list(self._index.first_live), ends)
            self._chosen &= serves
        if not self._chosen:
            self._choose(ends)
        pairs, index = _Pairs(self._buffers, fits), self._index
        index.begin_output()
        alone = self._threads == 1 or not self._coding.is_shared
        if not alone and sum(arriving) >= self._min_shared:
            with Crew(self._threads) as crew:
                r_rows, s_rows = slice(begin[0], ends[0]), slice(begin[1], ends[1])
                index.join_shared(r_rows, s_rows, pairs, crew)
        elif sum(arriving) <= self._batch:
            index.join_few((begin[0], ends[0]), (begin[1], ends[1]), pairs)
        else:
            for r_rows, s_rows in self._batches(begin, ends):
                index.join_few((r_rows.start, r_rows.stop), (s_rows.start, s_rows.stop), pairs)
        first = (bases[0] + index.first_live[0], bases[1] + index.first_live[1])
        after = Kept(first, (bases[0] + ends[0], bases[1] + ends[1]))
        matches = pairs.numbered()
        self._at = after
        return matches, after

    def _batches(self, begin: list[int], ends: list[int]) -> Iterator[tuple[slice, slice]]:
        """Yield batches for which the index has room."""
        r_at, s_at = begin
        total = ends[0] - r_at + ends[1] - s_at
        if total <= self._batch:
            yield slice(r_at, ends[0]), slice(s_at, ends[1])
            return
        r_buffers, s_buffers = self._buffers
        r_positions, _ = arrival_positions(
            r_buffers.ts[r_at : ends[0]], s_buffers.ts[s_at : ends[1]]
        )
        for end in range(self._batch, total + self._batch, self._batch):
            of_r = int(np.searchsorted(r_positions, min(end, total)))
            r_end, s_end = begin[0] + of_r, begin[1] + min(end, total) - of_r
            yield slice(r_at, r_end), slice(s_at, s_end)
            r_at, s_at = r_end, s_end

    def _append(self, side: int, at: int, stream: Arriving) -> int:
        """Append tuples and code them; code all tuples anew where the codes do not go on."""
        buffers = self._buffers[side]
        end, lacking = self._appended(side, at, stream)
        if self._coding.code(buffers, side, at, end):
            self._code_all()
        elif lacking:
            _exclude(buffers, at, end)
        return end

    def _appended(self, side: int, at: int, stream: Arriving) -> tuple[int, bool]:
        tuples = in_words(stream, self._dictionary)
        return self._buffers[side].append(side, at, tuples, self._names[side], self._words)

    def _choose(self, ends: list[int]) -> None:
        """Choose how to index by what both windows hold, if they hold something."""
        firsts, coding = list(self._index.first_live), self._coding
        if not coding.has_choice:
            self._chosen = True
        elif all(first < end for first, end in zip(firsts, ends, strict=True)):
            if coding.choose(self._buffers, firsts, ends):
                self._code_all()
            self._chosen = True

    def _code_all(self) -> None:
        """Code all tuples anew."""
        firsts = list(self._index.first_live)
        ends = [int(np.searchsorted(each.ts, _never())) for each in self._buffers]
        self._coding.recut(self._buffers, firsts, ends)
        for side, buffers in enumerate(self._buffers):
            self._coding.code(buffers, side, firsts[side], ends[side])
            _exclude(buffers, firsts[side], ends[side])
        self._coding.coded(self._buffers, firsts, ends)
        self._index.forget(firsts)

    def _has_room(self, kept: Kept, arriving: tuple[int, int]) -> bool:
        if min(sum(arriving), self._max_batch) > self._batch:
            return False
        (r_first, s_first), (r_end, s_end), (r, s) = *kept, self._buffers
        r_end, s_end = r_end + arriving[0], s_end + arriving[1]
        return (
            r_end - r_first <= self._live[0]
            and s_end - s_first <= self._live[1]
            and r_end - r.base <= r.rows
            and s_end - s.base <= s.rows
        )

    def _make_room(self, kept: Kept, arriving: tuple[int, int]) -> FlatIndex:
        """Move what is live to the front of buffers with room, and make the indexes anew."""
        before, self._live = (self._live, self._batch), [0, 0]  # if it fails, so does _has_room
        live, batch = list(before[0]), max(MIN_BATCH, self._batch)
        for side in range(2):
            need = kept.end[side] - kept.first[side] + arriving[side]
            if need > live[side] or 4 * need < live[side]:
                live[side] = max(MIN_LIVE, need + need // 4)
        while batch < min(sum(arriving), self._max_batch):
            batch *= 2
        batch = min(batch, self._max_batch)
        if (live, batch) == before:
            self._slide(kept)
            self._live, self._chosen = live, False
            return self._index
        buffers = [
            each.moved(first - each.base, end - each.base, ROOM * tuples)
            for each, first, end, tuples in zip(self._buffers, *kept, live, strict=True)
        ]
        times = self._times._replace(r_ts=buffers[0].ts, s_ts=buffers[1].ts)
        self._limit_strings(buffers, kept)
        index = FlatIndex(
            _Columns(buffers[0], buffers[1], self._coding),
            times,
            (live[0], live[1]),
            order=self._order,
            batch=batch,
            threads=self._threads,
            min_shared=self._min_shared,
        )
        self._buffers, self._index, self._batch = buffers, index, batch
        self._live, self._chosen = live, False
        return index

    def _slide(self, kept: Kept) -> None:
        """Move what is live to the front of the same buffers.

        That of a stream stays if it would overlap: then there is room behind it. The codes stay,
        and so do the indexes, in which rows get their new numbers.
        """
        buffers = list(self._buffers)
        for side, each in enumerate(self._buffers):
            first, end = kept.first[side] - each.base, kept.end[side] - each.base
            if end - first <= first:
                buffers[side] = each.slid(first, end)
                self._index.slide(side, first)
        self._buffers = buffers
        for each, end in zip(buffers, kept.end, strict=True):
            each.clear_behind(end - each.base)
        self._limit_strings(buffers, kept)

    def _limit_strings(self, buffers: list[Buffers], kept: Kept) -> None:
        """Forget strings that no live tuple has, if they are many."""
        if self._dictionary is not None:
            self._dictionary.limit_to(
                [
                    each.values[:, first - each.base : end - each.base]
                    for each, first, end in zip(buffers, *kept, strict=True)
                ]
            )

    def _forget(self, kept: Kept) -> None:
        """Forget all but what the windows hold; the indexes are made anew."""
        for first, end, side in zip(*kept, range(2), strict=True):
            buffers = self._buffers[side]
            buffers.ts[end - buffers.base :] = _never()
            self._index.first_live[side] = first - buffers.base
        self._code_all()


def _exclude(buffers: Buffers, first: int, end: int) -> None:
    """Give tuples that lack a value the range that meets none."""
    missing = buffers.missing[first:end]
    buffers.lows[first:end][missing], buffers.highs[first:end][missing] = 1, 0


@functools.cache
def _kernels() -> Any:
    """Import the kernels once: Numba takes its time, and an import statement takes some."""
    from streamjoin.engines.kernels.flat import live

    return live


def _never() -> int:
    return int(_kernels().NEVER)
