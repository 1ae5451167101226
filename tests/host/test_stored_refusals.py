"""A relation in a store that cannot be joined is refused in a sentence."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.host.relations import database, pairs, written

import streamjoin as sj
from streamjoin.cli import main
from streamjoin.errors import InputError, StoreError, UnsupportedError
from streamjoin.relations import relation


@pytest.mark.parametrize(
    ("r", "on", "sentence"),
    [
        ("mysql:planes.db", "k", "there is no store 'mysql'; choose one of arrow, parquet, raw"),
        ("sqlite:nowhere.db:planes", "k", "nowhere.db: there is no such file"),
        ("parquet:nowhere", "k", "nowhere: there is no such file"),
        ("sqlite:planes.db:plane", "k", "there is no table 'plane'; it has my planes, planes"),
        ("sqlite:planes.db", "k", "holds the tables my planes, planes: name one of them"),
        ("sqlite:planes.db:planes", "tail", "there is no column 'tail'; it has k, name, real"),
        ("sqlite:planes.db:planes", "name=k", "is string, s: 'k' is integer; both must be"),
        ("sqlite:planes.db:planes", "real=k", "is floating-point, and lies in a store: cast"),
        ("sqlite:planes.db:planes", "blob=k", "'blob' holds bytes; join columns are numbers"),
        ("arrow:planes.db:planes", "k", "planes.db:planes: there is no such file"),
        ("arrow:planes.db", "k", "cannot be read as Arrow IPC"),
        ("raw:planes.db", "k", "planes.db.json: does not describe the columns"),
        ("duckdb:planes.db:planes", "k", "planes.db: is no DuckDB database"),
        ("sqlite:text.db:planes", "k", "text.db: is no SQLite database"),
        ("sqlite:empty.db", "k", "empty.db: holds no table"),
        ("sqlite:", "k", "write KIND:LOCATION"),
    ],
)
def test_a_relation_that_cannot_be_joined_is_told_in_a_sentence(
    r: str, on: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.db").write_text("no database, but a text")
    Path("empty.db").touch()
    with (
        database(
            Path("planes.db"),
            "CREATE TABLE planes (k INT, name TEXT, real REAL, blob BLOB)",
            "INSERT INTO planes VALUES (1, 'a', 0.5, x'00')",
            'CREATE TABLE "my planes" (k INT)',
        ),
        pytest.raises((InputError, StoreError)) as raised,
    ):
        sj.join(r, {"k": np.array([1])}, on=on, engine="ssbj")
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_engines_that_read_no_store_name_those_that_do(tmp_path: Path) -> None:
    where = written("arrow", tmp_path, {"k": pa.array([1])})
    for engine in ("npj", "kang", "duckdb", "oracle"):
        with pytest.raises(UnsupportedError, match=r"reads no store, .*: take one of meshjoin"):
            sj.join(where, {"k": np.array([1])}, on="k", engine=engine)


def test_only_r_can_be_in_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = written("arrow", tmp_path, {"k": pa.array([1])})
    with pytest.raises(InputError, match="only R can be a relation in a store"):
        sj.join({"k": np.array([1])}, where, on="k")
    assert main(["join", "--r", where, "--s", where, "--on", "k"]) == 2
    assert "only R can be a relation in a store" in capsys.readouterr().err


def test_a_database_without_its_kind_is_told_how_to_name_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "planes.db"
    with database(place, "CREATE TABLE planes (k INT)"):
        pq.write_table(pa.table({"k": [1]}), tmp_path / "s.parquet")
    for r, sentence in [
        (
            f"{place}:planes",
            f"say which kind of store {place} is, as sqlite:{place}:planes",
        ),
        (
            f"{place}",
            f"is a database: name its kind, and a table, as sqlite:{place}:TABLE",
        ),
    ]:
        given = ["join", "--r", r, "--s", str(tmp_path / "s.parquet"), "--on", "k"]
        assert main(given) == 2
        assert sentence in capsys.readouterr().err


def test_knobs_of_a_relation_that_is_written_are_refused(tmp_path: Path) -> None:
    where = written("arrow", tmp_path, {"k": pa.array([1])})
    for knob in ({"store": "raw"}, {"r_bytes": 120}, {"kept_bytes": 16}):
        with pytest.raises(InputError, match=r"R is in arrow:.* already: drop the knob"):
            sj.join(where, {"k": np.array([1])}, on="k", engine="ssbj", knobs=knob)


def test_the_relation_is_not_overwritten_by_its_join(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = written("arrow", tmp_path, {"k": pa.array([1])})
    pq.write_table(pa.table({"k": [1]}), tmp_path / "s.parquet")
    given = ["join", "--r", where, "--s", str(tmp_path / "s.parquet"), "--on", "k"]
    assert main([*given, "--output", where.partition(":")[2]]) == 2
    assert "is an input; it would be overwritten" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["with space", 'with "quotes"', "a:b", "it's", "select", "Ümlaut", "a{0}b"]
)
@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgres"], indirect=True)
def test_tables_and_columns_are_called_what_they_are_called(
    kind: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    statements = [
        f"CREATE TABLE {quoted} ({quoted} BIGINT, id INTEGER PRIMARY KEY)",
        f"INSERT INTO {quoted} VALUES (7, 1), (8, 2)",
    ]
    place = tmp_path / "my: own.db"
    if kind == "sqlite":
        with database(place, *statements):
            where, first = f"sqlite:{place}:{name}", 0
    elif kind == "duckdb":
        import duckdb

        with duckdb.connect(str(place)) as connection:
            for statement in statements:
                connection.execute(statement)
        where, first = f"duckdb:{place}:{name}", 0
    else:
        import adbc_driver_postgresql.dbapi

        uri = request.getfixturevalue("postgres")
        with (
            adbc_driver_postgresql.dbapi.connect(uri, autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
        if ":" in name:
            return  # the last colon is before the table: such a one is named from Python
        where, first = f"postgres:{uri}:{name}", 1
    assert relation(where).table == name
    band = {"s": np.array([8, 8, 9])}
    result = sj.join(where, band, on=[f"{name}=s"], engine="ssbj", check=True)
    assert pairs(result) == [(first + 1, 0), (first + 1, 1)]


def test_rows_without_a_place_are_refused_with_what_to_type(tmp_path: Path) -> None:
    import duckdb

    place = tmp_path / "views.db"
    with database(
        place,
        "CREATE TABLE t (k INT)",
        "INSERT INTO t VALUES (1)",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE TABLE w (k INT PRIMARY KEY) WITHOUT ROWID",
    ):
        for table in "vw":
            with pytest.raises(InputError, match=r"have no rowid, .* type CREATE TABLE copy AS"):
                sj.join(f"sqlite:{place}:{table}", {"k": np.array([1])}, on="k")
    with duckdb.connect(str(tmp_path / "duck.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS k")
        connection.execute("CREATE VIEW v AS SELECT * FROM t")
    with pytest.raises(InputError, match=r"have no rowid, .* type CREATE TABLE copy AS"):
        sj.join(f"duckdb:{tmp_path / 'duck.db'}:v", {"k": np.array([1])}, on="k")


def test_a_column_that_takes_the_rowids_name_does_not_take_its_place(tmp_path: Path) -> None:
    place = tmp_path / "rowid.db"
    with database(place, "CREATE TABLE t (rowid TEXT, k INT)", "INSERT INTO t VALUES ('x', 4)"):
        result = sj.join(f"sqlite:{place}:t", {"k": np.array([4])}, on="k")
    assert pairs(result) == [(0, 0)]


def test_a_servers_table_is_named_by_address(postgres: str, tmp_path: Path) -> None:
    import adbc_driver_postgresql.dbapi

    with (
        adbc_driver_postgresql.dbapi.connect(postgres, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("CREATE SCHEMA fleet")
        cursor.execute("CREATE TABLE fleet.planes (id int PRIMARY KEY, tail text)")
        cursor.execute("INSERT INTO fleet.planes VALUES (1, 'a'), (2, NULL), (5, 'b')")
    s = {"tail": np.array(["b", "a", "c"])}
    result = sj.join(f"postgres:{postgres}:fleet.planes", s, on="tail", check=True)
    assert pairs(result) == [(1, 1), (5, 0)]
    secret = postgres.replace("postgres@", "postgres:secret@")
    for where, sentence in [
        (
            f"postgres:{secret}:plane",
            r"/postgres: there is no table 'plane'; it has .*fleet\.planes",
        ),
        (f"postgres:{secret}", "names no table: write its name behind a colon"),
        ("postgres:postgresql://u:secret@127.0.0.1:1/x:t", "127.0.0.1:1/x: .*connect"),
        ("postgres:postgresql://u:se/secret@127.0.0.1:1/x?a=b:t", "cannot be read: .* %40 for @"),
    ]:
        with pytest.raises((InputError, StoreError), match=sentence) as raised:
            sj.join(where, s, on="tail")
        assert "secret" not in str(raised.value)


# A store that changes.
