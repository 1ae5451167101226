"""Lazy joins: buffer both streams until the window's end, then join with all threads.

The IaWJ study, section 3.1.
"""

from abc import abstractmethod

from streamjoin.engines.crew import Crew
from streamjoin.engines.intra.window import IntraWindowEngine, WindowTuples
from streamjoin.engines.job import Job
from streamjoin.metrics import Meter


class LazyEngine(IntraWindowEngine):
    """A join that runs when its window is complete."""

    def join_window(self, window: WindowTuples, crew: Crew, job: Job, meter: Meter) -> None:
        """Wait for the window's end, then join."""
        if window.end_us:
            crew.each(lambda _: crew.sleep_until_us(meter, window.end_us), range(crew.threads))
        self.join_complete(window, crew, job, meter)

    @abstractmethod
    def join_complete(self, window: WindowTuples, crew: Crew, job: Job, meter: Meter) -> None:
        """Join a window that is complete."""
