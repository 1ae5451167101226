"""Joining while tuples arrive: push batches of both streams, pull the pairs that they complete.

Both streams have one arrival order, by arrival time. A tuple is joined once no tuple that precedes
it can still arrive: when the other stream has reached that time too (or
:meth:`StreamJoiner.advance` says so), and the lateness, if any, has passed. Tuples without an
arrival column are stamped when they are pushed and can be joined at once.

The engine joins in rounds. A round's input is the tuples of the windows, which fill the engine's
windows, followed by the new arrivals. So every engine of sliding windows works live, and its memory
is bounded by the windows. The time of a round is proportional to windows and arrivals: the more
tuples have arrived, the larger the next round, and the smaller the share of the windows in its
time.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any

import numpy as np

from streamjoin import run
from streamjoin.api import as_window
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.engines.kinds import NEVER
from streamjoin.errors import NARROWER, InputError, TooLargeError
from streamjoin.estimate import pairs_that_fit
from streamjoin.inputs.agreement import Types, agreed_types, comparable
from streamjoin.inputs.batches import Batch
from streamjoin.inputs.lateness import LONG_AGO
from streamjoin.live.matches import Matches
from streamjoin.live.side import Held, Side
from streamjoin.live.undecided import Limits, decided_by, passed_us
from streamjoin.metrics import Meter
from streamjoin.tuples import Pairs, arrival_positions, whole
from streamjoin_common.arguments import with_hints
from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.durations import MAX_US, parse_lateness
from streamjoin_common.language.kinds import parse_how
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window, needs_arrivals

MAX_WAITING_TUPLES = 1 << 24
"""Maximum tuples that wait to be joined; pushing more is refused."""

ROUND_TUPLES = 1 << 17
"""Maximum arrivals of a round: their matches are in memory together."""

ROOM = 4
"""A round that was cut is doubled again if this many times its pairs fit into memory."""


class StreamJoiner:
    """A join of two streams while they arrive.

    Several threads may push, and another one may take the results: a push waits for a round to end.
    Pushed data is copied.

    Parameters
    ----------
    on, band, window, engine, threads, order, ts, ts_unit, knobs, how
        As :func:`streamjoin.join`; the engine is one of sliding windows, ``kang`` for ``auto``. A
        tuple without a partner comes out once both streams have reached the time of its row, or at
        the end; one of ``semi`` with its first pair, in its place where an order was asked for.
    lateness : str or timedelta, optional
        Maximum lateness of tuples that are put in order (``"10ms"``). Later ones are dropped and
        counted in ``metrics["late"]``. Arrival times that decrease are refused by default.
    max_pairs : int, optional
        Maximum pairs of a round, and so of each :class:`Matches`; by default, and at most, as many
        as the free memory holds. A round that has more is cut into smaller ones.

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

    @with_hints
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
        lateness: str | timedelta | None = None,
        knobs: Mapping[str, Any] | None = None,
        max_pairs: int | None = None,
        how: str = "inner",
    ) -> None:
        self._how = parse_how(how)
        self._predicate, self._window = Predicate.parse(on, band), as_window(window)
        self._engine = catalog.live(engine)
        self._threads, self._order, self._max_pairs = threads, order, max_pairs
        self._lateness_us = parse_lateness(lateness)
        arrivals = Arrivals.parse(ts, ts_unit, self._window)
        self._r = Side("r", self._predicate.r_columns, arrivals.r, self._lateness_us)
        self._s = Side("s", self._predicate.s_columns, arrivals.s, self._lateness_us)
        self._stamped: bool | None = None
        self._clock, self._stamp_us = Meter(), 0
        self._clock.start()
        self._clock.stop()
        self._lock = threading.RLock()
        self._ended = self._prepared = False
        self._rounds = self._pairs = self._digest = 0
        self._done_us = self._last_us = LONG_AGO
        self._decided: tuple[Matches, ...] = ()
        self._round_tuples = MAX_WAITING_TUPLES
        # Refuse options that do not fit together early.
        self._knobs = run.complete(self._engine, self._job(*self._joining(None, None)), knobs).knobs

    def push_r(self, data: Any) -> None:
        """Push tuples of R: Arrow data, a data frame or a mapping of arrays, in arrival order.

        Raises
        ------
        InputError
            If a column is missing, changes its type or does not compare with the other stream's,
            arrival times go back without a lateness, too much waits already, or the input has
            ended. The joiner then is as it was before.
        """
        self._push(self._r, data)

    def push_s(self, data: Any) -> None:
        """Push tuples of S, as :meth:`push_r`."""
        self._push(self._s, data)

    def advance(self, ts_us: int) -> None:
        """Say that no tuple of either stream with an arrival time before this one will arrive.

        Without it, a silent stream delays the other one's tuples.

        Raises
        ------
        InputError
            If ``ts_us`` is no integer.
        """
        reached_us = whole(ts_us)
        if reached_us is None:
            raise InputError(f"advance takes an integer number of microseconds, not {ts_us!r}")
        with self._lock:
            self._r.state, self._s.state = self._r.reached(reached_us), self._s.reached(reached_us)

    def end(self) -> None:
        """Say that no more tuples will arrive: :meth:`results` then joins all that is left."""
        with self._lock:
            self._ended = True

    def results(self) -> Iterator[Matches]:
        """Join what can be joined, round by round, and yield each round's pairs.

        It does not wait for input: it ends when all other tuples have to wait for more.

        Raises
        ------
        TooLargeError
            If a single tuple has more matches than ``max_pairs`` or than the free memory holds; it
            and all later tuples stay waiting.
        """
        while (matches := self._round()) is not None:
            if len(matches):
                yield matches

    @property
    def metrics(self) -> dict[str, Any]:
        """Metrics so far: tuples, pairs and their digest, late and waiting tuples."""
        return {
            "engine": self._engine.name,
            "n_r": self._r.state.pushed,
            "n_s": self._s.state.pushed,
            "late": [self._r.state.late, self._s.state.late],
            "waiting": [self._r.waiting, self._s.waiting],
            "window_tuples": [self._r.live, self._s.live],
            "pairs": self._pairs,
            "digest": f"{self._digest:016x}",
            "rounds": self._rounds,
            "window": self._window.text,
            "predicate": self._predicate.text,
            "how": self._how,
        }

    def close(self) -> None:
        """Drop tuples and rows that wait; pushing is refused from now on."""
        with self._lock:
            for side in (self._r, self._s):
                side.state = replace(side.state, waiting=(), window=None, owed=None)
            self._ended, self._decided = True, ()

    def __enter__(self) -> "StreamJoiner":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        waiting = self._waiting
        owed = self._decided or self._r.owes(self._how) or self._s.owes(self._how)
        self.close()
        if waiting and kind is None:
            raise InputError(
                f"{waiting} tuples were pushed and not joined: call end() and take results() "
                "before leaving, or close() to drop them"
            )
        if owed and kind is None:
            raise InputError(
                f"rows of how {self._how} wait for the end: call end() and take results() "
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
            if batch.rows:  # a batch without rows does not even set types
                self._keep(side, batch)

    def _keep(self, side: Side, batch: Batch) -> None:
        if self._waiting + batch.rows > MAX_WAITING_TUPLES:
            raise InputError(
                f"{side.name}: {self._waiting} tuples wait to be joined, the maximum is "
                f"{MAX_WAITING_TUPLES}: "
                "take results(), or call advance() for a stream that is silent"
            )
        stamped = batch.ts is None
        if self._stamped not in {None, stamped}:
            raise InputError(f"{side.name}: give all batches of both streams a ts, or none")
        if stamped and self._lateness_us is not None:
            raise InputError(f"{side.name}: a lateness needs the arrival times: there is no ts")
        ts, stamp_us = batch.ts, 0
        if ts is None:  # they arrive now: after all that was pushed before
            stamp_us = max(int(self._clock.now_us()), side.frontier_us, 0)
            ts = np.full(batch.rows, stamp_us, dtype=np.int64)
        of_r = side is self._r
        r, s = self._r.state, self._s.state
        r, s = (side.pushed(batch, ts), s) if of_r else (r, side.pushed(batch, ts))
        agreed_types(r.types, s.types, self._predicate)
        if stamped:
            # At equal times R precedes S, so an R tuple after an S tuple needs a later time.
            r = self._r.reached(stamp_us + (not of_r), r)
            s = self._s.reached(stamp_us, s)
        # Nothing can fail any more: a batch that is refused has changed nothing.
        self._r.state, self._s.state, self._stamped = r, s, stamped

    def _types(self) -> tuple[Types, Types]:
        return agreed_types(self._r.state.types, self._s.state.types, self._predicate)

    def _ready(self, count: int) -> tuple[Held | None, Held | None]:
        """Return the first ``count`` tuples that no later arrival can precede."""
        r_last_us = s_last_us = MAX_US
        if not self._ended:
            r_last_us = min(self._r.frontier_us, self._s.frontier_us)
            s_last_us = min(self._r.frontier_us - 1, self._s.frontier_us)
        r_types, s_types = self._types()
        r, s = self._r.ready(r_last_us, r_types), self._s.ready(s_last_us, s_types)
        if r is None or s is None:
            return _first(r, count), _first(s, count)
        r_positions, s_positions = arrival_positions(r.ts, s.ts)
        r_count, s_count = (
            int(np.searchsorted(positions, count)) for positions in (r_positions, s_positions)
        )
        return _first(r, r_count), _first(s, s_count)

    def _round(self) -> Matches | None:
        """Join one round of tuples; return None if none can be joined.

        A round that has too many pairs is cut in half until it fits.
        """
        with self._lock:
            while True:
                if self._decided:
                    first, self._decided = self._decided[0], self._decided[1:]
                    return first
                ready = self._ready(min(ROUND_TUPLES, self._round_tuples))
                count = sum(len(held.ts) for held in ready if held is not None)
                passed = passed_us((self._r, self._s), ready, self._ended)
                if not count and (self._how == "inner" or passed <= self._done_us):
                    return None
                try:
                    return self._join(*ready)
                except MemoryError as error:
                    if not count:
                        raise
                    if count == 1:
                        raise self._too_large(ready, error) from None
                self._round_tuples = count // 2

    def _too_large(
        self, ready: tuple[Held | None, Held | None], error: MemoryError
    ) -> TooLargeError:
        """Return the error that names the tuple with too many matches."""
        ((name, held),) = (
            (side.name, held)
            for side, held in zip((self._r, self._s), ready, strict=True)
            if held is not None
        )
        much = error.much if isinstance(error, TooLargeError) else "more pairs than memory holds"
        return TooLargeError(
            much,
            NARROWER,
            "free memory and take results() again",
            "give a larger max_pairs",
            what=f"{name}: row {held.numbers[0]} alone",
        )

    def _join(self, r_ready: Held | None, s_ready: Held | None) -> Matches:
        held = self._joining(r_ready, s_ready)
        job = run.complete(self._engine, self._job(*held), self._knobs)
        if not self._prepared:
            self._engine.prepare(job, lambda _: None)
            self._prepared = True
        fitting = pairs_that_fit()
        meter = Meter(fitting_pairs=fitting, max_pairs=self._max_pairs)
        if r_ready is not None or s_ready is not None:
            self._engine.run(job, None, meter)
        limits = self._limits(job, (r_ready, s_ready))
        decided = decided_by(job, (self._r, self._s), held, meter.pairs(), limits)
        batches = decided.matches(self._max_pairs)
        rows = sum(len(each) for each in batches)
        digest = sum(int(Pairs(each.r_rows, each.s_rows).digest, 16) for each in batches)
        r = self._r.after(r_ready, decided.windows[0], decided.owed[0])
        s = self._s.after(s_ready, decided.windows[1], decided.owed[1])
        # All slow steps are done: an interrupt before leaves the round undone, after leaves it
        # done.
        self._r.state, self._s.state, self._decided = r, s, batches[1:]
        self._done_us, self._last_us = limits.done_us, max(self._last_us, limits.reached_us)
        self._rounds, self._pairs = self._rounds + 1, self._pairs + rows
        self._digest = (self._digest + digest) % (1 << 64)
        room = min(each for each in (fitting, self._max_pairs, 1 << 62) if each is not None)
        if rows * ROOM <= room:
            self._round_tuples = min(2 * self._round_tuples, MAX_WAITING_TUPLES)
        return batches[0]

    def _limits(self, job: Job, ready: tuple[Held | None, Held | None]) -> Limits:
        """Return what will have passed once these are joined."""
        done_us = passed_us((self._r, self._s), ready, self._ended)
        reached_us = max(self._last_us, job.end_us) if job.tuples else self._last_us
        ordered, rows_us, last_us = self._order != "none", NEVER, NEVER
        if done_us == NEVER:
            last_us = reached_us
            if needs_arrivals(self._window):  # what advance() said counts as time of the input
                last_us = max(last_us, min(self._r.frontier_us, self._s.frontier_us))
        elif self._how != "semi" or ordered:
            rows_us = done_us - ordered
        return Limits(done_us, rows_us, last_us, reached_us, self._engine.promise(job))

    def _joining(self, r_ready: Held | None, s_ready: Held | None) -> tuple[Held, Held]:
        """Append arrivals to the tuples of the windows."""
        r_types, s_types = self._types()
        return self._r.joining(r_ready, r_types), self._s.joining(s_ready, s_types)

    def _job(self, r: Held, s: Held) -> Job:
        return Job(
            *comparable(r.stream("r"), s.stream("s"), self._predicate),
            self._predicate,
            self._window,
            threads=self._threads,
            order=self._order,
            carried=(self._r.live, self._s.live),
            max_pairs=self._max_pairs,
            how=self._how,
        )


def _first(held: Held | None, count: int) -> Held | None:
    """Return the first ``count`` tuples, or None if there are none."""
    if held is None or not count:
        return None
    return held if count >= len(held.ts) else held.take(slice(0, count))
