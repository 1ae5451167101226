"""Kinds of join on streams against their definition and a model of the watermark; no Spark."""

import contextlib
import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.host import cases
from tests.spark.samples import Here, Row, defined, digest_of, table_of, write_files
from tests.spark.stream_samples import here, rows_of_batches

from streamjoin import oracle
from streamjoin.cli import main
from streamjoin.errors import InputError
from streamjoin.tuples import Stream
from streamjoin_common import storage
from streamjoin_common.language.kinds import KINDS
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import TimeWindow, TumblingWindow, Window
from streamjoin_spark.batch.join import distributed_join
from streamjoin_spark.streaming import batches
from streamjoin_spark.streaming.state import last_record

SEED = int(os.environ.get("SEED", "6"))
LONG_AGO, NEVER = -(1 << 63), (1 << 63) - 1


@pytest.fixture(autouse=True)
def _no_power_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(os, "fdatasync", lambda _: None)


@dataclass
class Streams:
    """Two streams, cut into batches in which tuples lie in any order, some of them late."""

    r: Stream
    s: Stream
    batches: tuple[Any, Any]
    """The batch of each tuple."""
    delay_us: int
    watermarks: list[int] = field(default_factory=list)
    """The watermark before each batch, then the one after the last."""

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> "Streams":
        count = int(rng.integers(2, 7))
        sides = [cases.stream_of(rng, side, int(rng.integers(0, 60))) for side in ("r", "s")]
        for stream in sides:
            for floats in (x for x in stream.columns.values() if x.dtype.kind == "f"):
                floats[rng.random(stream.rows) < 0.1] = np.nan
        cut = []
        for stream in sides:
            bounds = np.sort(rng.integers(0, stream.rows + 1, count - 1))
            number = np.searchsorted(bounds, np.arange(stream.rows), side="right")
            strayed = rng.random(stream.rows) < 0.15
            number[strayed] = rng.integers(0, count, int(strayed.sum()))
            cut.append(number)
        streams = cls(*sides, (cut[0], cut[1]), int(rng.choice([0, 0, 5, 60])))
        lasts, mark = [LONG_AGO, LONG_AGO], LONG_AGO
        for batch in range(count):
            streams.watermarks.append(mark)
            for side, (stream, number) in enumerate(zip(sides, cut, strict=True)):
                lasts[side] = max([lasts[side], *stream.ts[number == batch].tolist()])
            if min(lasts) != LONG_AGO:
                mark = max(mark, min(lasts) - streams.delay_us)
        streams.watermarks.append(mark)
        return streams

    @property
    def count(self) -> int:
        return len(self.watermarks) - 1

    def on_time(self, side: int) -> Any:
        stream, number = (self.r, self.s)[side], self.batches[side]
        return np.flatnonzero(stream.ts >= np.array(self.watermarks, dtype=np.int64)[number])

    def right(self, predicate: Predicate, window: Window, how: str) -> Counter[Row]:
        """The definition, of the tuples that are not late."""
        rows = [self.on_time(0), self.on_time(1)]
        r, s = (_some(x, own) for x, own in zip((self.r, self.s), rows, strict=True))
        found: Counter[Row] = Counter()
        last = max([int(x.ts[-1]) for x in (self.r, self.s) if x.rows], default=0)
        assert last == max([int(x.ts[-1]) for x in (r, s) if x.rows], default=0)
        pairs = oracle.join(r, s, predicate, window)
        for (a, b, ts), times in defined(r, s, pairs, window, how).items():
            named = (-1 if a < 0 else int(rows[0][a]), -1 if b < 0 else int(rows[1][b]), ts)
            found[named] += times
        return found

    def decided_us(self, row: Row, window: Window, how: str) -> int:
        """The watermark from which on a row is certain; pairs are so at once."""
        if how == "semi":
            return row[2]
        if row[0] >= 0 and row[1] >= 0:
            return LONG_AGO
        ts = int(self.r.ts[row[0]] if row[0] >= 0 else self.s.ts[row[1]])
        if isinstance(window, TumblingWindow):
            return (ts // window.length_us + 1) * window.length_us
        assert isinstance(window, TimeWindow)
        return ts + (window.r_us if row[0] >= 0 else window.s_us)


def _some(stream: Stream, rows: Any) -> Stream:
    missing = None if stream.missing is None else stream.missing[rows]
    columns = {name: column[rows] for name, column in stream.columns.items()}
    return Stream(columns, stream.ts[rows], stream.source, missing=missing)


def write(folder: Path, streams: Streams, rng: np.random.Generator) -> None:
    """Write a file for each side and batch that has tuples, and first an empty one."""
    for side, stream in (("r", streams.r), ("s", streams.s)):
        (folder / side).mkdir(parents=True)
        table = table_of(stream).append_column("row", pa.array(np.arange(stream.rows)))
        pq.write_table(table.slice(0, 0), folder / side / "part-0.parquet")
        for batch in range(streams.count):
            rows = np.flatnonzero(streams.batches["rs".index(side)] == batch)
            own = table.take(pa.array(rng.permutation(rows)))
            if len(rows):
                pq.write_table(own, folder / side / f"part-1-{batch}.parquet")


def joined(folder: Path, name: str, streams: Streams, **asked: Any) -> batches.StreamingJoin:
    """The join of folders, whose batches are named by their numbers."""

    def files(side: Path, number: int) -> list[Path]:
        return sorted(side.glob(f"part-1-{number}.parquet"))

    return here(folder, folder / name, files, delay_us=streams.delay_us, **asked)


def interrupted(work: Callable[[], object], rng: np.random.Generator, patch: Any) -> None:
    """Do something, which may be killed before a file of the state or a folder has its name."""
    if rng.random() < 0.3:
        left = int(rng.integers(0, 4))

        def failing(real: Callable[..., Any]) -> Callable[..., Any]:
            def act(*given: Any, **more: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
                return real(*given, **more)

            return act

        with patch.context() as patched:
            patched.setattr(storage, "write_text", failing(storage.write_text))
            patched.setattr(storage, "new_folder", failing(storage.new_folder))
            with contextlib.suppress(KeyboardInterrupt):
                work()
    work()


@pytest.mark.parametrize("seed", range(SEED, SEED + 6))
def test_a_tuple_is_reported_once_when_the_watermark_decides_it(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"SEED={seed}")  # noqa: T201  (shown with a failure)
    rng = np.random.default_rng(seed)
    predicate = [*cases.PREDICATES.values()][seed % 3]
    streams = Streams.drawn(rng)
    lengths = [int(x) for x in rng.choice([1, 2, 7, 30, 400], 2)]
    window = TumblingWindow(lengths[0]) if rng.random() < 0.3 else TimeWindow(*lengths)
    write(tmp_path, streams, rng)
    for how in KINDS[seed % 2 :: 2]:  # six seeds: every kind with every predicate
        asked = {"on": predicate.on, "band": predicate.band, "window": window, "how": how}
        join = joined(tmp_path, how, streams, **asked)
        right = streams.right(predicate, window, how)
        for batch in range(streams.count):
            number: Any = batch
            interrupted(lambda: join.process(number, number), rng, monkeypatch)  # noqa: B023
        interrupted(join.end, rng, monkeypatch)
        record = join.end()
        reported = list(rows_of_batches(join.out))
        assert Counter(row for _, row in reported) == right, (how, window.text)
        marks = [LONG_AGO, *streams.watermarks[:-1], NEVER]
        for batch, row in reported:
            decided_us = streams.decided_us(row, window, how)
            assert min(row[:2]) >= 0 or marks[batch] <= decided_us <= marks[batch + 1]
        assert (record["pairs_so_far"], record["kept"]) == (right.total(), 0)
        digests = [json.loads(x.read_text())["digest"] for x in join.state.glob("batch-*.json")]
        assert f"{sum(int(d, 16) for d in digests) % (1 << 64):016x}" == digest_of(right)
        late = sum(len(streams.batches[side]) - len(streams.on_time(side)) for side in (0, 1))
        assert record["late_so_far"] == late


def in_order(folder: Path, rows: int = 90) -> Streams:
    """Streams of three files a side, each later than the one before, without a tuple late."""
    rng = np.random.default_rng(7)
    sides = []
    for side in ("r", "s"):
        keys, missing = rng.integers(0, 60, rows), rng.random(rows) < 0.1
        sides.append(cases.stream(side, [*range(rows)], keys.tolist(), None, missing.tolist()))
    batches = (np.arange(rows) * 3 // rows, np.arange(rows) * 3 // rows)
    streams = Streams(*sides, batches, 0, [LONG_AGO] * 4)
    write(folder, streams, rng)
    return streams


def test_an_ended_stream_has_the_rows_of_a_join_of_its_files(tmp_path: Path) -> None:
    streams = in_order(tmp_path)
    for how, columns in (("full", "s.y2,r.row,r.g,s.row"), ("anti", "*"), ("semi", "r.row,r.y")):
        asked: dict[str, Any] = {"on": "g=g2", "window": "time:40us,9us", "how": how}
        asked |= {"band": "k=k2:9:2", "columns": columns}
        join = joined(tmp_path, how, streams, **asked)
        for batch in range(3):
            number: Any = batch
            join.process(number, number)
        record = join.end()
        paths = [tmp_path / side for side in ("sorted-r", "sorted-s")]
        for path, stream in zip(paths, (streams.r, streams.s), strict=True):
            table = table_of(stream).append_column("row", pa.array(np.arange(stream.rows)))
            write_files(path, table, 1, 90) if not path.exists() else None
        here: Any = Here()
        still = distributed_join(here, *paths, **asked, slots=2)
        manifest = still.write(tmp_path / "still", force=True)
        tables = [pq.read_table(tmp_path / "still")]
        shown = sorted(join.out.glob("batch=*/part-*.parquet"))
        tables.append(pa.concat_tables([pq.ParquetFile(path).read() for path in shown]))
        assert tables[0].schema.equals(tables[1].schema)
        own, other = (
            Counter(map(repr, zip(*(c.to_pylist() for c in table.columns), strict=True)))
            for table in tables
        )
        assert own == other
        assert record["pairs_so_far"] == manifest["pairs"] > 0


def test_streams_that_have_ended_take_no_more_tuples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    streams = in_order(tmp_path)
    asked = {"on": "k=k2", "window": "time:40us", "how": "left"}
    join = joined(tmp_path, "left", streams, **asked)
    for batch in range(3):
        number: Any = batch
        join.process(number, number)
    words = ["spark-stream", "--on=k=k2", "--window=time:40us", f"--out={join.out}"]
    words += [f"--{side}={tmp_path / side}" for side in ("r", "s")]
    words += [f"--checkpoint={join.state.parent}", "--end"]

    begun = join.state.parent / "offsets" / "3"
    begun.parent.mkdir()
    begun.touch()
    with pytest.raises(InputError, match="has begun batch 3 and not ended it: run the same query"):
        join.end()
    begun.unlink()
    message = "is the checkpoint of a join with how left, not inner; choose another folder"
    assert main(words) == 2
    assert message in capsys.readouterr().err
    record = join.end()
    assert (record["batch"], record["kept"]) == (3, 0)

    words.append("--how=left")
    before = Counter(rows_of_batches(join.out))
    assert main([*words, "--json"]) == 0  # again, and without Spark: all is done
    assert json.loads(capsys.readouterr().out)["pairs_so_far"] == record["pairs_so_far"]
    assert Counter(rows_of_batches(join.out)) == before
    words.remove("--end")
    assert main(words) == 2
    message = "is the checkpoint of streams that --end has ended: choose another checkpoint and"
    assert message in capsys.readouterr().err
    (join.state / "end.json").write_text("{}")
    assert main([*words, "--end"]) == 2
    assert "end.json: does not say with which batch" in capsys.readouterr().err


def test_streams_without_a_tuple_end_too(tmp_path: Path) -> None:
    streams = in_order(tmp_path, rows=0)
    join = joined(tmp_path, "full", streams, on="k=k2", window="tumbling:1s", how="full")
    number: Any = 0
    join.process(number, 0)
    record = join.end()
    assert (record["batch"], record["pairs_so_far"], record["watermark_us"]) == (1, 0, LONG_AGO)
    assert last_record(join.state) == join.end() == record
