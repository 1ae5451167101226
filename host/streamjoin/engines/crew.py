"""The threads of a run: steps with a barrier at their end, and one way to stop them all."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, TypeVar

from streamjoin.metrics import Meter

PIECE_ROWS = 1 << 20
"""Maximum rows of a kernel call: a kernel cannot be interrupted, so it must return soon."""

LONGEST_SLEEP_US = 50_000.0
"""Interval in microseconds at which a sleeping thread checks whether the run has ended."""

POLL_S = 0.02
"""Interval in seconds at which the waiting thread checks for Ctrl-C: the system may deliver the
signal to another thread."""


HELPER = -1
"""Number of the thread that helps, beside those that work in steps."""

Item = TypeVar("Item")


class StoppedError(Exception):
    """Another thread failed, or the user interrupted: this thread ends too."""


class Crew:
    """Threads that work in steps.

    The first exception in a thread is raised by the step that it happened in, after all threads
    have ended; Ctrl-C ends them as well. When the crew is left no call of its work is running or
    will run, whatever was interrupted. For both, work must call :meth:`check` (or take its rows
    from :meth:`pieces`) at least every few hundred milliseconds.

    Parameters
    ----------
    threads : int
        Threads to keep; one is the caller's own.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pools = defaultdict[int, ThreadPoolExecutor](lambda: ThreadPoolExecutor(1))
        self._stopping = threading.Event()
        # What was asked for and is not known to be done. An interrupt may arrive while a pool
        # starts a thread, which then works although nobody was told so.
        self._asked: list[Future[Any]] = []

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        interrupt = None
        while True:
            try:
                for future in self._asked:
                    future.cancel()
                while self._asked and wait(self._asked, POLL_S).not_done:
                    pass
                for pool in self._pools.values():
                    pool.shutdown(wait=True, cancel_futures=True)
                break
            except KeyboardInterrupt as another:  # what they write to may outlive the crew
                interrupt = another
        if interrupt is not None:
            raise interrupt

    def _ask(self, number: int, work: Callable[..., Item], *arguments: Any) -> "Future[Item]":
        """Have a thread call ``work``; what it is told is known here before."""
        future: Future[Item] = Future()
        self._asked = [each for each in self._asked if not each.done()]
        self._asked.append(future)
        self._pools[number].submit(_call, future, work, arguments)
        return future

    def each(self, work: Callable[..., None], *arguments: Iterable[Any]) -> None:
        """Call ``work`` for every element of the arguments; return when all are done.

        The n-th element goes to the n-th thread, in every step: what it has in its caches may serve
        again. A single thread is the calling one: starting another would cost a small join half
        its time.
        """
        if self.threads == 1:
            for each in zip(*arguments, strict=True):
                work(*each)
            return
        futures = [
            self._ask(number % self.threads, work, *each)
            for number, each in enumerate(zip(*arguments, strict=True))
        ]
        done, others = _first_exception(futures)
        if others:
            self._stopping.set()
            wait(others)
        failed = [error for error in map(_error, [*done, *others]) if error is not None]
        causes = [error for error in failed if not isinstance(error, StoppedError)]
        for error in [*causes, *failed]:
            raise error

    def together(self, work: Callable[[int], None], give_up: Callable[[], None]) -> None:
        """Call ``work`` with the number of each thread, the last one's in the calling thread.

        That saves waking a thread, which takes as long as a small step. If a call fails, or an
        interrupt arrives before all are made, ``give_up`` must end those that wait for it.
        """
        futures: list[Future[None]] = []
        try:
            for number in range(self.threads - 1):
                futures.append(self._ask(number, work, number))
            work(self.threads - 1)
        except BaseException:
            self._stopping.set()
            give_up()
            raise
        finally:
            while wait(futures, POLL_S).not_done:
                pass
        for error in filter(None, map(_error, futures)):
            raise error

    def beside(self, work: Callable[..., Item], *arguments: Any) -> "Future[Item]":
        """Call ``work`` in a helper thread, which runs one call after another."""
        return self._ask(HELPER, work, *arguments)

    @staticmethod
    def result(future: "Future[Item]") -> Item:
        """Wait for the helper's result, and raise what it raised."""
        while not future.done():
            wait([future], POLL_S)
        return future.result()

    def ahead(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield an iterator's items; the helper computes the next while the last is used."""
        nothing = object()
        following = self.beside(next, items, nothing)
        while (item := self.result(following)) is not nothing:
            following = self.beside(next, items, nothing)
            yield item

    def on_parts(self, work: Callable[[int, int], None], rows: int) -> None:
        """Call ``work(first, end)`` on equal parts of the rows, one for each thread."""
        bounds = [rows * part // self.threads for part in range(self.threads + 1)]
        self.each(work, bounds[:-1], bounds[1:])

    def pieces(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Cut rows into pieces for one kernel call each; raise if the run has to end."""
        for start in range(first, end, PIECE_ROWS):
            self.check()
            yield start, min(start + PIECE_ROWS, end)

    def check(self) -> None:
        """End the calling thread if the run has to.

        Raises
        ------
        StoppedError
            If another thread failed or the user interrupted.
        """
        if self._stopping.is_set():
            raise StoppedError

    def idle(self, seconds: float) -> None:
        """Sleep, but no longer than until the run has to end.

        Raises
        ------
        StoppedError
            If it has to.
        """
        self._stopping.wait(seconds)
        self.check()

    def rest_until_us(self, meter: Meter, due_us: float) -> None:
        """Sleep until a time after the meter's start; the time counts in no phase."""
        while (left_us := due_us - meter.now_us()) > 0:
            self.idle(min(left_us, LONGEST_SLEEP_US) / 1e6)

    def sleep_until_us(self, meter: Meter, due_us: float) -> None:
        """Sleep until a time after the meter's start, in phase ``wait``, unless stopped."""
        while (now_us := meter.now_us()) < due_us:
            self.check()
            meter.sleep_until_us(min(due_us, now_us + LONGEST_SLEEP_US))


def _call(future: "Future[Item]", work: Callable[..., Item], arguments: tuple[Any, ...]) -> None:
    """Call ``work`` for a future that was not cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work(*arguments)
    except BaseException as error:  # also what ends the process: the calling thread raises it
        future.set_exception(error)
    else:
        future.set_result(result)


def _first_exception(
    futures: "list[Future[None]]",
) -> "tuple[set[Future[None]], set[Future[None]]]":
    """Wait until all are done or one has failed; return which are done and which are not."""
    while True:
        done, others = wait(futures, POLL_S, FIRST_EXCEPTION)
        if not others or any(_error(future) is not None for future in done):
            return done, others


def _error(future: "Future[None]") -> BaseException | None:
    return None if future.cancelled() else future.exception()
