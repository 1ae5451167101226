"""What a person sees: progress on stderr, tables on stdout."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from streamjoin_common.printing import printable
from streamjoin_common.redaction import redacted
from streamjoin_common.screen import for_screen, print_paragraph, print_table

__all__ = [
    "duration",
    "print_json",
    "print_paragraph",
    "print_table",
    "progress",
    "say",
    "si",
    "stderr",
]

ProgressCallback = Callable[[int, int], None]

PATIENCE_S = 2.0
"""Seconds of work after which a log without a terminal reports progress."""

stderr = Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """Print a message to stderr, without secrets."""
    line = for_screen(printable(redacted(text)), sys.stderr)
    stderr.print(line, markup=False, soft_wrap=True)


@contextmanager
def progress(what: str) -> Iterator[ProgressCallback]:
    """Show a bar for as long as the block runs; without a terminal a line if it takes long."""
    if not stderr.is_terminal:
        yield _Announcer(what)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task(printable(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Announcer:
    """Says what goes on when it has gone on for a while, and whenever that has doubled."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began_s = time.monotonic()
        self._patience_s = PATIENCE_S

    def __call__(self, done: int, total: int) -> None:
        taken_s = time.monotonic() - self._began_s
        if taken_s > self._patience_s:
            say(f"{self._what}: {done} of {total}")
            self._patience_s = 2 * taken_s


def print_json(value: Any) -> None:
    """Print one JSON value to stdout."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def si(value: float | None, unit: str = "") -> str:
    """Write a number with three digits and an SI prefix: ``1.23 M``."""
    if value is None:
        return "-"
    for scale, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def duration(microseconds: float | None) -> str:
    """Write microseconds in a unit that suits: ``12.3 ms``."""
    if microseconds is None:
        return "-"
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3g} s"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.3g} ms"
    return f"{microseconds:.3g} us"
