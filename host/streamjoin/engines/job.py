"""A join to do: its inputs, predicate and window, and options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from streamjoin.tuples import Int64s, Pairs, Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window

Arrival = Literal["instant", "replay"]

Backend = Literal["model", "pynq"]
"""Where a hardware engine runs."""

ARRIVALS: tuple[Arrival, ...] = get_args(Arrival)
"""How a join gets its input: all at once, or at its arrival times."""


@dataclass(frozen=True)
class Job:
    """One join to do: inputs, predicate, window, and options.

    Attributes
    ----------
    r, s : Stream
        The inputs.
    predicate, window
        The join condition.
    threads : int
        Threads that a parallel engine may use.
    arrival : str
        ``"instant"`` hands everything over at once, ``"replay"`` honours arrival times.
    speedup : float
        A replay runs this much faster than the arrival times say.
    order : str
        The order asked for; the engine promises at least this one.
    knobs : mapping
        Every knob of the engine with its value.
    backend : str or None
        Where a hardware engine runs.
    carried : tuple of int
        Leading rows of R and of S that were joined with one another before: they only fill the
        windows.
    how : str
        The kind of join; engines give the pairs of the inner one
        (:mod:`streamjoin.engines.kinds`).
    max_pairs : int or None
        Maximum pairs, beyond which the run ends; if given, no estimate refuses the job.
    """

    r: Stream
    s: Stream
    predicate: Predicate
    window: Window
    threads: int = 1
    arrival: str = "instant"
    speedup: float = 1.0
    order: str = "none"
    knobs: Mapping[str, int | str] = field(default_factory=dict)
    backend: str | None = None
    carried: tuple[int, int] = (0, 0)
    max_pairs: int | None = None
    how: str = "inner"

    def named(self, pairs: Pairs) -> Pairs:
        """Return pairs by row of the input, from pairs by position in the streams."""
        if self.r.numbers is None and self.s.numbers is None:
            return pairs
        if self.how != "inner":
            return Pairs(self.r.named_or_none(pairs.r_rows), self.s.named_or_none(pairs.s_rows))
        return Pairs(self.r.named(pairs.r_rows), self.s.named(pairs.s_rows))

    @property
    def tuples(self) -> int:
        """Input tuples of both streams."""
        return self.r.rows + self.s.rows

    @property
    def end_us(self) -> int:
        """Arrival time of the last tuple of either stream, 0 without any."""
        return max((int(stream.ts[-1]) for stream in self._arriving), default=0)

    @property
    def start_us(self) -> int:
        """Arrival time of the first tuple of either stream, 0 without any."""
        return min((int(stream.ts[0]) for stream in self._arriving), default=0)

    @property
    def at_rest(self) -> bool:
        """Whether all tuples arrive at one time."""
        return self.start_us == self.end_us

    @property
    def _arriving(self) -> list[Stream]:
        """Streams with tuples; a relation in a store does not arrive."""
        return [each for each in (self.r, self.s) if each.rows and each.in_memory]

    def later_ts(self, pairs: Pairs) -> Int64s:
        """Return the arrival time of each pair's later tuple; with R in a store, that of S."""
        if self.at_rest and self.end_us == 0:  # without times: nothing is even written
            return np.zeros(len(pairs), dtype=np.int64)
        if self.at_rest:  # nothing is looked up
            return np.full(len(pairs), self.end_us, dtype=np.int64)
        return self.r.latest_ts(pairs.r_rows, self.s.ts[pairs.s_rows])
