"""What the tests of joins on Spark share: inputs, files of them, and results read back."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.tuples import Pairs, Stream
from streamjoin_common.language.windows import AllWindow, TimeWindow, TumblingWindow, Window

Row = tuple[int, int, int]
"""Row numbers of R and of S, -1 where missing, and the time."""


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


def defined(r: Stream, s: Stream, pairs: Pairs, window: Window, how: str) -> Counter[Row]:
    """The rows of a kind of join from the pairs of the inner one; a missing row is -1."""
    last = max([int(x.ts[-1]) for x in (r, s) if x.rows], default=0)

    def moment(ts: int, own: int) -> int:
        if isinstance(window, TumblingWindow):
            return min((ts // window.length_us + 1) * window.length_us, last)
        return min(ts + own, last) if isinstance(window, TimeWindow) else last

    widths = (window.r_us, window.s_us) if isinstance(window, TimeWindow) else (0, 0)
    inner = [
        (a, b, max(int(r.ts[a]), int(s.ts[b])))
        for a, b in zip(pairs.r_rows.tolist(), pairs.s_rows.tolist(), strict=True)
    ]
    r_met, s_met = {a for a, _, _ in inner}, {b for _, b, _ in inner}
    if how == "semi":
        return Counter((a, -1, min(t for b, _, t in inner if a == b)) for a in r_met)
    found = [] if how == "anti" else inner
    if how in {"left", "full", "anti"}:
        lonely = [a for a in range(r.rows) if a not in r_met]
        found = [*found, *((a, -1, moment(int(r.ts[a]), widths[0])) for a in lonely)]
    if how in {"right", "full"}:
        lonely = [b for b in range(s.rows) if b not in s_met]
        found = [*found, *((-1, b, moment(int(s.ts[b]), widths[1])) for b in lonely)]
    return Counter(found)


def read_rows(out: Path) -> Counter[Row]:
    table = pq.read_table(out)
    assert table.schema.names == ["r_row", "s_row", "ts"]
    columns = [table.column(name).fill_null(-1).to_pylist() for name in table.schema.names]
    return Counter(zip(*columns, strict=True))


def digest_of(found: Counter[Row]) -> str:
    both = np.array([row[:2] for row in found.elements()], dtype=np.int64).reshape(-1, 2)
    return Pairs(both[:, 0], both[:, 1]).digest


@dataclass
class Here:
    """A session and its frames whose jobs run in this process: the workers' part, without Spark."""

    numbers: int = 0
    done: tuple[Any, ...] = ()
    sparkContext = SimpleNamespace(defaultParallelism=2)  # noqa: N815

    def range(self, first: int, end: int, step: int, parts: int) -> "Here":
        assert (first, step) == (0, 1)
        assert parts >= 1
        return Here(end)

    def mapInArrow(self, work: Callable[[Any], Iterator[pa.RecordBatch]], schema: str) -> "Here":  # noqa: N802
        batch = pa.record_batch({"id": pa.array(np.arange(self.numbers))})
        found = [row for out in work(iter([batch])) for row in out.to_pylist()]
        return Here(done=tuple(SimpleNamespace(asDict=row.copy) for row in found))

    def collect(self) -> list[Any]:
        return [*self.done]
