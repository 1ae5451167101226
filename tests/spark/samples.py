"""What the tests of joins on Spark share: inputs, files of them, and results read back."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.tuples import Pairs, Stream
from streamjoin_common.language.windows import AllWindow, TimeWindow, TumblingWindow, Window


def window_of(rng: np.random.Generator, most: int) -> Window:
    """A window that Spark's engines take: of a microsecond, uneven, longer than the input."""
    r, s = (int(x) for x in rng.choice([1, 2, 7, most // 3 + 1, 4 * most], 2))
    return (AllWindow(), TumblingWindow(r), TimeWindow(r, s))[int(rng.integers(3))]


def table_of(stream: Stream) -> pa.Table:
    columns = {name: pa.array(c, mask=stream.missing) for name, c in stream.columns.items()}
    return pa.table({**columns, "ts": stream.ts})


def write_files(path: Path, table: pa.Table, parts: int, group_rows: int) -> Path:
    """Write a table as so many part files of small row groups."""
    path.mkdir(parents=True)
    bounds = np.linspace(0, table.num_rows, parts + 1).astype(int).tolist()
    for part, (first, end) in enumerate(itertools.pairwise(bounds)):
        pq.write_table(
            table.slice(first, end - first),
            path / f"part-{part:03d}.parquet",
            row_group_size=group_rows,
        )
    return path


def pairs_of(table: pa.Table) -> Pairs:
    return Pairs(table.column("r_row").to_numpy(), table.column("s_row").to_numpy())


def joined(found: list[tuple[np.ndarray, np.ndarray]]) -> Pairs:  # type: ignore[type-arg]
    nothing = np.empty(0, dtype=np.int64)
    return Pairs(
        np.concatenate([r for r, _ in found] or [nothing]).astype(np.int64),
        np.concatenate([s for _, s in found] or [nothing]).astype(np.int64),
    )
