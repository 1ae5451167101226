"""Flights, CSV and Parquet as workloads."""

import datetime
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin_common.errors import InputError
from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.predicates import Predicate
from streamjoin_datagen.errors import SpecError
from streamjoin_datagen.imports.files import (
    import_tables,
    tables_identity,
)
from streamjoin_datagen.imports.flights import flight_files, flights_identity, import_flights
from streamjoin_datagen.imports.readers import csv_table, parquet_table
from streamjoin_datagen.pairs import table_pairs
from streamjoin_datagen.store import Outcome, unchanged

HOUR_US = 3_600_000_000
START = datetime.datetime(2013, 1, 1, 6, tzinfo=datetime.timezone.utc)


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("flights") / "w"
    import_flights(flight_files(), out)
    return out


def described(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "workload.json").read_text()))


def test_flights_have_their_known_counts(flights: Path) -> None:
    found = described(flights)
    assert (found["r"]["rows"], found["s"]["rows"]) == (336_776, 26_115)
    assert found["expected"] == {"window": "all", "pairs": 335_220, "digest": None}
    assert found["predicate"] == {"on": ["origin", "hour_utc"]}
    assert found["r"]["columns"] == {
        "origin": "string",
        "hour_utc": "int32",
        "carrier": "string",
        "flight": "int32",
        "dest": "string",
        "ts": "int64",
    }


def test_matching_flights_are_those_whose_hour_has_weather(flights: Path) -> None:
    r, s = (pq.read_table(flights / f"{stream}.parquet").to_pydict() for stream in ("r", "s"))
    weather = list(zip(s["origin"], s["hour_utc"], strict=True))
    assert len(set(weather)) == len(weather)
    there = set(weather)
    keys = zip(r["origin"], r["hour_utc"], strict=True)
    assert sum(key in there for key in keys) == 335_220


def test_times_count_from_the_first_weather_and_agree_with_the_hours(flights: Path) -> None:
    start_hours = int(START.timestamp()) // 3600
    for stream in ("r", "s"):
        table = pq.read_table(flights / f"{stream}.parquet")
        ts, hours = (table.column(name).to_numpy() for name in ("ts", "hour_utc"))
        assert (np.diff(ts) >= 0).all()
        assert (ts // HOUR_US + start_hours == hours).all()
    assert ts[0] == 0


def test_flights_of_the_same_minute_keep_the_order_of_the_file(flights: Path) -> None:
    first = pq.read_table(flights / "r.parquet").slice(0, 3).to_pylist()
    # The file's first three rows: 5:15, 5:29 and 5:40 in New York, which is 10 o'clock UTC.
    assert [(row["carrier"], row["flight"], row["ts"]) for row in first] == [
        ("UA", 1545, 4 * HOUR_US + 15 * 60_000_000),
        ("UA", 1714, 4 * HOUR_US + 29 * 60_000_000),
        ("AA", 1141, 4 * HOUR_US + 40 * 60_000_000),
    ]


def test_the_repeated_hour_of_november_is_two_hours(flights: Path) -> None:
    weather = pq.read_table(flights / "s.parquet").to_pylist()
    fifth = int(datetime.datetime(2013, 11, 3, 5, tzinfo=datetime.timezone.utc).timestamp()) // 3600
    temps = {row["hour_utc"]: row["temp"] for row in weather if row["origin"] == "EWR"}
    assert (temps[fifth], temps[fifth + 1]) == (51.98, 50.0)


def test_flights_are_imported_to_the_same_bytes(flights: Path, tmp_path: Path) -> None:
    import_flights(flight_files(), tmp_path / "w")
    for file in sorted(flights.iterdir()):
        again = (tmp_path / "w" / file.name).read_bytes()
        assert hashlib.sha256(again).digest() == hashlib.sha256(file.read_bytes()).digest()
    assert unchanged(flights, flights_identity(flight_files())) is not None


def test_flights_need_their_columns(tmp_path: Path) -> None:
    r, s = tmp_path / "f.csv", tmp_path / "w.csv"
    r.write_text("origin,time_hour,carrier,flight,dest\n")
    s.write_text("origin,time_hour,temp,wind_speed,visib\n")
    sentence = f"{r}: there is no column 'minute' in its header"
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        import_flights(flight_files([str(r), str(s)]), tmp_path / "out")
    with pytest.raises(
        SpecError, match=r"^flights takes a flights and a weather file, not 1 files$"
    ):
        flight_files([str(r)])


def csv_import(
    folder: Path,
    r: str,
    s: str,
    on: str | None = "k",
    *,
    band: tuple[str, ...] = (),
    ts: str | None = None,
) -> dict[str, Any]:
    paths = {"r": folder / "r.csv", "s": folder / "s.csv"}
    paths["r"].write_text(r)
    paths["s"].write_text(s)
    predicate = Predicate.parse(on, list(band))
    known = tables_identity("csv", paths, predicate, ts)
    import_tables(known, paths, folder / "w", predicate, Arrivals.parse(ts), reader=csv_table)
    return described(folder / "w")


def parquet_import(paths: dict[str, Path], out: Path, on: str = "k") -> Outcome:
    predicate = Predicate.parse(on)
    known = tables_identity("parquet", paths, predicate, None)
    return import_tables(known, paths, out, predicate, Arrivals(), reader=parquet_table)


def test_csv_keeps_its_rows_and_counts_its_pairs(tmp_path: Path) -> None:
    found = csv_import(
        tmp_path, "id,x,ts\n1,a,0\n2,b,5\n2,a,5\n", "k,x,ts\n2,a,1\n2,z,2\n", "id=k,x"
    )
    assert found["expected"] == {"window": "all", "pairs": 1, "digest": None}
    assert found["predicate"] == {"on": ["id=k", "x"]}
    assert found["r"]["columns"] == {"id": "int32", "x": "string", "ts": "int64"}
    read = pq.read_table(tmp_path / "w" / "r.parquet").to_pydict()
    assert read == {"id": [1, 2, 2], "x": ["a", "b", "a"], "ts": [0, 5, 5]}
    assert found["generator"]["java"] is None


def test_csv_without_arrivals_is_data_at_rest(tmp_path: Path) -> None:
    csv_import(tmp_path, "k\n5\n6\n", "k\n6\n")
    assert pq.read_table(tmp_path / "w" / "r.parquet").column_names == ["k"]


def test_csv_of_a_header_alone_is_an_empty_stream(tmp_path: Path) -> None:
    found = csv_import(tmp_path, "k,ts\n5,1\n", "k,v,ts\n")
    assert (found["s"]["rows"], found["expected"]["pairs"]) == (0, 0)
    assert found["s"]["columns"] == {"k": "int32", "v": "string", "ts": "int64"}


def test_timestamps_count_from_the_common_start(tmp_path: Path) -> None:
    csv_import(
        tmp_path,
        "k,at\n5,2020-01-01 00:00:02\n6,2020-01-01 00:00:03\n",
        "k,at\n6,2020-01-01 00:00:01\n",
        ts="at",
    )
    read = {stream: pq.read_table(tmp_path / "w" / f"{stream}.parquet") for stream in ("r", "s")}
    assert read["r"].column_names == ["k", "ts"]
    assert read["r"].column("ts").to_pylist() == [1_000_000, 2_000_000]
    assert read["s"].column("ts").to_pylist() == [0]


def test_wide_keys_stay_wide(tmp_path: Path) -> None:
    found = csv_import(tmp_path, "k\n5000000000\n", "k\n5\n")
    assert found["r"]["columns"]["k"] == found["s"]["columns"]["k"] == "int64"


def test_bands_are_kept_as_written(tmp_path: Path) -> None:
    found = csv_import(tmp_path, "x\n5.5\n", "a\n6.5\n", None, band=("x=a:1.5:2",))
    assert found["predicate"] == {"band": ["x=a:1.5:2"]}
    assert found["expected"] is None


MISTAKES: list[tuple[str, str, dict[str, Any], str]] = [
    ("k,ts\n1,5\n2,4\n", "k,ts\n", {}, "{r}: ts goes back at row 1, from 5 to 4: sort the file "
     "by ts"),
    ("k\n1\n", "q\n1\n", {}, "{s}: there is no column 'k'; it has q"),
    ("k\n1\n", "", {}, "{s} is empty: it needs at least the names of its columns"),
    ("k\n1\n", "k\na\n", {}, "{r}: 'k' is integer, {s}: 'k' is string; both must be of one "
     "kind: cast one of them to the other's type"),
    ("k\n1.5\n", "k\n1\n", {}, "{r}: column 'k' of --on must be integers or strings, not "
     "double"),
    ("k,v\n1,1\n,2\n", "k\n1\n", {}, "{r}: column 'k' is empty in row 1: remove such rows"),
    ("k\n1\n", "k\n1\n", {"ts": "at"}, "{r}: there is no arrival column 'at'; it has k"),
    ("k,ts\n1,0\n", "k\n1\n", {}, "{s}: there is no arrival column 'ts'; it has k"),
    ("k,ts\n1,-5\n", "k,ts\n1,0\n", {}, "{r}: column 'ts' is negative in row 0"),
    ("k,ts\n1,0.5\n", "k,ts\n1,0\n", {}, "{r}: column 'ts' must be integer microseconds, a "
     "timestamp or a duration, not double"),
    ("k,k\n1,0\n", "k\n1\n", {}, "{r}: the column 'k' occurs twice"),
    ("k,t,ts\n1,0,0\n", "k,t\n1,0\n", {"ts": "t"}, "{r}: column 'ts' must not be beside --ts t"),
    ("k\na\n", "k\n1\n", {"on": None, "band": ("k=k:1:1",)}, "{r}: column 'k' of --band must be "
     "numbers, not string"),
]  # fmt: skip


@pytest.mark.parametrize(("r", "s", "options", "sentence"), MISTAKES)
def test_a_wrong_file_is_one_sentence(
    r: str, s: str, options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    sentence = sentence.format(r=tmp_path / "r.csv", s=tmp_path / "s.csv")
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        csv_import(tmp_path, r, s, **options)
    assert not (tmp_path / "w").exists()


def test_parquet_folders_and_durations_are_read(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    for part in range(2):
        ts = pa.array([part, part + 1], pa.duration("ms"))
        table = pa.table({"k": pa.array([1, 2], pa.uint32()), "ts": ts})
        pq.write_table(table, tmp_path / "r" / f"part-{part}.parquet")
    pq.write_table(pa.table({"k": [2, 3], "ts": [7, 8]}), tmp_path / "s.parquet")
    paths = {"r": tmp_path / "r", "s": tmp_path / "s.parquet"}
    predicate = Predicate.parse("k")
    outcome = parquet_import(paths, tmp_path / "w")
    assert outcome.rows == 6
    assert described(tmp_path / "w")["expected"]["pairs"] == 2
    read = pq.read_table(tmp_path / "w" / "r.parquet")
    assert read.column("ts").to_pylist() == [0, 1000, 1000, 2000]
    assert unchanged(tmp_path / "w", tables_identity("parquet", paths, predicate, None))
    pq.write_table(pa.table({"k": [2, 3], "ts": [7, 9]}), tmp_path / "s.parquet")
    assert not unchanged(tmp_path / "w", tables_identity("parquet", paths, predicate, None))


def test_a_file_that_is_no_parquet_is_one_sentence(tmp_path: Path) -> None:
    paths = {"r": tmp_path / "r", "s": tmp_path / "s"}
    paths["r"].write_text("not Parquet at all")
    with pytest.raises(SpecError, match="there is no file"):
        parquet_import(paths, tmp_path / "w")
    paths["s"].write_text("nor this")
    with pytest.raises(SpecError, match=f"^{re.escape(str(paths['r']))} cannot be read as parquet"):
        parquet_import(paths, tmp_path / "w")


@pytest.mark.parametrize(
    ("left", "right"),
    [(pa.int32(), pa.int64()), (pa.uint64(), pa.int8()), (pa.string(), pa.large_string())],
)
def test_pairs_of_unlike_types_are_counted(left: pa.DataType, right: pa.DataType) -> None:
    values = ["3", "3", "4", "9"] if left == pa.string() else [3, 3, 4, 9]
    r = pa.table({"a": pa.array(values, left), "b": [1, 1, 1, 2]})
    s = pa.table({"c": pa.array(values[:3], right), "d": [1, 2, 1]})
    assert table_pairs(r, s, ["a"], ["c"]) == 5
    assert table_pairs(r, s, ["a", "b"], ["c", "d"]) == 3


def test_part_files_of_different_columns_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    pq.write_table(pa.table({"k": pa.array([1], pa.int32())}), tmp_path / "r" / "a.parquet")
    pq.write_table(pa.table({"k": pa.array([1], pa.int64())}), tmp_path / "r" / "b.parquet")
    pq.write_table(pa.table({"k": pa.array([1], pa.int32())}), tmp_path / "s.parquet")
    sentence = (
        f"{tmp_path / 'r' / 'b.parquet'}: its columns are k int64, and those of a.parquet "
        "k int32: part files must have the same"
    )
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        parquet_import({"r": tmp_path / "r", "s": tmp_path / "s.parquet"}, tmp_path / "w")
    assert not (tmp_path / "w").exists()
