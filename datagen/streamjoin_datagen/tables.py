"""The workloads' tables as pure functions of (spec, stream, range of rows).

Any split of a stream into ranges gives the same rows, save that Poisson arrivals need
the time at which a range starts.
"""

import numpy as np
import pyarrow as pa

from streamjoin_datagen.rows.arrivals import Poisson
from streamjoin_datagen.spec import WorkloadSpec

_TYPES: dict[str, pa.DataType] = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
}


def schema(spec: WorkloadSpec, stream: str) -> pa.Schema:
    """Columns of a stream, in the files' order; the last one is ``ts``."""
    types = {name: _TYPES[kind] for name, kind in spec.types(stream).items()}
    return pa.schema({**types, "ts": pa.int64()})


def build(
    spec: WorkloadSpec, stream: str, first_row: int, row_count: int, start_ns: int = 0
) -> pa.Table:
    """Rows ``first_row`` to ``first_row + row_count`` of a stream.

    Parameters
    ----------
    spec : WorkloadSpec
        The workload.
    stream : str
        ``"r"`` or ``"s"``.
    start_ns : int
        For Poisson arrivals, the sum of the gaps before ``first_row``; else not used.

    Returns
    -------
    pyarrow.Table
        Of ``row_count`` rows and the stream's :func:`schema`.
    """
    timing = spec.timing(stream)
    if isinstance(timing, Poisson):
        ts_us = timing.ts_us(first_row, row_count, start_ns=start_ns)
    else:
        ts_us = timing.ts_us(first_row, row_count)
    columns = {**spec.columns(stream, first_row, row_count), "ts": ts_us}
    arrays = {
        name: pa.array(column) if isinstance(column, np.ndarray) else column
        for name, column in columns.items()
    }
    return pa.table(arrays, schema=schema(spec, stream))
