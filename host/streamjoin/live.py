"""Joining while tuples come: push batches of both streams, pull the pairs that they complete.

Both streams have one arrival order, by arrival time. A tuple is joined once no tuple that belongs
before it can still come: as soon as the other stream, too, has shown that time (or
:meth:`StreamJoiner.advance` says so), and the lateness, where there is one, has gone by. Tuples
without an arrival column are stamped when they are pushed and can be joined at once.

What can be joined is handed to the engine in rounds. A round's input is what the windows hold,
which fills the engine's, and behind it what has arrived; so every engine of sliding windows works
live, its memory is bounded by the windows, and a round costs time in proportion to windows and
arrivals: the more has arrived, the larger the next round, and the less the windows weigh.
"""

import operator
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import numpy as np

from streamjoin import run
from streamjoin.api import as_window
from streamjoin.engines import catalog
from streamjoin.engines.base import Job
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.estimate import pairs_that_fit
from streamjoin.inputs import Batch, comparable, r_columns, s_columns
from streamjoin.live_side import Held, Side
from streamjoin.matches import Matches
from streamjoin.metrics import Meter
from streamjoin.predicates import Predicate
from streamjoin.tuples import Pairs, Stream, arrival_positions
from streamjoin.windows import MOST, Window
from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.durations import parse_lateness

MOST_WAITING = 1 << 24
"""Tuples that may wait to be joined; pushing more is refused."""

ROUND_TUPLES = 1 << 17
"""Arrivals of a round at most: what is found of them is in memory together."""


class StreamJoiner:
    """A join of two streams while they come.

    Several threads may push, and another one take the results: a push waits for a round to end.
    What is pushed is copied.

    Parameters
    ----------
    on, band, window, engine, threads, order, ts, ts_unit, knobs
        As :func:`streamjoin.join`; the engine is one of sliding windows, ``kang`` for ``auto``.
    lateness : str, optional
        Put tuples in order that are so late at most (``"10ms"``). Later ones are left out and
        counted in ``metrics["late"]``. Arrival times that go back are refused by default.

    Raises
    ------
    InputError, UnsupportedError, UnavailableError
        If engine, predicate, window and machine do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> import streamjoin as sj
    >>> with sj.StreamJoiner(on="k", window=sj.CountWindow(1000)) as joiner:
    ...     joiner.push_r({"k": np.array([1, 2])})
    ...     joiner.push_s({"k": np.array([2, 3])})
    ...     for matches in joiner.results():
    ...         print(matches.r_rows, matches.s_rows)
    [1] [0]
    """

    def __init__(
        self,
        *,
        on: str | list[str] | None = None,
        band: str | list[str] | None = None,
        window: Window | str | None = None,
        engine: str = "auto",
        threads: int = 1,
        order: str = "none",
        ts: str | None = None,
        ts_unit: str | None = None,
        lateness: str | None = None,
        knobs: Mapping[str, Any] | None = None,
    ) -> None:
        self._predicate, self._window = Predicate.parse(on, band), as_window(window)
        self._engine = catalog.get("kang" if engine == "auto" else engine)
        if not self._engine.capabilities.live:
            live = [name for name in catalog.names() if catalog.get(name).capabilities.live]
            raise UnsupportedError(
                f"{engine} does not join live: choose auto or one of {', '.join(live)}"
            )
        self._threads, self._order = threads, order
        self._lateness_us = parse_lateness(lateness)
        arrivals = Arrivals.parse(ts, ts_unit, self._window)
        self._r = Side("r", r_columns(self._predicate), arrivals.r, self._lateness_us)
        self._s = Side("s", s_columns(self._predicate), arrivals.s, self._lateness_us)
        self._stamped: bool | None = None
        self._clock, self._stamp_us = Meter(), 0
        self._clock.start()
        self._clock.stop()
        self._lock = threading.RLock()
        self._ended = self._prepared = False
        self._rounds = self._pairs = self._digest = 0
        empty = self._r.stream(None)[0], self._s.stream(None)[0]
        # Refuses early what does not fit together.
        self._knobs = run.settle(self._engine, self._job(*empty, (0, 0)), knobs).knobs

    def push_r(self, data: Any) -> None:
        """Push tuples of R: Arrow data, a data frame or a mapping of arrays, in arrival order.

        Raises
        ------
        InputError
            If a column is missing or changes its type, arrival times go back without a lateness,
            too much waits already, or the input has ended.
        """
        self._push(self._r, data)

    def push_s(self, data: Any) -> None:
        """Push tuples of S, as :meth:`push_r`."""
        self._push(self._s, data)

    def advance(self, ts_us: int) -> None:
        """Say that no tuple of either stream with an arrival time before this one will come.

        Without that, a stream that is silent holds the other one's tuples back.

        Raises
        ------
        InputError
            If it is no whole number of microseconds.
        """
        try:
            reached_us = operator.index(ts_us)
        except TypeError:
            raise InputError(f"advance takes whole microseconds, not {ts_us!r}") from None
        with self._lock:
            self._r.advance(reached_us)
            self._s.advance(reached_us)

    def end(self) -> None:
        """Say that no more tuples will come: :meth:`results` then gives all that is left."""
        with self._lock:
            self._ended = True

    def results(self) -> Iterator[Matches]:
        """Join what can be joined, round by round, and give each round's pairs.

        Does not wait for more input: it ends when what is left has to wait for it.
        """
        while (matches := self._round()) is not None:
            if len(matches):
                yield matches

    @property
    def metrics(self) -> dict[str, Any]:
        """What has happened so far: tuples, pairs and their digest, late and waiting tuples."""
        return {
            "engine": self._engine.name,
            "n_r": self._r.pushed,
            "n_s": self._s.pushed,
            "late": [self._r.late, self._s.late],
            "waiting": [self._r.waiting, self._s.waiting],
            "window_tuples": [self._r.live, self._s.live],
            "pairs": self._pairs,
            "digest": f"{self._digest:016x}",
            "rounds": self._rounds,
            "window": self._window.text,
            "predicate": self._predicate.text,
        }

    def close(self) -> None:
        """Drop what waits; pushing is refused from now on."""
        with self._lock:
            self._r.drop()
            self._s.drop()
            self._ended = True

    def __enter__(self) -> "StreamJoiner":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        waiting = self._waiting
        self.close()
        if waiting and kind is None:
            raise InputError(
                f"{waiting} tuples were pushed and not joined: call end() and take results() "
                "before leaving, or close() to drop them"
            )

    @property
    def _waiting(self) -> int:
        return self._r.waiting + self._s.waiting

    def _push(self, side: Side, data: Any) -> None:
        with self._lock:
            if self._ended:
                raise InputError(f"{side.name}: the input has ended; open a new StreamJoiner")
            batch = side.read(data)
            if batch.rows:  # of what has no rows, not even the types are meant
                self._keep(side, batch)

    def _keep(self, side: Side, batch: Batch) -> None:
        if self._waiting + batch.rows > MOST_WAITING:
            raise InputError(
                f"{side.name}: {self._waiting} tuples wait to be joined and {MOST_WAITING} may: "
                "take results(), or call advance() for a stream that is silent"
            )
        stamped = batch.ts is None
        if self._stamped not in {None, stamped}:
            raise InputError(f"{side.name}: give all batches of both streams a ts, or none")
        if batch.ts is not None:
            side.push(batch, batch.ts)
        elif self._lateness_us is not None:
            raise InputError(f"{side.name}: a lateness needs the arrival times: there is no ts")
        else:
            self._push_now(side, batch)
        self._stamped = stamped

    def _push_now(self, side: Side, batch: Batch) -> None:
        """Push tuples that arrive now: behind all that was pushed before."""
        stamp_us = max(int(self._clock.now_us()), side.frontier_us, 0)
        side.push(batch, np.full(batch.rows, stamp_us, dtype=np.int64))
        # Of equal times R comes first, so an R tuple behind an S tuple needs a later time.
        self._r.advance(stamp_us + (side is self._s))
        self._s.advance(stamp_us)

    def _ready(self) -> tuple[Held | None, Held | None]:
        """What no tuple that is still to come can precede, as much as a round takes."""
        r_last_us = s_last_us = MOST
        if not self._ended:
            r_last_us = min(self._r.frontier_us, self._s.frontier_us)
            s_last_us = min(self._r.frontier_us - 1, self._s.frontier_us)
        r, s = self._r.ready(r_last_us), self._s.ready(s_last_us)
        if r is None or s is None:
            return _first(r, ROUND_TUPLES), _first(s, ROUND_TUPLES)
        r_places, s_places = arrival_positions(r.ts, s.ts)
        r_count, s_count = (
            int(np.searchsorted(places, ROUND_TUPLES)) for places in (r_places, s_places)
        )
        return _first(r, r_count), _first(s, s_count)

    def _round(self) -> Matches | None:
        """Join what can be joined, as much as a round takes; None where nothing can."""
        with self._lock:
            r_ready, s_ready = self._ready()
            nothing = r_ready is None and s_ready is None
            return None if nothing else self._join(r_ready, s_ready)

    def _join(self, r_ready: Held | None, s_ready: Held | None) -> Matches:
        r_stream, r_table, r_carried = self._r.stream(r_ready)
        s_stream, s_table, s_carried = self._s.stream(s_ready)
        r_stream, s_stream = comparable(r_stream, s_stream, self._predicate)
        job = self._job(r_stream, s_stream, (r_carried, s_carried))
        job = run.settle(self._engine, job, self._knobs)
        if not self._prepared:
            self._engine.prepare(job, lambda _: None)
            self._prepared = True
        meter = Meter(most_pairs=pairs_that_fit())
        self._engine.run(job, meter)
        matches = Matches(job, (r_table, s_table), meter.pairs())
        digest = int(Pairs(matches.r_rows, matches.s_rows).digest, 16)
        now_us = job.end_us
        r_kept = self._r.after(r_ready, now_us, self._window, of_r=True)
        s_kept = self._s.after(s_ready, now_us, self._window, of_r=False)
        # All that takes time is done: an interrupt leaves the round undone, or finds it done.
        self._r.keep(r_kept)
        self._s.keep(s_kept)
        self._rounds += 1
        self._pairs += len(matches)
        self._digest = (self._digest + digest) % (1 << 64)
        return matches

    def _job(self, r: Stream, s: Stream, carried: tuple[int, int]) -> Job:
        return Job(
            r,
            s,
            self._predicate,
            self._window,
            threads=self._threads,
            order=self._order,
            carried=carried,
        )


def _first(held: Held | None, count: int) -> Held | None:
    """Return so many tuples, or None for none."""
    if held is None or not count:
        return None
    return held if count >= len(held.ts) else held.take(slice(0, count))
