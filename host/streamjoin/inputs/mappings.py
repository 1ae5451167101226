"""Columns of a mapping: arrays by NumPy's rules, lists and series by Arrow's."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError, UnavailableError
from streamjoin.inputs.columns import (
    Missing,
    arrow_arrivals,
    arrow_column,
    numpy_arrivals,
    numpy_column,
)
from streamjoin.inputs.files import arrow
from streamjoin.inputs.sources import Arrays
from streamjoin.inputs.strings import Strings
from streamjoin.tuples import Int64s

SERIES = ("__arrow_c_stream__", "__arrow_c_array__", "iloc")
"""What series have and arrays have not; the last one is pandas'."""


def given_column(values: Any, name: str, source: str) -> tuple[NDArray[Any] | Strings, Missing]:
    """Take a column of a mapping: an array, or by Arrow's rules a list or a series."""
    column = _by_arrow(values, name, source)
    if column is not None:
        return arrow_column(arrow(), column, name, source)
    if isinstance(values, list | tuple) and not _is_regular(values):
        values = np.array([*values, None], dtype=object)[:-1]
    elif isinstance(values, list | tuple):
        values = _exact(values, name, source)
    return numpy_column(values, name, source)


def _exact(values: list[Any] | tuple[Any, ...], name: str, source: str) -> NDArray[Any]:
    """Make an array of a list; NumPy alone would round large integers to floating-point numbers."""
    array = np.asarray(values)
    if array.dtype.kind != "f" or all(isinstance(value, float) for value in values):
        return array
    are_integers = all(isinstance(value, int | np.integer) for value in values)
    if are_integers and min(values) >= 0:
        return np.array(values, dtype=np.uint64)
    for row, (value, rounded) in enumerate(zip(values, array.tolist(), strict=True)):
        if isinstance(value, int | np.integer) and int(rounded) != value:
            raise InputError(
                f"{source}: column {name!r} holds {value} at row {row}, which the other numbers "
                "round to float64: give an array of one type"
            )
    return array


def given_arrivals(values: Any, name: str, source: str, unit: str | None) -> tuple[Int64s, str]:
    """Take a mapping's arrival times, and say what they are: counted, dated, or else "".

    Integers are counted, times since 1970 dated.
    """
    column = _by_arrow(values, name, source)
    if column is None:
        kind = {"i": "counted", "u": "counted", "M": "dated"}.get(np.asarray(values).dtype.kind, "")
        return numpy_arrivals(values, name, source, unit), kind
    pa = arrow()
    times = arrow_arrivals(pa, column, name, source, unit)
    if pa.types.is_integer(column.type):
        return times, "counted"
    dated = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    return times, "dated" if dated else ""


def _by_arrow(values: Any, name: str, source: str) -> Any:
    """Return what is no array as an Arrow column, None where NumPy has it as well or alone.

    NumPy would make floating-point numbers of integers of which one is missing.
    """
    if isinstance(values, list | tuple):
        if _is_regular(values):
            return None
    elif not any(hasattr(values, name) for name in SERIES) and not _holds_objects(values):
        return None
    try:
        return Arrays({name: values}, source).select([name]).column(0)
    except (InputError, UnavailableError):
        return None


def _is_regular(values: list[Any] | tuple[Any, ...]) -> bool:
    """Say whether a list holds numbers, or values of one type of NumPy's."""
    try:
        array = np.asarray(values)
    except ValueError:
        return False
    one_type = len({type(value) for value in values}) <= 1
    # Of strings and bytes NumPy would strip zeros at the end.
    return array.dtype.kind in "iufb" or (one_type and array.dtype.kind not in "OSU")


def _holds_objects(values: Any) -> bool:
    """Say whether an array holds Python objects that are no strings: decimals, bytes, dates."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "O" or values.ndim != 1:
        return False
    first = next((value for value in values if value is not None), "")
    return isinstance(first, bool) or not isinstance(first, str | int | float)
