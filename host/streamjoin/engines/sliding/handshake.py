"""Handshake join in software: both windows flow past each other through a chain of cores.

Handshake join, section 4. Each core holds a segment of both windows; R moves right, S moves left.
A core compares each tuple that it receives with its opposite segment at once, and stores it.

Two tuples that move between the same two cores at the same time would miss each other (figure 7).
So a core that sends S tuples to its left keeps copies until the neighbour acknowledges them
(two-phase forwarding, figure 8): an R tuple sent before the acknowledgment meets the copies, one
sent after it has met the S tuples already. An acknowledgment leaves before any later R tuple does.
Rings keep order, so every pair meets on exactly one core.

Cores forward by load (section 4.3): when a core's segment is longer than the neighbour's, half of
the difference moves. Each core publishes the row up to which it has forwarded a stream; from it, a
sender computes the neighbour's segment including tuples that are under way.

Ends (section 4.4): the driver announces at each end which rows have expired for the tuples that
enter there next, and the core at the far end of a window drops them. This alone would be exact only
if expired tuples had reached that core. The join is exact because each tuple has the first opposite
row that it meets: an R tuple skips S tuples before that row, on whichever core, and later S tuples
whose own first row is after it. No tuple is dropped early: the driver's message is in the ring
after all tuples that still meet what it expires, and a tuple that has expired when it reaches the
far end is compared with the segment before it is dropped.

At the end of the input nothing pushes the windows any more. R stays where it is, and S flows past
it to the left end: every pair of the result is made, no other.
"""

from typing import ClassVar

import numpy as np

from streamjoin.engines.base import Knob
from streamjoin.engines.crew import Crew
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.chain import Chain, ChainCore, ChainEngine, Kind
from streamjoin.engines.sliding.scanning import SIMD, Ranges, Scanner, run_of
from streamjoin.metrics import Meter

CACHE_LINE_WORDS = 16
"""64-bit words from one core's published row to the next: two cache lines, so that none is
shared."""


class Encounters:
    """The opposite rows that a tuple may join with, whichever of the two arrived first.

    Attributes
    ----------
    r_first, r_end : ndarray of int64, shape (r rows,)
        Rows of S: from the first that lives when the R tuple arrives to the last on whose arrival
        the R tuple lives.
    s_first, s_end : ndarray of int64, shape (s rows,)
        The same of R for S tuples.
    """

    def __init__(self, ranges: Ranges) -> None:
        r_rows, s_rows = np.arange(ranges.r.rows), np.arange(ranges.s.rows)
        self.r_first, self.s_first = ranges.r_first.copy(), ranges.s_first.copy()
        r_carried, s_carried = ranges.carried
        np.maximum(self.r_first[:r_carried], s_carried, out=self.r_first[:r_carried])
        np.maximum(self.s_first[:s_carried], r_carried, out=self.s_first[:s_carried])
        self.r_end = np.searchsorted(ranges.s_first, r_rows, side="right")
        self.s_end = np.searchsorted(ranges.r_first, s_rows, side="right")

    @property
    def longest(self) -> int:
        """Maximum tuples that one tuple may join with."""
        lengths = (self.r_end - self.r_first, self.s_end - self.s_first)
        return max((int(some.max()) for some in lengths if len(some)), default=0)


class Published:
    """Rows up to which each core has forwarded a stream, as its neighbours see them."""

    def __init__(self, cores: int) -> None:
        from streamjoin.engines.kernels.sliding import rings

        self._kernels = rings
        self._rows = np.zeros(cores * CACHE_LINE_WORDS, dtype=np.int64)

    def __getitem__(self, core: int) -> int:
        return int(self._kernels.published(self._rows, core * CACHE_LINE_WORDS))

    def __setitem__(self, core: int, row: int) -> None:
        self._kernels.publish(self._rows, core * CACHE_LINE_WORDS, row)


class HandshakeChain(Chain):
    """The rings, the encounters, and the rows that cores publish.

    Parameters
    ----------
    ranges : Ranges
        The input.
    cores : int
        Length of the chain.
    min_moved : int
        Minimum tuples that move to a neighbour together, before the input ends.
    simd : bool
        Whether cores test with vector instructions.
    """

    def __init__(self, ranges: Ranges, cores: int, min_moved: int, *, simd: bool) -> None:
        super().__init__(cores)
        self.simd = simd
        self.encounters, self.min_moved = Encounters(ranges), min_moved
        self.r_sent, self.s_sent = Published(cores), Published(cores)


class HandshakeCore(ChainCore):
    """One core: a segment of R, rows ``r_begin`` to ``r_end``, and one of S.

    The S tuples before row ``s_sent`` are copies that the left neighbour has not acknowledged.
    """

    def __init__(
        self, ranges: Ranges, chain: HandshakeChain, number: int, crew: Crew, meter: Meter
    ) -> None:
        super().__init__(ranges, chain, number, crew, meter)
        self._chain = chain
        self._scanner = Scanner(
            ranges.codes, ranges.codes, chain.encounters.longest, simd=chain.simd
        )
        self.r_begin = self.r_end = 0
        self.s_begin = self.s_sent = self.s_end = 0
        self._r_expired = self._s_expired = 0
        self._r_ended = self._s_ended = self._r_end_sent = self._s_end_sent = False

    @property
    def ended(self) -> bool:
        """Whether both streams have ended, and all S was forwarded and acknowledged."""
        flowed = self.to_left is None or self.s_begin == self.s_end
        return self._r_end_sent and self._s_end_sent and flowed

    def take_left(self) -> bool:
        """Receive R tuples, acknowledgments for S or, at the left end, what of S has expired."""
        message = self.from_left.take()
        if message is None:
            return False
        kind, row = message
        if kind is Kind.TUPLES:
            self._meet(False, slice(self.r_end, row), self.s_begin, self.s_end)
            self.r_end = row
        elif kind is Kind.ACKNOWLEDGED:
            self.s_begin = row
        elif kind is Kind.EXPIRED:
            self._s_expired = row
        else:
            self._r_ended = True
        return True

    def take_right(self) -> bool:
        """Receive S tuples and acknowledge them, or, at the right end, what of R has expired."""
        if self.to_right is not None and not self.to_right.has_room:
            return False
        message = self.from_right.take()
        if message is None:
            return False
        kind, row = message
        if kind is Kind.TUPLES:
            self._meet(True, slice(self.s_end, row), self.r_begin, self.r_end)
            self.s_end = row
            if self.to_right is not None:
                self.to_right.put(Kind.ACKNOWLEDGED, row)
        elif kind is Kind.EXPIRED:
            self._r_expired = row
        else:
            self._s_ended = True
        return True

    def _meet(self, is_s: bool, rows: slice, begin: int, end: int) -> None:
        """Compare received tuples with the opposite segment."""
        of = self._chain.encounters
        firsts, ends = (of.s_first, of.s_end) if is_s else (of.r_first, of.r_end)
        lows, highs = np.maximum(firsts[rows], begin), np.minimum(ends[rows], end)
        self._scanner.begin(run_of(is_s, rows, lows, highs))
        self.emit_from(self._scanner)

    def forward(self) -> bool:
        """Forward by load, or drop what has expired at a far end."""
        before = (self.r_begin, self.s_begin, self.s_sent, self._r_end_sent, self._s_end_sent)
        self._forward_s()
        self._forward_r()
        after = (self.r_begin, self.s_begin, self.s_sent, self._r_end_sent, self._s_end_sent)
        return before != after

    def _forward_s(self) -> None:
        if self.to_left is None:
            self.s_begin = self.s_sent = max(self.s_begin, min(self._s_expired, self.s_end))
            self._s_end_sent = self._s_ended
        else:
            theirs = self.s_sent - self._chain.s_sent[self.number - 1]
            moved = self._surplus(self.s_end - self.s_sent, theirs, self._s_ended)
            if moved and self.to_left.put(Kind.TUPLES, self.s_sent + moved):
                self.s_sent += moved
            if self._s_ended and self.s_sent == self.s_end and not self._s_end_sent:
                self._s_end_sent = self.to_left.put(Kind.END, 0)
        self._chain.s_sent[self.number] = self.s_sent

    def _forward_r(self) -> None:
        if self.to_right is None:
            self.r_begin = max(self.r_begin, min(self._r_expired, self.r_end))
            self._r_end_sent = self._r_ended
        elif self._r_ended:
            self._r_end_sent = self._r_end_sent or self.to_right.put(Kind.END, 0)
        else:
            theirs = self.r_begin - self._chain.r_sent[self.number + 1]
            moved = self._surplus(self.r_end - self.r_begin, theirs, False)
            if moved and self.to_right.put(Kind.TUPLES, self.r_begin + moved):
                self.r_begin += moved
        self._chain.r_sent[self.number] = self.r_begin

    def _surplus(self, mine: int, theirs: int, all_of_it: bool) -> int:
        """Return the tuples to forward: half of the difference of the segments, rounded up."""
        if all_of_it:
            return mine
        moved = (mine - theirs + 1) // 2
        return moved if moved >= self._chain.min_moved else 0


class Handshake(ChainEngine):
    """Handshake join: both windows flow past each other through a chain of threads."""

    name: ClassVar[str] = "handshake"
    knobs: ClassVar[tuple[Knob, ...]] = (
        *ChainEngine.knobs,
        Knob("move", 64, "Minimum tuples that move to a neighbour together.", 1, 1 << 20),
        SIMD,
    )

    def cores(self, job: Job, ranges: Ranges, crew: Crew, meter: Meter) -> list[ChainCore]:
        """Make the cores of one chain."""
        meter.holds(ranges.bytes)
        chain = HandshakeChain(
            ranges, job.threads, int(job.knobs["move"]), simd=bool(job.knobs["simd"])
        )
        return [HandshakeCore(ranges, chain, number, crew, meter) for number in range(job.threads)]
