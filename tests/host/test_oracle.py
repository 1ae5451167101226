"""The oracle against the definition in plain Python, and against DuckDB."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from tests.host import cases

from streamjoin import oracle, run, verify
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.tuples import Pairs, Stream
from streamjoin_common.language.predicates import Band, Predicate
from streamjoin_common.language.windows import (
    CountWindow,
    TimeWindow,
    TumblingWindow,
    Window,
    parse_window,
)

KINDS = frozenset({"all", "tumbling", "count", "time"})


def plain_join(r: Stream, s: Stream, predicate: Predicate, window: Window) -> Pairs:
    """The definitions of ``docs/semantics.md``, a pair at a time, without NumPy's comparisons."""
    found = []
    for i in range(r.rows):
        for j in range(s.rows):
            if plain_window(r, s, i, j, window) and plain_predicate(r, s, i, j, predicate):
                found.append((i, j))
    return Pairs.of(found)


def plain_window(r: Stream, s: Stream, i: int, j: int, window: Window) -> bool:
    r_ts, s_ts = int(r.ts[i]), int(s.ts[j])
    r_is_later = r_ts > s_ts  # at equal times R comes first
    if isinstance(window, TumblingWindow):
        return math.floor(r_ts / window.length_us) == math.floor(s_ts / window.length_us)
    if isinstance(window, TimeWindow):
        return r_ts < s_ts + window.s_us if r_is_later else s_ts < r_ts + window.r_us
    if isinstance(window, CountWindow):
        if r_is_later:
            before = sum(1 for ts in s.ts.tolist() if ts < r_ts)
            return j >= before - window.s_tuples
        before = sum(1 for ts in r.ts.tolist() if ts <= s_ts)
        return i >= before - window.r_tuples
    return True


def plain_predicate(r: Stream, s: Stream, i: int, j: int, predicate: Predicate) -> bool:
    for term in predicate.terms:
        if any(side.missing is not None and side.missing[at] for side, at in ((r, i), (s, j))):
            return False
        left, right = r.column(term.r_column)[i], s.column(term.s_column)[j]
        if isinstance(term, Band):
            if left.dtype.kind == "i":
                ok = int(right) - term.lo <= int(left) <= int(right) + term.hi
            else:
                with np.errstate(over="ignore", invalid="ignore"):
                    low, high = right - np.float32(term.lo), right + np.float32(term.hi)
                assert low.dtype == np.float32
                ok = bool(low <= left <= high)
        else:
            ok = int(left) == int(right)
        if not ok:
            return False
    return True


@pytest.mark.parametrize("case", cases.hard_cases(), ids=lambda case: case.name)
@pytest.mark.parametrize("predicate", cases.PREDICATES)
def test_the_oracle_is_the_definition_on_hard_cases(case: cases.Case, predicate: str) -> None:
    chosen = cases.PREDICATES[predicate]
    for window in map(parse_window, cases.WINDOWS):
        right = plain_join(case.r, case.s, chosen, window)
        verify.check(oracle.join(case.r, case.s, chosen, window), right, f"oracle, {window.text}")


@settings(max_examples=150, deadline=None)
@given(streams=cases.random_streams(25), window=cases.random_windows(KINDS))
def test_the_oracle_is_the_definition_on_random_cases(
    streams: tuple[Stream, Stream], window: Window
) -> None:
    for predicate in cases.PREDICATES.values():
        right = plain_join(*streams, predicate, window)
        verify.check(oracle.join(*streams, predicate, window), right, "oracle")


@pytest.mark.parametrize("window", ["all", "tumbling:100us", "count:70,40", "time:90us,30us"])
@pytest.mark.parametrize("predicate", cases.PREDICATES)
def test_duckdb_agrees_with_the_oracle_on_larger_inputs(window: str, predicate: str) -> None:
    rng = np.random.default_rng(11)
    r, s = (
        cases.stream(
            name,
            np.sort(rng.integers(0, 1000, 700)).tolist(),
            rng.integers(-40, 40, 700).tolist(),
            rng.uniform(-40, 40, 700).tolist(),
        )
        for name in ("r", "s")
    )
    chosen, parsed = cases.PREDICATES[predicate], parse_window(window)
    engine = catalog.get("duckdb")
    pairs = run.run(engine, run.complete(engine, Job(r, s, chosen, parsed), {})).pairs
    right = oracle.join(r, s, chosen, parsed)
    assert len(right) > 50
    verify.check(pairs, right, "duckdb")


def test_an_interrupted_duckdb_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def sql(self, query: str) -> None:
            raise RuntimeError("Query interrupted")

        def close(self) -> None:
            pass

    engine = catalog.get("duckdb")
    for name in ("prepare", "hand_over"):
        monkeypatch.setattr(engine, name, lambda *_: Interrupted())
    one = (cases.stream(name, [0], [1]) for name in ("r", "s"))
    with pytest.raises(KeyboardInterrupt):
        run.run(engine, run.complete(engine, Job(*one, cases.EQUI, parse_window("all")), {}))


def test_the_time_window_is_strict() -> None:
    r, s = cases.stream("r", [0], [1]), cases.stream("s", [9, 10], [1, 1])
    found = oracle.join(r, s, cases.EQUI, parse_window("time:10us"))
    assert list(zip(found.r_rows, found.s_rows, strict=True)) == [(0, 0)]


def test_a_count_window_forgets_the_oldest_tuple_first() -> None:
    r, s = cases.stream("r", [0, 1, 2], [1, 1, 1]), cases.stream("s", [3], [1])
    found = oracle.join(r, s, cases.EQUI, parse_window("count:2"))
    assert found.r_rows.tolist() == [1, 2]


def test_at_equal_times_r_comes_before_s() -> None:
    r, s = cases.stream("r", [5, 5], [1, 1]), cases.stream("s", [5], [1])
    # Both R tuples are there when S arrives; only the last one is in a window of one.
    assert oracle.join(r, s, cases.EQUI, parse_window("count:1")).r_rows.tolist() == [1]


def test_64_bit_bands_never_wrap() -> None:
    top = np.iinfo(np.int64).max
    r = Stream({"x": np.array([top, -top], dtype=np.int64)}, np.zeros(2, np.int64), "r")
    s = Stream({"a": np.array([top - 1, -top], dtype=np.int64)}, np.zeros(2, np.int64), "s")
    found = oracle.join(r, s, Predicate.parse(band="x=a:5:5"), parse_window("all"))
    assert list(zip(found.r_rows, found.s_rows, strict=True)) == [(0, 0), (1, 1)]
