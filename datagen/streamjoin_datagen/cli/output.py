"""What the verb prints: progress bars, messages and tables."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from streamjoin_common.printing import printable
from streamjoin_common.screen import for_screen, print_table

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
    print(for_screen(printable(message), sys.stderr), file=sys.stderr, flush=True)


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
    print_table(head, rows, head[left:])
