"""Rounds of a live join: which tuples can be joined, joining them, and what is kept.

An engine with a session (:meth:`~streamjoin.engines.base.Engine.open`) keeps the windows itself,
and a round is proportional to its arrivals. Any other engine gets the tuples of the windows, which
fill its windows, followed by the arrivals: the time of a round is proportional to both.
"""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamjoin import run
from streamjoin.engines.base import Engine
from streamjoin.engines.job import Job
from streamjoin.engines.kinds import NEVER
from streamjoin.engines.session import Arriving, Fits
from streamjoin.errors import NARROWER, TooLargeError
from streamjoin.estimate import pairs_that_fit
from streamjoin.inputs.agreement import Types, agreed_types, comparable
from streamjoin.inputs.conversion import as_compared, equal_columns, targets
from streamjoin.inputs.decimals import is_decimal
from streamjoin.live.held import Book, Held, Now, Progress
from streamjoin.live.kept import appended, joined_kept, settled_kept
from streamjoin.live.ledger import Ledger
from streamjoin.live.matches import Matches
from streamjoin.live.side import Side, after
from streamjoin.live.undecided import Limits, decided_by, passed_us
from streamjoin.metrics import Meter
from streamjoin.tuples import Pairs, Stream, arrival_positions
from streamjoin_common.language.durations import MAX_US
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window, needs_arrivals

MAX_WAITING_TUPLES = 1 << 24
"""Maximum tuples that wait to be joined; pushing more is refused."""

ROUND_TUPLES = 1 << 17
"""Maximum arrivals of a round: their matches are in memory together."""

ROOM = 4
"""A round that was cut is doubled again if this many times its pairs fit into memory."""

FREE_FOR_S = 0.1
"""Seconds for which the free memory is not read again."""

NO_LIMITS = Fits(None, None)


@dataclass(frozen=True)
class Asked:
    """What a live join was asked for."""

    predicate: Predicate
    window: Window
    threads: int
    order: str
    max_pairs: int | None
    how: str


class Rounds:
    """The rounds of a join.

    Parameters
    ----------
    engine : Engine
        The engine.
    asked : Asked
        What was asked for.
    knobs : mapping or None
        The engine's knobs.
    sides : tuple of Side
        R and S.
    book : Book
        What the join holds.

    Attributes
    ----------
    ended : bool
        Whether no more tuples will arrive.
    """

    def __init__(
        self,
        engine: Engine,
        asked: Asked,
        knobs: Mapping[str, Any] | None,
        sides: tuple[Side, Side],
        book: Book,
    ) -> None:
        self._engine, self._asked, (self._r, self._s) = engine, asked, sides
        self._book, self.ended = book, False
        self._prepared, self._promise = False, "none"
        self._ledger: Ledger | None = None
        self._words = (False, False)
        self._types_of: tuple[Any, Any, Any] = (None, None, None)
        self._fitting: tuple[float, Fits] = (-1.0, NO_LIMITS)
        self._tuples = MAX_WAITING_TUPLES
        # Refuse options that do not fit together early.
        self._knobs = run.complete(engine, self._job(*self._joining(None, None)), knobs).knobs

    def types(self, r: Types | None, s: Types | None) -> tuple[Types, Types]:
        """Return the types of both sides' join columns.

        Raises
        ------
        InputError
            If they do not compare.
        """
        if r is None or s is None or r is not self._types_of[0] or s is not self._types_of[1]:
            self._types_of = (r, s, agreed_types(r, s, self._asked.predicate))
        agreed: tuple[Types, Types] = self._types_of[2]
        return agreed

    def _types(self) -> tuple[Types, Types]:
        return self.types(self._r.state.types, self._s.state.types)

    def close(self) -> None:
        """Drop all that waits, results that were not taken, and the engine's session."""
        self.ended, now = True, self._book.now
        now.progress.decided.clear()
        r, s = (
            state._replace(waiting=(), window=None, owed=None, payload=None) for state in now.sides
        )
        progress = now.progress._replace(opened=True, session=None, kept=None, settled=None)
        self._book.now = Now((r, s), progress, now.stamped)

    @property
    def owes(self) -> bool:
        """Whether rows of one side alone are still to come."""
        progress = self._book.now.progress
        if self._ledger is not None and progress.settled is not None:
            return self._ledger.owes(progress.settled)
        return self._r.owes(self._asked.how) or self._s.owes(self._asked.how)

    def next(self) -> deque[Matches] | None:
        """Join one round of tuples; return the results to take, None if no tuple can be joined.

        A round that has too many pairs is cut in half until it fits.
        """
        inner = self._asked.how == "inner"
        while True:
            (r, s), progress, _ = self._book.now
            if progress.decided:
                return progress.decided
            if inner and not r.waiting and not s.waiting:
                return None
            ready = self._ready(min(ROUND_TUPLES, self._tuples))
            r_ready, s_ready = ready
            count = 0 if r_ready is None else len(r_ready.ts)
            count += 0 if s_ready is None else len(s_ready.ts)
            if not count and inner:
                return None
            if not count:
                passed = passed_us((self._r, self._s), ready, self.ended)
                if passed <= progress.done_us:
                    return None
            try:
                if progress.session is not None or (count and self._keeps()):
                    return self._join_kept(r_ready, s_ready)
                return self._join(r_ready, s_ready)
            except MemoryError as error:
                self._fitting = (-1.0, NO_LIMITS)
                if not count:
                    raise
                if count == 1:
                    raise self._too_large(ready, error) from None
            self._tuples = count // 2

    def _keeps(self) -> bool:
        """Open the engine's session once both streams have types; say whether there is one."""
        (r_state, s_state), progress, stamped = self._book.now
        if progress.opened:
            return progress.session is not None
        if r_state.owed is not None or s_state.owed is not None:  # of no session: soon they come
            return False
        r_types, s_types = r_state.types, s_state.types
        if r_types is None or s_types is None:
            return False
        if any(map(is_decimal, (*r_types.values(), *s_types.values()))):  # whose scale may change
            self._book.turn(progress=progress._replace(opened=True))
            return False
        held = self._joining(None, None)
        r, s = (
            self._compared(side, each) for side, each in zip((self._r, self._s), held, strict=True)
        )
        job = run.complete(self._engine, self._job_of(r, s), self._knobs)
        session = self._engine.open(job)
        if session is None:
            self._book.turn(progress=progress._replace(opened=True))
            return False
        names = (self._asked.predicate.r_columns, self._asked.predicate.s_columns)
        agreed = self._types()
        wanted = targets(*agreed, self._asked.predicate, ("r", "s"))
        r_words, s_words = (
            all(
                _is_word(of_side[name], to[name], in_equality=name in of_equal) for name in of_names
            )
            for of_side, to, of_names, of_equal in zip(
                agreed, wanted, names, equal_columns(self._asked.predicate), strict=True
            )
        )
        self._words = (r_words, s_words)
        r_state = r_state._replace(
            window=None, payload=appended(r_state, held[0] if len(held[0].ts) else None)
        )
        s_state = s_state._replace(
            window=None, payload=appended(s_state, held[1] if len(held[1].ts) else None)
        )
        progress = progress._replace(opened=True, session=session, kept=session.kept)
        if self._asked.how != "inner":
            self._ledger = Ledger(self._asked.how, self._asked.window, held)
            progress = progress._replace(settled=self._ledger.begun)
        self._promise = self._engine.promise(job)
        self._book.now = Now((r_state, s_state), progress, stamped)
        return True

    def _join_kept(self, r_ready: Held | None, s_ready: Held | None) -> deque[Matches]:
        """Join a round by the engine's session."""
        fits, ready = self._fits(), (r_ready, s_ready)
        arriving = (
            None if r_ready is None else self._arriving(self._r, r_ready),
            None if s_ready is None else self._arriving(self._s, s_ready),
        )
        if self._asked.how == "inner":
            now, pairs = joined_kept(self._book.now, ready, arriving, fits)
        else:
            limits, ledger = self._limits(self._promise, ready), self._ledger
            assert ledger is not None
            now, pairs = settled_kept(
                self._book.now, ready, arriving, fits, limits=limits, ledger=ledger
            )
        # All slow steps are done: an interrupt before leaves the round undone, after it done.
        self._book.now = now
        if self._tuples < MAX_WAITING_TUPLES:
            self._grow(pairs, fits.fitting_pairs)
        return now.progress.decided

    def _fits(self) -> Fits:
        """Return the maximum pairs of a round, by free memory that was read lately."""
        now_s = time.monotonic()
        if now_s > self._fitting[0]:
            fits = Fits(self._asked.max_pairs, pairs_that_fit())
            self._fitting = (now_s + FREE_FOR_S, fits)
        return self._fitting[1]

    def _arriving(self, side: Side, held: Held) -> Arriving:
        """Return arrivals as an engine compares them."""
        if self._words[side is self._s]:
            return Arriving(held.batch.columns, held.ts, held.numbers, held.batch.missing)
        stream = self._compared(side, held)
        return Arriving(stream.columns, stream.ts, held.numbers, stream.missing)

    def _compared(self, side: Side, held: Held) -> Stream:
        """Return tuples of one stream as an engine compares them, by the types of both."""
        of_s, predicate = side is self._s, self._asked.predicate
        wanted = targets(*self._types(), predicate, ("r", "s"))[of_s]
        columns = predicate.s_columns if of_s else predicate.r_columns
        return as_compared(held.stream(side.name), columns, wanted, equal_columns(predicate)[of_s])

    def _grow(self, rows: int, fitting: int | None) -> None:
        """Let rounds that were cut become larger, where there is room."""
        room = min(each for each in (fitting, self._asked.max_pairs, 1 << 62) if each is not None)
        if rows * ROOM <= room:
            self._tuples = min(2 * self._tuples, MAX_WAITING_TUPLES)

    def _ready(self, count: int) -> tuple[Held | None, Held | None]:
        """Return the first ``count`` tuples that no later arrival can precede."""
        (r_state, s_state), _, _ = self._book.now
        r_last_us = s_last_us = MAX_US
        if not self.ended:
            r_us, s_us = r_state.newest_us - self._r.late_us, s_state.newest_us - self._s.late_us
            r_last_us, s_last_us = (s_us, s_us) if s_us < r_us else (r_us, r_us - 1)
        r_types, s_types = self.types(r_state.types, s_state.types)
        r = self._r.ready(r_last_us, r_types) if r_state.waiting else None
        s = self._s.ready(s_last_us, s_types) if s_state.waiting else None
        if r is None or s is None:
            return _first(r, count) if r else None, _first(s, count) if s else None
        if len(r.ts) + len(s.ts) <= count:
            return _first(r, count), _first(s, count)
        r_positions, s_positions = arrival_positions(r.ts, s.ts)
        r_count, s_count = (
            int(np.searchsorted(positions, count)) for positions in (r_positions, s_positions)
        )
        return _first(r, r_count), _first(s, s_count)

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

    def _join(self, r_ready: Held | None, s_ready: Held | None) -> deque[Matches]:
        held = self._joining(r_ready, s_ready)
        job = run.complete(self._engine, self._job(*held), self._knobs)
        if not self._prepared:
            self._engine.prepare(job, lambda _: None)
            self._prepared = True
        fitting = pairs_that_fit()
        meter = Meter(fitting_pairs=fitting, max_pairs=self._asked.max_pairs)
        if r_ready is not None or s_ready is not None:
            self._engine.run(job, None, meter)
        limits = self._limits(self._engine.promise(job), (r_ready, s_ready))
        decided = decided_by(job, (self._r, self._s), held, meter.pairs(), limits)
        batches = decided.matches(self._asked.max_pairs)
        rows = sum(len(each) for each in batches)
        digest = sum(int(Pairs(each.r_rows, each.s_rows).digest, 16) for each in batches)
        (r, s), before, stamped = self._book.now
        r = after(r, r_ready, decided.windows[0], decided.owed[0])
        s = after(s, s_ready, decided.windows[1], decided.owed[1])
        left = deque(each for each in batches if len(each))
        done = Progress(
            before.rounds + 1,
            before.pairs + rows,
            (before.digest + digest) % (1 << 64),
            limits.done_us,
            max(before.last_us, limits.reached_us),
            left,
            before.opened,
        )
        # All slow steps are done: an interrupt before leaves the round undone, after it done.
        self._book.now = Now((r, s), done, stamped)
        self._grow(rows, fitting)
        return left

    def _limits(self, promise: str, ready: tuple[Held | None, Held | None]) -> Limits:
        """Return what will have passed once these are joined."""
        done_us = passed_us((self._r, self._s), ready, self.ended)
        reached_us = self._book.now.progress.last_us
        for held in ready:
            if held is not None:
                reached_us = max(reached_us, int(held.ts[-1]))
        ordered, rows_us, last_us = self._asked.order != "none", NEVER, NEVER
        by_time = needs_arrivals(self._asked.window)
        if done_us == NEVER:
            last_us = reached_us
            if by_time:  # what advance() said counts as time of the input
                last_us = max(last_us, min(self._r.frontier_us, self._s.frontier_us))
        elif self._asked.how != "semi" or ordered:
            rows_us = done_us - ordered
            if ordered and self._asked.how == "full" and not by_time:
                # Should the input end here, rows of R come out with the last arrival's time.
                rows_us = min(rows_us, reached_us - 1)
        return Limits(done_us, rows_us, last_us, reached_us, promise)

    def _joining(self, r_ready: Held | None, s_ready: Held | None) -> tuple[Held, Held]:
        """Append arrivals to the tuples of the windows."""
        r_types, s_types = self._types()
        return self._r.joining(r_ready, r_types), self._s.joining(s_ready, s_types)

    def _job(self, r: Held, s: Held) -> Job:
        streams = comparable(r.stream("r"), s.stream("s"), self._asked.predicate)
        return self._job_of(*streams)

    def _job_of(self, r: Stream, s: Stream) -> Job:
        asked = self._asked
        return Job(
            r,
            s,
            asked.predicate,
            asked.window,
            threads=asked.threads,
            order=asked.order,
            carried=(self._r.live, self._s.live),
            max_pairs=asked.max_pairs,
            how=asked.how,
        )


def _is_word(dtype: "np.dtype[Any]", to: "np.dtype[Any]", *, in_equality: bool) -> bool:
    """Whether a session takes values of this type as they are pushed.

    Integers that are compared with decimals are scaled first, and NaN in an equality is missing.
    """
    if dtype.kind in "fO":
        return to == dtype and (dtype.kind == "O" or not in_equality)
    return dtype.kind in "iu" and to.kind in "iu"


def _first(held: Held | None, count: int) -> Held | None:
    """Return the first ``count`` tuples, or None if there are none."""
    if held is None or not count:
        return None
    return held if count >= len(held.ts) else held.take(slice(0, count))
