"""Kinds of join on a stream: which kept tuples are decided, and which have to wait.

Beside its window a side keeps for each tuple when its first pair was complete. Everything here
is a function of arrays and of the watermark.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.tuples import Int64s
from streamjoin_common.language.windows import Window
from streamjoin_spark.batch.partition import LAST_TIME, ends_us
from streamjoin_spark.batch.worker import Tuples


class Decided(NamedTuple):
    """What is decided of some tuples of a side.

    Attributes
    ----------
    rows : ndarray of bool
        Those that become a row of their own now.
    ts : ndarray of int64
        The time of such a row, for each tuple.
    kept : ndarray of bool
        Those that have to wait, or that a later tuple may still meet.
    """

    rows: NDArray[np.bool_]
    ts: Int64s
    kept: NDArray[np.bool_]


def without_pairs(rows: int) -> Int64s:
    """When the first pair of each tuple was complete, where none has a pair."""
    return np.full(rows, LAST_TIME, dtype=np.int64)


def note(tuples: Tuples, at: NDArray[Any], ts: Int64s) -> None:
    """Note pairs of tuples, by their indices and the times of the pairs."""
    if tuples.first_pair_us is not None:
        np.minimum.at(tuples.first_pair_us, at, ts)


def decided(
    tuples: Tuples,
    of_r: bool,
    how: str,
    *,
    window: Window,
    watermark_us: int,
    last_us: int = LAST_TIME,
) -> Decided:
    """Decide what the watermark decides.

    What is not late arrives at the watermark or after it. So a tuple whose window has ended by the
    watermark has all its pairs, and a pair whose time the watermark has reached is its tuples'
    first unless one was before it.

    Parameters
    ----------
    tuples : Tuples
        Tuples of R or of S; without ``first_pair_us`` none of them becomes a row of its own.
    of_r : bool
        Whether they are R's.
    how : str
        The kind of join.
    window : Window
        Tumbling, or a time window.
    watermark_us : int
        The time that both streams have reached; ``LAST_TIME`` where they have ended.
    last_us : int
        The last arrival of streams that have ended.
    """
    stream, first_pair_us = tuples.stream, tuples.first_pair_us
    ends = ends_us(stream.ts, of_r, window)
    kept = ends > watermark_us
    if first_pair_us is None or how == "semi":
        if stream.missing is not None:  # matches nothing
            kept &= ~stream.missing
        if first_pair_us is None:
            return Decided(np.zeros_like(kept), ends, kept)
        rows = first_pair_us <= min(watermark_us, LAST_TIME - 1)
        return Decided(rows, first_pair_us, kept & ~rows)
    lonely = first_pair_us == LAST_TIME
    rows = ~kept & lonely
    if how == "anti":  # tuples with a partner are in no row
        kept &= lonely
    return Decided(rows, np.minimum(ends, last_us), kept)
