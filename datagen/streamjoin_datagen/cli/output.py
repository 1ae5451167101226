"""What the verb prints: progress bars, messages and tables."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from streamjoin_common.printing import printable

if TYPE_CHECKING:
    from streamjoin_datagen.session.tasks import Progress
    from streamjoin_datagen.store import Outcome


@contextmanager
def progress_bars(jobs: int) -> Iterator[Callable[[str, str], "Progress"]]:
    """Show on a terminal's stderr how far each workload is; elsewhere, a line for each.

    Yields a function that is given a workload's name and its line, and returns its progress.
    """
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        numbers = iter(range(1, jobs + 1))

        def show(name: str, line: str) -> "Progress":
            if not console.is_terminal:
                say(line)
            bar = bars.add_task(f"{next(numbers)}/{jobs} {printable(name)}", total=None)
            return lambda done, parts: bars.update(bar, completed=done, total=parts)

        yield show


def say(message: str) -> None:
    """Print a message on stderr."""
    print(printable(message), file=sys.stderr, flush=True)


def plain(outcome: "Outcome") -> dict[str, Any]:
    """Return an outcome as plain JSON values."""
    return {
        "workload": outcome.workload,
        "status": outcome.status,
        "path": str(outcome.folder),
        "rows": outcome.rows,
        "bytes": outcome.bytes,
        "seconds": round(outcome.seconds, 3),
    }


def print_outcomes(outcomes: list["Outcome"]) -> None:
    """Print what was made, a line each."""
    print_columns(
        ("workload", "status", "rows", "bytes", "seconds"),
        [
            (o.workload, o.status, f"{o.rows:,}", f"{o.bytes:,}", f"{o.seconds:.2f}")
            for o in outcomes
        ],
        left=2,
    )


def print_columns(head: tuple[str, ...], rows: list[tuple[str, ...]], *, left: int) -> None:
    """Print a table, its first columns aligned on the left."""
    lines = [tuple(printable(cell) for cell in line) for line in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        padded = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(padded).rstrip())
