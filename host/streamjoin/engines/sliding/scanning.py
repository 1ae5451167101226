"""What joins that scan share: the rows that each tuple meets, and a resumable scan."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamjoin.engines.arrivals import scan_ranges
from streamjoin.engines.base import Knob
from streamjoin.engines.codes import Codes
from streamjoin.engines.encode import OffsetCodes, encode_offsets
from streamjoin.engines.job import Job
from streamjoin.tuples import Int64s, Stream, arrival_order

if TYPE_CHECKING:
    from streamjoin.engines.kernels.sliding.scan import Arrivals

OUTPUT_PAIRS = 1 << 16

ScanResults = tuple[Codes, Codes, Codes]

CALL_COMPARISONS = 1 << 28
"""Maximum comparisons of a kernel call, some ten milliseconds: it cannot be interrupted."""


@dataclass(frozen=True)
class Ranges:
    """The input of a scan.

    Attributes
    ----------
    r, s : Stream
        The inputs.
    codes : OffsetCodes
        Codes of their join columns.
    r_first, r_end : ndarray of int64, shape (r rows,)
        Range of S rows that each R tuple meets on its arrival.
    s_first, s_end : ndarray of int64, shape (s rows,)
        Range of R rows that each S tuple meets on its arrival.
    carried : tuple of int
        Leading rows of R and of S that meet no tuple on their arrival, nor one another.
    """

    r: Stream
    s: Stream
    codes: OffsetCodes
    r_first: Int64s
    r_end: Int64s
    s_first: Int64s
    s_end: Int64s
    carried: tuple[int, int]

    @classmethod
    def of(cls, job: Job) -> "Ranges":
        """Encode a job's input and bound its windows."""
        from streamjoin.engines.kernels.vectors import LANES

        codes = encode_offsets(job.r, job.s, job.predicate, LANES)
        r_first, r_end, s_first, s_end = scan_ranges(job.r.ts, job.s.ts, job.window)
        for first, end, carried in zip(
            (r_first, s_first), (r_end, s_end), job.carried, strict=True
        ):
            end[:carried] = first[:carried]
        return cls(job.r, job.s, codes, r_first, r_end, s_first, s_end, job.carried)

    @property
    def longest(self) -> int:
        """Maximum tuples that one tuple meets on its arrival."""
        lengths = (self.r_end - self.r_first, self.s_end - self.s_first)
        return max((int(some.max()) for some in lengths if len(some)), default=0)

    @property
    def bytes(self) -> int:
        """Bytes of the codes."""
        return sum(part.nbytes for part in self.codes)

    def arrivals(self, r_rows: slice, s_rows: slice) -> "Arrivals":
        """Merge rows of both streams in arrival order, each with the rows that it meets."""
        from streamjoin.engines.kernels.sliding.scan import Arrivals

        is_s, rows = arrival_order(self.r.ts[r_rows], self.s.ts[s_rows])
        rows += np.where(is_s, s_rows.start, r_rows.start)
        firsts, ends = np.empty_like(rows), np.empty_like(rows)
        firsts[~is_s], firsts[is_s] = self.r_first[r_rows], self.s_first[s_rows]
        ends[~is_s], ends[is_s] = self.r_end[r_rows], self.s_end[s_rows]
        return Arrivals(is_s, rows, firsts, ends)


def run_of(is_s: bool, rows: slice, firsts: Int64s, ends: Int64s) -> "Arrivals":
    """Make arrivals of consecutive rows of one stream."""
    from streamjoin.engines.kernels.sliding.scan import Arrivals

    own_rows = np.arange(rows.start, rows.stop, dtype=np.int64)
    return Arrivals(np.full(len(own_rows), is_s), own_rows, firsts, ends)


class Scanner:
    """One thread's scan of arriving tuples over stored ones.

    Parameters
    ----------
    arriving, stored : OffsetCodes
        Codes by row, and by slot.
    longest : int
        Maximum slots that an arrival meets.
    simd : bool
        Whether blocks are tested with vector instructions before their tuples are.

    Attributes
    ----------
    stored : OffsetCodes
        May be replaced while the scanner is done.
    rows_of : tuple of int
        Stride, offset of R, offset of S: the row of a slot is ``slot * stride + offset``.
    """

    def __init__(
        self, arriving: OffsetCodes, stored: OffsetCodes, longest: int, *, simd: bool = True
    ) -> None:
        from streamjoin.engines.kernels.sliding import scan

        self._kernels = scan
        self._arriving, self.stored = arriving, stored
        self.rows_of = (1, 0, 0)
        self._work = scan.work_for(len(arriving.r), longest)
        self._out = np.empty((3, OUTPUT_PAIRS), dtype=np.uint32)
        self._count, self._simd = 0, simd
        self._pieces = max(1, CALL_COMPARISONS // (scan.PIECE_ARRIVALS * max(longest, 1)))

    def begin(self, arrivals: "Arrivals") -> None:
        """Take the next arrivals."""
        self._arrivals, self._count = arrivals, len(arrivals.rows)
        self._work.state[:] = 0
        self._work.state[self._kernels.SCALAR] = not self._simd

    @property
    def done(self) -> bool:
        """Whether all arrivals that it was given are joined."""
        return int(self._work.state[self._kernels.ARRIVAL]) == self._count

    def more(self) -> ScanResults:
        """Join until all is done, the output is full or the call is long enough.

        Returns
        -------
        arrivals, r_rows, s_rows : ndarray of uint32, shape (pairs,)
            Arrival, row of R and row of S of each result: by arrival, ascending within.
        """
        count = self._kernels.scan(
            self._arriving,
            self.stored,
            self.rows_of,
            self._arrivals,
            self._work,
            self._out,
            self._pieces,
        )
        # Copying the few results keeps the large buffer for the next call.
        arrivals, r_rows, s_rows = (column[:count].copy() for column in self._out)
        return arrivals, r_rows, s_rows


SIMD = Knob("simd", 1, "1 tests tuples with vector instructions, 0 one by one.", 0, 1)


def compile_scan() -> None:
    """Compile the scan, or load it from the cache."""
    from streamjoin.engines.kernels.sliding.scan import Arrivals
    from streamjoin.engines.kernels.vectors import LANES

    codes = OffsetCodes(*(np.zeros((1, LANES), dtype=np.uint32) for _ in range(3)))
    none = np.zeros(0, dtype=np.int64)
    scanner = Scanner(codes, codes, 0)
    scanner.begin(Arrivals(none.astype(np.bool_), none, none, none))
    scanner.more()
