"""Streams known by their footers, and results that appear whole or not at all."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.samples import write_files

from streamjoin.cli import main
from streamjoin.errors import InputError
from streamjoin.inputs.files import read_table
from streamjoin_common.errors import InputWarning
from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.windows import parse_window
from streamjoin_spark.batch import parts
from streamjoin_spark.batch.files import open_stream, schema_of

TS = np.sort(np.random.default_rng(3).integers(-50, 200, 300))
TABLE = pa.table({"v": np.arange(300), "k": np.arange(300) % 7, "ts": TS})


def test_rows_are_numbered_through_all_files(tmp_path: Path) -> None:
    path = write_files(tmp_path / "r.parquet", TABLE, 4, 11)
    (path / "_hidden").write_text("not Parquet")
    files = open_stream(path, ["k"])
    assert files.rows == 300
    for from_us, to_us in ((-50, 201), (0, 1), (7, 99), (150, 150), (-99, -50), (300, 400)):
        stream, first_row = files.read(from_us, to_us)
        inside = np.flatnonzero((from_us <= TS) & (to_us > TS))
        assert np.arange(first_row, first_row + stream.rows).tolist() == inside.tolist() or (
            len(inside) == stream.rows == 0
        )
        assert stream.column("k").tolist() == (inside % 7).tolist()
        assert stream.ts.tolist() == TS[inside].tolist()


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("s"), pa.duration("ms")])
def test_arrival_times_of_any_unit_are_bounded(tmp_path: Path, kind: pa.DataType) -> None:
    seconds = TABLE.column("ts").cast(pa.timestamp("s") if pa.types.is_timestamp(kind) else kind)
    table = TABLE.set_column(2, "ts", seconds.cast(kind))
    files = open_stream(write_files(tmp_path / "r", table, 2, 11), ["k"])
    scale = 1_000 if pa.types.is_duration(kind) else 1_000_000
    stream, first_row = files.read(3 * scale, 90 * scale)
    assert stream.ts.tolist() == (TS[(TS >= 3) & (TS < 90)] * scale).tolist()
    assert first_row == int((TS < 3).sum())


def test_files_without_statistics_are_read_for_their_bounds(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "r.parquet", row_group_size=11, write_statistics=False)
    stream, first_row = open_stream(tmp_path / "r.parquet", ["k"]).read(0, 50)
    assert (stream.rows, first_row) == (int(((TS >= 0) & (TS < 50)).sum()), int((TS < 0).sum()))


def test_rows_are_numbered_as_the_other_engines_number_them(tmp_path: Path) -> None:
    names = ("part-10", "part-2", "a/x", "a-b/x", "d/z", "d", "Z", "é", "x %20#")
    for place, name in enumerate(names):
        path = tmp_path / "r" / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(pa.table({"k": [place]}), path)
    stream, _ = open_stream(tmp_path / "r", ["k"]).read(0, 1)
    assert stream.column("k").tolist() == read_table(tmp_path / "r")["k"].to_pylist()


def test_files_of_a_stream_may_differ_in_what_a_join_does_not_ask_for(tmp_path: Path) -> None:
    path = write_files(tmp_path / "r", TABLE, 3, 11)
    part = path / "part-001.parquet"
    table = pq.read_table(part).select(["ts", "k"])
    fields = [field.with_nullable(False).with_metadata({"of": "one"}) for field in table.schema]
    pq.write_table(table.cast(pa.schema(fields)), part)
    stream, _ = open_stream(path, ["k"]).read(-50, 201)
    assert stream.column("k").tolist() == TABLE["k"].to_pylist()


def test_a_pattern_names_the_files_and_folders_that_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, part in (("b/r-0", TABLE.slice(0, 90)), ("b/r-1", TABLE.slice(90, 10))):
        write_files(tmp_path / name, part, 2, 11)
    pq.write_table(TABLE.slice(100), tmp_path / "b" / "r-2.parquet")
    pq.write_table(TABLE, tmp_path / "b" / "s.parquet")
    monkeypatch.chdir(tmp_path)
    files = open_stream(Path("b/r-*"), ["k"])
    assert (files.rows, len(files.paths)) == (300, 5)
    stream, _ = files.read(-50, 201)
    assert stream.column("k").tolist() == TABLE["k"].to_pylist()
    assert schema_of(Path("b/*.parquet")).names == TABLE.column_names
    with pytest.raises(InputError, match=r"^x/\*\.parquet: no file matches$"):
        open_stream(Path("x/*.parquet"), ["k"])


def test_a_damaged_page_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    how = {"compression": "none", "use_dictionary": False}
    pq.write_table(TABLE.select(["k", "ts"]), path, write_page_checksum=True, **how)
    data = bytearray(path.read_bytes())
    data[data.index(np.arange(7).tobytes()) + 8] ^= 3  # the key 1 of a row becomes 2
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match=r"r\.parquet: cannot be read.*CRC checksum"):
        open_stream(path, ["k"]).read(-50, 201)


def test_without_an_arrival_column_everything_arrives_at_once(tmp_path: Path) -> None:
    pq.write_table(TABLE.select(["k"]), tmp_path / "r.parquet", row_group_size=11)
    files = open_stream(tmp_path / "r.parquet", ["k"])
    stream, _ = files.read(0, 1)
    assert (stream.rows, stream.ts.any()) == (300, False)


def test_bad_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    path = write_files(tmp_path / "r", TABLE, 2, 50)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.parquet").write_text("hello")
    back = TABLE.slice(200).take(pa.array([0, 1])), TABLE.slice(0, 9)
    write_files(tmp_path / "back", pa.concat_tables(back), 1, 2)
    write_files(tmp_path / "types", TABLE, 2, 50)
    wide = TABLE.slice(150).set_column(1, "k", TABLE.slice(150).column("k").cast(pa.int32()))
    pq.write_table(wide, tmp_path / "types" / "part-001.parquet")
    empty_time = TABLE.set_column(2, "ts", pa.array([None, *TS[1:].tolist()]))
    write_files(tmp_path / "null", empty_time, 1, 50)
    for where, columns, ts, message in (
        (tmp_path / "nothing", ["k"], None, "nothing: there is no such file"),
        (tmp_path / "empty", ["k"], None, "empty: holds no file; it must be a Parquet file"),
        (tmp_path / "text.parquet", ["k"], None, "text.parquet: cannot be read as Parquet: "),
        (path, ["key"], None, "there is no column 'key'; it has v, k, ts"),
        (path, ["k"], "time", "there is no arrival column 'time'"),
        (tmp_path / "back", ["k"], None, "ts goes back at row 2 of .*back"),
        (tmp_path / "types", ["k"], None, "types/part-001.parquet: its columns have other types"),
        (tmp_path / "null", ["k"], None, "'ts' has no value at row 0: remove such rows"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            open_stream(where, columns, Arrivals.parse(ts).r)
        assert "\n" not in str(caught.value)


def some_pairs(count: int) -> parts.Batch:
    rows = np.arange(count)
    return parts.Batch(rows, rows[::-1].copy(), rows * 2)


def test_parts_add_up_to_the_whole(tmp_path: Path) -> None:
    whole = parts.write_part(tmp_path, "whole.parquet", [some_pairs(100)])
    batches = [parts.Batch(*(c[i : i + 7] for c in some_pairs(100)[:3])) for i in range(0, 100, 7)]
    pieces = [
        parts.write_part(tmp_path, f"{n}.parquet", [batch]) for n, batch in enumerate(batches)
    ]
    assert sum(piece.digest for piece in pieces) % (1 << 64) == whole.digest
    assert parts.write_part(tmp_path, "none.parquet", []) == parts.Part("", 0, 0, 0)
    assert not (tmp_path / "none.parquet").exists()


def test_a_part_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> object:
        yield parts.Batch(*(np.arange(parts.ROW_GROUP_PAIRS) for _ in range(3)))
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        parts.write_part(tmp_path, "part.parquet", failing())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_result_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "pairs"

    def interrupted() -> None:
        with parts.staged(out) as folder:
            (folder / "part-00000.parquet").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    for name in ("first", "second"):
        with parts.staged(out, force=name == "second") as folder:
            assert not any(folder.iterdir())
            parts.write_manifest(folder, [], {"name": name})
        assert f'"{name}"' in (out / parts.MANIFEST).read_text()
        assert [path.name for path in tmp_path.iterdir()] == ["pairs"]
    assert pq.read_table(out).num_rows == 0


def test_other_folders_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for out, message in (
        (tmp_path / "mine", "holds something else than a result, file: choose another folder"),
        (tmp_path / "file", "is a file; a result is a folder"),
        (tmp_path / "no" / "out", "there is no folder"),
    ):
        with pytest.raises(InputError, match=message), parts.staged(out):
            raise AssertionError("nothing may be written")
    with parts.staged(tmp_path / "ours") as folder:
        parts.write_manifest(folder, [], {})
    message = (
        r"holds an earlier result, _pairs\.json: choose another folder, or add --force \(force="
    )
    with pytest.raises(InputError, match=message), parts.staged(tmp_path / "ours"):
        raise AssertionError("nothing may be written")
    with pytest.raises(InputError, match="holds something else"):
        parts.check_out(tmp_path / "mine", force=True)


@pytest.mark.parametrize("window", ["tumbling:1s", "time:1s"])
def test_a_side_without_arrival_times_is_refused_before_spark_starts(
    tmp_path: Path, window: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(TABLE, tmp_path / "r.parquet")
    names = ["when" if name == "ts" else name for name in TABLE.column_names]
    pq.write_table(TABLE.rename_columns(names), tmp_path / "s.parquet")
    words = [f"--r={tmp_path}/r.parquet", f"--s={tmp_path}/s.parquet", "--on=k"]
    words += [f"--out={tmp_path}/out", f"--window={window}"]
    assert main(["spark-join", *words]) == 2
    said = capsys.readouterr().err
    assert f"s.parquet: window {window} needs arrival times" in said
    assert "it has v, k, when" in said
    assert main(["spark-join", *words, "--ts=ts=then"]) == 2
    assert "there is no arrival column 'then'; it has v, k, when" in capsys.readouterr().err


def test_files_name_and_scale_their_arrival_times_each(tmp_path: Path) -> None:
    table = pa.table({"k": [1, 2], "sent": [1_700_000_000_000, 1_700_000_000_001]})
    pq.write_table(table, tmp_path / "r.parquet")
    window = parse_window("time:1s")
    with pytest.warns(InputWarning, match="look like ms since 1970"):
        open_stream(tmp_path / "r.parquet", ["k"], Arrivals.parse("sent=got", None, window).r)
    files = open_stream(tmp_path / "r.parquet", ["k"], Arrivals.parse("sent", "ms", window).r)
    stream, _ = files.read_blocks(0, 1)
    assert stream.ts.tolist() == [1_700_000_000_000_000, 1_700_000_000_001_000]
    assert files.blocks.first_us.tolist() == stream.ts[:1].tolist()
