"""Estimates of a result's size: a lower bound for every input, and a maximum of one's own."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamjoin as sj
from streamjoin import estimate, memory, verify
from streamjoin.cli import main
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.errors import InputError, TooLargeError
from streamjoin.streams import as_streams
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window

INTRA = ("npj", "prj", "mway", "mpass", "shj-jm", "shj-jb", "pmj-jm", "pmj-jb")
SLIDING = ("kang", "splitjoin", "llhj", "handshake")
MIB = 1 << 20
Columns = dict[str, np.ndarray]


def memory_for(pairs: int) -> Any:
    """Free memory in which so many pairs fit."""
    free = int(pairs * estimate.PAIR_BYTES / memory.SHARE) + 100
    return mock.patch.object(memory, "available_bytes", return_value=free)


def same_keys(rows: int) -> Columns:
    return {"k": np.zeros(rows, dtype=np.int32)}


def job_of(r: Any, s: Any, window: str = "all", on: str = "k") -> Job:
    predicate = Predicate.parse(on=on)
    return Job(*as_streams(r, s, predicate), predicate, parse_window(window))


LINED_UP = {
    "itself": lambda a: (a, a),
    "a copy": lambda a: (a, {name: column.copy() for name, column in a.items()}),
    "backwards": lambda a: (a, {**a, "k": a["k"][::-1]}),
    "shifted": lambda a: (a, {**a, "k": np.roll(a["k"], 1)}),
}


@pytest.mark.parametrize("window", ["all", "tumbling:50ms", "count:50000", "time:50ms"])
@pytest.mark.parametrize("how", LINED_UP)
def test_tables_that_line_up_are_not_refused(how: str, window: str) -> None:
    rows = 100_000
    a = {"k": np.arange(rows, dtype=np.int32), "ts": np.arange(rows, dtype=np.int64)}
    with memory_for(rows + 1):
        fitting = estimate.check_fits(job_of(*LINED_UP[how](a), window))
    assert fitting is not None
    assert rows < fitting < rows + 10


def test_a_self_join_of_unique_keys_runs_in_the_memory_of_its_pairs() -> None:
    a = {"k": np.arange(200_000, dtype=np.int32), "ts": np.arange(200_000)}
    with memory_for(250_000):
        assert len(sj.join(a, a, on="k", engine="npj")) == 200_000


@pytest.mark.parametrize("engine", [*INTRA, *SLIDING])
def test_a_result_that_surely_does_not_fit_is_refused_before_it_runs(engine: str) -> None:
    sentence = (
        "the result has about 4e+08 pairs, at least 2.6e+08 with 99.9% confidence, and the free "
        "memory holds 1.7e+06: narrow the predicate or the window, join a part of the input at a "
        "time, or run it all the same with max_pairs=N"
    )
    with (
        mock.patch.object(memory, "available_bytes", return_value=100 * MIB),
        mock.patch.object(catalog.get(engine), "run", side_effect=AssertionError),
        pytest.raises(TooLargeError, match=f"^{re.escape(sentence)}$"),
    ):
        sj.join(same_keys(20_000), same_keys(20_000), on="k", engine=engine)


@pytest.mark.parametrize("window", ["all", "tumbling:1ms", "count:500", "time:500us"])
def test_an_estimate_is_about_right(window: str) -> None:
    ts = np.arange(6_000, dtype=np.int64)
    rng = np.random.default_rng(5)
    r, s = ({"k": rng.integers(0, 20, 6_000).astype(np.int32), "ts": ts} for _ in "rs")
    count = len(sj.join(r, s, on="k", window=window, engine="kang"))
    likely, minimum = estimate.estimated_pairs(job_of(r, s, window))
    assert 0.7 * count < likely < 1.4 * count
    assert 0.2 * count < minimum < count


def test_streams_of_few_rows_are_counted() -> None:
    r = {"k": np.zeros(500, np.int32), "ts": np.arange(500, dtype=np.int64)}
    s = {"k": np.zeros(250, np.int32), "ts": np.arange(250, dtype=np.int64) * 2}
    count = len(sj.join(r, s, on="k", window="time:40us,10us", engine="kang"))
    assert estimate.estimated_pairs(job_of(r, s, "time:40us,10us")) == (count, count)


def generated(rng: np.random.Generator) -> tuple[Columns, Columns, str]:
    """Two streams of any shape, heavy tails above all, and a window."""
    rows = [int(rows) for rows in rng.integers(10, 400, 2)]
    ts = [np.sort(rng.integers(0, 400, count)) for count in rows]
    shape = rng.choice(["uniform", "zipf", "one heavy row", "one heavy key", "lined up", "clumped"])
    if shape == "lined up":
        rows, ts = [rows[0]] * 2, [ts[0]] * 2
        keys = [np.arange(rows[0])] * 2
    elif shape == "one heavy row":  # of R a single one, of S half of them
        keys = [rng.permutation(rows[0]), np.where(rng.random(rows[1]) < 0.5, 0, -1)]
    elif shape == "one heavy key":
        keys = [np.where(rng.random(n) < 0.1, 0, rng.integers(1, 1000, n)) for n in rows]
    elif shape == "clumped":
        keys = [np.sort(rng.integers(0, 5, n)) for n in rows]
    else:
        top = {"uniform": rng.integers(1, 200, 1)[0], "zipf": 50}[shape]
        keys = [rng.integers(0, top, n) if shape == "uniform" else rng.zipf(1.2, n) for n in rows]
        keys = [np.minimum(each, 1 << 20) for each in keys]
    if rng.random() < 0.3:
        keys[1] = keys[1][::-1].copy()
    length = int(rng.integers(1, 300))
    window = rng.choice(["all", f"tumbling:{length}us", f"count:{length}", f"time:{length}us"])
    r, s = ({"k": k.astype(np.int64), "ts": each} for k, each in zip(keys, ts, strict=True))
    return r, s, str(window)


@pytest.mark.parametrize("error", [1e-3, 0.2])
def test_a_lower_bound_is_wrong_in_no_more_than_the_stated_share(
    error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Samples of a row, of few rows and of many: the bound is one whatever their size.
    monkeypatch.setattr(estimate, "ERROR", error)
    monkeypatch.setattr(estimate, "SAMPLES", 4)
    draws = wrong = above = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        r, s, window = generated(rng)
        monkeypatch.setattr(estimate, "SAMPLE_ROWS", int(rng.choice([1, 8, 64])))
        job = job_of(r, s, window)
        right = len(sj.join(r, s, on="k", window=window, engine="oracle"))
        for draw in range(10):
            _, minimum = estimate.estimated_pairs(job, seed=1000 * seed + draw)
            draws += 1
            wrong += minimum > right * (1 + 1e-12)
            above += minimum > right / 10
    assert wrong <= error * draws, f"{wrong} of {draws}"
    assert above > 0.02 * draws  # the bound is no empty one


def test_a_bound_that_can_just_be_wrong_is_so_in_no_more_than_the_stated_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Of two rows of R one has the match, and a sample of one row finds twice the pairs or none:
    # four samples find them in a sixteenth of the draws, and divide by just less than two.
    error = 1.04 / 16
    for name, value in (("ERROR", error), ("SAMPLES", 4), ("SAMPLE_ROWS", 1)):
        monkeypatch.setattr(estimate, name, value)
    job = job_of({"k": [1, 2]}, {"k": [1]})
    wrong = sum(estimate.estimated_pairs(job, seed).minimum > 1 for seed in range(1000))
    assert 0.04 < wrong / 1000 < 0.085  # 0.0625 give or take three standard deviations


def nearly_none(rows: int) -> dict[str, Columns]:
    """Inputs whose columns, or windows, or heavy keys each promise much, and together give none."""
    odd = (np.arange(rows) % 2).astype(np.int32)
    halves = np.repeat([0, 1], rows // 2).astype(np.int32)
    ts = np.repeat([0, 10**6], rows // 2).astype(np.int64)
    return {
        "other half": {"a": odd, "b": 1 - odd, "k": 1 - halves, "ts": ts},
        "half": {"a": odd, "b": odd, "k": halves, "ts": ts},
    }


@pytest.mark.parametrize("how", [{"on": "a,b"}, {"on": "k", "window": "tumbling:1s"}])
def test_a_join_with_a_small_result_is_never_refused(how: dict[str, str]) -> None:
    inputs = nearly_none(20_000)
    with mock.patch.object(memory, "available_bytes", return_value=10 * MIB):
        result = sj.join(inputs["half"], inputs["other half"], engine="npj", **how)
    assert len(result) == 0


def test_one_heavy_row_is_no_reason_to_refuse() -> None:
    rng = np.random.default_rng(3)
    r = {"k": rng.permutation(200_000).astype(np.int32)}
    s = {"k": np.where(rng.random(200_000) < 0.5, r["k"][7], -1).astype(np.int32)}
    job = job_of(r, s)
    assert all(estimate.estimated_pairs(job, seed).minimum <= 100_000 for seed in range(20))


def test_a_relation_in_a_store_is_estimated_from_rows_that_are_drawn(tmp_path: Path) -> None:
    # Every stretch that an even step would read is full of the heavy key, and nothing else is.
    rows = 1 << 15
    keys = np.arange(rows) + 10
    keys.reshape(16, -1)[:, :128] = 1
    pq.write_table(pa.table({"k": keys}), tmp_path / "r.parquet")
    job = job_of(f"parquet:{tmp_path / 'r.parquet'}", {"k": np.ones(20_000, np.int64)})
    right = 16 * 128 * 20_000
    bounds = [estimate.estimated_pairs(job, seed).minimum for seed in range(20)]
    assert max(bounds) <= right
    full = {"k": np.ones(rows, np.int64)}
    pq.write_table(pa.table(full), tmp_path / "r.parquet")
    assert estimate.estimated_pairs(job).minimum > 0.5 * rows * 20_000
    with memory_for(10**6), pytest.raises(TooLargeError, match=r"^the result has about 6\.6e\+08"):
        estimate.check_fits(job)


@pytest.mark.parametrize("engine", ["npj", "kang"])
def test_a_user_overrules_an_estimate(engine: str) -> None:
    r, s = same_keys(2000), same_keys(2000)
    with (
        memory_for(5_000_000),
        mock.patch.object(estimate, "estimated_pairs", return_value=(1e9, 1e9)),
    ):
        with (
            mock.patch.object(estimate, "pairs_that_fit", return_value=3_999_999),
            pytest.raises(TooLargeError, match=r"run it all the same with max_pairs=N"),
        ):
            sj.join(r, s, on="k", engine=engine)
        assert len(sj.join(r, s, on="k", engine=engine, max_pairs=4_000_000)) == 4_000_000


@pytest.mark.parametrize("engine", [*INTRA, *SLIDING])
def test_a_run_ends_beyond_the_maximum_that_was_asked_for(engine: str) -> None:
    sentence = r"^the result has more than 999 pairs, the maximum asked for: .* max_pairs=N"
    with pytest.raises(TooLargeError, match=sentence):
        sj.join(same_keys(100), same_keys(100), on="k", engine=engine, max_pairs=999)
    few = {"k": np.arange(1000, dtype=np.int32)}
    assert len(sj.join(few, few, on="k", engine=engine, max_pairs=1000)) == 1000


def test_memory_ends_a_run_whatever_maximum_was_asked_for() -> None:
    with memory_for(1_000_000), pytest.raises(TooLargeError, match=r"more than 1e\+06 pairs, all"):
        sj.join(same_keys(4000), same_keys(4000), on="k", engine="npj", max_pairs=10**12)


@pytest.mark.parametrize("maximum", [0, -1, 1.5, "9", True])
def test_a_maximum_is_a_whole_number(maximum: Any) -> None:
    with pytest.raises(InputError, match=r"^max_pairs must be an integer of at least 1, not "):
        sj.join(same_keys(1), same_keys(1), on="k", max_pairs=maximum)


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    for name in "rs":
        pq.write_table(pa.table(same_keys(100)), folder / f"{name}.parquet")
    sides = {name: {"path": f"{name}.parquet", "rows": 100} for name in "rs"}
    plain = {"format": 1, "name": "same", "kind": "equi", **sides}
    plain |= {"predicate": {"on": ["k"]}, "window": "all"}
    (folder / "workload.json").write_text(json.dumps(plain))
    return folder


def test_the_command_line_takes_a_maximum(
    workload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = ["--r", f"{workload}/r.parquet", "--s", f"{workload}/s.parquet", "--on", "k"]
    message = "the result has more than 9999 pairs, the maximum asked for: "
    assert main(["join", "--engine", "npj", *inputs, "--max-pairs", "9999"]) == 1
    assert message in capsys.readouterr().err
    assert main(["join", "--engine", "npj", *inputs, "--max-pairs", "10000"]) == 0
    compared = ["compare", str(workload), "--engines", "npj", "--rounds", "1", "--out"]
    assert main([*compared, str(tmp_path / "few"), "--max-pairs", "9999"]) == 1
    assert message in capsys.readouterr().err
    assert main([*compared, str(tmp_path / "all"), "--max-pairs", "10000"]) == 0
    records = json.loads((tmp_path / "all" / "records.json").read_text())
    assert "--max-pairs 10000" in records["command"]


def test_a_right_result_that_surely_does_not_fit_is_not_computed() -> None:
    job = job_of(same_keys(20_000), same_keys(20_000))
    with (
        memory_for(10**6),
        pytest.raises(
            TooLargeError, match="the inner join, which the check computes, has about 4e"
        ),
    ):
        verify.expected(job)


@pytest.mark.parametrize("window", ["all", "count:5000"])
def test_a_right_result_ends_beyond_the_pairs_that_fit(window: str) -> None:
    """No sample is sure here: the pairs are a little more than fit."""
    job = replace(job_of(same_keys(1000), same_keys(1000), window), how="semi")
    with (
        mock.patch.object(estimate, "check_fits"),
        memory_for(10**6),
        pytest.raises(TooLargeError, match="the inner join, which the check computes, has more"),
    ):
        verify.expected(job)
    with mock.patch.object(estimate, "check_fits"), memory_for(3 * 10**6):
        assert len(verify.expected(job).rows) == 1000
