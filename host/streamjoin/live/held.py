"""What a live join holds, as one immutable value: tuples that wait or are in windows, and results.

A call replaces the whole value (:class:`Book`) when nothing can fail any more. So a call that fails
or is interrupted, at whatever line, has either changed nothing or been done.
"""

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.inputs.agreement import Types
from streamjoin.inputs.batches import Batch
from streamjoin.inputs.lateness import LONG_AGO
from streamjoin.live.layout import Layout
from streamjoin.live.payload import Payload
from streamjoin.tuples import Int64s, Stream

if TYPE_CHECKING:
    from streamjoin.engines.session import Kept, Session
    from streamjoin.live.matches import Matches


class Held(NamedTuple):
    """Tuples and their numbers: the tuples of the stream pushed before each.

    ``met`` says of each whether it was in a pair, where the kind of join needs it.
    """

    batch: Batch
    ts: Int64s
    numbers: Int64s
    met: NDArray[np.bool_] | None = None

    @property
    def bits(self) -> NDArray[np.bool_]:
        """Whether each was in a pair: none, where that is not kept."""
        return np.zeros(len(self.ts), np.bool_) if self.met is None else self.met

    def take(self, selected: Any) -> "Held":
        """Return the tuples of these row numbers, or of this slice."""
        met = None if self.met is None else self.met[selected]
        return Held(self.batch.take(selected), self.ts[selected], self.numbers[selected], met)

    def stream(self, source: str) -> Stream:
        """Return them as a stream, not yet comparable with the other side's."""
        batch = self.batch
        return Stream(batch.columns, self.ts, source, None, batch.missing, self.numbers)


class Owed(NamedTuple):
    """Tuples whose rows are certain, and the rows' times, before which others may come."""

    held: Held
    times: Int64s


class State(NamedTuple):
    """The state of a stream.

    Attributes
    ----------
    pushed, late : int
        Tuples pushed so far, and how many of them arrived too late.
    newest_us : int
        The newest arrival time so far.
    types : mapping of str to dtype, or None
        The join columns' types; None until there is a tuple with a value in each.
    layout : Layout or None
        The common layout of the Arrow tables.
    waiting : tuple of Held
        Tuples that were pushed and not joined yet.
    window : Held or None
        Tuples in the window.
    owed : Owed or None
        Rows of this side alone that wait for their time.
    payload : Payload or None
        Rows of the window, where an engine's session keeps the window itself.
    """

    pushed: int = 0
    late: int = 0
    newest_us: int = LONG_AGO
    types: Types | None = None
    layout: Layout | None = None
    waiting: tuple[Held, ...] = ()
    window: Held | None = None
    owed: Owed | None = None
    payload: Payload | None = None


class Alone(NamedTuple):
    """Rows of one side alone.

    Attributes
    ----------
    serials, numbers, ts : ndarray of int64
        The tuples: those of the stream that were joined before each, what results call them, and
        their arrival times.
    times : ndarray of int64
        The rows' times.
    """

    serials: Int64s
    numbers: Int64s
    ts: Int64s
    times: Int64s

    def take(self, which: NDArray[Any]) -> "Alone":
        """Return some rows."""
        return Alone(*(column[which] for column in self))


NOTHING = Alone(*(np.empty(0, dtype=np.int64) for _ in range(4)))


class Settled(NamedTuple):
    """What a round has decided.

    Attributes
    ----------
    first, end : tuple of int
        Serial numbers of the first tuples of R and of S that are not decided, and of the next ones.
    last : int
        The round: marks up to it count.
    owed : tuple of Alone
        Rows of R and of S that are certain, and wait for their time.
    """

    first: tuple[int, int]
    end: tuple[int, int]
    last: int
    owed: tuple[Alone, Alone] = (NOTHING, NOTHING)

    def needed(self, side: int, first: int) -> int:
        """Return the first serial number whose row may be looked up, at most ``first``."""
        return min(first, self.first[side], int(self.owed[side].serials.min(initial=first)))


class Progress(NamedTuple):
    """What a join has done.

    Attributes
    ----------
    rounds, pairs, digest : int
        Rounds, their pairs and the pairs' digest.
    done_us, last_us : int
        Time before which all is joined, and the last arrival that was.
    decided : deque of Matches
        Results that have not been taken. It is filled before it is put here, and results are only
        taken from it.
    opened : bool
        Whether the engine was asked for a session.
    session : Session or None
        The engine's session.
    kept : Kept or None
        What the windows of the session hold.
    settled : Settled or None
        Beside a session, for kinds of join but ``inner``: what is decided.
    """

    rounds: int
    pairs: int
    digest: int
    done_us: int
    last_us: int
    decided: "deque[Matches]"
    opened: bool = False
    session: "Session | None" = None
    kept: "Kept | None" = None
    settled: Settled | None = None


class Now(NamedTuple):
    """All that a join holds.

    Attributes
    ----------
    sides : tuple of State
        Of R and of S.
    progress : Progress
        What has been done.
    stamped : bool or None
        Whether tuples are stamped when they are pushed; None until there are some.
    """

    sides: tuple[State, State]
    progress: Progress
    stamped: bool | None


class Book:
    """Holds the one value, which is replaced by one assignment.

    Attributes
    ----------
    now : Now
        The value.
    """

    def __init__(self) -> None:
        progress = Progress(0, 0, 0, LONG_AGO, LONG_AGO, deque())
        self.now = Now((State(), State()), progress, None)

    def turn(self, **changed: Any) -> None:
        """Replace parts of the value."""
        self.now = self.now._replace(**changed)
