"""Joining while tuples arrive: push batches of both streams, pull the pairs that they complete.

Both streams have one arrival order, by arrival time. A tuple is joined once no tuple that precedes
it can still arrive: when the other stream has reached that time too (or
:meth:`StreamJoiner.advance` says so), and the lateness, if any, has passed. Tuples without an
arrival column are stamped when they are pushed and can be joined at once.

The engine joins in rounds (:mod:`~streamjoin.live.rounds`). Its memory is bounded by the windows
and by the tuples that wait.
"""

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any

import numpy as np

from streamjoin.api import as_window
from streamjoin.engines import catalog
from streamjoin.errors import InputError
from streamjoin.inputs.batches import Batch
from streamjoin.live.held import Book, Now
from streamjoin.live.matches import Matches
from streamjoin.live.rounds import MAX_WAITING_TUPLES, Asked, Rounds
from streamjoin.live.side import Side
from streamjoin.metrics import Meter
from streamjoin.tuples import whole
from streamjoin_common.arguments import with_hints
from streamjoin_common.language.arrivals import Arrivals, Unit
from streamjoin_common.language.durations import parse_lateness
from streamjoin_common.language.kinds import How, parse_how
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window


class StreamJoiner:
    """A join of two streams while they arrive.

    Several threads may push, and another one may take the results: a push waits for a round to end.
    Pushed arrays are copied; Arrow's and polars' data are kept, which nobody changes.

    Parameters
    ----------
    on, band, window, engine, threads, order, ts, ts_unit, knobs, how
        As :func:`streamjoin.join`; the engine is one of sliding windows, for ``auto``
        ``ibwj-flat``. A tuple without a partner comes out once both streams have reached the time
        of its row, or at the end; one of ``semi`` with its first pair, and at its position in the
        order that was asked for.
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
        ts_unit: Unit | None = None,
        lateness: str | timedelta | None = None,
        knobs: Mapping[str, int | str] | None = None,
        max_pairs: int | None = None,
        how: How = "inner",
    ) -> None:
        how = parse_how(how)
        predicate, window = Predicate.parse(on, band), as_window(window)
        self._engine = catalog.live(engine)
        self._lateness_us = parse_lateness(lateness)
        arrivals = Arrivals.parse(ts, ts_unit, window)
        if self._lateness_us is not None and not arrivals.r.name:
            raise InputError("a lateness needs arrival times, and ts='' says that there are none")
        self._book = book = Book()
        self._r = Side("r", predicate.r_columns, arrivals.r, self._lateness_us, book)
        self._s = Side("s", predicate.s_columns, arrivals.s, self._lateness_us, book)
        self._clock = Meter()
        self._clock.start()
        self._clock.stop()
        self._lock = threading.RLock()
        self._asked = Asked(predicate, window, threads, order, max_pairs, how)
        self._rounds = Rounds(self._engine, self._asked, knobs, (self._r, self._s), book)

    def push_r(self, data: object) -> None:
        """Push tuples of R: Arrow data, a data frame or a mapping of arrays, in arrival order.

        Raises
        ------
        InputError
            If a column is missing, changes its type or does not compare with the other stream's,
            arrival times go back without a lateness, too much waits already, or the input has
            ended. The joiner then is as it was before.
        """
        self._push(self._r, data)

    def push_s(self, data: object) -> None:
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
            self._book.turn(sides=(self._r.reached(reached_us), self._s.reached(reached_us)))
            for side in (self._r, self._s):
                side.promised_us = max(side.promised_us, reached_us)

    def end(self) -> None:
        """Say that no more tuples will arrive: :meth:`results` then joins all that is left."""
        with self._lock:
            self._rounds.ended = True

    def results(self) -> Iterator[Matches]:
        """Join what can be joined, round by round, and yield each round's pairs.

        It does not wait for input: it ends when all other tuples have to wait for more.

        Raises
        ------
        TooLargeError
            If a single tuple has more matches than ``max_pairs`` or than the free memory holds; it
            and all later tuples stay waiting.
        """
        book, inner = self._book, self._asked.how == "inner"
        while (decided := self._next()) is not None:
            try:
                # Taken and yielded without a line of Python between them, where an interrupt
                # could lose a result.
                yield from iter(decided.popleft, None)
            except IndexError:  # all are taken
                (r, s), progress, _ = book.now
                if inner and not (r.waiting or s.waiting or progress.decided):
                    return

    def _next(self) -> deque[Matches] | None:
        with self._lock:
            return self._rounds.next()

    @property
    def metrics(self) -> dict[str, Any]:
        """Metrics so far: tuples, pairs and their digest, late and waiting tuples."""
        done, asked = self._book.now.progress, self._asked
        return {
            "engine": self._engine.name,
            "n_r": self._r.state.pushed,
            "n_s": self._s.state.pushed,
            "late": [self._r.state.late, self._s.state.late],
            "waiting": [self._r.waiting, self._s.waiting],
            "window_tuples": [self._r.live, self._s.live],
            "pairs": done.pairs,
            "digest": f"{done.digest:016x}",
            "rounds": done.rounds,
            "window": asked.window.text,
            "predicate": asked.predicate.text,
            "how": asked.how,
        }

    def close(self) -> None:
        """Drop tuples and rows that wait; pushing is refused from now on."""
        with self._lock:
            self._rounds.close()

    def __enter__(self) -> "StreamJoiner":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        waiting = self._waiting
        how = self._asked.how
        owed = self._book.now.progress.decided or self._rounds.owes
        self.close()
        if waiting and kind is None:
            raise InputError(
                f"{waiting} tuples were pushed and not joined: call end() and take results() "
                "before leaving, or close() to drop them"
            )
        if owed and kind is None:
            raise InputError(
                f"rows of how {how} wait for the end: call end() and take results() "
                "before leaving, or close() to drop them"
            )

    @property
    def _ended(self) -> bool:
        return self._rounds.ended

    @property
    def _waiting(self) -> int:
        return self._r.waiting + self._s.waiting

    def _push(self, side: Side, data: Any) -> None:
        with self._lock:
            if self._rounds.ended:
                raise InputError(f"{side.name}: the input has ended; open a new StreamJoiner")
            batch = side.read(data)
            if not batch.rows:
                self._declare(side, batch)
                return
            self._keep(side, batch)
            kept = self._book.now.progress.session is not None
            if side.form is None and (kept or self._asked.how == "inner"):
                side.learn(data, batch)

    def _declare(self, side: Side, batch: Batch) -> None:
        """Keep the columns of a batch without rows: joined rows have them from now on."""
        (r, s), _, _ = self._book.now
        sides = (side.declared(batch), s) if side is self._r else (r, side.declared(batch))
        self._book.turn(sides=sides)

    def _keep(self, side: Side, batch: Batch) -> None:
        (r, s), progress, known = self._book.now
        some = batch.rows > MAX_WAITING_TUPLES or r.waiting or s.waiting
        if some and self._waiting + batch.rows > MAX_WAITING_TUPLES:
            raise InputError(
                f"{side.name}: {self._waiting} tuples wait to be joined, the maximum is "
                f"{MAX_WAITING_TUPLES}: "
                "take results(), or call advance() for a stream that is silent"
            )
        stamped = batch.ts is None
        if known is not None and known != stamped:
            raise InputError(f"{side.name}: give all batches of both streams a ts, or none")
        if stamped and self._lateness_us is not None:
            raise InputError(f"{side.name}: a lateness needs the arrival times: there is no ts")
        ts, stamp_us = batch.ts, 0
        if ts is None:  # they arrive now: after all that was pushed before
            stamp_us = max(int(self._clock.now_us()), side.frontier_us, 0)
            ts = np.empty(batch.rows, dtype=np.int64)
            ts.fill(stamp_us)
        of_r = side is self._r
        if of_r:
            r = side.pushed(batch, ts)
        else:
            s = side.pushed(batch, ts)
        self._rounds.types(r.types, s.types)
        if stamped and of_r:
            s = self._s.reached(stamp_us, s)
        elif stamped:
            # At equal times R precedes S, so an R tuple after an S tuple needs a later time.
            r = self._r.reached(stamp_us + 1, r)
        # Nothing can fail any more: a batch that is refused has changed nothing.
        self._book.now = Now((r, s), progress, stamped)
