"""What a live stream holds: tuples that wait or are in the window, and rows that are owed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.inputs.agreement import Types
from streamjoin.inputs.batches import Batch
from streamjoin.inputs.lateness import LONG_AGO
from streamjoin.live.layout import Layout
from streamjoin.live.payload import Payload
from streamjoin.tuples import Int64s, Stream


@dataclass(frozen=True)
class Held:
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


@dataclass(frozen=True)
class Owed:
    """Tuples whose rows are certain, and the rows' times, before which others may come."""

    held: Held
    times: Int64s


@dataclass(frozen=True)
class State:
    """The state of a stream; it is replaced as a whole, so a call that fails leaves it unchanged.

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
