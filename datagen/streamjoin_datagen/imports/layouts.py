"""Text files in the layouts of other people's data sets, read as tables.

The files of the IaWJ study's authors (AllianceDB) have a tuple a line and ``|`` or ``,`` between
columns, no header, times in integer milliseconds; TPC-H's ``.tbl`` files have ``|`` after every
column. Files may be packed with xz or gzip. Parquet files of TPC-H are read by column names.
"""

import gzip
import io
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from streamjoin_common.decoded import check_fits
from streamjoin_common.free_memory import SHARE, available_bytes
from streamjoin_datagen.errors import SpecError

_PACKED: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}


@dataclass(frozen=True)
class Layout:
    """Which columns of R's and S's files are taken, under which names.

    Attributes
    ----------
    r, s : mapping of str to int
        Index of each column taken; one named ``ms`` becomes the arrival time.
    window : str
        Window of the workload.
    parquet : mapping of str to tuple of str
        Names of the same columns in Parquet files, by stream; empty where there are none.
    """

    r: Mapping[str, int]
    s: Mapping[str, int]
    window: str
    parquet: Mapping[str, tuple[str, ...]]

    def columns(self, stream: str) -> Mapping[str, int]:
        """Index of each column of a stream."""
        return self.r if stream == "r" else self.s


_TIMED = {"k": 0, "ms": 1}
_ROVIO = {"k": 0, "type": 1, "price": 2, "ms": 3}

LAYOUTS: dict[str, Layout] = {
    "stock": Layout(_TIMED, _TIMED, "tumbling:1s", {}),
    "rovio": Layout(_ROVIO, _ROVIO, "tumbling:1s", {}),
    "ysb": Layout({"k": 0}, _TIMED, "all", {}),
    "debs": Layout({"k": 0}, {"k": 0}, "all", {}),
}
"""AllianceDB's data sets, by what ``--layout`` calls them."""

TPCH = Layout(
    {"k": 0, "nation": 3},
    {"k": 1, "order": 0},
    "all",
    {"r": ("c_custkey", "c_nationkey"), "s": ("o_custkey", "o_orderkey")},
)
"""TPC-H's tables customer and orders."""


class _Bounded(io.RawIOBase):
    """A file that may be packed, refused once more is decompressed than memory may take."""

    def __init__(self, opened: BinaryIO, path: Path) -> None:
        self._opened, self._path, self._bytes = opened, path, 0
        available = available_bytes()
        self._free_bytes = None if available is None else int(available * SHARE)

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        data = self._opened.read(size)
        self._bytes += len(data)
        check_fits(self._path, self._bytes, self._free_bytes)
        return data


def read_layout(layout: Layout, stream: str, path: Path) -> pa.Table:
    """Read a file, its columns named and its times in microseconds.

    Raises
    ------
    SpecError
        Naming the file and, where it is known, the column.
    """
    columns = layout.columns(stream)
    if path.suffix == ".parquet" and layout.parquet:
        table = _parquet(path, layout.parquet[stream], list(columns))
    else:
        table = _text(path, columns)
    if "ms" not in columns:
        return table.append_column("ts", pa.array(np.zeros(table.num_rows, dtype=np.int64)))
    index = table.schema.get_field_index("ms")
    times = table.column("ms")
    if not pa.types.is_integer(times.type):
        raise SpecError(f"{path}: column {columns['ms']} must be integer milliseconds")
    return table.set_column(index, "ts", pc.multiply(times.cast(pa.int64()), 1000))


def _parquet(path: Path, names: tuple[str, ...], wanted: list[str]) -> pa.Table:
    try:
        return pq.read_table(path, columns=list(names)).select(list(names)).rename_columns(wanted)
    except (pa.ArrowInvalid, KeyError, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(". ")
        raise SpecError(f"{path} must have the columns {', '.join(names)}: {reason}") from error


def _text(path: Path, columns: Mapping[str, int]) -> pa.Table:
    opener = _PACKED.get(path.suffix, open)
    try:
        with opener(path, "rb") as opened:
            line = opened.readline()
        delimiter = "|" if b"|" in line else ","
        count = line.rstrip(b"\r\n").count(delimiter.encode()) + 1
        if not line or max(columns.values()) >= count:
            needed = max(columns.values()) + 1
            raise SpecError(f"{path} must have at least {needed} columns a line, not {count}")
        with opener(path, "rb") as opened:
            table = pyarrow.csv.read_csv(
                cast("BinaryIO", _Bounded(opened, path)),
                read_options=pyarrow.csv.ReadOptions(
                    column_names=[str(index) for index in range(count)]
                ),
                parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char=False),
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=[str(index) for index in columns.values()],
                    strings_can_be_null=True,
                ),
            )
    except (pa.ArrowInvalid, OSError, EOFError, lzma.LZMAError) as error:
        reason = str(error).splitlines()[0].rstrip(". ")
        raise SpecError(f"{path} cannot be read as text columns: {reason}") from error
    return table.rename_columns(list(columns))
