"""Which table of a database is read, and whether a scan by position can read it."""

from pathlib import Path

from streamjoin.errors import InputError
from streamjoin_common.suggestions import did_you_mean

OWN_TABLE = "r"
"""Name of the table in databases that :func:`~streamjoin.relations.write_store` writes."""

MAX_POSITIONS_PER_ROW = 100
"""Positions per row beyond which a scan by position would read almost nothing."""


def refuse_column(location: Path, name: str, have: list[str]) -> InputError:
    """Say that a column is missing."""
    listed, near = ", ".join(have) or "none", did_you_mean(name, have)
    return InputError(f"{location}: there is no column {name!r}; it has {listed}{near}")


def choose_table(location: Path, asked: str | None, have: list[str]) -> str:
    """Say which of a database's tables is meant.

    Raises
    ------
    InputError
        If there is none of that name, or several and none was named.
    """
    listed = ", ".join(have) or "none"
    if asked is not None:
        if asked not in have:
            near = did_you_mean(asked, have)
            raise InputError(f"{location}: there is no table {asked!r}; it has {listed}{near}")
        return asked
    if OWN_TABLE in have:
        return OWN_TABLE
    if len(have) == 1:
        return have[0]
    if not have:
        raise InputError(f"{location}: holds no table")
    raise InputError(f"{location}: holds the tables {listed}: name one of them behind a colon")


def check_magic(location: Path, magic: bytes, at: int, what: str) -> None:
    """Refuse a file that does not begin as a database of its kind does.

    Raises
    ------
    InputError
        If it is not there, or is something else.
    """
    if not location.is_file():
        raise InputError(f"{location}: there is no such file")
    try:
        with location.open("rb") as file:
            head = file.read(at + len(magic))
    except OSError as error:
        raise InputError(f"{location}: cannot be read: {error.strerror}") from None
    if head and head[at:] != magic:
        raise InputError(f"{location}: is no {what} database")


def check_density(location: Path, rows: int, lowest: int, highest: int, first: int) -> None:
    """Refuse a relation of which a scan by position would mostly read nothing.

    Parameters
    ----------
    location : Path
        For the error.
    rows : int
        How many there are, counted up to :func:`enough_rows` of the numbers from ``first`` on.
    lowest, highest : int
        The first row's number and the last one's.
    first : int
        The number of position 0.

    Raises
    ------
    InputError
        If it is sparse, or a number is below ``first``.
    """
    if rows and lowest < first:
        raise InputError(
            f"{location}: rows are numbered from {lowest} on; number them from {first} on, as a "
            "copy of the table does"
        )
    if rows and rows < enough_rows(highest - first + 1):
        raise InputError(
            f"{location}: {rows} rows are numbered from {lowest} to {highest}; number them from "
            f"{first} on without large gaps, as a copy of the table does"
        )


def enough_rows(numbers: int) -> int:
    """Rows from which on a relation with a span of so many numbers is dense enough."""
    return max(1, -(-numbers // MAX_POSITIONS_PER_ROW) - 1)


def no_positions(location: Path, table: str) -> InputError:
    """Say that rows cannot be read by their position."""
    return InputError(
        f"{location}: rows of {table!r} have no rowid, as it is a view or made without: type "
        f"CREATE TABLE copy AS SELECT * FROM {quoted(table)} and join the copy"
    )


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'
