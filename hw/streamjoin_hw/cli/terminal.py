"""What the ``hw`` commands say: figures on standard output, the rest on standard error."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamjoin_common import storage
from streamjoin_common.contract import DesignParams
from streamjoin_common.printing import printable
from streamjoin_common.screen import for_screen, print_paragraph, print_table

__all__ = [
    "built_model",
    "print_paragraph",
    "print_table",
    "progress",
    "say",
    "show",
    "stages",
    "write_text",
]


PATIENCE_S = 5.0
"""Seconds after which a stage is reported with the time since the beginning."""


REPEATED_S = 30.0
"""Seconds after which a stage that lasts is reported again where no terminal shows the time."""


def say(message: str) -> None:
    """Write a message to standard error, so that it is not part of the output."""
    sys.stderr.write(for_screen(printable(message, keep="\n"), sys.stderr) + "\n")


def write_text(content: str, file: Path | None) -> None:
    """Write a string to a file, making its folder, or to standard output without a file."""
    if file is None:
        sys.stdout.write(content)
        return
    storage.write_text(file, content, parents=True)
    say(f"wrote {file}")


def show(figures: dict[str, Any], *, as_json: bool) -> None:
    """Print figures as a table of names and values, or as JSON."""
    if as_json:
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    rows = [(name.replace("_", " "), str(value)) for name, value in figures.items()]
    print_table(("metric", "value"), rows)


@contextmanager
def progress(what: str, total: int, *, hidden_below: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error; yields a function that takes how much is done.

    There is no bar for less than ``hidden_below``, or where standard error is no terminal.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    hidden = total < hidden_below or not console.is_terminal
    with Progress(console=console, disable=hidden, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def stages(what: str) -> Iterator[Callable[[str], None]]:
    """Show the stage of a long run on standard error; yields a function that takes its name.

    On a terminal one line with the time since the beginning, elsewhere a line for each stage, and
    again for one that lasts.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    began_s = time.monotonic()
    if not console.is_terminal:
        ended, lasts = threading.Event(), [""]

        def report(stage: str) -> None:
            elapsed_s = time.monotonic() - began_s
            after = f", after {elapsed_s:.0f} s" if elapsed_s > PATIENCE_S else ""
            say(f"{what}: {stage}{after}")
            lasts[0] = stage

        def repeat() -> None:
            while not ended.wait(REPEATED_S):
                if lasts[0]:
                    say(f"{what}: {lasts[0]}, still after {time.monotonic() - began_s:.0f} s")

        repeating = threading.Thread(target=repeat, name="stages", daemon=True)
        repeating.start()
        try:
            yield report
        finally:
            ended.set()
            repeating.join(PATIENCE_S)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda stage: bar.update(task, description=f"{what}: {stage}")


def built_model(params: DesignParams) -> Path:
    """Build a design's model where it is not cached, and show the stages."""
    from streamjoin_hw.flow.build import build_model

    with stages("building") as report:
        return build_model(params, report=report)
