"""A short way for batches like the ones before: mappings of NumPy arrays of the same types.

Strings become bytes once, for the join and for looking rows up.

What a batch is checked for is the same; what cannot differ from the batch before is not computed
anew. A batch that differs in anything takes the long way, which also words the refusals.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamjoin.inputs.batches import Batch
from streamjoin.inputs.strings import Strings
from streamjoin.live.layout import Layout
from streamjoin.live.payload import Rows
from streamjoin_common.language.arrivals import ArrivalColumn
from streamjoin_common.language.durations import MAX_US

PLAIN = "iufb"
"""Kinds of arrays whose values are as they are."""

TEXTS = "OU"
"""Kinds of arrays that hold strings, if all their values are."""

MANY = 1 << 5
"""Strings from which those are fetched into the cache before."""

STRING_BYTES = 56
"""Bytes of the beginning of a Python string that are fetched: its head, and short values."""

OBJECT = np.dtype(object)
"""Type of a column of strings."""


@dataclass(frozen=True)
class Form:
    """Columns of batches that take the short way.

    Attributes
    ----------
    types : mapping of str to dtype
        All columns.
    joined, real : tuple of str
        The join columns, and those of floating-point numbers.
    ts : str or None
        The arrival column.
    """

    types: "dict[str, np.dtype[Any]]"
    joined: tuple[str, ...]
    real: tuple[str, ...]
    ts: str | None

    @classmethod
    def of(
        cls,
        data: Any,
        batch: Batch,
        columns: list[str],
        arrival: ArrivalColumn,
        layout: Layout | None,
    ) -> "Form | None":
        """Return the form of a batch that was read, None where like ones take the long way."""
        if type(data) is not dict or batch.missing is not None or layout is None:
            return None
        if arrival.unit not in (None, "us") or not all(layout.valued):
            return None
        if batch.table is None or not layout.schema.equals(batch.table.schema):
            return None
        for name, values in data.items():
            if type(name) is not str or type(values) is not np.ndarray or values.ndim != 1:
                return None
            if values.dtype.kind in TEXTS:
                if Strings.of_python(values) is None:
                    return None
            elif values.dtype.kind not in PLAIN or not values.dtype.isnative:
                return None
        ts = None
        if batch.ts is not None:
            ts = arrival.name if arrival.name in data else None
            if ts is None or data[ts].dtype != np.int64:
                return None
        types = {
            name: OBJECT if values.dtype.kind in TEXTS else values.dtype
            for name, values in data.items()
        }
        if any(types[name] != batch.columns[name].dtype for name in columns):
            return None
        real = tuple(name for name in columns if types[name].kind == "f")
        return cls(types, tuple(columns), real, ts)

    def read(self, data: Any) -> Batch | None:
        """Copy a batch of this form, with ascending times; None if it is no such batch."""
        if type(data) is not dict or len(data) != len(self.types):
            return None
        copies: dict[str, Any] = {}
        for name, dtype in self.types.items():
            copy = _copied(data.get(name), dtype)
            if copy is None:
                return None
            copies[name] = copy
        rows = len(copy)
        if not rows or any(len(each) != rows for each in copies.values()):
            return None
        ts = None
        if self.ts is not None:
            ts = copies[self.ts]
            if rows > 1 and not (ts[1:] >= ts[:-1]).all():
                return None
            if ts[0] < -MAX_US or ts[-1] > MAX_US:
                return None
        for name in self.real:
            values = copies[name]
            # A NaN differs from itself; one value is compared without an array.
            if values[0] != values[0] if rows == 1 else np.isnan(values).any():
                return None
        columns = {name: copies[name] for name in self.joined}
        return Batch(columns, ts, rows, None, Rows(copies, rows))


def _copied(values: Any, dtype: "np.dtype[Any]") -> Any:
    """Copy a column of the type; None if it is none."""
    if type(values) is not np.ndarray or values.ndim != 1:
        return None
    if dtype is OBJECT:
        return _strings(values) if values.dtype.kind in TEXTS else None
    return values.copy() if values.dtype is dtype else None


def _strings(values: Any) -> Strings | None:
    """Copy strings, which lie anywhere; None if these are not strings alone."""
    if len(values) >= MANY and values.dtype is OBJECT and values.flags.c_contiguous:
        from streamjoin.engines.kernels.prefetch import prefetch_objects

        prefetch_objects(np.ndarray(len(values), np.int64, values), STRING_BYTES)
    return Strings.of_python(values)
