"""Deadlines: of a wait that ends if nothing moves, and of one for a condition."""

from collections.abc import Callable
from time import monotonic

from streamjoin.errors import DeadlineError

LOOK_S = 0.05
"""Seconds between reads of the counters while no transfer ends."""

MAX_LOOK_S = 10 * LOOK_S
"""Maximum seconds of silence that one read counts for: a program that was suspended has seen
none."""


class Watch:
    """Ends a wait in which neither transfers nor the design's counters move.

    Only observed silence counts: a program that was suspended for longer than the limit reads the
    counters several times before it raises.

    Parameters
    ----------
    progress : callable
        Reads counters that move while the design works.
    state : callable
        Describes design and DMA, for the error message.
    quiet_limit_s : float
        Seconds of silence that are a fault.
    """

    def __init__(
        self,
        progress: Callable[[], tuple[int, ...]],
        state: Callable[[], str],
        quiet_limit_s: float,
    ) -> None:
        self._progress, self._state, self._limit_s = progress, state, quiet_limit_s
        self._seen: tuple[int, ...] = ()
        self._looked, self._quiet_s = monotonic(), 0.0

    def look(self, moved: bool) -> None:
        """Note progress; read the counters at intervals if there is none.

        Raises
        ------
        DeadlineError
            If nothing has moved for too long.
        """
        now = monotonic()
        if moved:
            self._looked, self._quiet_s = now, 0.0
            return
        passed_s = now - self._looked
        if passed_s <= LOOK_S:
            return
        self._looked, seen = now, self._progress()
        if seen != self._seen:
            self._seen, self._quiet_s = seen, 0.0
            return
        self._quiet_s += min(passed_s, MAX_LOOK_S)
        if self._quiet_s > self._limit_s:
            raise DeadlineError(
                f"the design took no tuple and gave no result for {self._quiet_s:.1f} s: "
                f"{self._state()}"
            )


def wait_until(ready: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Wait for a condition.

    Raises
    ------
    DeadlineError
        With ``what`` did not happen, after ``deadline_s``.
    """
    ends = monotonic() + deadline_s
    while not ready():
        if monotonic() > ends:
            raise DeadlineError(f"{what} within {deadline_s:g} s")
