"""Whole calls: from the user's columns to the result in hand, beside the algorithm's part."""

import importlib
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from tests.host import report_samples as samples

import streamjoin as sj
from streamjoin.engines.intra import window
from streamjoin.engines.yardsticks import duckdb, frames
from streamjoin.report.charts.sweeps import sweep_charts
from streamjoin.report.page import render
from streamjoin.report.results import group

R_KEYS = np.array([7_000_000_007, -5, 12, 12, 3], dtype=np.int64)
S_KEYS = np.array([12, 7_000_000_007, 9], dtype=np.int64)
WORDS = ["pear", None, "fig", "fig", "äh"]


def tables():
    r = pa.table({"k": R_KEYS, "w": pa.array(WORDS), "x": R_KEYS})
    s = pa.table({"k": S_KEYS, "w": pa.array(["fig", "pear", None]), "x": S_KEYS})
    return r, s


@pytest.mark.parametrize("engine", ["Polars", "PyArrow", "Pandas"])
def test_a_data_frame_library_gets_the_users_columns(engine):
    r, s = tables()
    of = getattr(frames, engine)
    for on, right in (("k", [R_KEYS.tolist(), S_KEYS.tolist()]), ("k,w", None)):
        with mock.patch.object(of, "table", autospec=True, side_effect=of.table) as table:
            sj.join(r, s, on=on, engine=engine.lower(), check=True)
        given = [call.args[1] for call in table.call_args_list]
        if right:
            assert [list(columns["k0"]) for columns in given] == right
            assert given[0]["k0"].dtype == np.int64
        else:
            held = [value.as_py() if hasattr(value, "as_py") else value for value in given[0]["k1"]]
            assert [each for each in held if each] == [each for each in WORDS if each]


def test_duckdb_gets_the_users_columns_native_for_its_part_and_as_they_are_for_a_call():
    r, s = tables()
    seen = []

    def load(connection, job, *, native):
        loaded(connection, job, native=native)
        kind = connection.sql(
            "SELECT table_type FROM information_schema.tables WHERE table_name = 'r'"
        ).fetchall()[0]
        seen.append((native, kind, connection.sql("SELECT k0 FROM r").fetchall()))

    loaded = duckdb._load
    with mock.patch.object(duckdb, "_load", load):
        compared = sj.compare(r, s, "duckdb", on="k", rounds=1, threads=1)
    assert compared.ok
    column = [(key,) for key in R_KEYS.tolist()]
    assert seen == [(True, ("LOCAL TEMPORARY",), column)] + 2 * [(False, ("VIEW",), column)]


@pytest.mark.parametrize("window", ["all", "tumbling:5us", "count:2", "time:5us"])
def test_duckdbs_connection_is_open_before_its_whole_calls(window):
    r, s = ({"k": keys, "ts": np.arange(len(keys))} for keys in (R_KEYS, S_KEYS))
    connect = importlib.import_module("duckdb").connect
    with mock.patch("duckdb.connect", side_effect=connect) as opened:
        compared = sj.compare(r, s, "duckdb", on="k", window=window, rounds=2, threads=1)
    assert compared.ok
    assert opened.call_count == 1


def test_a_whole_call_takes_no_less_than_the_part_within_it():
    r, s = tables()
    engines = ["npj", "kang", "ibwj-flat", "duckdb", "polars", "pyarrow", "pandas", "oracle"]
    for engine in engines:
        metrics = sj.join(r, s, on="k", engine=engine).metrics
        assert metrics["total_s"] >= metrics["wall_s"] > 0, engine
        assert metrics["total_cpu_s"] >= 0, engine
    compared = sj.compare(r, s, engines, on="k", rounds=1, threads=1)
    assert compared.ok
    for record in compared.records["records"]:
        assert list(record).index("total_s") < list(record).index("wall_s")
        if record["platform"] == "cpu":  # of other systems the part is a run of its own
            assert record["total_s"]["median"] >= record["wall_s"]["median"]
        else:
            assert record["total_s"]["median"] > 0
    page, shown = render([compared.records]), repr(compared)
    assert page.index("Whole call<br>tuples/s") < page.index("Its part, tuples/s")
    assert "Fastest measured that agrees, whole call" in page
    assert shown.index("whole call") < shown.index("tuples/s")


def test_threads_are_those_that_worked(monkeypatch):
    keys = {"k": np.arange(9000), "ts": np.repeat([0, 10**6], [8000, 1000])}
    monkeypatch.setattr(window, "MIN_SHARED", 15_000)
    for asked, worked in (("all", 2), ("tumbling:1s", 2), ("tumbling:10ms", 2)):
        result = sj.join(keys, keys, on="k", window=asked, engine="npj", threads=2, check=True)
        assert result.metrics["threads"] == worked
    monkeypatch.setattr(window, "MIN_SHARED", 20_000)
    for engine in ("npj", "prj", "mpass", "shj-jm", "pmj-jb"):
        metrics = sj.join(keys, keys, on="k", engine=engine, threads=2, check=True).metrics
        assert metrics["threads"] == 1, engine
        assert sum(metrics["phases_ms"].values()) < 1.5e3 * metrics["wall_s"]


def test_a_round_takes_the_inputs_anew_and_a_replay_has_no_whole_call(tmp_path):
    import pyarrow.parquet as pq

    r, s = tables()
    for name, table in (("r", r), ("s", s)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    from streamjoin import sequence

    with mock.patch.object(sequence, "as_streams", side_effect=sequence.as_streams) as take:
        compared = sj.compare(
            str(tmp_path / "r.parquet"), str(tmp_path / "s.parquet"), "npj", on="k", rounds=2
        )
    assert compared.ok
    assert take.call_count == 1 + 3  # once for the oracle, then each round, one not counted
    for call in take.call_args_list[1:]:
        assert call.args[0].column("k").to_pylist() == R_KEYS.tolist()
    timed = {"k": R_KEYS, "ts": np.arange(5)}
    replayed = sj.compare(timed, timed, "npj", on="k", rounds=1, threads=1, arrival="replay")
    assert replayed.ok
    assert replayed.records["records"][0]["total_s"] is None
    assert "Whole call<br>" not in render([replayed.records])


def test_sweeps_draw_whole_calls_before_the_part():
    records = []
    for threads in (1, 2, 3):
        name = f"w{threads}"
        more = {"family": "f", "settings": {"threads": threads}}
        total = {"total_s": samples.spread(0.2 / threads), "total_cpu_s": samples.spread(0.2)}
        own = samples.workload(name, **more)
        records.append((own, samples.record("npj", workload=name, **more, **total)))
    run = samples.run([record for _, record in records], [workload for workload, _ in records])
    titles = [chart.title for chart in sweep_charts("k", group(run))]
    assert "Whole call" in titles[0]
    assert any("Throughput" in title for title in titles[1:])
