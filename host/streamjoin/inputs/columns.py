"""One column at a time: from Arrow and NumPy to what engines and oracle compare.

Numbers keep their type and share memory where they can. Arrow's strings stay bytes, NumPy's become
Python strings. Times become those of NumPy in their unit, decimals integers of their last digit. A
missing floating-point number becomes NaN. For other types a mask marks the missing values; what the
column holds there means nothing.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError
from streamjoin.inputs.decimals import decimal_type, decimals_of_arrow, is_decimal, rescaled
from streamjoin.inputs.payload import plain_column
from streamjoin.inputs.strings import Strings
from streamjoin.tuples import Int64s
from streamjoin_common.language.durations import MAX_US
from streamjoin_common.spelling import option

Column = NDArray[Any]
Missing = NDArray[np.bool_] | None

KINDS = {
    "i": "integer",
    "u": "integer",
    "f": "floating-point",
    "O": "string",
    "M": "timestamp",
    "m": "duration",
    "b": "bool",
    "S": "binary",
    "V": "decimal",
}
"""What a join column holds, by its NumPy kind."""

TIME_UNITS = frozenset({"D", "s", "ms", "us", "ns"})
"""Units that join columns of times keep."""

MIN_INT, MAX_INT = -(1 << 63), (1 << 64) - 1
"""Of the integers that a column can hold."""

JOINABLE = (
    "join columns are numbers, strings, bytes, bools, dates, timestamps or durations, so cast it"
)

MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Microseconds of each unit that has whole ones."""


def column_kind(dtype: "np.dtype[Any]", name: str, source: str) -> str:
    """Say what a column of a type holds.

    Raises
    ------
    InputError
        If it is nothing that can be joined on.
    """
    wrong = dtype.kind not in KINDS or (dtype.kind == "f" and dtype.itemsize > 8)
    if wrong or (dtype.kind == "V" and not is_decimal(dtype)):
        raise InputError(f"{source}: column {name!r} is {dtype}; {JOINABLE}")
    return KINDS[dtype.kind]


def arrow_column(pa: Any, column: Any, name: str, source: str) -> tuple[Column | Strings, Missing]:
    """Turn an Arrow column into a join column.

    Returns
    -------
    column : ndarray or Strings
        The values.
    missing : ndarray of bool, or None
        Which are missing; None where none is.

    Raises
    ------
    InputError
        If its type cannot be joined on or a string is not UTF-8.
    """
    column = plain_column(column, source=f"{source}: column {name!r}")
    kind = column.type
    if pa.types.is_date(kind):
        column = _days(pa, column, name, source)
        kind = column.type
    if pa.types.is_floating(kind):
        return np.asarray(column.fill_null(float("nan")).to_numpy()), None
    if pa.types.is_null(kind):
        return np.zeros(len(column), dtype=np.int64), np.ones(len(column), dtype=np.bool_)
    if not column.null_count:
        return _arrow_values(pa, column, kind, name, source), None
    missing = np.asarray(column.is_null().to_numpy())
    if pa.types.is_decimal(kind):
        return decimals_of_arrow(column, missing), missing
    zero = False if pa.types.is_boolean(kind) else 0
    filled = column.fill_null(pa.scalar(zero, kind)) if _has_zero(pa, kind) else column
    return _arrow_values(pa, filled, kind, name, source), missing


def _days(pa: Any, column: Any, name: str, source: str) -> Any:
    try:
        return column.cast(pa.date32())
    except pa.ArrowInvalid:
        raise InputError(
            f"{source}: column {name!r} is {column.type} and holds times of day: cast it to a "
            "timestamp"
        ) from None


def _has_zero(pa: Any, kind: Any) -> bool:
    types = pa.types
    is_time = types.is_timestamp(kind) or types.is_duration(kind) or types.is_date(kind)
    return bool(types.is_integer(kind) or types.is_boolean(kind) or is_time)


def _arrow_values(pa: Any, column: Any, kind: Any, name: str, source: str) -> Column | Strings:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Strings.of_arrow(column, name, source)
    types = pa.types
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return Strings.of_bytes(column)
    if types.is_decimal(kind):
        return decimals_of_arrow(column, None)
    if types.is_integer(kind) or types.is_boolean(kind) or _has_zero(pa, kind):
        return np.asarray(column.to_numpy())
    raise InputError(f"{source}: column {name!r} is {kind}; {JOINABLE}")


def numpy_column(values: Any, name: str, source: str) -> tuple[Column | Strings, Missing]:
    """Turn what is given for a column into a join column.

    A value is missing where it is masked, ``None`` among strings, or no time (NaT).

    Returns
    -------
    column, missing
        As :func:`arrow_column`.

    Raises
    ------
    InputError
        If it has not one dimension or is of a kind that cannot be joined on.
    """
    missing: Missing = None
    if isinstance(values, np.ma.MaskedArray):
        missing, values = np.ma.getmaskarray(values), values.data
    try:
        column = np.asarray(values)
    except ValueError:
        raise InputError(f"{source}: column {name!r} has no regular shape") from None
    if column.ndim != 1:
        raise InputError(f"{source}: column {name!r} must have one dimension, not {column.ndim}")
    if column.dtype.names is not None:  # within, such a type says that they are decimals
        raise InputError(f"{source}: column {name!r} is {column.dtype}; {JOINABLE}")
    if column.dtype.kind in "UT":
        column = column.astype(object)
    if column.dtype.kind == "O":
        nothing = np.array([value is None for value in column], dtype=np.bool_)
        missing = nothing if missing is None else missing | nothing
        column = np.where(missing, "", column)
        wrong = next((i for i, value in enumerate(column) if not isinstance(value, str)), None)
        if wrong is not None:
            _check_integers(column, name, source)
            raise InputError(
                f"{source}: column {name!r} holds {column[wrong]!r} at row {wrong}, which is no "
                "string; give numbers as a numeric array"
            )
    if column.dtype.kind in "mM":
        nothing = np.isnat(column)
        missing = nothing if missing is None else missing | nothing
        column = np.where(missing, np.zeros(1, column.dtype), column)
        unit, count = np.datetime_data(column.dtype)
        if unit not in TIME_UNITS or count != 1:
            column = nanoseconds(column, name, source)
    if column.dtype.kind == "S" or (column.dtype.kind == "V" and column.dtype.names is None):
        return Strings.of_bytes(column), missing
    if column.dtype.kind == "f" and missing is not None:
        column, missing = np.where(missing, column.dtype.type(np.nan), column), None
    native: Column = column.astype(column.dtype.newbyteorder("="), copy=False)
    return native, missing if missing is not None and missing.any() else None


def _check_integers(column: Column, name: str, source: str) -> None:
    """Refuse integers of more than 64 bits among values, all of which are integers or missing."""
    values = [value for value in column if value != ""]
    large = next((v for v in values if isinstance(v, int) and not MIN_INT <= v <= MAX_INT), None)
    if large is not None and all(isinstance(value, int) for value in values):
        raise InputError(
            f"{source}: column {name!r} holds {large}, which does not fit into 64 bits; give "
            "Decimal values or strings"
        )


def nanoseconds(column: Column, name: str, source: str) -> Column:
    """Return times in nanoseconds.

    Raises
    ------
    InputError
        If one does not fit, naming the row.
    """
    kind, unit = column.dtype.kind, np.datetime_data(column.dtype)[0]
    if kind == "m" and unit in {"Y", "M"}:
        raise InputError(
            f"{source}: column {name!r} is {column.dtype}, and years and months differ in length: "
            "give days or a finer unit"
        )
    fine: Column = column.astype(f"{kind}8[ns]")
    beyond = np.flatnonzero(fine.astype(f"{kind}8[{unit}]") != column)
    if beyond.size:
        row = beyond[0]
        raise InputError(
            f"{source}: column {name!r} at row {row} is no timestamp that fits in nanoseconds"
        )
    return fine


def check_times(columns: Mapping[str, Any], source: str) -> None:
    """Refuse times that do not fit in nanoseconds.

    Raises
    ------
    InputError
        Naming column and row.
    """
    for name, column in columns.items():
        if column.dtype.kind in "mM":
            nanoseconds(column, name, source)


def stored_column(pa: Any, column: Any, name: str, source: str) -> tuple[Column | Strings, Missing]:
    """Turn a part of an Arrow column into a join column whose type no other part changes.

    Raises
    ------
    InputError
        As :func:`arrow_column`.
    """
    values, missing = arrow_column(pa, column, name, source)
    kind = column.type
    if values.dtype.kind in "mM":
        return nanoseconds(np.asarray(values), name, source), missing
    if pa.types.is_decimal(kind):
        values = np.asarray(values)
        return rescaled(values, decimal_type(kind.scale, is_wide=kind.precision > 18))[0], missing
    return values, missing


def arrow_arrivals(pa: Any, column: Any, name: str, source: str, unit: str | None = None) -> Int64s:
    """Turn an Arrow column into arrival times in microseconds; nanoseconds are cut off.

    Integers count ``unit``, microseconds by default.

    Raises
    ------
    InputError
        If it is no time, a value is missing or beyond 2**62 microseconds.
    """
    column = plain_column(column)
    kind = column.type
    if pa.types.is_null(kind) and len(column) == 0:
        return np.empty(0, dtype=np.int64)  # a file of headings only
    _no_nulls(column, name, source)
    if pa.types.is_date(kind):
        kind = pa.timestamp("ms")
        column = column.cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return _microseconds(column.cast(pa.int64()).to_numpy(), kind.unit, name, source)
    if pa.types.is_floating(kind) and unit is not None:
        return _rounded(np.asarray(column.to_numpy()), unit, name, source)
    if not pa.types.is_integer(kind):
        raise InputError(
            f"{source}: arrival column {name!r} is {kind}; it must be int64 microseconds, "
            f"a timestamp or a duration, or floating-point numbers with {option('ts_unit', 's')}"
        )
    return _microseconds(np.asarray(column.to_numpy()), unit or "us", name, source)


def numpy_arrivals(values: Any, name: str, source: str, unit: str | None = None) -> Int64s:
    """Turn an array into arrival times in microseconds, as :func:`arrow_arrivals`.

    Raises
    ------
    InputError
        As :func:`arrow_arrivals`.
    """
    if np.ma.is_masked(values):
        row = int(np.flatnonzero(np.ma.getmaskarray(values))[0])
        raise InputError(f"{source}: {name} has no value at row {row}: remove such rows")
    ts = np.asarray(values)
    if ts.ndim != 1:
        raise InputError(f"{source}: {name} must have one dimension, not {ts.ndim}")
    if not len(ts):
        return np.empty(0, dtype=np.int64)  # an empty list is one of float64 to NumPy
    if ts.dtype.kind in "mM":
        if np.datetime_data(ts.dtype) == ("D", 1):
            ts = ts.astype(f"{ts.dtype.kind}8[s]")
        own, units = np.datetime_data(ts.dtype)
        if np.isnat(ts).any():
            row = int(np.flatnonzero(np.isnat(ts))[0])
            raise InputError(f"{source}: {name} has no value at row {row}: remove such rows")
        if own not in {"ns", *MICROSECONDS} or units != 1:
            raise InputError(f"{source}: {name} must hold times in s, ms, us or ns, not {ts.dtype}")
        return _microseconds(ts.astype(np.int64), own, name, source)
    if ts.dtype.kind == "f" and unit is not None:
        return _rounded(ts, unit, name, source)
    if ts.dtype.kind not in "iu":
        remedy = "floating-point numbers need a unit, as ts_unit='s'"
        if ts.dtype.kind in "OUS":
            remedy = "make times of strings, as np.array(strings, 'datetime64[us]')"
        raise InputError(
            f"{source}: {name} must hold integer microseconds, not {ts.dtype}; {remedy}"
        )
    return _microseconds(ts, unit or "us", name, source)


def _rounded(values: Column, unit: str, name: str, source: str) -> Int64s:
    """Round floating-point times to the nearest microsecond."""
    times = values.astype(np.float64)
    scaled = times / 1000 if unit == "ns" else times * MICROSECONDS[unit]
    beyond = np.flatnonzero(~(np.abs(scaled) <= MAX_US / 2))  # NaN too
    if beyond.size:
        raise InputError(
            f"{source}: {name} at row {beyond[0]} is {values[beyond[0]]}, which is no time"
        )
    if unit in {"us", "ns"}:
        return np.asarray(np.rint(scaled).astype(np.int64))
    # The product is rounded itself: that of the fraction alone has digits to spare.
    whole = np.floor(times)
    parts = np.rint((times - whole) * MICROSECONDS[unit]).astype(np.int64)
    return np.asarray(whole.astype(np.int64) * MICROSECONDS[unit] + parts)


def _microseconds(values: Column, unit: str, name: str, source: str) -> Int64s:
    if unit == "ns":
        wide = values if values.dtype.itemsize == 8 else values.astype(np.int64)
        return np.asarray(wide // 1000)
    scale = MICROSECONDS[unit]
    beyond = np.flatnonzero((values > MAX_US // scale) | (values < -(MAX_US // scale)))
    if beyond.size:
        raise InputError(f"{source}: {name} at row {beyond[0]} is beyond 2**62 microseconds")
    return np.asarray(values.astype(np.int64, copy=False) * scale if scale > 1 else values)


def _no_nulls(column: Any, name: str, source: str) -> None:
    if column.null_count:
        row = np.flatnonzero(column.is_null().to_numpy())[0]
        raise InputError(f"{source}: column {name!r} has no value at row {row}: remove such rows")
