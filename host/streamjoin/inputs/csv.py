"""CSV with a header, its types inferred by Arrow's reader."""

from collections.abc import Callable
from math import isinf
from typing import TYPE_CHECKING, Any

from streamjoin.errors import InputError
from streamjoin_common import csv_fields
from streamjoin_common.callers import warn_caller

if TYPE_CHECKING:
    import pyarrow as pa

INEXACT = 1 << 53
"""Integers above it are not exact as the floating-point numbers that Arrow makes of them: what is
read as this number may have been the next one."""


def refuse_other_marks(names: list[str], source: str) -> None:
    """Refuse a file whose columns are not separated by commas.

    Raises
    ------
    InputError
        Naming the mark.
    """
    for mark in (";", "\t", "|"):
        if len(names) == 1 and mark in names[0]:
            raise InputError(
                f"{source}: its columns are separated by {mark!r} and must be by commas: write it "
                "so"
            )


def read_csv(
    opened: Callable[[], Any],
    names: list[str],
    wanted: list[str] | None,
    columns: list[str],
    source: str,
) -> "pa.Table":
    """Read CSV.

    Parameters
    ----------
    opened : callable
        Returns what the reader reads; called again where some strings are empty.
    names : list of str
        The columns that the file has.
    wanted : list of str or None
        Those that are read; None takes all.
    columns : list of str
        Those that are compared: their integers must be exact, and values that are missing because
        of how they are written are warned of. Of others, integers that lose digits are warned of.
    source : str
        What messages call the file.

    Raises
    ------
    InputError
        If a column holds integers that are not exact.
    """
    import pyarrow.compute as pc
    import pyarrow.csv as pv
    from pyarrow import types

    table: Any = csv_fields.read(pv, pc, opened, names, wanted)
    for column in table.column_names:
        if table.column_names.count(column) > 1:
            continue
        if types.is_floating(table[column].type):
            largest = pc.max(pc.abs(table[column])).as_py()
            if largest is None or largest < INEXACT:
                continue
            if column in columns:
                _refuse_inexact(largest, column, source)
            fields = csv_fields.read_strings(pv, opened, names, [column])
            _warn_of_digits(fields[column], column, source)
        elif types.is_null(table[column].type) and column in columns:
            fields = csv_fields.read_strings(pv, opened, names, [column])
            _warn_of_marks(fields[column], column, source)
    return table  # type: ignore[no-any-return]  # pyarrow's


def of_one_type(tables: list[Any]) -> list[Any]:
    """Give columns of several files one type where each file alone said too little.

    A column without a value takes the type of the others. Integers of one file become the
    floating-point numbers of another one where these are exact.
    """
    from pyarrow import float64, int64, null, types

    for name in tables[0].column_names:
        at = [table.schema.get_field_index(name) for table in tables]
        if -1 in at:  # not there, or twice
            continue
        columns = [table.column(k) for table, k in zip(tables, at, strict=True)]
        known = [column.type for column in columns if not types.is_null(column.type)]
        kinds: dict[Any, Any] = {null(): known[0] if known else null()}
        if set(known) == {int64(), float64()} and all(map(_is_exact, columns)):
            kinds[int64()] = float64()
            kinds[null()] = float64()
        tables = [
            table.set_column(k, name, column.cast(kinds.get(column.type, column.type)))
            for table, k, column in zip(tables, at, columns, strict=True)
        ]
    return tables


def _is_exact(column: Any) -> bool:
    """Whether integers are all exact as floating-point numbers."""
    import pyarrow.compute as pc
    from pyarrow import types

    if not types.is_integer(column.type):
        return True
    lowest, highest = pc.min(column).as_py(), pc.max(column).as_py()
    return highest is None or max(-lowest, highest) < INEXACT


def _refuse_inexact(largest: float, column: str, source: str) -> None:
    held = "an infinite number" if isinf(largest) else "numbers from 2**53 on"
    raise InputError(
        f"{source}: column {column!r} holds {held}, where the floating-point numbers of CSV lose "
        "digits of integers: store it as Parquet"
    )


def _warn_of_digits(fields: Any, column: str, source: str) -> None:
    """Warn where an integer is not what was read."""
    import pyarrow.compute as pc

    written = fields.filter(pc.match_substring_regex(fields, r"^\s*[-+]?\d{16,}\s*$"))
    for field in written.unique().to_pylist():
        if int(float(field)) != int(field):
            warn_caller(
                f"{source}: column {column!r} holds {field.strip()}, of which floating-point "
                "numbers of CSV lose digits: store it as Parquet to keep them"
            )
            return


def _warn_of_marks(fields: Any, column: str, source: str) -> None:
    """Warn where no value is there, and not because all fields are empty."""
    mark = next((field for field in fields.unique().to_pylist() if field), None)
    if mark is not None:
        warn_caller(
            f"{source}: column {column!r} has nothing but {mark} and the like, which are missing "
            "values: write them in quotes if they are strings"
        )
