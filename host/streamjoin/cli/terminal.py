"""What a person sees: progress on stderr, tables on stdout."""

import json
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from streamjoin_common.printing import printable
from streamjoin_common.redaction import redacted

ProgressCallback = Callable[[int, int], None]

PATIENCE_S = 2.0
"""Seconds of work after which a log without a terminal reports progress."""

stderr = Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """Print a message to stderr, without secrets."""
    stderr.print(printable(redacted(text)), markup=False, soft_wrap=True)


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
    """Says once what goes on, when it has gone on for a while."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._due_s = time.monotonic() + PATIENCE_S

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() > self._due_s:
            say(f"{self._what}: {done} of {total}")
            self._due_s = float("inf")


MAX_PIPED_COLUMNS = 160
"""Width in characters beyond which cells fold where stdout is no terminal."""

MIN_FOLDED_COLUMNS = 20
"""Minimum width of a column that folds, in characters."""


def print_table(
    headings: list[str],
    rows: list[list[str]],
    numeric: Set[str] = frozenset(),
    droppable: tuple[str, ...] = (),
    folding: tuple[str, ...] = (),
) -> None:
    """Print a table to stdout.

    No cell is ever cut: where the terminal is too narrow, the columns named in ``droppable`` are
    dropped, the first of them first, and a line on stderr says so. Columns named in ``numeric``
    line up on the right. A cell of the columns ``folding`` goes on in the next line where a
    terminal, or :data:`MAX_PIPED_COLUMNS` elsewhere, is too narrow. Headings may have two lines.
    """
    headings = [printable(text, "\n") for text in headings]
    rows = [[printable(text) for text in row] for row in rows]
    is_terminal = sys.stdout.isatty()
    room = Console().width if is_terminal else MAX_PIPED_COLUMNS
    shown = list(range(len(headings)))
    dropped = []
    for name in droppable:
        if not is_terminal or _table_width(headings, rows, shown, folding) <= room:
            break
        if name in headings:
            shown.remove(headings.index(name))
            dropped.append(" ".join(name.split()))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index in shown:
        justify: JustifyMethod = "right" if headings[index] in numeric else "left"
        table.add_column(headings[index], justify=justify, no_wrap=headings[index] not in folding)
    for row in rows:
        table.add_row(*(row[index] for index in shown))
    width = _table_width(headings, rows, shown)
    if any(headings[index] in folding for index in shown):
        width = min(width, max(room, _table_width(headings, rows, shown, folding)))
    wide = Console(highlight=False, markup=False, width=width)
    with wide.capture() as captured:
        wide.print(table)
    lines = [line.rstrip() for line in captured.get().splitlines()]
    sys.stdout.write("\n".join(line for line in lines if line) + "\n")
    if dropped:
        say(f"a wider terminal, or --json, shows also: {', '.join(dropped)}")


def _table_width(
    headings: list[str], rows: list[list[str]], shown: list[int], folding: tuple[str, ...] = ()
) -> int:
    """Width that the columns need, those that fold at their narrowest."""
    widths = []
    for index in shown:
        lines = [line for row in [headings, *rows] for line in row[index].split("\n")]
        width = max(map(len, lines))
        widths.append(min(width, MIN_FOLDED_COLUMNS) if headings[index] in folding else width)
    return sum(widths) + 3 * len(shown)


def print_paragraph(text: str, indent: int = 0) -> None:
    """Print a sentence to stdout, in lines that a terminal holds."""
    room = Console().width if sys.stdout.isatty() else MAX_PIPED_COLUMNS
    space = " " * indent
    lines = textwrap.wrap(
        text, max(room, MIN_FOLDED_COLUMNS), initial_indent=space,
        subsequent_indent=space, break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    sys.stdout.write("\n".join(lines) + "\n")


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
