"""What the ``hw`` commands say: figures on standard output, the rest on standard error."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def say(message: str) -> None:
    """Say what goes on, beside the output."""
    sys.stderr.write(f"{message}\n")


def write_text(text: str, file: Path | None) -> None:
    """Write a text to a file, making its folder, or to standard output if there is none."""
    from streamjoin_hw.build import OutputError, write_whole

    if file is None:
        sys.stdout.write(text)
        return
    if not file.parent.exists():
        try:
            file.parent.mkdir(parents=True)
        except OSError as error:
            raise OutputError(file.parent, error, "name a file whose folder can be made") from None
    write_whole(file, text)
    say(f"wrote {file}")


def show(figures: dict[str, Any], *, as_json: bool) -> None:
    """Print figures as a table of names and values, or as JSON."""
    if as_json:
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    rows = [(name.replace("_", " "), str(value)) for name, value in figures.items()]
    print_table(("metric", "value"), rows)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, as wide as it needs to be."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for row in rows:
        table.add_row(*row)
    # As wide as it needs to be: nothing is folded or cut.
    longest = max(map(len, map("".join, [columns, *rows])))
    wide = Console(highlight=False, markup=False, width=20 + 4 * len(columns) + longest)
    with wide.capture() as captured:
        wide.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
