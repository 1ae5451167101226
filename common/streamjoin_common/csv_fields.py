"""What a field of a CSV file means where Arrow's reader leaves it open.

An empty field is a missing value, of strings too; only ``""`` in quotes is the empty string. ``NA``
and the like are missing values where a column has nothing else, unless a field is in quotes. A line
without anything is a row of a file with one column, and none of a file with several.
"""

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

LINE_ENDS = (b"\n", b"\r", b"")
"""Last bytes of input whose last line has its end; nothing has none."""


class _Ended(io.RawIOBase):
    """A file, and behind it the end of its last line."""

    def __init__(self, path: Path) -> None:
        self._file, self._rest = path.open("rb", buffering=0), b"\n"

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read from the file, then the end."""
        count = self._file.readinto(buffer) or 0
        if count or not len(buffer):
            return count
        rest, self._rest = self._rest, b""
        buffer[: len(rest)] = rest
        return len(rest)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def opened(path: Path) -> Any:
    """Return what Arrow's reader reads of a file: it, with the end of its last line.

    Without that end the reader misreads an empty last field, and headings alone.
    """
    with path.open("rb") as file:
        file.seek(-min(1, os.fstat(file.fileno()).st_size), os.SEEK_END)
        return path if file.read(1) in LINE_ENDS else io.BufferedReader(_Ended(path))


def read(
    csv: Any, compute: Any, opened: Callable[[], Any], names: list[str], wanted: list[str] | None
) -> Any:
    """Read a CSV file with a header.

    Parameters
    ----------
    csv, compute : module
        ``pyarrow.csv`` and ``pyarrow.compute``.
    opened : callable
        Returns what the reader reads; called again where some strings are empty.
    names : list of str
        The columns that the file has.
    wanted : list of str or None
        Those that are read; None takes all.

    Returns
    -------
    pyarrow.Table
    """
    parse = _parsing(csv, names)
    table = csv.read_csv(
        opened(), parse_options=parse, convert_options=csv.ConvertOptions(include_columns=wanted)
    )
    once = {each.name: each for each in table.schema if table.column_names.count(each.name) == 1}
    unclear = [
        name
        for name, field in once.items()
        if str(field.type) == "string" and compute.any(compute.equal(table[name], "")).as_py()
    ]
    nothing = [name for name, field in once.items() if str(field.type) == "null"]
    if nothing and table.num_rows:
        marks = csv.ConvertOptions().null_values
        quoted = read_strings(csv, opened, names, nothing, marks)
        unclear += [name for name in nothing if quoted[name].null_count < table.num_rows]
    if unclear:  # Arrow distinguishes an empty field from two quotes only if asked
        again = read_strings(csv, opened, names, unclear)
        for name in unclear:
            table = table.set_column(table.column_names.index(name), name, again[name])
    return table


def _parsing(csv: Any, names: list[str]) -> Any:
    return csv.ParseOptions(ignore_empty_lines=len(names) > 1)


def read_strings(
    csv: Any,
    opened: Callable[[], Any],
    names: list[str],
    wanted: list[str],
    marks: Sequence[str] = ("",),
) -> Any:
    """As :func:`read`, for columns of strings, of which ``marks`` without quotes are missing."""
    strings = csv.ConvertOptions(
        include_columns=wanted,
        column_types=dict.fromkeys(wanted, "string"),
        null_values=list(marks),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return csv.read_csv(opened(), parse_options=_parsing(csv, names), convert_options=strings)
