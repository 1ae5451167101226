"""Metrics that cost time for each pair are computed when they are looked at, and only then."""

import json
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

import streamjoin as sj
from streamjoin.bench import compare
from streamjoin.lazy import Later, Metrics
from streamjoin.metrics import CURVE_SHARES, Meter

PLAIN = {"pairs": 3, "digest": "abc", "curve": [1, 2]}


def lazy() -> tuple[Metrics, list[str]]:
    """Metrics of which two are computed later, and the names computed so far."""
    computed: list[str] = []

    def later(name: str) -> Later:
        return Later(lambda: (computed.append(name), PLAIN[name])[1])

    return Metrics({"pairs": 3, "digest": later("digest"), "curve": later("curve")}), computed


def test_a_value_is_computed_when_it_is_looked_at_and_once() -> None:
    metrics, computed = lazy()
    assert (len(metrics), list(metrics), "digest" in metrics) == (3, list(PLAIN), True)
    assert metrics["pairs"] == 3
    assert computed == []
    assert [metrics["digest"], metrics.get("digest"), metrics.get("none", 5)] == ["abc", "abc", 5]
    assert computed == ["digest"]


READERS: dict[str, Callable[[Metrics], Any]] = {
    "dict": dict,
    "stars": lambda metrics: {**metrics},
    "items": lambda metrics: dict(metrics.items()),
    "values": lambda metrics: dict(zip(metrics, metrics.values(), strict=True)),
    "copy": lambda metrics: metrics.copy(),
    "or": lambda metrics: metrics | {},
    "ror": lambda metrics: {} | metrics,
    "update": lambda metrics: (plain := {}, plain.update(metrics))[0],
    "pop": lambda metrics: {name: metrics.pop(name) for name in list(metrics)},
    "json": lambda metrics: json.loads(json.dumps(metrics)),
    "json with indent": lambda metrics: json.loads(json.dumps(metrics, indent=1)),
    "pickle": lambda metrics: pickle.loads(pickle.dumps(metrics)),
    "repr": lambda metrics: eval(repr(metrics)),
}


@pytest.mark.parametrize("name", READERS)
def test_whoever_reads_all_has_the_values(name: str) -> None:
    read = READERS[name](lazy()[0])
    assert all(type(value) in {int, str, list} for value in dict.values(read))
    assert read == PLAIN
    assert lazy()[0] == PLAIN
    assert lazy()[0] != {**PLAIN, "pairs": 4}


def test_a_join_computes_no_digest_before_it_is_asked_for() -> None:
    keys = {"k": np.arange(50)}
    metrics = sj.join(keys, keys, on="k", engine="npj").metrics
    for name in ("digest", "latency_us", "progress"):
        assert isinstance(dict.__getitem__(metrics, name), Later)
    assert len(metrics["digest"]) == 16
    assert metrics["progress"][-1][0] == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_of_stamps_by_batch_are_those_of_stamps_by_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    by_batch, by_pair, stamps = Meter(), Meter(), []
    for meter in (by_batch, by_pair):
        meter.start()
    for _ in range(int(rng.integers(1, 40))):
        pairs = int(rng.choice([1, 2, 500, 3000]))
        rows, stamp = np.arange(pairs, dtype=np.uint32), float(rng.integers(0, 50))
        stamps += [stamp] * pairs
        by_batch.emit(rows, rows, stamp)
        by_pair.emit(rows, rows, np.full(pairs, stamp))
    for meter in (by_batch, by_pair):
        meter.stop()
    ordered = sorted(stamps)
    right = {
        name: ordered[max(0, int(np.ceil(len(ordered) * share)) - 1)]
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
    }
    assert by_batch.latency_us(None) == by_pair.latency_us(None) == right
    assert by_batch.progress_curve() == by_pair.progress_curve()
    assert len(by_batch.progress_curve()) == CURVE_SHARES + 1


def test_rows_of_many_batches_are_held_once() -> None:
    meter = Meter()
    meter.start()
    for start in (0, 5000, 10_000):
        rows = np.arange(start, start + 5000, dtype=np.uint32)
        meter.emit(rows, rows + 1, float(start))
    meter.stop()
    pairs = meter.pairs()
    assert len(meter._batches) == 3
    for batch in meter._batches:
        assert np.shares_memory(batch.r_rows, pairs.r_rows)
        assert np.shares_memory(batch.s_rows, pairs.s_rows)
    assert meter.pairs().r_rows.tolist() == pairs.r_rows.tolist() == list(range(15_000))


def test_a_comparison_keeps_no_pairs_of_its_rounds() -> None:
    keys = {"k": np.arange(50)}
    outcome = SimpleNamespace(metrics=sj.join(keys, keys, on="k", engine="npj").metrics)
    join = mock.Mock()
    join.engine.capabilities.platform, join.run.return_value = "cpu", outcome
    entrant = compare._Entrant(join, mock.Mock(**{"resolve.return_value": join}))
    compare._one_round(entrant, 1, "w", mock.Mock(), lambda _: nullcontext(lambda *_: None))
    (metrics,) = entrant.rounds
    assert type(metrics) is dict
    assert not any(isinstance(value, Later) for value in metrics.values())
