"""Files: formats, damage, and what is no file at all."""

import contextlib
import io
import os
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

import streamjoin as sj
from streamjoin.errors import InputError
from streamjoin.inputs.files import read_table
from streamjoin.inputs.piped import read_piped
from streamjoin.streams import read_streams
from streamjoin_common.language.predicates import Predicate

ON_K = Predicate.parse(on="k")


def test_arrow_streams_and_files_are_both_read(tmp_path: Path) -> None:
    table = pa.table({"k": [1, 2, 3]})
    for name, writer in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        path = tmp_path / f"{name}.arrow"
        with pa.OSFile(str(path), "wb") as sink, writer(sink, table.schema) as out:
            out.write_table(table)
        assert read_table(path).equals(table)


def test_a_damaged_arrow_file_is_refused_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "damaged.arrow"
    table = pa.table({"k": [f"text{i}" for i in range(200)]})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)
    whole = path.read_bytes()
    offsets = whole.find(np.array([0, 5, 10, 15], np.int32).tobytes())
    assert offsets > 0
    path.write_bytes(whole[: offsets + 8] + b"\xff\xff\xff\x7f" + whole[offsets + 12 :])
    with pytest.raises(InputError, match="cannot be read"):
        read_streams(path, path, ON_K)


def test_random_damage_never_ends_the_process(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    table = pa.table({"k": [f"text{i % 9}" for i in range(100)], "ts": list(range(100))})
    for suffix in (".arrow", ".parquet", ".csv"):
        path = tmp_path / f"fine{suffix}"
        if suffix == ".arrow":
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
                out.write_table(table)
        elif suffix == ".parquet":
            pq.write_table(table, path)
        else:
            pv.write_csv(table, path)
        whole = bytearray(path.read_bytes())
        for _ in range(150):
            damaged = bytearray(whole)
            for place in rng.integers(0, len(whole), 3):
                damaged[place] = int(rng.integers(0, 256))
            broken = tmp_path / f"broken{suffix}"
            broken.write_bytes(damaged)
            with contextlib.suppress(InputError):  # anything else fails the test
                read_streams(broken, broken, ON_K)


def test_parquet_pages_are_held_against_their_checksum(tmp_path: Path) -> None:
    path = tmp_path / "k.parquet"
    keys = np.arange(1000, dtype=np.int64) * 1_000_003
    pq.write_table(
        pa.table({"k": keys}),
        path,
        write_page_checksum=True,
        compression="none",
        use_dictionary=False,
    )
    whole = bytearray(path.read_bytes())
    whole[whole.find(keys[500].tobytes())] ^= 1
    path.write_bytes(whole)
    with pytest.raises(InputError, match="cannot be read"):
        read_streams(path, path, ON_K)


@pytest.mark.parametrize("other", ["18446744073709551615", "1.5"])
def test_csv_numbers_that_lost_digits_are_refused(tmp_path: Path, other: str) -> None:
    path = tmp_path / "big.csv"
    path.write_text(f"k\n9007199254740993\n{other}\n")  # read as 2**53
    with pytest.raises(InputError, match=r"holds numbers from 2\*\*53 on"):
        read_streams(path, path, Predicate.parse(band="k=k:0:0"))


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_last_line_of_csv_needs_no_end(end: str, tmp_path: Path) -> None:
    path = tmp_path / "k.csv"
    path.write_bytes(f'a,k\n"x",a\n"y",{end}'.encode())
    table = sj.join(path, {"k": ["", "a"]}, on="k", how="left").table(["a", "s.k"])
    assert sorted(table.to_pylist(), key=str) == [{"a": "x", "k": "a"}, {"a": "y", "k": None}]
    path.write_bytes(f"a,k{end}".encode())
    assert len(sj.join(path, {"k": ["a"]}, on="k", how="left")) == 0
    piped = read_piped(io.BytesIO(path.read_bytes()), list, ["k"])
    assert (piped.column_names, piped.num_rows) == (["a", "k"], 0)
    path.write_bytes(f'k\na\n\n""{end}'.encode())
    assert len(sj.join(path, path, on="k")) == 2


def test_empty_strings_of_csv_are_strings_where_a_column_has_nothing_else(tmp_path: Path) -> None:
    strings = pa.table({"k": ["", "", None], "n": [1, 2, 3]})
    pv.write_csv(strings, tmp_path / "k.csv")
    result = sj.join(tmp_path / "k.csv", strings, on="k")
    assert sorted(zip(result.r_rows, result.s_rows, strict=True)) == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]


def test_csv_columns_that_are_carried_along_are_alike_from_file_and_pipe(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("k,v,w\n1,9007199254740993,inf\n2,1.5,1e300\n")
    loses = r"column 'v' holds 9007199254740993, of which floating-point numbers of CSV lose"
    with pytest.warns(sj.InputWarning, match=loses):
        from_file = sj.join(path, {"k": [1, 2]}, on="k").table(["r.k", "v", "w"]).sort_by("k")
    with pytest.warns(sj.InputWarning, match=loses):
        piped = read_piped(io.BytesIO(path.read_bytes()), list, ["k"])
    assert from_file.equals(piped)
    path.write_text("k,v,w\n1,9007199254740992,inf\n2,1.5,1e300\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sj.join(path, {"k": [1, 2]}, on="k").table("v").num_rows == 2


def test_an_infinite_number_of_csv_is_refused_as_such(tmp_path: Path) -> None:
    path = tmp_path / "big.csv"
    path.write_text("k\n-inf\n1.5\n")  # or an integer of 310 digits
    with pytest.raises(InputError, match="column 'k' holds an infinite number, where the"):
        read_streams(path, path, ON_K)


def test_marks_of_missing_values_without_another_value_are_warned_of(tmp_path: Path) -> None:
    r, s = tmp_path / "r.csv", tmp_path / "s.csv"
    r.write_text("k,v\nNA,1\n,2\n")
    s.write_text("k,v\nNA,1\nSE,2\n")
    with pytest.warns(sj.InputWarning, match=r"r\.csv: column 'k' has nothing but NA and the like"):
        assert len(sj.join(r, s, on="k")) == 0
    r.write_text("k,v\n,1\n,2\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pv.write_csv(sj.join(s, s, on="k").table("r.k").slice(0, 1), tmp_path / "own.csv")
        assert len(sj.join(tmp_path / "own.csv", s, on="k")) == 1  # it has NA in quotes
        assert len(sj.join(r, s, on="k")) == 0
        assert len(sj.join(s, s, on="k")) == 2


def test_an_empty_field_of_csv_is_a_missing_string_and_two_quotes_are_none(tmp_path: Path) -> None:
    path = tmp_path / "k.csv"
    path.write_text('row,k\n0,a\n1,\n2,""\n3,NA\n4,"x ""y"""\n')
    result = sj.join(path, path, on="k")
    assert sorted(result.r_rows.tolist()) == [0, 2, 3, 4]
    path.write_text('k\na\n\n""\n')
    assert sj.join(path, path, on="k", how="left").table("r.k")["k"].to_pylist() == ["a", "", None]
    path.write_text("k,l\n1,2\n\n3,4\n")
    assert len(sj.join(path, path, on="k", how="left")) == 2


def test_a_csv_of_headings_only_is_an_empty_stream(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("k,ts\n")
    (tmp_path / "s.csv").write_text("k,ts\na,1\n")
    r, s = read_streams(tmp_path / "r.csv", tmp_path / "s.csv", ON_K)
    assert (r.rows, s.rows) == (0, 1)


def test_a_column_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["k", "k"])
    pq.write_table(twice, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("k,k\n1,2\n")
    (tmp_path / "ts.csv").write_text("k,ts,ts\n1,2,3\n")
    for name, column in (("t.parquet", "k"), ("t.csv", "k"), ("ts.csv", "ts")):
        with pytest.raises(InputError, match=f"the column '{column}' occurs 2 times"):
            read_streams(tmp_path / name, tmp_path / name, ON_K)


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    column = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    with (
        pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, pa.schema({"k": pa.string()})) as out,
    ):
        out.write_table(pa.table({"k": column}))
    with pytest.raises(InputError, match=r"cannot be read: .*UTF"):
        read_streams(tmp_path / "t.arrow", tmp_path / "t.arrow", ON_K)


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.arrow", "pipe.parquet"])
def test_a_pipe_is_refused_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match="is no regular file"):
        read_table(tmp_path / name)


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_table(tmp_path / ("x" * 300 + ".csv"))


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.xlsx").write_text("?")
    with pytest.raises(InputError, match=r"must end in .parquet, .arrow or .csv"):
        read_table(tmp_path / "data.xlsx")
