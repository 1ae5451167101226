"""CSV with a header, its types inferred by Arrow's reader."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamjoin.errors import InputError
from streamjoin_common import csv_fields

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
        Those whose integers must be exact.
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
    for column in set(columns) & set(table.column_names):
        if table.column_names.count(column) > 1 or not types.is_floating(table[column].type):
            continue
        largest = pc.max(pc.abs(table[column])).as_py()
        if largest is not None and largest >= INEXACT:
            raise InputError(
                f"{source}: column {column!r} holds numbers from 2**53 on, where the "
                "floating-point numbers of CSV lose digits of integers: store it as Parquet"
            )
    return table  # type: ignore[no-any-return]  # pyarrow's
