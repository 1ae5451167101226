"""The workloads' tables as pure functions of (spec, stream, range of rows).

Any split of a stream into ranges gives the same rows, save that Poisson arrivals must be told
the time at which a range starts.
"""

from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from streamjoin_datagen.arrivals import poisson_ts_us, regular_ts_us
from streamjoin_datagen.keys import equi_keys
from streamjoin_datagen.seeds import Float64s, Int64s, UInt64s, column_key, hashes, scaled, unit
from streamjoin_datagen.spec import BandSpec, EquiSpec, WorkloadSpec

Column: TypeAlias = "pa.Array[Any]"

TEXT_CHARACTERS = 20
_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8
)
_CHARACTERS_A_HASH = 10

_FIELDS: dict[tuple[str, str], dict[str, pa.DataType]] = {
    ("band", "r"): {"x": pa.int32(), "y": pa.float32(), "z": pa.string(), "ts": pa.int64()},
    ("band", "s"): {
        "a": pa.int32(),
        "b": pa.float32(),
        "c": pa.float64(),
        "d": pa.bool_(),
        "ts": pa.int64(),
    },
    ("equi", "r"): {"k": pa.int32(), "v": pa.int32(), "ts": pa.int64()},
    ("equi", "s"): {"k": pa.int32(), "v": pa.int32(), "ts": pa.int64()},
}

SCHEMAS = {which: pa.schema(fields) for which, fields in _FIELDS.items()}
"""Columns of each stream of each kind, in the files' order."""


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
        Of ``row_count`` rows and the schema ``SCHEMAS[spec.kind, stream]``.
    """
    if isinstance(spec, BandSpec):
        columns = _band(spec, stream, first_row, row_count)
    else:
        columns = _equi(cast("EquiSpec", spec), stream, first_row, row_count)
    columns["ts"] = pa.array(_ts_us(spec, stream, first_row, row_count, start_ns))
    return pa.table(columns, schema=SCHEMAS[spec.kind, stream])


def is_poisson(spec: WorkloadSpec, stream: str) -> bool:
    """Whether a stream's arrival times need the sums of the gaps before them."""
    return spec.params["arrivals"] == "poisson" and spec.rate_per_s(stream) > 0


def _ts_us(
    spec: WorkloadSpec, stream: str, first_row: int, row_count: int, start_ns: int
) -> Int64s:
    rate = spec.rate_per_s(stream)
    if is_poisson(spec, stream):
        return poisson_ts_us(spec.seed, stream, rate, first_row, row_count, start_ns=start_ns)
    return regular_ts_us(rate, first_row, row_count)


def _band(spec: BandSpec, stream: str, first_row: int, row_count: int) -> dict[str, Column]:
    def raw(column: str) -> UInt64s:
        return hashes(column_key(spec.seed, stream, column), first_row, row_count)

    whole, real = ("x", "y") if stream == "r" else ("a", "b")
    columns: dict[str, Column] = {
        whole: pa.array((scaled(raw(whole), spec.domain) + np.uint64(1)).astype(np.int32)),
        real: pa.array(_reals(raw(real), spec.domain).astype(np.float32)),
    }
    if stream == "r":
        columns["z"] = _texts([raw("z0"), raw("z1")])
    else:
        columns["c"] = pa.array(_reals(raw("c"), spec.domain))
        columns["d"] = pa.array(raw("d") >> np.uint64(63) != 0)
    return columns


def _equi(spec: EquiSpec, stream: str, first_row: int, row_count: int) -> dict[str, Column]:
    payloads = hashes(column_key(spec.seed, stream, "v"), first_row, row_count)
    return {
        "k": pa.array(equi_keys(spec, stream, first_row, row_count)),
        "v": pa.array((payloads >> np.uint64(33)).astype(np.int32)),
    }


def _reals(values: UInt64s, domain: int) -> Float64s:
    """Real numbers uniform in [1, domain]."""
    return unit(values) * (domain - 1) + 1.0


def _texts(values: list[UInt64s]) -> Column:
    """Texts of 20 characters, ten from 60 bits of each value."""
    rows = len(values[0])
    letters = np.empty((rows, TEXT_CHARACTERS), dtype=np.uint8)
    for place in range(TEXT_CHARACTERS):
        turn, digit = divmod(place, _CHARACTERS_A_HASH)
        letters[:, place] = _ALPHABET[(values[turn] >> np.uint64(6 * digit)) & np.uint64(63)]
    offsets = np.arange(0, TEXT_CHARACTERS * rows + 1, TEXT_CHARACTERS, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets.data), pa.py_buffer(letters.data))
