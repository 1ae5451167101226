"""A short way for batches like the ones before: mappings of NumPy arrays of the same types.

What a batch is checked for is the same; what cannot differ from the batch before is not computed
anew. A batch that differs in anything takes the long way, which also words the refusals.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamjoin.inputs.batches import Batch
from streamjoin.live.layout import Layout
from streamjoin.live.payload import Rows
from streamjoin_common.language.arrivals import ArrivalColumn
from streamjoin_common.language.durations import MAX_US

PLAIN = "iufb"
"""Kinds of arrays whose values are as they are."""


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
            if values.dtype.kind not in PLAIN or not values.dtype.isnative:
                return None
        ts = None
        if batch.ts is not None:
            ts = arrival.name if arrival.name in data else None
            if ts is None or data[ts].dtype != np.int64:
                return None
        types = {name: values.dtype for name, values in data.items()}
        if any(types[name] != batch.columns[name].dtype for name in columns):
            return None
        real = tuple(name for name in columns if types[name].kind == "f")
        return cls(types, tuple(columns), real, ts)

    def read(self, data: Any) -> Batch | None:
        """Copy a batch of this form, with ascending times; None if it is no such batch."""
        if type(data) is not dict or len(data) != len(self.types):
            return None
        rows, copies = -1, {}
        for name, dtype in self.types.items():
            values = data.get(name)
            if type(values) is not np.ndarray or values.dtype is not dtype or values.ndim != 1:
                return None
            if rows != len(values):
                if rows >= 0:
                    return None
                rows = len(values)
            copies[name] = values.copy()
        ts = None
        if not rows:
            return None
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
