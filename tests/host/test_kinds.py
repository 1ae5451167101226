"""Kinds of join: every engine's result and times are the definition's, for every kind."""

import contextlib
import itertools
import sqlite3
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.host import cases
from tests.host.test_engines import held

import streamjoin as sj
from streamjoin import estimate, oracle, run, verify
from streamjoin.cli import main
from streamjoin.engines import catalog, kinds
from streamjoin.engines.job import Job
from streamjoin.errors import MismatchError, UnsupportedError
from streamjoin.sequence import ResolvedJoin
from streamjoin.tuples import Pairs, Stream
from streamjoin_common.language.kinds import KINDS
from streamjoin_common.language.windows import (
    AllWindow,
    CountWindow,
    TimeWindow,
    TumblingWindow,
    Window,
    parse_window,
)

SOFTWARE = [
    name for name in catalog.names() if catalog.get(name).capabilities.platform not in "fpga spark"
]
FPGA = [name for name in catalog.names() if catalog.get(name).capabilities.platform == "fpga"]
CASES = {
    case.name: case
    for case in cases.hard_cases()
    if case.name
    in {"both-empty", "r-empty", "s-empty", "one-each", "s-first", "all-the-same", "bursts"}
    | {"keys-at-the-ends", "negative-times", "window-edges", "missing-values"}
}
WINDOWS = ["all", "tumbling:7us", "count:3,8", "time:2us,9us"]
pytestmark = pytest.mark.timeout(600)  # the first use of a design builds its model


def check(
    name: str, r: Stream, s: Stream, window: Window, how: str, inner: Pairs, **knobs: str
) -> run.Outcome:
    """Run an engine and compare rows, times, order, digest and counts with the oracle's."""
    engine = catalog.get(name)
    job = Job(r, s, cases.EQUI, window, how=how)
    job = run.complete(engine, job, {**cases.SMALL_KNOBS.get(name, {}), **knobs})
    outcome = run.run(engine, job)
    expected = verify.Expected(inner, "oracle")
    if how != "inner":
        rows, ts = oracle.of_kind(how, inner, r, s, window)
        expected = verify.Expected(rows, "oracle", ts)
    ResolvedJoin(engine, job).verify(outcome, expected)
    assert outcome.metrics["pairs"] == len(expected.rows)
    assert outcome.metrics["digest"] == expected.rows.digest
    assert outcome.metrics["how"] == how
    return outcome


@pytest.mark.parametrize("name", SOFTWARE)
def test_every_engine_gives_the_definitions_rows_and_times_of_every_kind(name: str) -> None:
    can = catalog.get(name).capabilities
    windows = [w for w in map(parse_window, WINDOWS) if w.kind in can.windows]
    # More cases than kinds: under each window every kind has its turn, each time with other cases.
    turns = itertools.product(enumerate(windows), enumerate(CASES.values()))
    for (number, window), (turn, case) in turns:
        inner = oracle.join(case.r, case.s, cases.EQUI, window)
        check(name, case.r, case.s, window, KINDS[(turn + number) % len(KINDS)], inner)


@pytest.mark.parametrize("how", KINDS)
@pytest.mark.parametrize("name", FPGA)
def test_every_design_gives_every_kind(name: str, how: str) -> None:
    case, window = CASES["bursts"], CountWindow(3, 8)
    check(name, case.r, case.s, window, how, oracle.join(case.r, case.s, cases.EQUI, window))


def device_knobs(name: str) -> dict[str, str]:
    forward = {"forward": "fast"} if name == "fpga-handshake" else {}
    return {"kinds": "device", **forward}


@pytest.mark.parametrize("name", FPGA)
def test_a_design_that_decides_every_kind_gives_the_rows_of_the_host(name: str) -> None:
    """Rows, their times and their order; where the design cannot decide, the host still does."""
    # A model less to build for each: that time windows are decided too, tests of the designs see.
    windows = ["count:3,8", "time:2us,9us"][: 1 + (name == "fpga-splitjoin-hash")]
    turns = itertools.product(map(parse_window, windows), CASES.values())
    designs = set()
    for turn, (window, case) in enumerate(turns):
        how = KINDS[turn % len(KINDS)]
        if not held(catalog.get(name), window, case.r, case.s):
            continue
        inner = oracle.join(case.r, case.s, cases.EQUI, window)
        knobs = device_knobs(name)
        by_device = check(name, case.r, case.s, window, how, inner, **knobs)
        by_host = check(name, case.r, case.s, window, how, inner, **{**knobs, "kinds": "host"})
        if name != "fpga-handshake":  # else pairs have no order to compare
            np.testing.assert_array_equal(by_device.rows.r_rows, by_host.rows.r_rows)
            np.testing.assert_array_equal(by_device.ts, by_host.ts)
        if by_device.metrics["design"] != by_host.metrics["design"]:
            designs.add(how)
    decided = {"left", "right", "full", "anti"}
    assert designs == (decided if name == "fpga-handshake" else decided | {"semi"})


def test_a_chain_in_lock_step_that_is_to_decide_is_refused() -> None:
    r, s = (cases.stream(source, [0, 1], [1, 2]) for source in "rs")
    job = Job(r, s, cases.EQUI, CountWindow(3, 3), how="left")
    sentence = "needs .*forward.*fast.*: cores that forward by step"
    with pytest.raises(UnsupportedError, match=sentence):
        run.complete(catalog.get("fpga-handshake"), job, {"kinds": "device"})


def leaves(stream: Stream, row: int, window: Window, last: int, of_r: bool) -> int:
    """Try one time after the other until the window of a tuple is over."""
    now = int(stream.ts[row])
    while now < last:
        if isinstance(window, TumblingWindow):
            over = now // window.length_us != stream.ts[row] // window.length_us
        elif isinstance(window, TimeWindow):
            over = now - stream.ts[row] >= (window.r_us if of_r else window.s_us)
        elif isinstance(window, CountWindow):
            behind = np.count_nonzero(stream.ts <= now) - 1 - row
            over = behind >= (window.r_tuples if of_r else window.s_tuples)
        else:
            over = False
        if over:
            break
        now += 1
    return now


@settings(max_examples=120, deadline=None)
@given(
    streams=cases.random_streams(25),
    window=cases.random_windows(frozenset({"all", "tumbling", "count", "time"})),
    how=st.sampled_from(KINDS[1:]),
)
def test_the_oracle_is_the_definition_of_every_kind(
    streams: tuple[Stream, Stream], window: Window, how: str
) -> None:
    r, s = streams
    inner = oracle.join(r, s, cases.EQUI, window)
    pairs = list(zip(inner.r_rows.tolist(), inner.s_rows.tolist(), strict=True))
    times = {pair: max(int(r.ts[pair[0]]), int(s.ts[pair[1]])) for pair in pairs}
    last = max((int(ts[-1]) for ts in (r.ts, s.ts) if len(ts)), default=0)
    rows = {} if how in {"semi", "anti"} else dict(times)
    for row in range(r.rows):
        mine = [times[pair] for pair in pairs if pair[0] == row]
        if how == "semi" and mine:
            rows[row, -1] = min(mine)
        if how in {"left", "full", "anti"} and not mine:
            rows[row, -1] = leaves(r, row, window, last, of_r=True)
    for row in range(s.rows):
        if how in {"right", "full"} and all(pair[1] != row for pair in pairs):
            rows[-1, row] = leaves(s, row, window, last, of_r=False)
    found, ts = oracle.of_kind(how, inner, r, s, window)
    named = zip(found.r_rows.tolist(), found.s_rows.tolist(), strict=True)
    assert dict(zip(named, ts.tolist(), strict=True)) == rows
    assert len(found) == len(rows)


SQL = {
    "left": "SELECT r.row AS r_row, s.row AS s_row FROM r LEFT JOIN s ON {on}",
    "right": "SELECT r.row AS r_row, s.row AS s_row FROM r RIGHT JOIN s ON {on}",
    "full": "SELECT r.row AS r_row, s.row AS s_row FROM r FULL JOIN s ON {on}",
    "semi": "SELECT r.row AS r_row, NULL AS s_row FROM r SEMI JOIN s ON {on}",
    "anti": "SELECT r.row AS r_row, NULL AS s_row FROM r ANTI JOIN s ON {on}",
}


@pytest.mark.parametrize("window", ["all", "tumbling:7us"])
@pytest.mark.parametrize("how", SQL)
def test_sql_means_the_same_kinds(how: str, window: str) -> None:
    asked = parse_window(window)
    same = "r.w = s.w" if isinstance(asked, TumblingWindow) else "true"
    for case in CASES.values():
        given = {}
        for name, stream, key in (("r", case.r, "k"), ("s", case.s, "k2")):
            length = asked.length_us if isinstance(asked, TumblingWindow) else 1
            missing = np.zeros(stream.rows, bool) if stream.missing is None else stream.missing
            given[name] = {
                "row": np.arange(stream.rows),
                "k": stream.columns[key],
                "w": stream.ts // length,
                "there": ~missing,
            }
        with duckdb.connect() as connection:
            for name, columns in given.items():
                connection.register(f"{name}_given", columns)
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_given")
            on = f"r.k = s.k AND r.there AND s.there AND {same}"
            rows = connection.sql(SQL[how].format(on=on)).fetchall()
        right = Pairs.of([tuple(-1 if row is None else row for row in pair) for pair in rows])
        engine = catalog.get("npj")
        job = run.complete(engine, Job(case.r, case.s, cases.EQUI, asked, how=how), None)
        verify.check(run.run(engine, job).pairs, right, f"npj, {case.name}")


def outcome_of(how: str, name: str = "kang", window: str = "count:3,8") -> run.Outcome:
    case, engine = CASES["bursts"], catalog.get(name)
    job = Job(case.r, case.s, cases.EQUI, parse_window(window), how=how)
    return run.run(engine, run.complete(engine, job, None))


def test_digests_are_what_they_were() -> None:
    digests = {how: outcome_of(how).metrics["digest"] for how in KINDS}
    assert digests == {
        "inner": "14c77542029a7b44",
        "left": "a5bd767e50aca242",
        "right": "6f238170d48a9e2e",
        "full": "001982ad229cc52c",
        "semi": "0979553946ce6353",
        "anti": "90f6013c4e1226fe",
    }


def test_an_inner_join_copies_and_computes_nothing() -> None:
    job, pairs = outcome_of("inner").job, Pairs.of([(0, 1)])
    assert kinds.result(job, pairs, "inner") == kinds.Result(pairs, None)
    assert outcome_of("inner").times is None


def test_a_row_a_time_or_a_place_that_is_wrong_is_reported() -> None:
    outcome = outcome_of("full")
    join = ResolvedJoin(catalog.get("kang"), outcome.job)
    expected = verify.expected(outcome.job)
    join.verify(outcome, expected)
    rows, ts = outcome.pairs, outcome.ts
    lacking = replace(outcome, pairs=Pairs(rows.r_rows[:-1], rows.s_rows[:-1]), given_times=ts[:-1])
    with pytest.raises(MismatchError, match=r"first missing \(r_row, s_row\) = \(null, 2"):
        join.verify(lacking, expected)
    late = ts.copy()
    late[np.flatnonzero(rows.s_rows < 0)[0]] += 1
    with pytest.raises(MismatchError, match=r"null\) has ts \d+ where \d+ is right"):
        join.verify(replace(outcome, given_times=late), expected)
    order = np.argsort(rows.s_rows < 0, kind="stable")
    moved = replace(
        outcome, pairs=Pairs(rows.r_rows[order], rows.s_rows[order]), given_times=ts[order]
    )
    with pytest.raises(MismatchError, match="breaks order inner"):
        join.verify(moved, expected)


def test_single_rows_stand_behind_the_pairs_of_their_time_r_before_s() -> None:
    r = cases.stream("r", [0, 0, 5, 5], [1, 2, 3, 4])
    s = cases.stream("s", [0, 0, 5, 5], [1, 9, 3, 8])
    engine = catalog.get("kang")
    job = Job(r, s, cases.EQUI, TimeWindow(5), how="full")
    outcome = run.run(engine, run.complete(engine, job, None))
    found = zip(outcome.pairs.r_rows, outcome.pairs.s_rows, outcome.ts, strict=True)
    assert [tuple(map(int, row)) for row in found] == [
        (0, 0, 0),
        (2, 2, 5),
        (1, -1, 5),
        (3, -1, 5),
        (-1, 1, 5),
        (-1, 3, 5),
    ]


@pytest.mark.parametrize(
    ("window", "times"),
    [
        ("all", [20, 20, 20]),
        ("tumbling:4us", [4, 8, 20]),
        ("count:1", [5, 18, 20]),
        ("count:2", [18, 20, 20]),
        ("time:6us", [6, 11, 20]),
    ],
)
def test_a_tuple_without_a_partner_has_the_time_at_which_its_window_is_over(
    window: str, times: list[int]
) -> None:
    r, s = {"k": [1, 2, 3], "ts": [0, 5, 18]}, {"k": [9], "ts": [20]}
    result = sj.join(r, s, on="k", window=window, how="anti")
    assert result.pairs["ts"].to_pylist() == times
    assert result.pairs["s_row"].to_pylist() == [None] * 3


def test_no_time_is_beyond_the_last_arrival_at_the_ends_of_time() -> None:
    ends = [-(1 << 62), -1, 0, 1 << 62]
    r, s = cases.stream("r", ends, [1, 2, 3, 4]), cases.stream("s", ends[:3], [5, 6, 7])
    for window in (AllWindow(), TumblingWindow((1 << 62) - 1), TimeWindow((1 << 62) - 1)):
        check("kang" if window.kind != "tumbling" else "npj", r, s, window, "full", Pairs.of([]))


def test_late_tuples_are_in_no_result_and_rows_are_named_as_they_were_given() -> None:
    r = {"k": [1, 2, 3, 4], "ts": [10, 5, 30, 1]}  # the last one is beyond the lateness
    s = {"k": [2, 9], "ts": [6, 31]}
    result = sj.join(r, s, on="k", how="full", window="time:4us", lateness="10us", check=True)
    rows = result.pairs.sort_by([("ts", "ascending"), ("r_row", "ascending")]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (1, 0, 6),
        (0, None, 14),
        (2, None, 31),
        (None, 1, 31),
    ]
    assert result.metrics["late"] == [1, 0]


@pytest.mark.parametrize("how", KINDS)
def test_what_is_too_large_for_the_oracle_is_verified_by_duckdb(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "MAX_ORACLE_COMPARISONS", 0)
    outcome = outcome_of(how, window="time:2us,9us")
    expected = verify.expected(outcome.job)
    assert expected.oracle == "duckdb"
    ResolvedJoin(catalog.get("kang"), outcome.job).verify(outcome, expected)


@pytest.mark.parametrize("engine", ["meshjoin", "ssbj"])
def test_a_relation_in_a_store_is_joined_in_every_kind(engine: str, tmp_path: Path) -> None:
    place = tmp_path / "r.db"
    with contextlib.closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("CREATE TABLE r (k INTEGER, ts INTEGER)")
        keys = [(number % 7 or None, number) for number in range(60)]
        connection.executemany("INSERT INTO r VALUES (?, ?)", keys)
        connection.execute("DELETE FROM r WHERE rowid % 11 = 5")
    s = {"k": np.array([3, 9, 5, 3, 6]), "ts": np.array([4, 8, 9, 33, 71])}
    kept = [row for row in range(60) if (row + 1) % 11 != 5]
    for window, how in itertools.product(("all", "tumbling:10us"), KINDS):
        asked = {"on": "k", "window": window, "how": how, "engine": engine}
        result = sj.join(f"sqlite:{place}:r", s, **asked, check=True)
        if how in {"left", "anti"}:
            assert set(result.r_rows.tolist()) <= set(kept)
        if how == "left":
            assert set(result.r_rows.tolist()) == set(kept)
    with pytest.raises(sj.InputError, match="sheds tuples lacks pairs, so how left cannot"):
        sj.join({"k": [1]}, s, on="k", how="left", engine=engine, knobs={"shed_beyond": 5})


def test_more_rows_than_the_maximum_end_the_run() -> None:
    r, s = {"k": np.arange(10)}, {"k": np.array([1, 2])}
    for how, rows in (("inner", 2), ("left", 10), ("full", 10), ("semi", 2), ("anti", 8)):
        assert len(sj.join(r, s, on="k", how=how, max_pairs=rows)) == rows
        with pytest.raises(sj.StreamJoinError, match=f"more than {rows - 1} pairs"):
            sj.join(r, s, on="k", how=how, max_pairs=rows - 1)


def test_rows_without_a_partner_count_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    r, s = {"k": np.arange(5000)}, {"k": np.arange(5000) + 10**6}
    monkeypatch.setattr(estimate, "pairs_that_fit", lambda: 4000)
    assert len(sj.join(r, s, on="k", engine="npj")) == 0
    assert len(sj.join(r, s, on="k", engine="npj", how="semi")) == 0
    with pytest.raises(sj.StreamJoinError, match=r"at least 5e\+03 with 99\.9% confidence"):
        sj.join(r, s, on="k", engine="npj", how="right")


def test_latency_and_progress_are_of_the_matched_pairs() -> None:
    metrics = outcome_of("full").metrics
    inner = outcome_of("inner").metrics
    assert metrics["pairs"] > inner["pairs"]
    assert metrics["progress"][-1][0] == 1.0
    assert metrics["latency_us"]["max"] > 0
    r, s = {"k": [1], "ts": [0]}, {"k": [2], "ts": [9]}
    alone = sj.join(r, s, on="k", how="full", engine="kang", arrival="replay").metrics
    assert (alone["pairs"], alone["progress"], alone["latency_us"]["p50"]) == (2, [], None)


def test_the_command_line_joins_and_writes_every_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"k": [1, 2]}), tmp_path / "r.parquet")
    pq.write_table(pa.table({"k": [2, 3]}), tmp_path / "s.parquet")
    sides = ["--r", str(tmp_path / "r.parquet"), "--s", str(tmp_path / "s.parquet")]
    out = tmp_path / "pairs.parquet"
    command = ["join", *sides, "--on", "k", "--verify", "--output", str(out), "--how"]
    assert main([*command, "full"]) == 0
    assert pq.read_table(out).drop_columns("ts").to_pylist() == [
        {"r_row": 1, "s_row": 0},
        {"r_row": 0, "s_row": None},
        {"r_row": None, "s_row": 1},
    ]
    assert "how" in capsys.readouterr().out
    assert main([*command, "outer"]) == 2
    assert "how is one of inner, left, right, full, semi, anti, not 'outer'" in (
        capsys.readouterr().err
    )
