"""Kinds that need the first pair of each tuple of R alone, and what rows of other kinds cost."""

import contextlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.host import cases
from tests.host.test_estimate import memory_for
from tests.host.test_kinds import check

import streamjoin as sj
from streamjoin import oracle, run
from streamjoin.advise import choose, thresholds, tree
from streamjoin.engines import catalog, kinds
from streamjoin.engines.intra import first as first_of
from streamjoin.engines.intra.window import WindowTuples
from streamjoin.engines.job import Job
from streamjoin.errors import TooLargeError
from streamjoin.lazy import Later
from streamjoin.metrics import Meter
from streamjoin.results.rows import pairs_table
from streamjoin.tuples import Stream
from streamjoin_common.language.windows import AllWindow, Window


@settings(max_examples=100, deadline=None)
@given(
    streams=cases.random_streams(60),
    window=cases.random_windows(frozenset({"all", "tumbling"})),
    how=st.sampled_from(["semi", "anti"]),
)
def test_rows_and_times_are_the_definitions(
    streams: tuple[Stream, Stream], window: Window, how: str
) -> None:
    inner = oracle.join(*streams, cases.EQUI, window)
    check("npj", *streams, window, how, inner)
    check("npj", *streams, window, how, inner, load="8")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("how", ["semi", "anti"])
def test_many_tuples_of_any_keys(how: str, threads: int) -> None:
    rng = np.random.default_rng(seed := 11)
    for keys in (40, 3000, 1 << 31):
        r = {"k": rng.integers(0, keys, 90_000), "ts": np.sort(rng.integers(0, 900, 90_000))}
        s = {"k": rng.integers(0, keys, 70_000), "ts": np.sort(rng.integers(0, 900, 70_000))}
        first = {}
        for key, time in zip(s["k"].tolist(), s["ts"].tolist(), strict=True):
            first.setdefault(key, time)
        found = [key in first for key in r["k"].tolist()]
        kept = np.flatnonzero(np.array(found) == (how == "semi"))
        result = sj.join(r, s, on="k", how=how, threads=threads)
        assert result.metrics["engine"] == "npj"
        order = np.argsort(result.r_rows)
        np.testing.assert_array_equal(result.r_rows[order], kept, err_msg=f"seed {seed}")
        if how == "semi":
            times = [max(first[int(r["k"][row])], int(r["ts"][row])) for row in kept]
            assert result.pairs["ts"].to_numpy()[order].tolist() == times


def test_duplicates_are_no_pairs_that_are_held() -> None:
    """A hundred million pairs, and no run may hold more than there are tuples of R."""
    r, s = {"k": np.zeros(10_000, dtype=np.int64)}, {"k": np.zeros(10_000, dtype=np.int64)}
    result = sj.join(r, s, on="k", how="semi", max_pairs=10_000)
    assert len(result) == 10_000
    assert len(sj.join(r, s, on="k", how="anti", max_pairs=10_000)) == 0
    with memory_for(pairs=100_000):
        assert len(sj.join(r, s, on="k", how="semi")) == 10_000
        with pytest.raises(TooLargeError, match="take engine='npj', which needs few of them"):
            sj.join(r, s, on="k", how="semi", engine="prj")


@settings(max_examples=100, deadline=None)
@given(
    r=st.lists(st.integers(0, 20), max_size=30),
    s=st.lists(st.integers(0, 20), max_size=30),
    step=st.sampled_from([1, 200_000_000]),
    cut=st.integers(0, 30),
)
def test_the_first_row_of_a_key_is_found(r: list[int], s: list[int], step: int, cut: int) -> None:
    """In an array of small keys, in a table of others, and in any part of R."""
    keys, others = (np.array(side, dtype=np.uint32) * np.uint32(step) for side in (r, s))
    find = first_of._finder(WindowTuples(keys, others), Meter())
    found = np.empty(len(r), dtype=np.uint32)
    for part in (slice(0, cut), slice(cut, None)):
        find(keys[part], found[part])
    assert found.tolist() == [s.index(key) if key in s else len(s) for key in r]


@pytest.mark.parametrize("threads", [1, 2])
def test_small_keys_that_are_their_own_buckets_are_joined_as_others(threads: int) -> None:
    rng = np.random.default_rng(seed := 5)
    for highest in (65_534, 65_535, 65_536, 131_071, 131_072, (1 << 32) - 1):
        r, s = (
            {"k": np.append(rng.integers(0, highest + 1, 65_535), highest).astype(np.uint32)}
            for _ in range(2)
        )
        found = sj.join(r, s, on="k", engine="npj", threads=threads)
        right = sj.join(r, s, on="k", engine="mway")
        assert found.metrics["digest"] == right.metrics["digest"], f"seed {seed}"


def test_the_choice_takes_no_sample_where_none_can_change_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def job(rows: int, how: str = "inner") -> Job:
        streams = cases.dense(rows) if rows < 1 << 18 else (keyed(rows, "r"), keyed(rows, "s"))
        return Job(*streams, cases.EQUI, AllWindow(), how=how)

    def keyed(rows: int, source: str) -> Stream:
        keys = np.arange(rows, dtype=np.int32)
        return Stream({"k": keys, "k2": keys}, np.zeros(rows, dtype=np.int64), source)

    known, path = thresholds.load()
    assert min(known.high_duplication, known.high_key_skew) >= thresholds.NEVER
    with monkeypatch.context() as patch:
        patch.setattr(tree, "measure", None)
        assert choose(job(1 << 17)).name == "npj"
        assert choose(job(known.large_tuples)).name == "prj"
        assert choose(job(known.large_tuples, how="semi")).name == "npj"
    measured = []
    reachable = thresholds.Thresholds(**{**known.to_dict(), "high_duplication": 5.0})
    monkeypatch.setattr(tree.stored, "load", lambda: (reachable, path))
    monkeypatch.setattr(
        tree, "measure", lambda *given: (measured.append(given), tree.sized(given[0]))[1]
    )
    assert choose(job(1 << 17)).name == "npj"
    assert len(measured) == 1


@pytest.mark.parametrize("ts", [None, [0, 5, 9]])
def test_times_of_rows_without_an_order_are_computed_when_they_are_looked_at(
    ts: list[int] | None,
) -> None:
    r, s = ({"k": np.array(keys), **({"ts": ts} if ts else {})} for keys in ([1, 2, 3], [3, 1, 9]))
    engine = catalog.get("npj")
    resolved = sj.join(r, s, on="k", how="full", engine="npj")
    outcome = resolved._outcome
    assert isinstance(outcome.given_times, Later)
    rows = [tuple(row.values()) for row in resolved.pairs.to_pylist()]
    last, first_pair, second = (9, 5, 9) if ts else (0, 0, 0)
    assert sorted(rows, key=str) == sorted(
        [(0, 1, first_pair), (2, 0, second), (1, None, last), (None, 2, last)], key=str
    )
    pairs = kinds.result(outcome.job, run.run(engine, outcome.job).pairs).pairs
    assert len(pairs) >= 4


def test_row_numbers_become_arrow_without_a_copy() -> None:
    r_rows, s_rows = np.arange(20), np.array([*range(17), -1, -1, -1])
    for first, second in ((r_rows, s_rows), (s_rows[5:], r_rows[5:])):
        table = pairs_table(first, second, np.zeros(len(first), dtype=np.int64))
        for name, rows in (("r_row", first), ("s_row", second)):
            column = table[name].chunk(0)
            assert column.buffers()[1].address == rows.ctypes.data
            assert column.to_pylist() == [None if row < 0 else row for row in rows.tolist()]
            assert column.null_count == np.count_nonzero(rows < 0)
            column.validate(full=True)


def test_an_emitted_pair_is_the_first_of_its_tuple() -> None:
    r = cases.stream("r", [0, 0, 3, 4], [1, 2, 1, 7])
    s = cases.stream("s", [0, 1, 2, 3], [5, 1, 1, 2])
    engine = catalog.get("npj")
    job = run.complete(engine, Job(r, s, cases.EQUI, AllWindow(), how="semi"), None)
    meter = Meter()
    meter.start()
    engine.prepare(job, lambda _: None)
    engine.run(job, None, meter)
    meter.stop()
    found = meter.pairs()
    assert sorted(zip(found.r_rows.tolist(), found.s_rows.tolist(), strict=True)) == [
        (0, 1),
        (1, 3),
        (2, 1),
    ]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [(90_000, 3000), (3000, 90_000)])
def test_sides_of_unequal_size_are_joined_as_they_are_given(
    rows: tuple[int, int], threads: int
) -> None:
    """The table is that of the shorter side, and a row of R stays one of R."""
    rng = np.random.default_rng(seed := 13)
    for factor in (1, 2_654_435_761):
        r, s = ({"k": rng.integers(0, 60_000, count) * factor} for count in rows)
        found = sj.join(r, s, on="k", engine="npj", threads=threads)
        assert (r["k"][found.r_rows] == s["k"][found.s_rows]).all(), f"seed {seed}"
        counts = [np.bincount(each["k"] // factor, minlength=60_000) for each in (r, s)]
        assert len(found) == int(np.dot(*counts))
        assert len(set(zip(found.r_rows.tolist(), found.s_rows.tolist(), strict=True))) == len(
            found
        )


@pytest.mark.parametrize("how", ["left", "full", "anti"])
def test_rows_of_a_store_have_the_ends_of_their_windows_where_s_is_at_rest(
    how: str, tmp_path: Path
) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "r.db")) as connection, connection:
        connection.execute("CREATE TABLE t (k INTEGER, ts INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, 0), (2, 8)])
    s = {"k": np.array([9]), "ts": np.array([21])}
    source = f"sqlite:{tmp_path / 'r.db'}:t"
    asked = {"on": "k", "how": how, "engine": "meshjoin", "window": "tumbling:7us", "check": True}
    result = sj.join(source, s, **asked)  # type: ignore[arg-type]  # **asked has values of several types
    assert result.pairs["ts"].to_pylist()[:2] == [7, 14]
