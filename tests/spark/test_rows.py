"""Joined rows and kinds of join on Spark, against their definition written out."""

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.host import cases
from tests.spark.samples import table_of, window_of, write_files

from streamjoin import oracle
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.tuples import Pairs, Stream
from streamjoin_common.language.kinds import KINDS
from streamjoin_common.language.windows import TimeWindow, TumblingWindow, Window, parse_window
from streamjoin_datagen.session import Session
from streamjoin_spark.batch import lone, parts, rows
from streamjoin_spark.batch.join import distributed_join

SEED = int(os.environ.get("SEED", "0"))
Row = tuple[int, int, int]
pytestmark = pytest.mark.timeout(600)


def defined(r: Stream, s: Stream, pairs: Pairs, window: Window, how: str) -> Counter[Row]:
    """The rows of a kind of join, each side's missing row as -1, from the pairs of the inner one."""
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


@dataclass
class Here:
    """A session whose jobs run in this process: what Spark's workers do, without Spark."""

    numbers: int = 0
    sparkContext = SimpleNamespace(defaultParallelism=2)

    def range(self, first: int, end: int, step: int, parts: int) -> "Here":
        assert (first, step) == (0, 1) < (1, 2) and parts >= 1
        return Here(end)

    def mapInArrow(self, work: Callable[[Any], Iterator[pa.RecordBatch]], schema: str) -> "Here":  # noqa: N802
        batch = pa.record_batch({"id": pa.array(np.arange(self.numbers))})
        self.done = [row for out in work(iter([batch])) for row in out.to_pylist()]
        return self

    def collect(self) -> list[Any]:
        return [SimpleNamespace(asDict=lambda row=row: row) for row in self.done]


def read(out: Path) -> Counter[Row]:
    table = pq.read_table(out)
    assert table.schema.names == ["r_row", "s_row", "ts"]
    columns = [table.column(name).fill_null(-1).to_pylist() for name in table.schema.names]
    return Counter(zip(*columns, strict=True))


def digest_of(found: Counter[Row]) -> str:
    both = np.array([row[:2] for row in found.elements()], dtype=np.int64).reshape(-1, 2)
    return Pairs(both[:, 0], both[:, 1]).digest


@pytest.mark.parametrize("seed", range(SEED, SEED + 12))
def test_every_kind_gives_the_rows_of_its_definition(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"SEED={seed}")  # noqa: T201  (shown with a failure)
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(lone, "RANGE_ROWS", int(rng.choice([1, 40, 1 << 20])))
    for name, predicate in cases.PREDICATES.items():
        r, s = (cases.stream_of(rng, side, int(rng.integers(0, 120))) for side in ("r", "s"))
        window = window_of(rng, 120)
        paths = [
            write_files(tmp_path / name / side, table_of(stream), 2, 13)
            for side, stream in (("r", r), ("s", s))
        ]
        pairs = oracle.join(r, s, predicate, window)
        tuples = int(rng.choice([8, 60, 1000]))
        for how in KINDS:
            join = distributed_join(
                Here(),  # type: ignore[arg-type]
                *paths,
                on=predicate.on,
                band=predicate.band,
                window=window,
                path="files",
                partition_tuples=tuples,
                slots=2,
                how=how,
            )
            manifest = join.write(tmp_path / "out")
            right = defined(r, s, pairs, window, how)
            assert read(tmp_path / "out") == right, (how, window.text, name)
            assert (manifest["how"], manifest["pairs"]) == (how, right.total())
            assert manifest["digest"] == digest_of(right)
            left = {path.name for path in (tmp_path / "out").iterdir()}
            assert all(one.startswith("part-") or one == parts.MANIFEST for one in left)
