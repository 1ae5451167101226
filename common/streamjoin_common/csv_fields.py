"""What a CSV file means where Arrow's reader leaves it open, or is told too little.

A line end in quotes is a part of its field. An empty field is a missing value, of strings too; only
``""`` in quotes is the empty string. ``NA`` and the like are missing values where a column has
nothing else, unless a field is in quotes. A line without anything is a row of a file with one
column, and none of a file with several.
"""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

LINE_ENDS = (b"\n", b"\r", b"")
"""Last bytes of input whose last line has its end; nothing has none."""

BLOCK_BYTES = (1 << 20, 1 << 26, (1 << 31) - 1)
"""Bytes that are read at once: the next where a line is longer, up to Arrow's maximum."""

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""How text in UTF-16 begins."""


class _Ended(io.RawIOBase):
    """What a file holds, and a line end behind it."""

    def __init__(self, file: Any) -> None:
        self._file, self._rest = file, b"\n"

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read from the file, then the end."""
        piece = self._file.read(len(buffer))
        if not piece and len(buffer):
            piece, self._rest = self._rest, b""
        buffer[: len(piece)] = piece
        return len(piece)

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
        return path if file.read(1) in LINE_ENDS else _with_end(path)


def _with_end(source: Any) -> Any:
    """Return what the reader reads, with one more line end behind it."""
    return io.BufferedReader(_Ended(source.open("rb") if isinstance(source, Path) else source))


def schema(csv: Any, opened: Callable[[], Any]) -> Any:
    """Return the names and types of a file's columns, types as its first block has them.

    Raises
    ------
    ValueError
        If it cannot be read as CSV in UTF-8.
    """
    parse = csv.ParseOptions(newlines_in_values=True)
    if next(_pieces(opened()), b"").startswith(UTF_16):
        raise ValueError("it is UTF-16: store it as UTF-8")

    def begun(read: Any) -> Any:
        with csv.open_csv(opened(), read_options=read, parse_options=parse) as lines:
            return lines.schema

    return in_blocks(csv, begun)


def in_blocks(csv: Any, read: Callable[[Any], Any], opened: Callable[[], Any] | None = None) -> Any:
    """Read in larger blocks where a line is longer than one.

    What ``opened`` returns is read in blocks of which none ends inside of a line end: the reader
    would drop its second half, of a field in quotes too.
    """
    for block_bytes in BLOCK_BYTES:
        size = block_bytes
        while opened is not None and _divides_a_line_end(opened(), size):
            size -= 1
        try:
            return read(csv.ReadOptions(block_size=size))
        except ValueError as error:  # Arrow's are that
            if "straddl" not in str(error) or block_bytes == BLOCK_BYTES[-1]:
                raise
    raise AssertionError("no block is left")


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

    Raises
    ------
    ValueError
        If the file ends in quotes.
    """
    has_quotes = any(b'"' in piece for piece in _pieces(opened()))
    # The last column is where quotes that are not closed show.
    with_last = wanted and has_quotes and names[-1] not in wanted
    columns = [*wanted, names[-1]] if wanted and with_last else wanted
    table = _read(csv, opened, names, csv.ConvertOptions(include_columns=columns))
    if has_quotes and names.count(names[-1]) == 1:
        _refuse_open_quotes(csv, opened, names, table[names[-1]])
    if with_last:
        table = table.select(wanted)
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


def _read(csv: Any, opened: Callable[[], Any], names: list[str], convert: Any) -> Any:
    parse = csv.ParseOptions(ignore_empty_lines=len(names) > 1, newlines_in_values=True)

    def read(blocks: Any) -> Any:
        return csv.read_csv(
            opened(), read_options=blocks, parse_options=parse, convert_options=convert
        )

    return in_blocks(csv, read, opened)


def _refuse_open_quotes(csv: Any, opened: Callable[[], Any], names: list[str], column: Any) -> None:
    """Refuse a file that ends in a field in quotes, which are not closed.

    The reader takes the rest of the file for the field, with its last line end; it takes one more
    where one more is there, which it does not in closed quotes.
    """
    last = column[-1].as_py() if len(column) else None
    if not isinstance(last, str | bytes) or last[-1:] not in ("\n", "\r", b"\n", b"\r"):
        return
    convert = csv.ConvertOptions(
        include_columns=names[-1:], column_types={names[-1]: column.type}, null_values=[]
    )
    again = _read(csv, lambda: _with_end(opened()), names, convert).column(0)[-1].as_py()
    if again != last and again[:-1] == last:
        raise ValueError("it ends in quotes: it was cut off, or a quote is missing")


def _pieces(source: Any) -> Iterator[bytes]:
    with source.open("rb") if isinstance(source, Path) else source as file:
        while piece := file.read(BLOCK_BYTES[0]):
            yield piece


def _divides_a_line_end(source: Any, block_bytes: int) -> bool:
    """Whether a carriage return is the last byte of a block, and a line feed the next one."""
    first, before = 0, b""
    for piece in _pieces(source):
        for at in range(-first % block_bytes, len(piece), block_bytes):
            return_byte = piece[at - 1 : at] if at else before
            if return_byte == b"\r" and piece[at : at + 1] == b"\n":
                return True
        first, before = first + len(piece), piece[-1:]
    return False


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
    return _read(csv, opened, names, strings)
