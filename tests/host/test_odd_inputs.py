"""Inputs that fuzzers found: each was a wrong result or a traceback once."""

import io
import os
import subprocess
import sys
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import streamjoin as sj
from streamjoin.cli import main
from streamjoin.inputs.columns import numpy_arrivals
from streamjoin.inputs.piped import read_piped
from streamjoin_common.language.durations import in_microseconds

KEYS = pa.table({"k": [1, 2]})


def _stream(batches: int = 2) -> bytes:
    table = pa.table({"k": np.arange(10 * batches)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=10)
    return sink.getvalue().to_pybytes()


def _after(data: bytes, messages: int) -> bytes:
    source = pa.BufferReader(data)
    reader = pa.ipc.MessageReader.open_stream(source)
    for _ in range(messages):
        reader.read_next_message()
    return data[: source.tell()]


@pytest.mark.parametrize("messages", [1, 2, 3])
def test_a_stream_that_breaks_off_between_batches_is_refused(messages: int, tmp_path: Path) -> None:
    cut = _after(_stream(), messages)
    with pytest.raises(sj.InputError, match="breaks off"):
        read_piped(io.BytesIO(cut), list, [])
    (tmp_path / "cut.arrow").write_bytes(cut)
    with pytest.raises(sj.InputError, match="breaks off"):
        sj.join(tmp_path / "cut.arrow", KEYS, on="k")


def test_two_streams_in_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sj.InputError, match="goes on"):
        read_piped(io.BytesIO(_stream() * 2), list, [])
    (tmp_path / "two.arrow").write_bytes(_stream() * 2)
    with pytest.raises(sj.InputError, match="goes on"):
        sj.join(tmp_path / "two.arrow", KEYS, on="k")


@pytest.mark.parametrize("engine", ["pyarrow", "polars", "pandas", "duckdb"])
@pytest.mark.parametrize(
    "other", [pa.array([], pa.string()), np.array([], object), np.array([None, None], object), []]
)
def test_objects_join_a_column_without_strings(engine: str, other: Any) -> None:
    strings = {"k": np.array(["a", "b"], dtype=object)}
    nothing = pa.table({"j": other}) if isinstance(other, pa.Array) else {"j": other}
    assert len(sj.join(strings, nothing, on="k=j", engine=engine, check=True)) == 0
    assert len(sj.join(nothing, strings, on="j=k", engine=engine, check=True)) == 0


@pytest.mark.parametrize("engine", ["pyarrow", "polars", "pandas"])
def test_strings_that_are_no_utf8_join_in_every_data_frame_engine(engine: str) -> None:
    strings = {"k": np.array(["half \ud800", "whole"], dtype=object)}
    assert len(sj.join(strings, strings, on="k", engine=engine, check=True)) == 2
    with pytest.raises(sj.UnsupportedError, match=r"^r: column 'k' holds half a surrogate pair"):
        sj.join(strings, strings, on="k", engine="duckdb")


def test_a_whole_stream_is_read(tmp_path: Path) -> None:
    assert read_piped(io.BytesIO(_stream()), list, []).num_rows == 20
    (tmp_path / "whole.arrow").write_bytes(_stream())
    assert len(sj.join(tmp_path / "whole.arrow", KEYS, on="k")) == 2


def test_what_pandas_changes_after_a_push_is_not_joined() -> None:
    frame = pd.DataFrame({"k": [1, 2], "v": [10.0, 20.0]})
    series = pd.Series([30, 40])
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r(frame)
        frame["v"].to_numpy()[:] = -1
        frame.iloc[:, 1] = -2
        joiner.push_s({"k": np.array([1, 2]), "w": series})
        series.to_numpy()[:] = -1
        joiner.end()
        (matches,) = joiner.results()
    rows = matches.table(["v", "w"]).to_pydict()
    assert rows == {"v": [10, 20], "w": [30, 40]}


def test_a_live_stream_without_tuples_does_not_hide_the_other() -> None:
    with sj.StreamJoiner(on="k", how="left") as joiner:
        joiner.push_r(pa.table({"k": [1, 2]}))
        joiner.end()
        (matches,) = joiner.results()
    assert matches.table("r.*").to_pydict() == {"k": [1, 2]}
    assert "2 pairs" in repr(matches)
    with pytest.raises(sj.InputError, match=r"s: .* not known"):
        matches.table()


def test_a_dataset_whose_files_have_changed_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1, 2], "v": [10, 20]}), tmp_path / "a.parquet")
    result = sj.join(ds.dataset(tmp_path), KEYS, on="k")
    pq.write_table(pa.table({"k": [1, 2], "v": [98, 99]}), tmp_path / "a.parquet")
    with pytest.raises(sj.InputError, match="has changed"):
        result.table(["v"])


def test_another_file_of_the_same_size_and_time_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"k": [1, 2], "v": [10, 20]}), path)
    pq.write_table(pa.table({"k": [1, 2], "v": [98, 99]}), other)
    state = path.stat()
    os.utime(other, ns=(state.st_atime_ns, state.st_mtime_ns))
    result = sj.join(path, KEYS, on="k")
    other.replace(path)
    with pytest.raises(sj.InputError, match="has changed"):
        result.table(["v"])


def test_an_arrow_file_that_was_cut_is_refused_rather_than_read(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    code = (
        "import pyarrow as pa, streamjoin as sj, sys\n"
        "table = pa.table({'k': list(range(100000))})\n"
        "with pa.OSFile(sys.argv[1], 'wb') as sink, pa.ipc.new_file(sink, table.schema) as out:\n"
        "    out.write_table(table)\n"
        "result = sj.join(sys.argv[1], table, on='k')\n"
        "open(sys.argv[1], 'wb').close()\n"
        "try:\n"
        "    result.table(['r.k'])\n"
        "except sj.InputError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "has changed" in done.stdout) == (0, True)


def test_names_of_a_list_keep_their_blanks() -> None:
    result = sj.join(pa.table({"k": [1], "a": [1], " a": [2]}), KEYS, on="k")
    assert result.table([" a"]).to_pydict() == {" a": [2]}
    assert result.table(" a , r.k").column_names == ["a", "k"]


def test_dictionaries_with_a_missing_value_in_several_chunks() -> None:
    def chunk(values: list[str | None]) -> "pa.Array[Any]":
        return pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(values))

    column = pa.chunked_array([chunk([None, "a"]), chunk(["b", None])])
    result = sj.join(pa.table({"k": [1, 2, 3, 4], "d": column}), {"k": [4, 3, 2, 1]}, on="k")
    rows = result.table(["r.k", "d"]).sort_by("k")
    assert rows.column("d").to_pylist() == [None, "a", "b", None]


def test_a_dictionary_without_values_under_missing_structs() -> None:
    kind = pa.struct([("d", pa.dictionary(pa.int8(), pa.string())), ("v", pa.string_view())])
    codes = pa.chunked_array([pa.array([None], kind), pa.array([{"d": "x", "v": "y"}], kind)])
    result = sj.join(pa.table({"k": [1, 2], "c": codes}), KEYS, on="k", how="left")
    rows = result.table(["r.k", "c"]).sort_by("k")
    assert rows.column("c").to_pylist() == [None, {"d": "x", "v": "y"}]


def test_unions_are_written(tmp_path: Path) -> None:
    union = pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()), pa.array([0, 0], pa.int32()), [pa.array([7]), pa.array(["a"])]
    )
    table = pa.table({"k": [1, 2], "u": union})
    with pa.OSFile(str(tmp_path / "u.arrow"), "wb") as sink:  # noqa: SIM117
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    pq.write_table(KEYS, tmp_path / "s.parquet")
    args = ["--r", str(tmp_path / "u.arrow"), "--s", str(tmp_path / "s.parquet"), "--on", "k"]
    out = tmp_path / "o.arrow"
    assert main(["join", *args, "--columns", "u", "--output", str(out)]) == 0
    with pa.ipc.open_file(str(out)) as reader:
        assert {str(each) for each in reader.read_all().column("u").to_pylist()} == {"7", "a"}


@pytest.mark.parametrize("closed", [0, 1])
def test_closed_standard_streams_are_refused_in_a_sentence(closed: int, tmp_path: Path) -> None:
    pq.write_table(KEYS, tmp_path / "s.parquet")
    given = (
        "--r - --s s.parquet <&-" if closed == 0 else "--r s.parquet --s s.parquet --output - >&-"
    )
    line = f"{sys.executable} -m streamjoin join --on k {given}"
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "is closed" in done.stderr


def test_a_table_that_cannot_be_printed_is_a_sentence(tmp_path: Path) -> None:
    pq.write_table(KEYS, tmp_path / "s.parquet")
    line = f"{sys.executable} -m streamjoin join --on k --r s.parquet --s s.parquet > /dev/full"
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i8", "u8"])
def test_nanoseconds_of_any_width(dtype: str) -> None:
    assert numpy_arrivals(np.array([100], dtype), "ts", "r", "ns").tolist() == [0]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_floating_point_times_are_rounded_once(unit: str) -> None:
    scale = {"s": 10**6, "ms": 10**3, "us": 1}[unit]
    rng = np.random.default_rng(5)
    times = np.concatenate(
        [[1700000000.1519566, -0.5, 1.5, 337459669926061.0 / scale], rng.uniform(-2e9, 2e9, 5000)]
    )
    expected = [round(Fraction(time) * scale) for time in times.tolist()]
    assert numpy_arrivals(times, "ts", "r", unit).tolist() == expected


def test_a_duration_with_nanoseconds_is_refused() -> None:
    with pytest.raises(sj.InputError, match="integer number of microseconds"):
        sj.TimeWindow(pd.Timedelta("1500ns"))
    assert in_microseconds(pd.Timedelta("1s")) == in_microseconds(timedelta(seconds=1)) == 10**6


def test_times_of_any_unit_are_looked_up_as_they_are() -> None:
    for dtype in ("M8[25s]", "m8[500ms]", "M8[h]", "M8[2D]", "M8[M]", "m8[ps]"):
        times = np.array([3000, -4000, "NaT"], dtype)
        looked_up = sj.join({"k": [1] * 3, "t": times}, {"k": [1]}, on="k").table(["t"])["t"]
        held = looked_up.to_numpy().astype(dtype)
        assert np.array_equal(np.sort(held), np.sort(times), equal_nan=True), dtype
    with pytest.raises(sj.InputError, match="a time does not fit in ns"):
        sj.join({"k": [1], "t": np.array([1], "m8[ps]")}, {"k": [1]}, on="k").table(["t"])
