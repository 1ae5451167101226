"""What a field of a CSV file means where Arrow's reader leaves it open.

An empty field is a missing value, of strings too; only ``""`` in quotes is the empty string. ``NA``
and the like are missing values where a column has nothing else, unless one is in quotes. A line
without anything is a row of a file with one column, and none of a file with several.
"""

from collections.abc import Callable, Sequence
from typing import Any


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
        unclear += [
            name for name in nothing if compute.any(compute.not_equal(quoted[name], "")).as_py()
        ]
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
