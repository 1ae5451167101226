"""Sides of unequal size: rows without a partner are dropped before the join, and no result."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.host import cases
from tests.host.test_kinds import check

import streamjoin as sj
from streamjoin import oracle, run
from streamjoin.engines import catalog
from streamjoin.engines.intra import reduction
from streamjoin.engines.intra.window import IntraWindowEngine
from streamjoin.engines.job import Job
from streamjoin.tuples import Stream
from streamjoin_common.language.kinds import KINDS
from streamjoin_common.language.predicates import Equi, Predicate
from streamjoin_common.language.windows import AllWindow

INTRA = [name for name in catalog.names() if isinstance(catalog.get(name), IntraWindowEngine)]
TYPES = (np.int32, np.uint32, np.int64, np.uint64)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "LONG", 64)
    monkeypatch.setattr(reduction, "SAMPLE", 64)


def stream(keys: Any, missing: Any = None, **columns: Any) -> Stream:
    at_rest = np.zeros(len(keys), dtype=np.int64)
    return Stream({"k": keys, "k2": keys, **columns}, at_rest, "r", missing=missing)


def left(r: Stream, s: Stream, predicate: Predicate = cases.EQUI) -> tuple[Any, Any]:
    """Return which rows of R and of S take part; None for all."""
    _, *rows = reduction.reduced(Job(r, s, predicate, AllWindow()))
    return rows[0], rows[1]


def sides(rng: np.random.Generator, kinds: tuple[Any, Any], shared: int) -> tuple[Any, Any]:
    """Keys at both ends of their ranges: many, and few of another type, some of them alike."""
    many, few = (
        rng.integers(*(np.iinfo(kind).min, np.iinfo(kind).max), size, dtype=kind, endpoint=True)
        for kind, size in zip(kinds, (900, 60), strict=True)
    )
    with np.errstate(over="ignore"):
        many[rng.permutation(900)[:shared]] = few[:shared].astype(kinds[0])
    ends = np.iinfo(kinds[0])
    many[rng.permutation(900)[:4]] = [ends.min, ends.max, 0, ends.max // 2 + 1]
    few[-3:] = [np.iinfo(kinds[1]).min, np.iinfo(kinds[1]).max, 0]
    return many, few


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    kinds=st.tuples(st.sampled_from(TYPES), st.sampled_from(TYPES)),
    shared=st.integers(0, 60),
    how=st.sampled_from(KINDS),
    name=st.sampled_from(INTRA),
    lacking=st.booleans(),
    swapped=st.booleans(),
)
def test_every_kind_and_engine_and_type(
    seed: int, kinds: Any, shared: int, how: str, name: str, lacking: bool, swapped: bool
) -> None:
    rng = np.random.default_rng(seed)
    many, few = (
        stream(keys, rng.random(len(keys)) < 0.1 if lacking else None)
        for keys in sides(rng, kinds, shared)
    )
    r, s = (few, many) if swapped else (many, few)
    check(name, r, s, AllWindow(), how, oracle.join(r, s, cases.EQUI, AllWindow()))


def test_rows_without_a_partner_take_no_part() -> None:
    rng = np.random.default_rng(5)
    many, few = sides(rng, (np.int64, np.int64), 40)
    expected = np.flatnonzero(np.isin(many, few))
    r_rows, s_rows = left(stream(many), stream(few))
    assert s_rows is None
    assert np.isin(expected, r_rows).all()
    assert len(r_rows) < 200  # a sixteenth by chance
    r_rows, s_rows = left(stream(few), stream(many))
    assert r_rows is None
    assert np.isin(expected, s_rows).all()


@pytest.mark.parametrize("as_arrow", [False, True])
@pytest.mark.parametrize("how", KINDS)
def test_strings_and_floating_point_numbers(how: str, as_arrow: bool) -> None:
    rng = np.random.default_rng(7)
    few = rng.choice([-0.0, 0.0, 1.5, np.inf, -np.inf, np.nan, 1e308, 5e-324, 0.1], 40)
    many = np.concatenate([few, rng.normal(size=900)])
    sides = (many, few) if how in {"inner", "right", "anti"} else (few, many)
    for kinds in ((np.float64, np.float64), (np.float32, np.float32), (np.float32, np.float64)):
        with np.errstate(over="ignore"):
            r, s = (side.astype(kind) for side, kind in zip(sides, kinds, strict=True))
        assert_joined(how, as_arrow, r, s, r[:, None] == s)
    texts = [np.array([f"{value:.3g}\u00e4" for value in side.tolist()]) for side in sides]
    assert_joined(how, as_arrow, *texts, texts[0][:, None] == texts[1])


def assert_joined(how: str, as_arrow: bool, r: Any, s: Any, equal: Any) -> None:
    given = [pa.table({"k": side}) if as_arrow else {"k": side} for side in (r, s)]
    pairs = sj.join(*given, on="k", how=how, engine="npj").pairs
    found = list(zip(pairs["r_row"].to_pylist(), pairs["s_row"].to_pylist(), strict=True))
    inner = [(int(a), int(b)) for a, b in zip(*np.nonzero(equal), strict=True)]
    lacking_s = [(row, None) for row in np.flatnonzero(~equal.any(axis=1)).tolist()]
    lacking_r = [(None, row) for row in np.flatnonzero(~equal.any(axis=0)).tolist()]
    if how in {"semi", "anti"}:
        wanted = sorted({a for a, _ in inner}) if how == "semi" else [a for a, _ in lacking_s]
        assert sorted(a for a, _ in found) == wanted
        return
    wanted = inner + (lacking_s if how in {"left", "full"} else [])
    wanted += lacking_r if how in {"right", "full"} else []
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_the_first_equality_serves_that_can_be_hashed() -> None:
    many, few = np.arange(1000), np.arange(3)
    r, s = (stream(side, w=side.astype(str).astype(object)) for side in (many, few))
    r_rows, _ = left(r, s, Predicate((Equi("w", "w"), Equi("k", "k"))))
    assert len(r_rows) < 200
    assert left(r, s, Predicate((Equi("w", "w"),))) == (None, None), "Python's objects"


def test_nothing_is_dropped_where_it_is_not_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    many, few = np.arange(1000), np.arange(100)
    assert left(stream(many), stream(few))[0] is not None
    assert left(stream(many % 100), stream(few)) == (None, None), "most have a partner"
    assert left(stream(many), stream(np.arange(126))) == (None, None), "of one size"
    assert left(stream(many[:63]), stream(few[:2])) == (None, None), "short"
    monkeypatch.setattr(reduction, "FILTER_LIMIT", 1024)
    assert left(stream(many), stream(few)) == (None, None), "a filter that is too long"


def test_values_that_come_in_turns_do_not_mislead() -> None:
    turns, few = np.arange(16 * 1024) % 16, np.arange(1, 16)
    assert left(stream(turns), stream(few)) == (None, None), "15 of 16 have a partner"
    assert len(left(stream(turns), stream(few[:1]))[0]) == 1024


def test_a_sample_that_misled_costs_no_more_than_the_filter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reduction, "SAMPLE", 1)
    monkeypatch.setattr(reduction, "PIECE", 128)
    drawn = int(np.random.default_rng(0).integers(0, 10_000))
    many = np.ones(10_000, dtype=np.int64)
    many[drawn] = 7
    assert left(stream(many), stream(np.ones(3, dtype=np.int64))) == (None, None)
    many = np.arange(10_000)
    found = left(stream(many), stream(many[5000:5100]))[0]
    assert set(range(5000, 5100)) <= set(found.tolist())
    assert len(found) < 2000, "a piece of which all pass is no reason"


def test_missing_values_are_no_partners_of_zero() -> None:
    lacking = np.arange(1000) % 2 == 0
    many = stream(np.where(lacking, 0, np.arange(1000)), lacking)
    rows = left(many, stream(np.arange(10)))[0]
    assert {1, 3, 5, 7, 9} <= set(rows.tolist())
    assert not lacking[rows].any()
    few = stream(np.array([0, 3]), np.array([True, False]))
    zeros = stream(np.zeros(1000, dtype=np.int64))
    assert left(zeros, few)[0].tolist() == []


def test_streams_that_arrive_keep_all_rows() -> None:
    job = Job(
        stream(np.arange(1000)), stream(np.arange(3)), cases.EQUI, AllWindow(), arrival="replay"
    )
    assert reduction.reduced(job) == (job, None, None)


@pytest.mark.parametrize("empty", [0, 1])
def test_an_empty_side(empty: int) -> None:
    keys = [np.arange(1000), np.arange(1000)]
    keys[empty] = keys[empty][:0]
    result = sj.join({"k": keys[0]}, {"k": keys[1]}, on="k", how="full", engine="npj")
    assert len(result.pairs) == 1000


def test_a_run_compiles_nothing_after_its_preparation() -> None:
    from streamjoin.engines.kernels import filtering

    r, s = stream(np.arange(1000, dtype=np.int16)), stream(np.arange(3, dtype=np.uint8))
    engine = catalog.get("prj")
    job = run.complete(engine, Job(r, s, cases.EQUI, AllWindow()), {})
    prepared = run.prepare(engine, job)
    kernels = (filtering.fill, filtering.passing)
    before = [list(kernel.signatures) for kernel in kernels]
    assert sorted(run.run(engine, job, prepared=prepared).pairs.r_rows.tolist()) == [0, 1, 2]
    assert [list(kernel.signatures) for kernel in kernels] == before
