"""Queries on stores end when a signal or their deadline says so, and reach no other file."""

import _thread
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamjoin as sj
from streamjoin.errors import DeadlineError, InputError, StoreError
from streamjoin.relations import Projection, Store, open_store, queries

ENDLESS = "WITH RECURSIVE e(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM e) SELECT {} FROM e"
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def table_in(kind: str, place: Path, *statements: str) -> Path:
    """Make a database with a table t, and whatever else."""
    if kind == "sqlite":
        connection: Any = sqlite3.connect(place)
    else:
        import duckdb

        connection = duckdb.connect(str(place))
    with closing(connection):
        for statement in ("CREATE TABLE t AS SELECT 1 AS k", *statements):
            connection.execute(statement)
        connection.commit()
    return place


def ask_without_end(store: Any, started: Any) -> Any:
    """Have a store select without end; ``started`` is called when its rows begin to come."""
    query = ENDLESS.format("max(n + started(n))")
    if store.kind == "sqlite":
        store._connection.create_function("started", 1, started)
        return store._execute(query, (), "counting without end")
    types = (["BIGINT"], "BIGINT")
    store._connection.create_function("started", started, *types, side_effects=True)
    return store._ask(query, "counting without end")


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_an_endless_query_ends_by_its_deadline_and_the_store_goes_on(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(kind, table_in(kind, tmp_path / "r.db"), Projection("k"))
    monkeypatch.setattr(queries, "DEADLINE_S", 0.1)
    with pytest.raises(DeadlineError, match=r"r\.db: counting without end took over 0\.1 s"):
        ask_without_end(store, lambda _: 0)
    monkeypatch.undo()
    assert store.read(0, store.positions).keys.tolist() == [1]
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_an_endless_query_is_interrupted_from_another_thread(kind: str, tmp_path: Path) -> None:
    store = open_store(kind, table_in(kind, tmp_path / "r.db"), Projection("k"))
    running = threading.Event()

    def started(_: int) -> int:
        running.set()
        return 0

    def interrupt() -> None:
        assert running.wait(30)
        store.interrupt()

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(StoreError, match=r"(?i)r\.db: .*interrupt"):
        ask_without_end(store, started)
    other.join(30)
    store.close()


def test_a_signal_just_before_the_waiting_begins_ends_the_query() -> None:
    """Its handler is then due, but nothing wakes the thread that waits."""
    cancelled, in_time = threading.Event(), []

    def query() -> None:
        cancelled.wait(0.1)  # the other thread waits by now
        _thread.interrupt_main()  # marks the signal and interrupts no system call
        in_time.append(cancelled.wait(10))

    with pytest.raises(KeyboardInterrupt):
        queries.run_with_deadline(query, cancelled.set, 60, "waiting")
    assert in_time == [True]


CHILD = """
import sys
from pathlib import Path
from streamjoin import cli
from streamjoin.relations import Projection, open_store
from tests.host.test_queries import ask_without_end

class Ask:
    def run(self, args):
        store = open_store(sys.argv[1], Path(sys.argv[2]), Projection("k"))
        says = iter(["running"])
        def started(_):
            for word in says:
                print(word, flush=True)
            return 0
        ask_without_end(store, started)

cli.parse = lambda arguments: Ask()
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_signal_ends_an_endless_query_at_once_with_one_line(
    kind: str, number: signal.Signals, tmp_path: Path
) -> None:
    place = table_in(kind, tmp_path / "r.db")
    root = str(Path(__file__).parents[2])
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, kind, str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])},
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "running\n"
        child.send_signal(number)
        _, said = child.communicate(timeout=60)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == SIGNALS[number], said
    assert said.count("\n") == 1
    assert "nothing unfinished was left behind" in said


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_view_is_refused_before_anything_of_it_runs(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = "CREATE VIEW v AS " + ENDLESS.format("n AS k")
    place = table_in(kind, tmp_path / "r.db", view)
    monkeypatch.setattr(queries, "DEADLINE_S", 5)  # an endless query would end by it
    with pytest.raises(InputError, match=r"'v' have no rowid, .* type CREATE TABLE copy AS"):
        sj.join(f"{kind}:{place}:v", {"k": np.array([1])}, on="k")


def test_duckdb_reads_no_file_but_its_own(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("k\n1\n")
    statement = f"CREATE VIEW v AS SELECT * FROM read_csv('{other}')"
    place = table_in("duckdb", tmp_path / "r.db", statement)
    other.unlink()  # whoever looked for it would say so
    with pytest.raises(InputError, match="'v' have no rowid"):
        open_store("duckdb", place, Projection("k"), "v")
    other.write_text("k\n1\n")
    store: Any = open_store("duckdb", place, Projection("k"), "t")
    for query in (
        f"SELECT * FROM read_csv('{other}')",
        "SELECT content FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM v",
    ):
        with pytest.raises(StoreError, match="disabled by configuration"):
            store._ask(query, "reading")
    for setting in ("SET enable_external_access = true", "LOAD httpfs"):
        with pytest.raises(StoreError, match=r"(?i)locked|disabled"):
            store._ask(setting, "setting")
    store.close()


def test_a_database_with_unsaved_changes_is_still_read(tmp_path: Path) -> None:
    import duckdb

    place = table_in("duckdb", tmp_path / "r.db")
    with duckdb.connect(str(place)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("INSERT INTO t VALUES (2)")
    assert place.with_name("r.db.wal").exists()
    store = open_store("duckdb", place, Projection("k"))
    assert store.read(0, store.positions).keys.tolist() == [1, 2]
    store.close()


def test_rows_far_apart_are_refused_and_dense_ones_counted_no_further_than_needed(
    tmp_path: Path,
) -> None:
    sparse = table_in("sqlite", tmp_path / "s.db", "UPDATE t SET rowid = 500")
    with pytest.raises(InputError, match="1 rows are numbered from 500 to 500; number them from 1"):
        open_store("sqlite", sparse, Projection("k"))
    below = table_in("sqlite", tmp_path / "b.db", "UPDATE t SET rowid = -5")
    with pytest.raises(InputError, match="rows are numbered from -5 on; number them from 1 on"):
        open_store("sqlite", below, Projection("k"))
    dense = table_in("sqlite", tmp_path / "d.db", "UPDATE t SET rowid = 200")
    open_store("sqlite", dense, Projection("k")).close()


def test_a_query_that_cannot_be_cancelled_is_abandoned_at_its_deadline() -> None:
    release = threading.Event()
    with pytest.raises(DeadlineError, match="connecting took over"):
        queries.run_with_deadline(lambda: release.wait(60), None, 0.01, "connecting")
    release.set()


def test_a_querys_error_is_the_callers() -> None:
    with pytest.raises(KeyError, match="k"):
        queries.run_with_deadline(lambda: {}["k"], None, 10, "looking")


def test_stores_without_queries_are_left_alone(tmp_path: Path) -> None:
    store: Store = open_store("sqlite", table_in("sqlite", tmp_path / "r.db"), Projection("k"))
    store.interrupt()  # nothing runs: the next query is not affected
    assert store.positions == 1
    store.close()


def test_rows_numbered_from_0_on_are_read_from_0_on(tmp_path: Path) -> None:
    made = ["CREATE TABLE n (id INTEGER PRIMARY KEY, k)", "DROP TABLE t"]
    rows = [f"INSERT INTO n VALUES ({number}, {10 * number})" for number in range(300)]
    location = table_in("sqlite", tmp_path / "n.db", *made, *rows)
    store = open_store("sqlite", location, Projection("k"))
    assert store.positions == 300
    read = [store.read(first, min(first + 70, 300)) for first in range(0, 300, 70)]
    assert [key for part in read for key in part.keys.tolist()] == [10 * n for n in range(300)]
    assert [row for part in read for row in part.rows.tolist()] == list(range(300))
    store.close()


def test_a_query_that_ends_while_it_is_cancelled_leaves_no_error_behind() -> None:
    ended = threading.Event()

    def cancel() -> None:
        ended.set()
        raise RuntimeError("there is no query to cancel")

    with pytest.raises(DeadlineError, match="connecting took over"):
        queries.run_with_deadline(lambda: ended.wait(60), cancel, 0.01, "connecting")
