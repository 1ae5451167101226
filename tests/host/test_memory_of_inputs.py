"""Inputs that do not fit into memory are refused before they are read."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import streamjoin as sj
from streamjoin import memory
from streamjoin.cli import main
from streamjoin.engines.yardsticks.frames import joined_pairs
from streamjoin.errors import TooLargeError
from streamjoin.inputs.files import read_table
from streamjoin_common.errors import InputError
from streamjoin_datagen.imports.readers import csv_table, parquet_table

MIB = 1 << 20
ROWS = 200_000
FREE = 64 * MIB
"""Far less than the tables take, and far more than their files."""


def constant(text_bytes: int) -> pa.Table:
    """Rows that compress to nearly nothing: one string and one number."""
    codes = np.zeros(ROWS, dtype=np.int32)
    text = pa.DictionaryArray.from_arrays(codes, ["x" * text_bytes])
    return pa.table({"k": text, "n": np.zeros(ROWS, dtype=np.int64)})


def written(path: Path, table: pa.Table) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd", row_group_size=ROWS // 4)
    elif path.suffix == "":
        path.mkdir()
        for part in range(3):
            pq.write_table(table, path / f"part-{part}.parquet", compression="zstd")
    else:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(path, table.schema, options=options) as file:
            file.write_table(table)
    return path


def read(path: Path, column: str) -> Any:
    with (
        mock.patch.object(memory, "available_bytes", return_value=FREE),
        mock.patch.object(pq, "read_table", side_effect=AssertionError("it was read")),
    ):
        return read_table(path, [column])


@pytest.mark.parametrize("name", ["r.parquet", "r"])
def test_strings_of_a_dictionary_that_do_not_fit_are_not_read(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, constant(1000))
    sizes = [file.stat().st_size for file in [path, *path.rglob("*")]]
    assert max(sizes) < MIB
    with pytest.raises(
        InputError, match=r"takes at least \d+,\d+,\d+ bytes .* 53,687,091 bytes ma"
    ):
        read(path, "k")


def test_columns_that_are_not_joined_on_do_not_count(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", constant(1000))
    with mock.patch.object(memory, "available_bytes", return_value=FREE):
        assert read_table(path, ["n"]).num_rows == ROWS


def test_numbers_count_by_their_types(tmp_path: Path) -> None:
    table = pa.table({"n": np.zeros(8_000_000, dtype=np.int64)})
    path = written(tmp_path / "r.parquet", table)
    assert path.stat().st_size < MIB
    with pytest.raises(InputError, match="takes at least 64,000,000 bytes"):
        read(path, "n")


@pytest.mark.parametrize("options", [None, "zstd", "lz4"])
def test_compressed_buffers_of_arrow_files_count_decompressed(
    tmp_path: Path, options: str | None
) -> None:
    table = pa.table({"n": np.zeros(8_000_000, dtype=np.int64)})
    chosen = pa.ipc.IpcWriteOptions(compression=options)
    for make in (pa.ipc.new_file, pa.ipc.new_stream):
        with make(tmp_path / "r.arrow", table.schema, options=chosen) as file:
            file.write_table(table, max_chunksize=1_000_000)
        with mock.patch.object(memory, "available_bytes", return_value=FREE):
            if options is None:  # mapped, not copied
                assert read_table(tmp_path / "r.arrow", ["n"]).num_rows == 8_000_000
                continue
            with pytest.raises(InputError, match=r"takes at least 64,000,\d+ bytes"):
                read_table(tmp_path / "r.arrow", ["n"])


def test_dictionaries_that_would_be_written_out_are_measured_first(tmp_path: Path) -> None:
    table = constant(1000)
    path = written(tmp_path / "r.arrow", table)
    sources = (table, read_table(path, ["k"]))
    with mock.patch.object(memory, "available_bytes", return_value=FREE):
        for source in sources:
            with pytest.raises(InputError, match="r: column 'k': takes at least 200,000,000 bytes"):
                sj.join(source, table, on="k")


def test_csv_that_grows_is_measured_by_its_first_block(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("a,b,c,d\n" + "1,1,1,1\n" * 500_000)
    with (
        mock.patch.object(memory, "available_bytes", return_value=12 * MIB),
        pytest.raises(InputError, match=r"r.csv: takes at least 1"),
    ):
        read_table(path, ["a"])
    with (
        mock.patch("streamjoin_datagen.imports.readers.available_bytes", return_value=12 * MIB),
        pytest.raises(InputError, match=r"r.csv: takes at least 1"),
    ):
        csv_table("r", path)


def test_an_import_refuses_what_a_join_would(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", constant(1000))
    with (
        mock.patch("streamjoin_datagen.imports.readers.available_bytes", return_value=FREE),
        pytest.raises(InputError, match=r"r.parquet: takes at least"),
    ):
        parquet_table("r", path)


def test_a_refusal_is_one_sentence_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "r.parquet", constant(1000))
    with mock.patch.object(memory, "available_bytes", return_value=FREE):
        assert main(["join", "--r", str(path), "--s", str(path), "--on", "k"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "join a part of it at a time" in said


@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_counted_before_they_are_joined(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 60, 2)
    r, s = ([rng.integers(-3, 4, n), rng.integers(0, 3, n)] for n in rows)
    columns = int(rng.integers(1, 3))
    met = np.ones(rows, dtype=np.bool_)
    for r_column, s_column in zip(r[:columns], s[:columns], strict=True):
        met &= r_column[:, None] == s_column
    assert joined_pairs(r[:columns], s[:columns]) == met.sum()


@pytest.mark.parametrize("engine", ["polars", "pyarrow", "pandas"])
@pytest.mark.parametrize("window", ["all", "tumbling:1s"])
def test_a_yardstick_stays_within_the_bound_of_pairs(engine: str, window: str) -> None:
    # So few rows match that no sample is sure: the estimate lets the 360,000 pairs pass.
    heavy = np.where(np.arange(30_000) < 600, -1, np.arange(30_000))
    r = {"k": heavy, "ts": np.zeros(30_000, dtype=np.int64)}
    s = {"k": -heavy - 2 * (heavy > 0) + 2 * (heavy < 0) * 0 - 2 * (heavy == -1), "ts": r["ts"]}
    assert (s["k"] == -1).sum() == 600
    with (
        mock.patch.object(memory, "available_bytes", return_value=10 * MIB),
        mock.patch(f"streamjoin.engines.yardsticks.frames.{CLASSES[engine]}.join") as join,
        pytest.raises(TooLargeError, match="the result has more than"),
    ):
        sj.join(r, s, on="k", engine=engine, window=window)
    join.assert_not_called()


CLASSES = {"polars": "Polars", "pyarrow": "PyArrow", "pandas": "Pandas"}
