"""Queries that Ctrl-C, SIGTERM and a deadline end at once.

A database's client blocks in C, where Python handles no signal. So a query runs in a thread of
its own, and the caller waits for it where signals are handled; whatever ends the wait cancels the
query.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from streamjoin.errors import DeadlineError

DEADLINE_S = 60.0
"""Maximum duration of a query in seconds."""

CANCEL_S = 5.0
"""Maximum wait in seconds for a cancelled query to end; then its thread is abandoned."""

SIGNAL_S = 0.2
"""Seconds between looks for signals while a query runs."""

RETRY_S = 0.05
"""Seconds between cancellations: one before the query has begun has no effect."""

Result = TypeVar("Result")


def run_with_deadline(
    query: Callable[[], Result],
    cancel: Callable[[], None] | None,
    deadline_s: float,
    what: str,
) -> Result:
    """Call a function that blocks, and wait for it.

    Parameters
    ----------
    query : callable
        What to do; its result or exception is that of this call.
    cancel : callable or None
        Called from another thread, repeatedly, until ``query`` ends; None if it cannot be
        cancelled and is abandoned.
    deadline_s : float
        Maximum duration in seconds.
    what : str
        What is done, as in "planes.db: reading rows 0 to 99", for the error.

    Raises
    ------
    DeadlineError
        If the query takes longer.
    """
    worker = _worker()
    try:
        worker.asked.put(query)
        succeeded, answer = _answer(worker, time.monotonic() + deadline_s)
    except Empty:
        _end(worker, cancel)
        raise DeadlineError(
            f"{what} took over {deadline_s:g} s and was ended: is the relation a very large one, "
            "or its disk or server overloaded?"
        ) from None
    except BaseException:
        _end(worker, cancel)
        raise
    _idle.append(worker)
    if succeeded:
        return answer  # type: ignore[no-any-return]  # what query returned
    raise answer


class _Worker:
    """A thread that calls what it is asked to, and answers with result or exception."""

    def __init__(self) -> None:
        self.asked: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self.answers: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
        Thread(target=self._run, name="store-query", daemon=True).start()

    def _run(self) -> None:
        while True:
            query = self.asked.get()
            try:
                answer = True, query()
            except BaseException as error:  # every one is the caller's
                answer = False, error
            self.answers.put(answer)
            del query, answer  # nothing is kept until the next one


_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)  # no thread survives a fork


def _worker() -> _Worker:
    try:
        return _idle.pop()
    except IndexError:
        return _Worker()


def _answer(worker: _Worker, deadline: float) -> tuple[bool, Any]:
    """Wait in slices: a signal just before the waiting begins is seen at the end of a slice."""
    while (left_s := deadline - time.monotonic()) > SIGNAL_S:
        with suppress(Empty):
            return worker.answers.get(timeout=SIGNAL_S)
    return worker.answers.get(timeout=max(left_s, 0.0))


def _end(worker: _Worker, cancel: Callable[[], None] | None) -> None:
    """Cancel what a worker does until it ends; the cancelling call may itself block."""
    if cancel is None:
        return

    def try_to_cancel() -> None:
        with suppress(Exception):  # the query has just ended: its driver's own error says so
            cancel()

    canceller = None
    until = time.monotonic() + CANCEL_S
    while time.monotonic() < until:
        if canceller is None or not canceller.is_alive():
            canceller = Thread(target=try_to_cancel, name="store-cancel", daemon=True)
            canceller.start()
        try:
            worker.answers.get(timeout=RETRY_S)
        except Empty:
            continue
        _idle.append(worker)
        return
