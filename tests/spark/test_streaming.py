"""The join as a streaming query: the oracle's result, joined rows, late data, a bounded state."""

import os
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.samples import defined
from tests.spark.stream_samples import (
    DEADLINE_S,
    FILES,
    ROWS,
    START_US,
    found,
    reader,
    rows_of_batches,
    run,
    run_here,
    streams,
    write,
)

from streamjoin import oracle, verify
from streamjoin.errors import InputError
from streamjoin.streams import as_streams
from streamjoin.tuples import Pairs, Stream
from streamjoin_common.errors import InputWarning
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window
from streamjoin_datagen.session import Session
from streamjoin_spark.batch.join import distributed_join
from streamjoin_spark.streaming import source as stream_source
from streamjoin_spark.streaming.query import end_streams, stream_join, stream_join_files
from streamjoin_spark.streaming.state import FOLDER, last_record

pytestmark = pytest.mark.timeout(600)


UNEVEN, TUMBLING, BAND = (
    ("k", None, "time:210us,7us"),  # longer than a batch
    ("k", None, "tumbling:70us"),
    (None, ["k=k:1:2", "f=f:3:3"], "time:50us,80us"),
)


@pytest.mark.parametrize(
    ("on", "band", "window", "path"),
    [
        (*UNEVEN, "files"),
        (*BAND, "workers"),
        # As test_stream_kinds.py, there without Spark.
        *(pytest.param(*asked, "files", marks=pytest.mark.slow) for asked in (TUMBLING, BAND)),
        *(pytest.param(*asked, "workers", marks=pytest.mark.slow) for asked in (UNEVEN, TUMBLING)),
        *(
            pytest.param(*asked, "rows", marks=pytest.mark.slow)
            for asked in (UNEVEN, TUMBLING, BAND)
        ),
    ],
)
def test_a_stream_gives_the_oracles_result(
    on: str | None,
    band: list[str] | None,
    window: str,
    path: str,
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    r, s = streams(1)
    write(tmp_path / "r", r)
    write(tmp_path / "s", s)
    if path == "workers":  # files, and no batch is small
        monkeypatch.setattr(stream_source, "DRIVER_TUPLES", 0)
    where = "rows" if path == "rows" else "files"
    record = run(session, tmp_path, where, on=on, band=band, window=window)
    right = oracle.join(r, s, Predicate.parse(on, band), parse_window(window))
    verify.check(found(tmp_path), right, "stream")
    assert (record["batch"], record["pairs_so_far"]) == (FILES - 1, len(right))
    assert record["late_so_far"] == 0
    # A window of either side, and the last batch.
    assert int(record["kept"]) < 210 + 90 + 2 * ROWS / FILES + 40  # type: ignore[call-overload]


@pytest.mark.parametrize(("path", "files"), [("files", FILES), ("rows", 2)])
def test_a_stream_gives_joined_rows_of_tuples_of_earlier_batches_too(
    path: str, files: int, session: Session, tmp_path: Path
) -> None:
    r, s = streams(16)
    write(tmp_path / "r", r, files)
    write(tmp_path / "s", s, files)
    window = "time:210us,7us"
    how = {"on": "k", "window": window, "columns": "s.f,r.k,r.f,r.row", "how": "full"}
    record = run(session, tmp_path, path, **how)
    assert record["late_so_far"] == 0
    # A window of either side, and the last batch.
    assert int(record["kept"]) < 210 + 90 + 2 * ROWS / files + 40  # type: ignore[call-overload]
    sides: Any = [tmp_path / "r", tmp_path / "s"]
    if path == "rows":
        sides = [reader(session, side) for side in sides]
    folders = {"out": tmp_path / "pairs", "checkpoint": tmp_path / "checkpoint"}
    record = end_streams(*sides, **folders, **how)
    pairs = oracle.join(r, s, Predicate.parse("k"), parse_window(window))
    right = defined(r, s, pairs, parse_window(window), "full")
    names = ["f_s", "k", "f_r", "row"]
    table = pq.read_table(tmp_path / "pairs")
    assert [name for name in table.column_names if name != "batch"] == names
    taken = [(s, "f", 1), (r, "k", 0), (r, "f", 0), (None, "row", 0)]
    columns = [[row[at] for row in right.elements()] for _, _, at in taken]
    expected = zip(
        *(
            [
                None if n < 0 else n if stream is None else stream.column(name)[n].item()
                for n in column
            ]
            for (stream, name, _), column in zip(taken, columns, strict=True)
        ),
        strict=True,
    )
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    assert (record["pairs_so_far"], record["batch"]) == (right.total(), files)
    if path == "files":
        message = r"with columns s\.f,r\.k,r\.f,r\.row, not row numbers; choose another folder"
        with pytest.raises(InputError, match=message):
            run(session, tmp_path, on="k", window=window, how="full")


def test_arrival_columns_of_a_stream_have_names_and_a_unit(
    session: Session, tmp_path: Path
) -> None:
    sent = 1_700_000_000_000 + np.arange(40)
    for side, name in (("r", "sent"), ("s", "got")):
        (tmp_path / side).mkdir()
        table = pa.table({"row": np.arange(40), name: sent, "k": np.arange(40) % 3})
        pq.write_table(table, tmp_path / side / "part-0.parquet")
    asked: dict[str, Any] = {"on": "k", "window": "time:5ms"}
    with pytest.raises(InputError, match=r"needs arrival times and .* it has row, sent, k: name"):
        run(session, tmp_path, **asked)
    folders: dict[str, Any] = {"out": tmp_path / "pairs", "checkpoint": tmp_path / "checkpoint"}
    r, s = tmp_path / "r", tmp_path / "s"
    message = "the integers in '{}' are taken as microseconds and look like ms"
    with (
        pytest.warns(InputWarning, match=message.format("got")),
        pytest.warns(InputWarning, match=message.format("sent")),
    ):
        stream_join_files(session.spark, r, s, ts="sent=got", **folders, **asked)
    frame = session.spark.read.parquet(str(r))
    with pytest.warns(InputWarning, match=message.format("sent")):
        distributed_join(session.spark, frame, r, ts="sent", ts_unit=None, **asked)
    run(session, tmp_path, ts="sent=got", ts_unit="ms", **asked)
    stream = Stream({"k": np.arange(40) % 3}, sent * 1000, "x")
    right = oracle.join(stream, stream, Predicate.parse("k"), parse_window("time:5ms"))
    verify.check(found(tmp_path), right, "stream")


@pytest.mark.parametrize("path", ["rows", pytest.param("files", marks=pytest.mark.slow)])
def test_late_tuples_are_counted_and_left_out(path: str, session: Session, tmp_path: Path) -> None:
    r, s = streams(2)
    files = 2 if path == "rows" else FILES  # a batch of rows takes long
    late = np.arange(5, ROWS // FILES, 7)  # rows of the first file that come with the last
    on_time = np.setdiff1d(np.arange(ROWS), late)
    write(tmp_path / "s", s, files)
    own = Stream({n: c[on_time] for n, c in r.columns.items()}, r.ts[on_time], "r")
    folder = write(tmp_path / "r", own, files)
    for number in range(files):
        part = folder / f"part-{number:03d}.parquet"
        table = pq.read_table(part)
        rows = on_time[table.column("row").to_numpy()]
        table = table.set_column(0, "row", pa.array(rows))
        if number == files - 1:
            columns = {name: r.columns[name][late] for name in ("k", "f")}
            more = pa.table({"row": late, "ts": r.ts[late], **columns}, schema=table.schema)
            table = pa.concat_tables([table, more])
        pq.write_table(table, part)
        os.utime(part, (1000 + number, 1000 + number))
    record = run(session, tmp_path, path, on="k", window="time:40us")
    assert record["late_so_far"] == len(late)
    right = oracle.join(r, s, Predicate.parse("k"), parse_window("time:40us"))
    kept = ~np.isin(right.r_rows, late)
    verify.check(found(tmp_path), Pairs(right.r_rows[kept], right.s_rows[kept]), "stream")
    if path == "rows":
        return
    # With a delay as long as that, nothing is late.
    for name in ("pairs", "checkpoint"):
        shutil.rmtree(tmp_path / name)
    record = run(session, tmp_path, path, on="k", window="time:40us", delay_us=ROWS)
    assert record["late_so_far"] == 0
    verify.check(found(tmp_path), right, "stream")


def test_a_source_of_rates_is_joined_with_itself(session: Session, tmp_path: Path) -> None:
    def rate() -> object:
        source = session.spark.readStream.format("rate-micro-batch")
        rows = source.option("rowsPerBatch", 40).option("startTimestamp", START_US // 1000).load()
        return rows.selectExpr("value AS row", "timestamp AS ts", "value % 7 AS k")

    query = stream_join(
        rate(),  # type: ignore[arg-type]
        rate(),  # type: ignore[arg-type]
        out=tmp_path / "pairs",
        checkpoint=tmp_path / "checkpoint",
        on="k",
        window="time:2s",
    ).start()
    until = time.monotonic() + DEADLINE_S
    while last_record(tmp_path / "checkpoint" / FOLDER)["batch"] < 1:
        assert query.isActive, query.exception()
        assert time.monotonic() < until
        time.sleep(0.1)
    query.stop()
    done = int(last_record(tmp_path / "checkpoint" / FOLDER)["batch"]) + 1
    rows = np.arange(40 * done)
    stream = Stream({"k": rows % 7}, START_US + rows // 40 * 1_000_000, "rate")
    right = oracle.join(stream, stream, Predicate.parse("k"), parse_window("time:2s"))
    verify.check(found(tmp_path), right, "stream")


NAMES = ("in[1]", "{a,b}", "a*?", "back\\slash", "50%20 of ü")


@pytest.mark.parametrize(
    "name", ["".join(NAMES), *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES)]
)
def test_a_folder_may_have_any_name(name: str, session: Session, tmp_path: Path) -> None:
    r, s = streams(13)
    for side, stream in (("r", r), ("s", s)):
        write(tmp_path / name / side, stream, 2)
    run(session, tmp_path / name, on="k", window="time:30us")
    right = oracle.join(r, s, Predicate.parse("k"), parse_window("time:30us"))
    verify.check(found(tmp_path / name), right, "stream")


def test_files_may_order_columns_otherwise_and_be_written_under_hidden_names(
    session: Session, tmp_path: Path
) -> None:
    r, s = streams(14)
    write(tmp_path / "r", r, 3)
    write(tmp_path / "s", s, 1)
    for number, names in ((0, ["k", "f", "ts", "row"]), (2, ["f", "k", "row", "ts"])):
        path = tmp_path / "r" / f"part-{number:03d}.parquet"
        table = pq.read_table(path).select(names)
        schema = pa.schema([field.with_nullable(number == 0) for field in table.schema])
        pq.write_table(table.cast(schema), path)
        os.utime(path, (1000 + number, 1000 + number))
    for name in (".being-written.parquet", "_other.parquet"):
        (tmp_path / "r" / name).write_bytes(b"half a file")
    (tmp_path / "r" / "0.parquet").mkdir()
    run(session, tmp_path, on="k", window="time:30us")
    right = oracle.join(r, s, Predicate.parse("k"), parse_window("time:30us"))
    verify.check(found(tmp_path), right, "stream")


@pytest.mark.parametrize("on", ["row=k", "k=ts", "ts,k"])
def test_row_numbers_and_arrival_times_are_joined_on_like_any_column(
    on: str, tmp_path: Path
) -> None:
    sides = []
    for side, stream in zip(("r", "s"), streams(15), strict=True):
        near = {
            "k": np.arange(ROWS) // 3 + (START_US if on == "k=ts" else 0),
            "row": np.arange(ROWS),
        }
        write(tmp_path / side, Stream({"k": near["k"]}, stream.ts, side))
        sides.append(pa.table({**near, "ts": stream.ts}))
    run_here(tmp_path, on=on, window="time:90us")
    predicate = Predicate.parse(on)
    right = oracle.join(*as_streams(*sides, predicate), predicate, parse_window("time:90us"))
    assert len(right) > 0
    verify.check(found(tmp_path), right, "stream")


def test_a_batch_may_bring_files_of_one_side_alone(session: Session, tmp_path: Path) -> None:
    r, s = streams(8)
    write(tmp_path / "r", r, files=3)
    write(tmp_path / "s", s, files=1)
    run(session, tmp_path, band=["k=k:1:1"], window="time:30us", delay_us=ROWS)
    right = oracle.join(r, s, Predicate.parse(band=["k=k:1:1"]), parse_window("time:30us"))
    verify.check(found(tmp_path), right, "stream")


def test_keys_of_any_kind_are_kept_from_batch_to_batch(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    sides = []
    for side in ("r", "s"):
        (tmp_path / side).mkdir()
        numbers = rng.integers(0, 5, 90)
        keys = {
            "text": [None if n == 4 else f"key {n}" for n in numbers.tolist()],
            "wide": pa.array(numbers.astype(np.uint64) + np.uint64((1 << 64) - 9)),
            "day": (numbers // 2).astype("datetime64[D]"),
        }
        table = pa.table({"row": np.arange(90), "ts": START_US + np.arange(90), **keys})
        for number in range(3):
            path = tmp_path / side / f"part-{number}.parquet"
            pq.write_table(table.slice(30 * number, 30), path)
            os.utime(path, (1000 + number, 1000 + number))
        sides.append(table)
    on = ["text,wide,day"]
    window = parse_window("time:50us")
    asked: dict[str, Any] = {"on": on, "window": window, "how": "full"}
    folders = {"out": tmp_path / "pairs", "checkpoint": tmp_path / "checkpoint"}
    run_here(tmp_path, **asked)
    end_streams(tmp_path / "r", tmp_path / "s", **folders, **asked)
    r, s = as_streams(*sides, Predicate.parse(on))
    right = defined(r, s, oracle.join(r, s, Predicate.parse(on), window), window, "full")
    assert len({row[:2].count(-1) for row in right}) == 2
    assert Counter(row for _, row in rows_of_batches(tmp_path / "pairs")) == right
