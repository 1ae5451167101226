"""The deadline of a wait: silence ends it, work does not."""

import time
from collections.abc import Callable

from streamjoin.errors import DeadlineError

LOOK_S = 0.05
"""Seconds between looks at the counters while nothing comes."""


class Watch:
    """Ends a wait in which nothing moves, neither transfers nor the design's counters.

    Parameters
    ----------
    progress : callable
        Reads counters that move while the design works.
    state : callable
        Describes design and DMA, for the error's text.
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
        self._moved = self._looked = time.monotonic()

    def look(self, moved: bool) -> None:
        """Take note of progress; looks at the counters now and then where there is none.

        Raises
        ------
        DeadlineError
            If nothing has moved for too long.
        """
        now = time.monotonic()
        if moved:
            self._moved = now
        elif now - self._looked > LOOK_S:
            self._looked = now
            seen = self._progress()
            if seen != self._seen:
                self._seen, self._moved = seen, now
            elif now - self._moved > self._limit_s:
                raise DeadlineError(
                    f"the design took no tuple and gave no result for {now - self._moved:.1f} s: "
                    f"{self._state()}"
                )
