"""The join as a streaming query: exactly once, late data counted, a bounded state."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.samples import pairs_of

from streamjoin import oracle, verify
from streamjoin.cli import main
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.streams import as_streams
from streamjoin.tuples import Pairs, Stream
from streamjoin_common.errors import InputWarning
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window
from streamjoin_datagen.session import Session
from streamjoin_spark import cli
from streamjoin_spark.batch.failures import explained
from streamjoin_spark.batch.join import distributed_join
from streamjoin_spark.streaming import source as stream_source
from streamjoin_spark.streaming import state as stream_state
from streamjoin_spark.streaming.checks import Asked, check_folders
from streamjoin_spark.streaming.query import stream_join, stream_join_files
from streamjoin_spark.streaming.state import FOLDER, last_record

pytestmark = pytest.mark.timeout(600)
ROWS, FILES, START_US = 600, 4, 1_000_000
DEADLINE_S = 300


def streams(seed: int, rows: int = ROWS) -> tuple[Stream, Stream]:
    rng = np.random.default_rng(seed)
    found = []
    for side in ("r", "s"):
        ts = np.sort(rng.integers(START_US, START_US + rows, rows))
        columns = {"k": rng.integers(0, 30, rows).astype(np.int32)}
        columns["f"] = rng.uniform(-9, 9, rows).astype(np.float32)
        columns["f"][rng.random(rows) < 0.1] = np.nan
        found.append(Stream(columns, ts, side))
    return found[0], found[1]


def write(folder: Path, stream: Stream, files: int = FILES, seed: int = 0) -> Path:
    """Write a stream as files whose rows lie in any order, each older than the next."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for number, rows in enumerate(np.array_split(np.arange(stream.rows), files)):
        shuffled = rng.permutation(rows)
        columns = {name: column[shuffled] for name, column in stream.columns.items()}
        path = folder / f"part-{number:03d}.parquet"
        pq.write_table(pa.table({"row": shuffled, "ts": stream.ts[shuffled], **columns}), path)
        os.utime(path, (1000 + number, 1000 + number))  # Spark takes the oldest first
    return folder


def reader(session: Session, folder: Path) -> Any:
    schema = "row long, ts long, k int, f float"
    read = session.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return read.parquet(str(folder))


def run(session: Session, folder: Path, path: str = "files", **how: Any) -> dict[str, object]:
    how = {
        "delay_us": 0,
        "classes": 3,
        "out": folder / "pairs",
        "checkpoint": folder / "checkpoint",
        **how,
    }
    r, s = folder / "r", folder / "s"
    if path == "files":
        query = stream_join_files(session.spark, r, s, most_files=1, **how)
    else:
        query = stream_join(reader(session, r), reader(session, s), **how)
    running = query.trigger(availableNow=True).start()
    assert running.awaitTermination(DEADLINE_S)
    return last_record(folder / "checkpoint" / FOLDER)


def found(folder: Path) -> Pairs:
    return pairs_of(pq.read_table(folder / "pairs"))


UNEVEN, TUMBLING, BAND = (
    ("k", None, "time:210us,7us"),  # longer than a batch
    ("k", None, "tumbling:70us"),
    (None, ["k=k:1:2", "f=f:3:3"], "time:50us,80us"),
)


@pytest.mark.parametrize(
    ("on", "band", "window", "path"),
    [
        *((*asked, "files") for asked in (UNEVEN, TUMBLING, BAND)),
        (*BAND, "workers"),
        (*UNEVEN, "rows"),
        (*TUMBLING, "rows"),
        pytest.param(*UNEVEN, "workers", marks=pytest.mark.slow),
        pytest.param(*TUMBLING, "workers", marks=pytest.mark.slow),
        pytest.param(*BAND, "rows", marks=pytest.mark.slow),
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
    how = {"on": "k", "window": "time:210us,7us", "columns": "s.f,r.k,r.f,r.row"}
    record = run(session, tmp_path, path, **how)
    right = oracle.join(r, s, Predicate.parse("k"), parse_window("time:210us,7us"))
    names = ["f_s", "k", "f_r", "row"]
    table = pq.read_table(tmp_path / "pairs")
    assert [name for name in table.column_names if name != "batch"] == names
    r_at, s_at = right.r_rows, right.s_rows
    columns = s.column("f")[s_at], r.column("k")[r_at], r.column("f")[r_at], r_at
    expected = zip(*(column.tolist() for column in columns), strict=True)
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    assert (record["pairs_so_far"], record["batch"]) == (len(right), files - 1)
    if path == "files":
        message = r"with columns s\.f,r\.k,r\.f,r\.row, not row numbers; choose another folder"
        with pytest.raises(InputError, match=message):
            run(session, tmp_path, on="k", window="time:210us,7us")


def test_a_checkpoint_that_does_not_name_columns_is_one_of_row_numbers(tmp_path: Path) -> None:
    state = tmp_path / "checkpoint" / FOLDER
    state.mkdir(parents=True)
    before = {**stream_state.BEGINNING, "format": stream_state.FORMAT, "batch": 0}
    stream_state.record_path(state, 0).write_text(json.dumps(before))
    what = Asked("k", None, "time:1s", "row", None)
    check_folders(what, tmp_path / "pairs", tmp_path / "checkpoint")
    what.choose("*", ["k"], ["a"])
    with pytest.raises(InputError, match=r"join with columns row numbers, not r\.k,s\.a; choose"):
        check_folders(what, tmp_path / "pairs", tmp_path / "checkpoint")


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


@pytest.mark.parametrize("path", ["files", "rows"])
def test_late_tuples_are_counted_and_left_out(path: str, session: Session, tmp_path: Path) -> None:
    r, s = streams(2)
    late = np.arange(5, ROWS // FILES, 7)  # rows of the first file that come with the last
    on_time = np.setdiff1d(np.arange(ROWS), late)
    write(tmp_path / "s", s)
    folder = write(
        tmp_path / "r", Stream({n: c[on_time] for n, c in r.columns.items()}, r.ts[on_time], "r")
    )
    for number in range(FILES):
        path = folder / f"part-{number:03d}.parquet"
        table = pq.read_table(path)
        rows = on_time[table.column("row").to_numpy()]
        table = table.set_column(0, "row", pa.array(rows))
        if number == FILES - 1:
            columns = {name: r.columns[name][late] for name in ("k", "f")}
            more = pa.table({"row": late, "ts": r.ts[late], **columns}, schema=table.schema)
            table = pa.concat_tables([table, more])
        pq.write_table(table, path)
        os.utime(path, (1000 + number, 1000 + number))
    record = run(session, tmp_path, path, on="k", window="time:40us")
    assert record["late_so_far"] == len(late)
    right = oracle.join(r, s, Predicate.parse("k"), parse_window("time:40us"))
    kept = ~np.isin(right.r_rows, late)
    verify.check(found(tmp_path), Pairs(right.r_rows[kept], right.s_rows[kept]), "stream")
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
    while last_record(tmp_path / "checkpoint" / FOLDER)["batch"] < 3:
        assert query.isActive, query.exception()
        assert time.monotonic() < until
        time.sleep(0.1)
    query.stop()
    done = int(last_record(tmp_path / "checkpoint" / FOLDER)["batch"]) + 1
    rows = np.arange(40 * done)
    stream = Stream({"k": rows % 7}, START_US + rows // 40 * 1_000_000, "rate")
    right = oracle.join(stream, stream, Predicate.parse("k"), parse_window("time:2s"))
    verify.check(found(tmp_path), right, "stream")


def command(folder: Path) -> list[str]:
    flags = {"r": "r", "s": "s", "out": "pairs", "checkpoint": "checkpoint"}
    places = [text for flag, name in flags.items() for text in (f"--{flag}", str(folder / name))]
    how = "--on k --window time:90us --max-files 1 --classes 2 --threads 2 --memory 1g --json"
    return [sys.executable, "-m", "streamjoin", "spark-stream", *places, *how.split()]


def test_pairs_are_there_exactly_once_after_a_driver_is_killed(
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    r, s = streams(3, 2000)
    write(tmp_path / "r", r, files=10)
    write(tmp_path / "s", s, files=10)
    records = tmp_path / "checkpoint" / FOLDER
    temporary = tmp_path / "tmp"  # a killed driver leaves its own
    temporary.mkdir()
    driver = subprocess.Popen(
        command(tmp_path),
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + DEADLINE_S
    try:
        while not (tmp_path / "pairs" / "batch=2").exists():
            assert driver.poll() is None, driver.stderr.read() if driver.stderr else ""
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.communicate(timeout=DEADLINE_S)
    before = last_record(records)["batch"]
    assert before < 9
    right = oracle.join(r, s, Predicate.parse("k"), parse_window("time:90us"))
    assert len(found(tmp_path)) < len(right)
    monkeypatch.setattr(cli, "_session", lambda args: contextlib.nullcontext(session))
    assert main(command(tmp_path)[3:]) == 0
    verify.check(found(tmp_path), right, "stream")
    told = json.loads(capsys.readouterr().out)
    assert (told["pairs_so_far"], told["late_so_far"]) == (len(right), 0)


class Failing:
    """Stands for the module json; a batch's record cannot be written with it."""

    def __init__(self, batch: int) -> None:
        self._batch = batch

    def dumps(self, record: dict[str, object], **how: int) -> str:
        if record["batch"] == self._batch:
            raise OSError("no space left")
        return json.dumps(record, **how)  # type: ignore[arg-type]

    loads = staticmethod(json.loads)


@pytest.mark.parametrize("batch", [0, 2])
def test_a_batch_whose_pairs_are_there_and_whose_record_is_not_is_done_again(
    batch: int, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r, s = streams(6)
    write(tmp_path / "r", r)
    write(tmp_path / "s", s)
    with monkeypatch.context() as patched:
        patched.setattr(stream_state, "json", Failing(batch))
        with pytest.raises(StreamingQueryException, match="no space left"):
            run(session, tmp_path, on="k", window="time:90us")
    assert (tmp_path / "pairs" / f"batch={batch}").is_dir()
    assert last_record(tmp_path / "checkpoint" / FOLDER)["batch"] == batch - 1
    # As a driver leaves it that is killed while it writes a batch's pairs.
    (tmp_path / "pairs" / ".streamjoin-0123456789ab.draft" / "new").mkdir(parents=True)
    run(session, tmp_path, on="k", window="time:90us")
    right = oracle.join(r, s, Predicate.parse("k"), parse_window("time:90us"))
    verify.check(found(tmp_path), right, "stream")


def test_a_batch_that_is_repeated_changes_nothing(session: Session, tmp_path: Path) -> None:
    r, s = streams(4)
    write(tmp_path / "r", r)
    write(tmp_path / "s", s)
    record = run(session, tmp_path, on="k", window="time:90us")
    before = found(tmp_path)
    commit = tmp_path / "checkpoint" / "commits" / str(record["batch"])
    commit.unlink()  # as after a crash behind our record and before Spark's
    commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    assert run(session, tmp_path, on="k", window="time:90us") == record
    verify.check(found(tmp_path), before, "stream")


def test_what_cannot_be_streamed_is_refused(session: Session, tmp_path: Path) -> None:
    r, s = streams(5)
    write(tmp_path / "r", r)
    write(tmp_path / "s", s)
    still = session.spark.read.parquet(str(tmp_path / "r"))
    moving = reader(session, tmp_path / "r")
    folders = {"out": tmp_path / "pairs", "checkpoint": tmp_path / "checkpoint"}
    for frame, how, error, message in (
        (moving, {"window": "all"}, UnsupportedError, "needs a window that time ends"),
        (moving, {"window": "count:4"}, UnsupportedError, "needs a window that time ends"),
        (still, {"window": "time:1s"}, InputError, "r: is no streaming DataFrame"),
        (moving, {"window": "time:1s", "row": "x"}, InputError, "needs a column 'x' of integers"),
        (moving, {"window": "time:1s", "out": tmp_path}, InputError, "something else"),
    ):
        with pytest.raises(error, match=message):
            stream_join(frame, moving, on="k", **{**folders, **how})  # type: ignore[arg-type]
    assert run(session, tmp_path, on="k", window="time:9us")["batch"] == FILES - 1
    with pytest.raises(InputError, match="checkpoint of a join with window time:9us, not time:8us"):
        run(session, tmp_path, on="k", window="time:8us")
    state = tmp_path / "checkpoint" / FOLDER / f"batch-{FILES - 1}.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "format": 1}))
    with pytest.raises(InputError, match="is a checkpoint of format 1, not 2; choose another"):
        run(session, tmp_path, on="k", window="time:9us")
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(InputError, match="holds pairs of another checkpoint"):
        run(session, tmp_path, on="k", window="time:9us")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({"row": [1], "ts": [START_US]}, "there is no column 'k'"),
        ({"row": [1], "ts": [START_US], "k": ["a"]}, "other types than the files before it"),
        (None, "cannot be read as Parquet"),
    ],
)
def test_a_file_that_does_not_fit_ends_the_query_in_a_sentence(
    made: dict[str, list[object]] | None, message: str, session: Session, tmp_path: Path
) -> None:
    r, s = streams(7)
    write(tmp_path / "r", r)
    write(tmp_path / "s", s)
    path = tmp_path / "r" / "part-999.parquet"
    if made is None:
        path.write_bytes(b"PAR1 and no more")
    else:
        pq.write_table(pa.table(made), path)
    with pytest.raises(StreamingQueryException) as failed:
        run(session, tmp_path, on="k", window="time:9us")
    said = explained(failed.value)
    assert isinstance(said, InputError)
    assert str(said).startswith(str(path))
    assert message in str(said)
    assert last_record(tmp_path / "checkpoint" / FOLDER)["batch"] == FILES - 1


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_pairs_of_another_checkpoint_are_neither_kept_nor_added_to(
    more: int, session: Session, tmp_path: Path
) -> None:
    for name, seed, files in (("own", 10, 3), ("other", 11, 3 + more)):
        for side, stream in zip(("r", "s"), streams(seed), strict=True):
            write(tmp_path / name / side, stream, files)
        run(session, tmp_path / name, on="k", window="time:90us")
    shutil.rmtree(tmp_path / "own" / "pairs")
    (tmp_path / "other" / "pairs").rename(tmp_path / "own" / "pairs")
    before = found(tmp_path / "own")
    with pytest.raises(InputError, match="holds pairs of another checkpoint"):
        run(session, tmp_path / "own", on="k", window="time:90us")
    verify.check(found(tmp_path / "own"), before, "stream")


def test_a_checkpoint_goes_on_with_the_same_folders_and_columns_alone(
    session: Session, tmp_path: Path
) -> None:
    for side, stream in zip(("r", "s"), streams(12), strict=True):
        write(tmp_path / side, stream, 1)
    shutil.copytree(tmp_path / "r", tmp_path / "other")
    run(session, tmp_path, on="k", window="time:90us")
    how: dict[str, Any] = {
        "out": tmp_path / "pairs",
        "checkpoint": tmp_path / "checkpoint",
        "on": "k",
    }
    for places, changed, message in (
        (("other", "s"), {}, f"a join with r {tmp_path}/r, not {tmp_path}/other; choose another"),
        (
            ("r", "s"),
            {"out": tmp_path / "p"},
            f"a join with out {tmp_path}/pairs, not {tmp_path}/p",
        ),
        (("r", "s"), {"row": "k"}, "a join with row row, not k; choose another folder"),
        (("r", "s"), {"ts": "k"}, "a join with ts ts, not k; choose another folder"),
    ):
        r, s = (tmp_path / place for place in places)
        with pytest.raises(InputError, match=message):
            stream_join_files(session.spark, r, s, window="time:90us", **{**how, **changed})


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
    write(tmp_path / "r", r)
    write(tmp_path / "s", s)
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


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (("string", "int64"), "r: 'k' is string, s: 'k' is integer; both must be integers"),
        (("double", "double"), "for floating-point numbers take band k=k:0:0"),
    ],
)
def test_columns_that_never_compare_are_refused_before_a_batch(
    kinds: tuple[str, str], message: str, session: Session, tmp_path: Path
) -> None:
    for side, kind in zip(("r", "s"), kinds, strict=True):
        (tmp_path / side).mkdir()
        table = pa.table({"row": [0], "ts": [START_US], "k": pa.array([1]).cast(kind)})
        pq.write_table(table, tmp_path / side / "part-000.parquet")
    frames = [
        session.spark.readStream.schema(f"row long, ts long, k {kind.strip('64')}").parquet(
            str(tmp_path / side)
        )
        for side, kind in zip(("r", "s"), kinds, strict=True)
    ]
    how: dict[str, Any] = {
        "out": tmp_path / "pairs",
        "checkpoint": tmp_path / "checkpoint",
        "on": "k",
    }
    with pytest.raises(InputError, match=message):
        stream_join_files(session.spark, tmp_path / "r", tmp_path / "s", window="time:1s", **how)
    with pytest.raises(InputError, match=message):
        stream_join(*frames, window="time:1s", **how)


@pytest.mark.parametrize("on", ["row=k", "k=ts", "ts,k"])
def test_row_numbers_and_arrival_times_are_joined_on_like_any_column(
    on: str, session: Session, tmp_path: Path
) -> None:
    sides = []
    for side, stream in zip(("r", "s"), streams(15), strict=True):
        near = {
            "k": np.arange(ROWS) // 3 + (START_US if on == "k=ts" else 0),
            "row": np.arange(ROWS),
        }
        write(tmp_path / side, Stream({"k": near["k"]}, stream.ts, side))
        sides.append(pa.table({**near, "ts": stream.ts}))
    run(session, tmp_path, on=on, window="time:90us")
    predicate = Predicate.parse(on)
    right = oracle.join(*as_streams(*sides, predicate), predicate, parse_window("time:90us"))
    assert len(right) > 0
    verify.check(found(tmp_path), right, "stream")


def test_a_batch_of_no_file_is_refused(session: Session, tmp_path: Path) -> None:
    how: dict[str, Any] = {
        "out": tmp_path / "pairs",
        "checkpoint": tmp_path / "checkpoint",
        "on": "k",
    }
    with pytest.raises(InputError, match="the maximum files of a batch must be at least 1, not 0"):
        stream_join_files(
            session.spark,
            tmp_path,
            tmp_path,
            window="time:1s",
            most_files=0,
            **how,
        )


def test_a_batch_may_bring_files_of_one_side_alone(session: Session, tmp_path: Path) -> None:
    r, s = streams(8)
    write(tmp_path / "r", r, files=5)
    write(tmp_path / "s", s, files=2)
    run(session, tmp_path, band=["k=k:1:1"], window="time:30us", delay_us=ROWS)
    right = oracle.join(r, s, Predicate.parse(band=["k=k:1:1"]), parse_window("time:30us"))
    verify.check(found(tmp_path), right, "stream")


def test_keys_of_any_kind_are_kept_from_batch_to_batch(session: Session, tmp_path: Path) -> None:
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
    run(session, tmp_path, on=on, window="time:50us")
    r, s = as_streams(*sides, Predicate.parse(on))
    right = oracle.join(r, s, Predicate.parse(on), parse_window("time:50us"))
    assert len(right) > 0
    verify.check(found(tmp_path), right, "stream")
