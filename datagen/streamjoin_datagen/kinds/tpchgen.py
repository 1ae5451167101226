"""Runs tpchgen-cli for a part of a TPC-H table and reads what a join needs of it."""

import functools
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin_common.storage import TemporaryFolder
from streamjoin_datagen.errors import GenerationError

PROGRAM = "tpchgen-cli"
DEADLINE_S = 600.0

NUDGE = 1e-9
"""Added to a scale factor: the program cuts its product with a table's rows, and 6.06 times
150,000 is a little less than 909,000 where numbers are binary."""

_TABLES = {"r": "customer", "s": "orders"}
_COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "r": {"c_custkey": pa.int32(), "c_nationkey": pa.int32(), "c_acctbal": pa.float64()},
    "s": {"o_custkey": pa.int32(), "o_orderkey": pa.int64(), "o_totalprice": pa.float64()},
}


def find_program() -> str | None:
    """Path of the program: beside this Python, else on the path."""
    beside = Path(sys.executable).parent
    return shutil.which(PROGRAM, path=str(beside)) or shutil.which(PROGRAM)


def read_rows(
    scale_factor: float, stream: str, parts: int, part_rows: int, rows: tuple[int, int]
) -> pa.Table:
    """Read a range of rows of a table that is made in ``parts`` parts of ``part_rows`` rows."""
    first_row, row_count = rows
    end = first_row + row_count
    pieces = []
    for part in range(first_row // part_rows, max(first_row, end - 1) // part_rows + 1):
        table = _part(scale_factor, stream, parts, part)
        if table.num_rows != part_rows:
            raise GenerationError(
                f"{PROGRAM} made {table.num_rows} rows of {_TABLES[stream]}, not {part_rows}"
            )
        start = part * part_rows
        first = max(first_row, start) - start
        pieces.append(table.slice(first, min(end, start + part_rows) - start - first))
    return pa.concat_tables(pieces).combine_chunks()


@functools.lru_cache(maxsize=1)
def _part(scale_factor: float, stream: str, parts: int, part: int) -> pa.Table:
    program = find_program()
    if program is None:
        raise GenerationError(f"the program {PROGRAM} is not installed on a worker")
    with TemporaryFolder("tpch") as folder:
        command = [program, "parquet", "-s", f"{scale_factor + NUDGE:.9f}", "-T", _TABLES[stream]]
        command += ["-p", str(parts), "--part", str(part + 1), "-n", "1"]
        # One row group a part: version 4.0 drops the rows that are left over when it cuts a part
        # into several.
        command += ["-c", "UNCOMPRESSED", "--row-group-bytes=1GB", "-o", str(folder)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GenerationError(f"{PROGRAM} did not end within {DEADLINE_S:g} s") from None
        made = sorted(folder.rglob("*.parquet"))
        if done.returncode or len(made) != 1:
            reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise GenerationError(f"{PROGRAM} ended with {done.returncode}: {reason}")
        wanted = _COLUMNS[stream]
        table = pq.ParquetFile(made[0]).read(columns=list(wanted))
        return table.select(list(wanted)).cast(pa.schema(wanted))
