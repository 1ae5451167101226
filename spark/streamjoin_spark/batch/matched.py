"""Which tuples are in a pair, noted by the tasks: kinds of join on top of matches.

While tasks join, each notes which of its tuples are in a pair and writes their row numbers,
in arrival order, beside its part file. :mod:`~streamjoin_spark.batch.lone` makes rows of them, or
of the others, when all tasks are done.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamjoin.tuples import Int64s
from streamjoin_common import storage
from streamjoin_common.language.kinds import R_ONLY, R_UNMATCHED, S_UNMATCHED
from streamjoin_spark.batch.partition import LAST_TIME

FOLDER = "_matched"
"""Folder of the row numbers while a result is written."""

SCHEMA = pa.schema({"row": pa.int64(), "ts": pa.int64()})


def asked_sides(how: str) -> tuple[str, ...]:
    """Sides whose tuples are of interest themselves: with a partner (semi) or without one."""
    r = how in R_UNMATCHED or how in R_ONLY
    return (*(("r",) if r else ()), *(("s",) if how in S_UNMATCHED else ()))


class Noted:
    """Which tuples of a task are in a pair, and when the first was complete.

    Parameters
    ----------
    how : str
        The kind of join.
    folder : Path
        Where the row numbers are written.
    number : int
        The task's number.
    """

    def __init__(self, how: str, folder: Path, number: int) -> None:
        self.sides = asked_sides(how)
        self._semi = how == "semi"
        self._folder = folder
        self._number = number
        self._first: dict[str, Int64s] = {}
        self._seen: dict[str, NDArray[np.bool_]] = {}

    def begin(self, r_rows: int, s_rows: int) -> None:
        """Begin with tasks of so many tuples."""
        counts = {"r": r_rows, "s": s_rows}
        self._seen = {side: np.zeros(counts[side], dtype=np.bool_) for side in self.sides}
        if self._semi:
            self._first["r"] = np.full(r_rows, LAST_TIME, dtype=np.int64)

    def note(self, r_at: NDArray[Any], s_at: NDArray[Any], ts: Int64s) -> None:
        """Note pairs, by the indices of their tuples."""
        for side in self.sides:
            self._seen[side][r_at if side == "r" else s_at] = True
        if self._semi:
            np.minimum.at(self._first["r"], r_at, ts)

    def write(self, r_rows: Int64s, s_rows: Int64s) -> None:
        """Write the row numbers of the tuples that were noted; no file where there is none."""
        for side in self.sides:
            seen = self._seen[side]
            if not seen.any():
                continue
            rows = (r_rows if side == "r" else s_rows)[seen]
            ts = self._first[side][seen] if self._semi else np.zeros_like(rows)
            table = pa.table([pa.array(rows), pa.array(ts)], schema=SCHEMA)
            path = matched_path(self._folder, self._number, side)
            # Whole or not at all, as another attempt may read what a lost worker began.
            with (
                storage.new_file(path, tidy=False) as draft,
                pa.OSFile(str(draft), "wb") as file,
                pa.ipc.new_file(file, SCHEMA) as writer,
            ):
                writer.write_table(table)


def matched_path(folder: Path, number: int, side: str) -> Path:
    """Return the path of the row numbers of a task."""
    return folder / FOLDER / f"{side}-{number:05d}.arrow"


def read_matched(folder: Path, number: int, side: str) -> pa.Table | None:
    """Map what a task noted into memory; None where it noted nothing."""
    path = matched_path(folder, number, side)
    if not path.exists():
        return None
    with pa.memory_map(str(path)) as mapped:
        return pa.ipc.open_file(mapped).read_all()
