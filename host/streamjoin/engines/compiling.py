"""Says that kernels are compiled, when they are: what the cache holds is loaded without a word."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

AGAIN_S = 10.0
"""Seconds of compiling after which the count of kernels is reported again."""


class _Count:
    """Kernels that were not in the cache, of one preparation."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._kernels = 0
        self._began_s = self._reported_s = monotonic()

    def one(self) -> None:
        """Count a kernel that is compiled now."""
        self._kernels += 1
        now_s = monotonic()
        if self._kernels == 1:
            self._began_s = self._reported_s = now_s
            self._report("compiling kernels, which are kept for later runs")
        elif now_s - self._reported_s > AGAIN_S:
            self._reported_s = now_s
            elapsed_s = now_s - self._began_s
            self._report(f"compiling kernels: {self._kernels} so far, {elapsed_s:.0f} s")


_count: ContextVar[_Count | None] = ContextVar("streamjoin_compiling", default=None)


@contextmanager
def reported(report: Callable[[str], None]) -> Iterator[None]:
    """Report what is compiled within the block, if anything is.

    Parameters
    ----------
    report : callable
        Called with a line when the first kernel is compiled, and then every :data:`AGAIN_S`.
    """
    token = _count.set(_Count(report))
    try:
        yield
    finally:
        _count.reset(token)


_total = [0]


def total() -> int:
    """Return how many kernels this process has compiled so far, in any thread."""
    return _total[0]


def begins() -> None:
    """Note that a kernel is compiled, as the cache does not hold it."""
    _total[0] += 1
    count = _count.get()
    if count is not None:
        count.one()
