"""Streams of three predicates, for rates and for latencies under a load.

For rates both streams are drawn evenly, so that a tuple owes about one match (the reference band
query: one in 250,000 pairs). For latencies the windows are filled at full speed first, with tuples
that match none of the others that fill them; so only what arrives under the load has matches.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.tuples import Int64s

SEED = 1
GAP_US = 100.0
"""Mean gap between two arrivals in the streams' own time; a replay squeezes it."""

CLASSES = 4
"""Cells of the domain belong in turn to classes: R's that fill windows, S's that do, what matches,
and what does not. So keys are as even as those of a rate, for an index that divides them."""

REFERENCE_KEYS, REFERENCE_WIDTH = 10_000, 10
DOMAIN = 1 << 32

Columns = dict[str, Any]
Streams = tuple[Columns, Columns]


@dataclass(frozen=True)
class Query:
    """A predicate of the comparison.

    Attributes
    ----------
    name : str
        As tables and charts call it.
    columns : tuple of str
        Types of the key columns, ``k0`` and so on.
    is_band : bool
        Whether keys are compared with a band.
    """

    name: str
    columns: tuple[str, ...]
    is_band: bool

    def predicate(self, window: int, *, as_band: bool = False) -> dict[str, str | list[str]]:
        """Return the predicate as the arguments of :func:`streamjoin.join`.

        Parameters
        ----------
        window : int
            Window of each stream in tuples.
        as_band : bool
            Whether an equality is asked for as a band of width 0, which is the same.
        """
        if not self.is_band:
            return {"band": ["k0=k0:0:0"]} if as_band else {"on": "k0"}
        width = self.width(window)
        return {"band": [f"k{i}=k{i}:{width}:{width}" for i in range(len(self.columns))]}

    def width(self, window: int) -> int:
        """Return the width of the bands: of the reference query, or that holds one partner."""
        return REFERENCE_WIDTH if len(self.columns) > 1 else max(1, DOMAIN // 2 // window)


QUERIES = (
    Query("equality", ("int32",), is_band=False),
    Query("1-D band", ("int32",), is_band=True),
    Query("2-D band", ("int32", "float32"), is_band=True),
)


NATURAL_RATE = 1e6 / GAP_US
"""Tuples a second of both streams, under the load, in a replay at speed 1."""


def for_rate(query: Query, window: int, tuples: int) -> Streams:
    """Draw streams of evenly distributed keys, ``tuples`` of both together."""
    rng = np.random.default_rng(SEED)
    sides = rng.integers(0, 2, tuples)
    return _streams(sides, _keys(query, window, sides, 0, rng), np.full(tuples, GAP_US))


def for_latency(query: Query, window: int, tuples: int, load: float, warm: int = 0) -> Streams:
    """Draw streams that fill both windows, then ``tuples`` more under a load.

    Parameters
    ----------
    load : float
        Rate of those by the rate at which the windows are filled.
    warm : int
        Minimum tuples before them.
    """
    rng = np.random.default_rng(SEED)
    filling = max(warm, 2 * window + 8 * int(np.sqrt(2 * window)) + 16)
    gaps = np.concatenate([np.full(filling, GAP_US * load), np.full(tuples, GAP_US)])
    sides = rng.integers(0, 2, filling + tuples)
    keys = _keys(query, window, sides, filling, rng)
    return _streams(sides, keys, rng.exponential(gaps))


def _keys(
    query: Query, window: int, sides: Int64s, filling: int, rng: np.random.Generator
) -> list[NDArray[Any]]:
    """Draw the key columns of one input."""
    if len(query.columns) > 1:
        return _reference_keys(window, sides, filling, rng)
    count, cell = len(sides), 2 * query.width(window) if query.is_band else 1
    number = DOMAIN // cell if query.is_band else window
    cells = rng.integers(0, number, count)
    if filling:
        cells = _cells(number, sides, filling, window, rng)
    # In one cell the distance is less than the width, to the next one it is more.
    offset = rng.integers(0, cell // 4 if filling else cell, count) if query.is_band else 0
    return [(cells * cell + offset - DOMAIN // 2 * query.is_band).astype(np.int32)]


def _reference_keys(
    window: int, sides: Int64s, filling: int, rng: np.random.Generator
) -> list[NDArray[Any]]:
    """Draw both columns of the reference query: the second one decides what matches."""
    first = rng.integers(1, REFERENCE_KEYS + 1, len(sides))
    second = rng.uniform(1, REFERENCE_KEYS, len(sides)).astype(np.float32)
    if filling:
        width = 2 * REFERENCE_WIDTH + 1
        partner = _partners(sides, filling, window, rng)
        cells = _cells(REFERENCE_KEYS // width, sides, filling, window, rng)
        first, second = first[partner], (cells[partner] * width).astype(np.float32)
    return [first.astype(np.int32), second]


def _streams(sides: Int64s, keys: list[NDArray[Any]], gaps: NDArray[np.float64]) -> Streams:
    """Cut arrivals into two streams."""
    columns = {f"k{number}": column for number, column in enumerate(keys)}
    columns["ts"] = np.cumsum(gaps).astype(np.int64)
    r, s = ({name: column[sides == side] for name, column in columns.items()} for side in (0, 1))
    return r, s


def _cells(
    number: int, sides: Int64s, filling: int, window: int, rng: np.random.Generator
) -> Int64s:
    """Draw cells of the domain, of the class that a tuple is of.

    Behind those that fill, R and so many of S match that a tuple owes about half a match.
    """
    count = len(sides)
    rows = rng.integers(0, max(1, number // CLASSES), count)
    alive = min(window, (count - filling) // 2)
    matching = (sides == 0) | (rng.random(count) < window / (2 * CLASSES * max(1, alive)))
    kinds = np.where(matching, 2, 3)
    return rows * CLASSES + np.where(np.arange(count) < filling, sides, kinds)


def _partners(sides: Int64s, filling: int, window: int, rng: np.random.Generator) -> Int64s:
    """Choose whose keys each tuple has: half of S behind the filling that of a tuple of R.

    It is one that arrived within a quarter of a window, so that it is still there.
    """
    chosen = np.arange(len(sides))
    of_r = np.flatnonzero((sides == 0) & (chosen >= filling))
    of_s = np.flatnonzero((sides == 1) & (chosen >= filling) & (rng.random(len(sides)) < 0.5))
    before = np.searchsorted(of_r, of_s)
    of_s, before = of_s[before > 0], before[before > 0]
    back = rng.integers(1, np.minimum(before, max(1, window // 4)) + 1)
    chosen[of_s] = of_r[before - back]
    return chosen
