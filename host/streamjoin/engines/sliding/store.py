"""One core's sub-windows: of each stream every ``cores``-th tuple, while it is live."""

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from streamjoin.engines.codes import Codes
from streamjoin.engines.encode import OffsetCodes
from streamjoin.engines.sliding.scanning import Ranges, Scanner
from streamjoin.tuples import Int64s

if TYPE_CHECKING:
    from streamjoin.engines.kernels.sliding.scan import Arrivals

MIN_SLOTS = 1024

RowOrRows = TypeVar("RowOrRows", int, Int64s)


class _Side:
    """One stream's stored tuples, in slots from ``base`` on; those before ``start`` are expired.

    New tuples are appended. If there is no room, the live ones move to the front, of larger arrays
    if they fill more than half: memory is bounded by the window.
    """

    def __init__(self, codes: tuple[Codes, ...], number: int, cores: int) -> None:
        from streamjoin.engines.kernels.vectors import LANES

        self._codes, self._number, self._cores, self._lanes = codes, number, cores, LANES
        self.base = self._start = self._end = 0
        self.parts = self._arrays(MIN_SLOTS)

    def _arrays(self, slots: int) -> tuple[Codes, ...]:
        # A vector may read beyond the last tuple; matches there are dropped.
        shape = (len(self._codes[0]), slots + self._lanes)
        return tuple(np.zeros(shape, dtype=np.uint32) for _ in self._codes)

    def slot(self, row: RowOrRows) -> RowOrRows:
        """Return the slot of the core's first tuple from a row on."""
        return (row - self._number + self._cores - 1) // self._cores

    def keep_up_to(self, row: int) -> None:
        """Store this core's tuples from the last stored one up to a row."""
        end = self.slot(row)
        self._make_room(end)
        turn = slice(self._end * self._cores + self._number, row, self._cores)
        for part, codes in zip(self.parts, self._codes, strict=True):
            part[:, self._end - self.base : end - self.base] = codes[:, turn]
        self._end = end

    def expire(self, row: int) -> None:
        """Remove all tuples before a row."""
        self._start = max(self._start, self.slot(row))

    def _make_room(self, end: int) -> None:
        slots = self.parts[0].shape[1] - self._lanes
        if end - self.base <= slots:
            return
        live = min(self._start, self._end)
        old = [part[:, live - self.base : self._end - self.base] for part in self.parts]
        if 2 * (end - live) > slots:
            self.parts = self._arrays(2 * (end - live))
        for part, kept in zip(self.parts, old, strict=True):
            part[:, : self._end - live] = kept
        self.base = live


class Store:
    """The sub-windows of one core, and its scan of them (SplitJoin, section 3).

    A core counts the tuples of each stream and stores those of its turn: of ``cores`` cores, core
    ``number`` stores rows ``number``, ``number + cores`` and so on, in slots 0, 1 and so on.

    Parameters
    ----------
    ranges : Ranges
        The input.
    number, cores : int
        The core's number, and the number of cores.
    """

    def __init__(self, ranges: Ranges, number: int, cores: int) -> None:
        self._ranges, self._number, self._cores = ranges, number, cores
        codes = ranges.codes
        self._r = _Side((codes.r,), number, cores)
        self._s = _Side((codes.s_lo, codes.s_width), number, cores)
        self.scanner = Scanner(codes, self._codes, ranges.longest // cores + 1)

    @property
    def _codes(self) -> OffsetCodes:
        return OffsetCodes(*self._r.parts, *self._s.parts)

    @property
    def bytes(self) -> int:
        """Bytes of the stored codes."""
        return sum(part.nbytes for part in self._codes)

    def keep_up_to(self, r_row: int, s_row: int) -> None:
        """Store this core's tuples from the last stored ones up to these rows of R and S."""
        self._r.keep_up_to(r_row)
        self._s.keep_up_to(s_row)

    def expire(self, r_row: int, s_row: int) -> None:
        """Remove all tuples of R and of S before these rows: no later arrival meets them."""
        self._r.expire(r_row)
        self._s.expire(s_row)

    def expire_unmet(self, r_rows: slice, s_rows: slice) -> None:
        """Remove tuples that no tuple from these arriving rows on meets.

        The core decides this alone: a count window expires by counting, a time window by the
        arrival time of an opposite tuple (SplitJoin, algorithm 4).
        """
        if s_rows.start < s_rows.stop:
            self._r.expire(int(self._ranges.s_first[s_rows.start]))
        if r_rows.start < r_rows.stop:
            self._s.expire(int(self._ranges.r_first[r_rows.start]))

    def begin(self, arrivals: "Arrivals") -> None:
        """Start the scanner on arrivals, whose ranges are given in rows."""
        scanner = self.scanner
        scanner.stored = self._codes
        r_offset, s_offset = (self._r.base * self._cores, self._s.base * self._cores)
        scanner.rows_of = (self._cores, r_offset + self._number, s_offset + self._number)
        base = np.where(arrivals.is_s, self._r.base, self._s.base)
        firsts, ends = (self._r.slot(rows) - base for rows in (arrivals.firsts, arrivals.ends))
        scanner.begin(arrivals._replace(firsts=firsts, ends=ends))
