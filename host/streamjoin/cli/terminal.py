"""What a person sees: progress on stderr, tables on stdout."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

ProgressCallback = Callable[[int, int], None]

stderr = Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """Print a message to stderr."""
    stderr.print(text, markup=False)


@contextmanager
def progress(what: str) -> Iterator[ProgressCallback]:
    """Show a bar for as long as the block runs; where stderr is no terminal, nothing."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_table(headings: list[str], rows: list[list[str]], numeric: set[str]) -> None:
    """Print a table to stdout; columns named in ``numeric`` line up on the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in numeric else "left")
    for row in rows:
        table.add_row(*row)
    # A pipe has no width: let no column be cut there.
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=200)
    console.print(table)


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
