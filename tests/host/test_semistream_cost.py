"""The cost model: constants from measured steps, memory for a rate and rate for a memory."""

import json
from pathlib import Path

import numpy as np
import pytest

import streamjoin as sj
from streamjoin.advise.semistream import Model, Values, values_of
from streamjoin.bench.calibrate_stores import fit
from streamjoin.cli import main
from streamjoin.engines.job import Job
from streamjoin.engines.semi import cost
from streamjoin.engines.semi.cost import Costs, Loop
from streamjoin.engines.semi.layout import layout_bytes
from streamjoin.engines.semi.tables import Tables
from streamjoin.errors import InputError
from streamjoin.relations import KINDS
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow

COSTS = Costs(20_000, 0.5, 30_000, 10, 20, 30, 25, 40, 15)
SIZES = layout_bytes(120, 20, 120)


def zipf_values(count: int, skew: float) -> Values:
    shares = np.arange(1, count + 1) ** -skew
    rows = np.random.default_rng(0).poisson(1.0, count).astype(float)
    return Values(shares / shares.sum(), rows, count)


def model(caching: bool, skew: float = 1.0) -> Model:
    return Model(zipf_values(50_000, skew), SIZES, COSTS, 1000, caching)


def test_constants_are_found_again_from_the_steps_they_explain() -> None:
    rng = np.random.default_rng(1)
    runs = []
    for _ in range(30):
        rows, cached, queued, pairs, matched = rng.integers(100, 5000, 5).tolist()
        work = {"rows": rows, "row_bytes": int(rng.choice([24, 120])), "cached": cached}
        work |= {"queued": queued, "pairs": pairs, "cached_pairs": matched}
        steps = {
            "cache": 1 + (20 * cached + 30 * queued + 15 * matched) / 1e3,
            "disk": 2 + (10 * rows + 40 * pairs) / 1e3,
            "expire": 3 + 25 * queued / 1e3,
            "migrate": 24.0,
        }
        read_us = 20 + 0.5 * rows * work["row_bytes"] / 1e3
        runs.append({**work, "loop_us": steps, "read_us": read_us})
    fitted, right = fit(runs).to_dict(), COSTS.to_dict()
    assert fitted == pytest.approx(right, rel=1e-3)


def test_a_loop_takes_the_longer_of_reading_and_joining() -> None:
    little = Loop(1000, 120, 0, 0, 0, 0)
    assert COSTS.loop_ns(little) == COSTS.read_ns(little) == 80_000
    much = Loop(1000, 120, 5000, 2000, 300, 400)
    join_ns = 30_000 + 10_000 + 100_000 + 110_000 + 12_000 + 6_000
    assert COSTS.loop_ns(much) == COSTS.join_ns(much) == join_ns


@pytest.mark.parametrize("caching", [False, True])
def test_memory_for_a_rate_and_rate_for_a_memory_are_each_others_answer(caching: bool) -> None:
    for memory in (1e6, 2e6, 4e6):
        given = model(caching).rate_for(memory)
        assert given is not None
        forecast = model(caching).memory_for(given.rate)
        assert forecast is not None
        assert forecast.memory_bytes == pytest.approx(memory, rel=1e-3)
    assert model(caching).memory_for(1e12) is None


def test_a_budget_is_neither_too_little_for_a_chunk_nor_kept_busy_for_nothing() -> None:
    assert model(True).rate_for(10) is None
    much, more = (model(True).rate_for(memory) for memory in (1e9, 1e12))
    assert much is not None
    assert more is not None
    assert more.rate == pytest.approx(much.rate, rel=0.01)
    assert more.loop_us < 1e8


def test_ssbj_is_never_worse_and_gains_with_skew() -> None:
    gains = []
    for skew in (0.0, 0.5, 1.0):
        rates = [model(caching, skew).rate_for(1e6).rate for caching in (False, True)]
        gains.append(rates[1] / rates[0])
    assert gains[0] >= 1
    assert gains == sorted(gains)
    assert gains[2] > 1.5


def test_the_best_disk_buffer_is_neither_the_smallest_nor_all_of_the_memory() -> None:
    rows = cost.best_partition_rows(COSTS, 1e6, 120)
    assert 64 < rows < 1e6 / 120 / 4
    assert cost.best_partition_rows(COSTS, 1e8, 120) > rows


@pytest.mark.parametrize(("row_bytes", "stream_bytes"), [(16, 12), (24, 20), (120, 20), (121, 33)])
def test_the_models_sizes_are_those_of_the_tables(row_bytes: int, stream_bytes: int) -> None:
    from streamjoin.engines.semi.layout import stream_words

    sizes = layout_bytes(row_bytes, stream_bytes, row_bytes)
    words = sizes.row // 8 - 2
    tables = Tables(stream_words(stream_bytes), words, 1 << 16, caching=True)
    assert (tables.node_bytes, tables.record_bytes) == (sizes.node, sizes.record)


@pytest.mark.parametrize("kind", KINDS)
def test_constants_for_every_store_come_with_the_package(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STREAMJOIN_CACHE", str(tmp_path))
    costs, path = cost.load(kind)
    assert path == cost.SHIPPED
    assert all(value >= 0 for value in costs.to_dict().values())
    (tmp_path / "costs.json").write_text("{}")
    with pytest.raises(InputError, match=r"holds no costs of store \w+ .*--calibrate-stores"):
        cost.load(kind)


def test_the_packages_own_costs_are_those_of_the_record_of_their_calibration() -> None:
    shipped = json.loads(cost.SHIPPED.read_text())
    record = json.loads(Path("benchmarks/calibration/costs.json").read_text())
    assert shipped == {name: record[name] for name in shipped}
    assert set(shipped) == {"created", "environment", "costs"}


def test_a_run_tells_its_loops_cost_beside_the_models() -> None:
    keys = np.arange(2000)
    result = sj.join({"k": keys}, {"k": np.tile(keys, 5)}, on="k", engine="ssbj")
    metrics = result.metrics["semi_stream"]
    assert metrics["cost_model"]["loop_us"] > 0
    assert set(metrics["loop_us"]) == {"wait", "cache", "disk", "expire", "migrate"}
    assert metrics["work"]["rows"] > 0


def test_join_values_without_a_row_count_for_nothing_in_the_cache() -> None:
    r, s = (
        Stream({"k": np.array(keys, dtype=np.int32)}, np.zeros(len(keys), np.int64), name)
        for keys, name in (([1, 1, 2], "r"), ([1, 1, 1, 3], "s"))
    )
    values = values_of(Job(r, s, Predicate.parse(on="k"), AllWindow()))
    assert sorted(zip(values.shares.tolist(), values.rows.tolist(), strict=True)) == [
        (0.25, 0.0),
        (0.75, 2.0),
    ]


def test_advise_names_the_memory_and_refuses_what_is_no_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(2)
    for name, rows in (("r", 5000), ("s", 20_000)):
        keys = rng.integers(0, 5000, rows).astype(np.int32)
        pq.write_table(pa.table({"k": keys}), tmp_path / f"{name}.parquet")
    workload = {
        "format": 1,
        "name": "own",
        "kind": "own",
        "window": "all",
        "predicate": {"on": ["k"]},
        "r": {"path": "r.parquet", "rows": 5000},
        "s": {"path": "s.parquet", "rows": 20_000},
    }
    (tmp_path / "workload.json").write_text(json.dumps(workload))
    assert main(["advise", str(tmp_path), "--rate", "10000", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert [row["engine"] for row in output["forecasts"]] == ["meshjoin", "ssbj"]
    assert all(row["rate_tuples_per_s"] >= 10_000 for row in output["forecasts"])
    assert main(["advise", str(tmp_path), "--memory-kib", "300"]) == 0
    assert "ssbj" in capsys.readouterr().out
    assert main(["advise", str(tmp_path), "--memory-kib", "1"]) == 0
    assert "too little for a chunk" in capsys.readouterr().out
    (tmp_path / "workload.json").write_text(json.dumps({**workload, "window": "count:9"}))
    assert main(["advise", str(tmp_path), "--rate", "10000"]) == 2
    assert "count:9" in capsys.readouterr().err
    (tmp_path / "workload.json").write_text(json.dumps(workload))
    assert main(["advise", str(tmp_path), "--rate", "-1"]) == 2
    assert capsys.readouterr().err == "streamjoin: --rate must be a number above 0, not -1.0\n"
    assert main(["advise", str(tmp_path), "--rate", "1", "--memory-kib", "1"]) == 2
    capsys.readouterr()
    assert main(["advise", str(tmp_path), "--memory-kib", "100000"]) == 0
    assert "R fits in less: an engine that takes it from a file" in capsys.readouterr().err
    assert main(["advise", str(tmp_path), "--rate", "1e4", "--r-bytes", "8"]) == 2
    assert "knob r_bytes takes an integer from 16 to" in capsys.readouterr().err
    assert main(["advise", str(tmp_path), "--store", "sqlite"]) == 2
    output = capsys.readouterr().err
    assert output == ("streamjoin: --store is for a semi-stream join: add --rate or --memory-kib\n")


def test_advice_is_about_rows_as_wide_as_the_engines_take_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in ("r", "s"):
        pq.write_table(pa.table({"k": np.arange(9000)}), tmp_path / f"{name}.parquet")
    side = {"rows": 9000}
    workload = {"format": 1, "name": "own", "kind": "own", "window": "all"}
    workload |= {"predicate": {"on": ["k"]}}
    workload |= {name: {"path": f"{name}.parquet", **side} for name in ("r", "s")}
    (tmp_path / "workload.json").write_text(json.dumps(workload))
    outputs = []
    for more in ([], ["--r-bytes", "16", "--s-bytes", "12", "--store", "arrow"]):
        assert main(["advise", str(tmp_path), "--rate", "10000", "--json", *more]) == 0
        outputs.append(json.loads(capsys.readouterr().out))
    assert outputs[0] == outputs[1]
    assert main(["advise", str(tmp_path), "--rate", "10000", "--json", "--r-bytes", "160"]) == 0
    assert json.loads(capsys.readouterr().out)["forecasts"] != outputs[0]["forecasts"]
