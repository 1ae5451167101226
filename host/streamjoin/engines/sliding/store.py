"""One core's share of both windows, stored beside each other: every so many-th tuple."""

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from streamjoin.engines.encode import OffsetCodes
from streamjoin.engines.sliding.scanning import Ranges, Scanner
from streamjoin.tuples import Int64s

if TYPE_CHECKING:
    from streamjoin.engines.kernels.scan import Arrivals

Place = TypeVar("Place", int, Int64s)


class Store:
    """What one of several cores stores, and its scan of that (SplitJoin, section 3).

    A core counts the tuples of each stream and stores those of its turn: of ``cores`` cores, core
    ``number`` stores rows ``number``, ``number + cores`` and so on, in slots 0, 1 and so on. What
    has expired is no longer looked at: an arriving tuple names the first row that it meets, for
    a count window the passive way, for a time window the active one, and the start of the
    stretch moves up.

    Parameters
    ----------
    ranges : Ranges
        The input.
    number, cores : int
        Which core of how many.
    """

    def __init__(self, ranges: Ranges, number: int, cores: int) -> None:
        from streamjoin.engines.kernels.vectors import LANES

        self._codes, self._number, self._cores = ranges.codes, number, cores
        terms = len(ranges.codes.r)
        shape = [(terms, rows // cores + 1 + LANES) for rows in (ranges.r.rows, ranges.s.rows)]
        # Touched as far as it is used; a vector may read what is behind, and drops what it finds.
        r, s_lo, s_width = np.zeros(shape[0], np.uint32), *np.zeros((2, *shape[1]), np.uint32)
        self._stored = OffsetCodes(r, s_lo, s_width)
        longest = ranges.longest // cores + 1
        self.scanner = Scanner(ranges.codes, self._stored, longest, cores, number)

    @property
    def bytes(self) -> int:
        """Bytes of the stored codes."""
        return sum(part.nbytes for part in self._stored)

    def keep(self, r_rows: slice, s_rows: slice) -> None:
        """Store what of these rows falls to this core."""
        for stored, codes, rows in zip(
            self._stored, self._codes, (r_rows, s_rows, s_rows), strict=True
        ):
            first = self.slot(rows.start)
            turn = slice(first * self._cores + self._number, rows.stop, self._cores)
            stored[:, first : self.slot(rows.stop)] = codes[:, turn]

    def slot(self, row: Place) -> Place:
        """Return the slot of the first own tuple from a row on."""
        return (row - self._number + self._cores - 1) // self._cores

    def begin(self, arrivals: "Arrivals") -> None:
        """Have the scanner take arrivals, whose stretches are given in rows."""
        firsts, ends = self.slot(arrivals.firsts), self.slot(arrivals.ends)
        self.scanner.begin(arrivals._replace(firsts=firsts, ends=ends))
