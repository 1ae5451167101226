"""Ways to index a predicate of any terms, what each costs, and the maps of codes by two parts."""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.codes import Codes

CODE_BITS = 32

HASHED = -1
"""A hash of all equalities, rather than the band of that number."""

SAMPLED = 1 << 10
"""Maximum tuples of R by which an index is chosen; half as many of S."""

BLOCK_COST, CANDIDATE_COST, STRIPS_COST = 4.0, 2.5, 5.0
"""Cost of a range of blocks, of a candidate, which a scan reads and a check compares, and of a code
by two parts, each about 5 ns."""

STRIP_BITS = 9
"""Bits of a strip in a code by two parts."""

STRIPS_OF_A_RANGE = 1.0
"""Strips of a band that a range covers on average: it then meets one more."""

MIN_STRIPS = 2
"""Fewer strips are none."""

MAPPED_ROWS = 1 << 14
"""Maximum rows of a stream from which maps of codes are cut."""

GROUPS_LOG2 = 6
"""log2 of the parts of a strip of which the fullest says whether positions are spread evenly."""

CROWDED = 1 / 32
"""Share of the tuples beyond twice the former one from which a strip, or a part, is crowded."""

GRID = 8
"""Maps are cut by one code in so many at equal distances, too, as far as twice the codes' range on
each side: these strips, or positions, are for values that no tuple has had yet."""


class Way(NamedTuple):
    """A way to index.

    Attributes
    ----------
    by : int
        :data:`HASHED` or a band: all codes are by it, or the strips.
    order : int or None
        The band by which codes of a strip are ordered; None without strips.
    """

    by: int
    order: int | None = None

    @property
    def terms(self) -> set[int]:
        """What it indexes by."""
        return {self.by} if self.order is None else {self.by, self.order}

    @property
    def is_shared(self) -> bool:
        """Whether threads can share look-ups: each is one range of codes."""
        return self.order is None or self.by == HASHED


class Sampled(NamedTuple):
    """Shares of pairs that satisfy some terms together, by those terms."""

    shares: dict[frozenset[int], float]
    tuples: float

    def best(self, ways: list[Way]) -> tuple[Way, int]:
        """Return the cheapest of some ways, and its strips."""
        costs = {way: self.cost(way) for way in ways}
        way = min(self.possible(ways), key=lambda each: costs[each][0])
        return way, costs[way][1]

    def possible(self, ways: list[Way]) -> list[Way]:
        """Return those ways that do not need fewer than :data:`MIN_STRIPS`."""
        return [way for way in ways if way.order is None or self.cost(way)[1] >= MIN_STRIPS]

    def cost(self, way: Way) -> tuple[float, int]:
        """Return what a look-up costs, and the strips, 0 where a band needs more than that."""
        share, strips = self.shares[frozenset(way.terms)], 1 << STRIP_BITS
        if way.order is None:
            return BLOCK_COST + CANDIDATE_COST * self.tuples * share, 0
        if way.by == HASHED:
            alike = self.shares[frozenset({way.order})] / strips  # by chance, in one strip
            candidates = CANDIDATE_COST * self.tuples * (share + alike)
            return STRIPS_COST + BLOCK_COST + candidates, strips
        one = self.shares[frozenset({way.by})]
        strips = int(min(strips, STRIPS_OF_A_RANGE / one if one else strips))
        met = 1 + one * strips  # strips that a range meets
        joint = share * met / (one * strips) if one > 0 and strips else share
        return STRIPS_COST + met * BLOCK_COST + CANDIDATE_COST * self.tuples * joint, strips


def ways_of(equal: bool, bands: list[int]) -> list[Way]:
    """Return all ways, those without strips first."""
    simple = [Way(HASHED)] * equal + [Way(band) for band in bands]
    by_hash = [Way(HASHED, band) for band in bands if equal]
    pairs = [Way(by, order) for by in bands for order in bands if by != order]
    return simple + by_hash + pairs


def sample(
    ways: list[Way],
    equal: NDArray[np.int64],
    values: NDArray[np.int64],
    intervals: tuple[NDArray[np.int64], NDArray[np.int64]],
    tuples: float,
) -> Sampled:
    """Count what all pairs of samples of both streams satisfy.

    Parameters
    ----------
    ways : list of Way
    equal : ndarray of int64
        The terms of equalities.
    values : ndarray of int64, shape (terms, r rows)
    intervals : tuple of ndarray of int64, shape (terms, s rows)
        Lower and upper ends.
    tuples : float
        Tuples of a window.
    """
    sets = list({frozenset(way.terms) for way in ways})
    members = np.zeros((len(sets), len(values)), dtype=np.bool_)
    for row, terms in enumerate(sets):
        for term in terms:
            members[row, equal if term == HASHED else term] = True
    passed = np.zeros(len(sets), dtype=np.int64)
    _kernels().count_passed(values, *intervals, members, passed)
    pairs = values.shape[1] * intervals[0].shape[1]
    shares = {
        terms: count / max(1, pairs) for terms, count in zip(sets, passed.tolist(), strict=True)
    }
    return Sampled(shares, tuples)


class Strips:
    """The maps of codes by two parts: from codes to strips, and to positions in a strip.

    Attributes
    ----------
    order_bits : int
        Bits of a position.
    strips : int
        The strips for which the maps were cut.
    """

    order_bits = CODE_BITS - STRIP_BITS

    def __init__(self) -> None:
        from streamjoin.engines.kernels.flat import cuts

        self._cuts = np.zeros(2 * cuts.CUT_WORDS, dtype=np.uint64)
        self._tables = np.zeros(2 * cuts.TABLE_WORDS, dtype=np.uint64)
        self.strips, self._crowds = 0, (1.0, 1.0)

    def crowds(self, codes: Codes) -> tuple[float, float]:
        """Return the shares of codes in the fullest strip, and in the fullest part of all strips.

        No strip counts where they are hashed: no map makes them fuller or less full.
        """
        from streamjoin.engines.kernels.flat import cuts

        tuples, parts = max(1, len(codes)), codes >> np.uint32(self.order_bits - GROUPS_LOG2)
        of_strips = np.bincount(parts >> np.uint32(GROUPS_LOG2), minlength=1).max()
        of_parts = np.bincount(parts & np.uint32((1 << GROUPS_LOG2) - 1), minlength=1).max()
        strip = 0.0 if self._cuts[cuts.HASHED] else of_strips / tuples
        return strip, of_parts / tuples

    def note(self, codes: Codes) -> None:
        """Note how evenly the maps, which were just cut, spread codes."""
        self._crowds = self.crowds(codes)

    def serve(self, strips: int, codes: Codes) -> bool:
        """Whether the maps are still good: about as many strips, as evenly filled."""
        now = zip(self.crowds(codes), self._crowds, strict=True)
        even = all(crowd <= 2 * before + CROWDED for crowd, before in now)
        return even and strips <= 2 * self.strips and self.strips <= 2 * strips

    def cut(self, strips: int, by: Codes | None, order: Codes) -> None:
        """Cut the maps by samples of codes, those of strips None where they are hashed."""
        from streamjoin.engines.kernels.flat import cuts

        self.strips = strips
        self._cuts[cuts.HASHED] = by is None
        for part, (codes, shares) in enumerate(((by, strips), (order, 1 << self.order_bits))):
            if codes is not None:
                words = part * cuts.CUT_WORDS
                self._cuts[words + cuts.TABLE] = part * cuts.TABLE_WORDS
                cuts.cut_evenly(_with_room(codes), shares, words, self._cuts, self._tables)

    def code(self, first: int, end: int, by: tuple[Any, ...], order: tuple[Any, ...]) -> None:
        """Replace codes of strips, and ranges of them, by those of strips and the order within."""
        _kernels().code_strips(self._cuts, self._tables, self.order_bits, first, end, *by, *order)

    def code_words(
        self, first: int, end: int, by: tuple[Any, ...], words: tuple[Any, ...], band: Any
    ) -> tuple[int, int]:
        """As :meth:`code` by a band's words, of which it returns the range."""
        lowest, highest = _kernels().code_words_in_strips(
            self._cuts, self._tables, self.order_bits, *words, band, first, end, *by
        )
        return lowest, highest


def _with_room(codes: Codes) -> Codes:
    """Return codes with others at equal distances, also below and above."""
    if not len(codes):
        return codes
    lowest, highest = int(codes.min()), int(codes.max())
    room = 2 * (highest - lowest) + 1
    first, last = max(0, lowest - room), min((1 << CODE_BITS) - 1, highest + room)
    grid = np.linspace(first, last, max(16, len(codes) // GRID)).astype(np.uint32)
    return np.concatenate([codes, grid])


def compile_strips() -> None:
    """Compile what codes by two parts take, or load it from the cache."""
    maps, one = Strips(), np.zeros(1, dtype=np.uint32)
    maps.cut(MIN_STRIPS, one, one)
    maps.code(0, 1, (one, one.copy(), one.copy()), (one.copy(), one.copy(), one.copy()))


@functools.cache
def _kernels() -> Any:
    """Import the kernels once: Numba takes its time, and an import statement takes some."""
    from streamjoin.engines.kernels.flat import strips

    return strips
