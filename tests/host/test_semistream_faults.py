"""Stores that fail, hang and change while a join runs."""

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.host.semistream import ListStore, PushFeed, expected, hang, joined, settings
from tests.host.test_stores import relation

from streamjoin.errors import DeadlineError, InputError, StoreError
from streamjoin.relations import Projection, open_store


@pytest.mark.parametrize("caching", [False, True])
def test_a_store_that_comes_back_costs_no_result_and_doubles_none(caching: bool) -> None:
    rng = np.random.default_rng(1)
    store = ListStore(rng.integers(0, 60, 400).tolist())
    feed = PushFeed(rng.integers(0, 70, 8000).tolist())
    failures = 0

    def fail(first: int) -> None:
        nonlocal failures
        if rng.random() < 0.1:
            failures += 1
            raise StoreError("the server went away")

    store.before_read = fail
    pairs, _ = joined(store, feed, settings(caching=caching))
    assert failures > 3
    assert store.opened > 3
    assert sorted(pairs.found) == expected(store.keys, feed.keys)


def test_a_store_that_stays_away_is_an_error_that_names_the_partition() -> None:
    store = ListStore(list(range(100)))

    def fail(first: int) -> None:
        if first == 48:
            raise OSError(5, "Input/output error")

    store.before_read = fail
    with pytest.raises(
        StoreError, match=r"^list: partition 3 \(rows 48 to 63\) could not be read for 0.3 s: .*"
    ):
        joined(store, PushFeed([1] * 50), settings(deadline_s=0.3))


def test_a_read_that_hangs_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjoin.engines.semi.reader.GRACE_S", 0.1)
    store = ListStore(list(range(100)))
    store.before_read = hang(2.0)
    with pytest.raises(DeadlineError, match=r"partition 1 \(rows 16 to 31\) could not be read wi"):
        joined(store, PushFeed([1] * 50), settings(deadline_s=0.2))


def test_a_table_that_somebody_else_has_locked_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("streamjoin.relations.sqlite.TIMEOUT_S", 0.1)
    path = relation("sqlite", tmp_path, {"k": np.arange(200), "v": np.arange(200)})
    store = open_store("sqlite", path, Projection("k", ("v",)))
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match=r"partition 0 \(rows 0 to 15\) .*: database is locked$"):
        joined(store, PushFeed(list(range(200))), settings(deadline_s=0.3))
    writer.close()
    store.close()


def test_a_fault_of_ours_in_the_reading_thread_is_not_silent() -> None:
    store = ListStore([1, 2, 3])

    def fail(first: int) -> None:
        raise ZeroDivisionError

    store.before_read = fail
    with pytest.raises(StoreError, match=r"partition 0 .* could not be read: ZeroDivisionError"):
        joined(store, PushFeed([1]), settings())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("ALTER TABLE r DROP COLUMN v", "there is no column 'v'"),
        ("UPDATE r SET v = 'x'", "column 'v' holds 'x' where int was expected"),
    ],
)
def test_a_column_that_goes_or_changes_its_type_ends_the_join(
    change: str, sentence: str, tmp_path: Path
) -> None:
    columns = {"k": np.arange(200), "v": np.zeros(200, dtype=np.int64)}
    path = relation("sqlite", tmp_path, columns)
    store = open_store("sqlite", path, Projection("k", ("v",)))
    read = store.read
    reads = 0

    def changing(first: int, end: int) -> object:
        nonlocal reads
        reads += 1
        if reads == 8:
            with sqlite3.connect(path) as writer:
                writer.execute(change)
            writer.close()
        return read(first, end)

    store.read = changing  # type: ignore[method-assign, assignment]
    with pytest.raises((InputError, StoreError), match=sentence):
        joined(store, PushFeed(list(range(200)) * 10), settings(deadline_s=0.3))
    store.close()


def test_a_row_that_changes_is_joined_as_it_was_within_the_last_cycle(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows, partition = 120, 20
    columns = {"k": np.arange(rows) % 40, "v": np.zeros(rows, dtype=np.int64)}
    path = relation("sqlite", tmp_path, columns)
    store = open_store("sqlite", path, Projection("k", ("v",)))
    history: list[np.ndarray] = [np.zeros(rows, dtype=np.int64)]
    read = store.read
    feed = PushFeed(rng.zipf(1.4, 30_000).tolist())

    def changing(first: int, end: int) -> object:
        now = history[-1].copy()
        changed = rng.integers(0, rows, 5)
        now[changed] = len(history)
        with sqlite3.connect(path) as writer:
            for row in changed.tolist():
                writer.execute("UPDATE r SET v = ? WHERE rowid = ?", (len(history), row + 1))
        writer.close()
        history.append(now)
        return read(first, end)

    store.read = changing  # type: ignore[method-assign, assignment]
    from tests.host import semistream

    pairs, cycle, checked = semistream.Pairs(), rows // partition, 0

    def sink(r_rows: Any, s_rows: Any) -> None:
        nonlocal checked
        pairs(r_rows, s_rows)
        lately = np.stack(history[max(0, len(history) - 2 * cycle - 3) :])
        for row, version in semistream.cached_records(join.tables):
            assert version in lately[:, row]
            checked += version > 0

    meter = semistream.Meter()
    meter.start()
    join = semistream.SemiStreamJoin(store, feed, settings(30_000, partition), meter, sink)
    join.run()
    meter.stop()
    store.close()
    assert Counter(pairs.found) == Counter(expected(columns["k"].astype(np.uint64), feed.keys))
    assert join.cache is not None
    assert join.cache.switched > 0
    assert join.details()["cache_share"] > 0.2
    assert checked > 0


def test_rows_that_come_and_go_break_no_cached_value_in_half() -> None:
    rng = np.random.default_rng(3)
    store = ListStore(rng.integers(0, 30, 300).tolist())
    feed = PushFeed(rng.integers(0, 30, 60_000).tolist())
    changes = 0

    def change(first: int) -> None:
        nonlocal changes
        if rng.random() < 0.1:
            changes += 1
            store.keys = store.keys.copy()
            store.keys[rng.integers(0, 300)] = rng.integers(0, 30)

    before = store.keys.copy()
    store.before_read = change
    pairs, join = joined(store, feed, settings(60_000, 20))
    assert changes > 5
    assert join.cache is not None
    assert join.cache.broken > 0
    assert max(Counter(pairs.found).values()) == 1
    untouched = np.flatnonzero(before == store.keys)
    met = {row: set() for row in untouched.tolist()}
    for row, s_row in pairs.found:
        if row in met:
            met[row].add(s_row)
    for row in untouched[:50].tolist():
        right = set(np.flatnonzero(feed.keys == before[row]).tolist())
        if met[row] != right:
            # Only a row that was another value's for a while may differ.
            assert met[row] < right
