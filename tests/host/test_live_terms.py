"""Live joins by any terms, whose engine keeps its windows: bands of all types, several terms.

A case is named by its seed, which is printed where it fails; ``SEED=`` and ``CASES=1`` repeat it.
"""

import os
from typing import Any, NamedTuple

import numpy as np
import pytest

import streamjoin as sj
from streamjoin.engines.sliding.flat import coding, engine, index, output, team, ways
from streamjoin.engines.sliding.flat import live as flat_live
from streamjoin.engines.sliding.flat.live import FlatSession
from streamjoin.errors import InputError

CASES = int(os.environ.get("CASES", "12"))
SEED = int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4), "little")
WINDOWS = ["all", "count:30,300", "count:2000", "time:60us,20us", "tumbling:50us"]
KINDS = ["inner", "inner", "inner", "left", "right", "full", "semi", "anti"]
REALS = np.array([0.0, -0.0, 5e-324, -5e-324, 1.0, 1e300, -1e300, np.inf, -np.inf, np.nan])
pytestmark = [
    pytest.mark.timeout(120 + 10 * CASES),
    # Large integers beside missing values, as floating-point numbers, are meant here.
    pytest.mark.filterwarnings("ignore:.*holds integers beside missing:streamjoin.InputWarning"),
    pytest.mark.filterwarnings("ignore:band .* is empty:streamjoin.InputWarning"),  # so are these
]


class Term(NamedTuple):
    """A term, and a column of each side for it."""

    on: str | None
    band: str | None
    sides: tuple[Any, Any]


def reals(rng: np.random.Generator, rows: int) -> Any:
    """Numbers that lie close, far apart, and at the ends of their type."""
    values = rng.integers(-40, 40, rows) * rng.choice([0.1, 1.0, 1e-3])
    values *= np.where(rng.random(rows) < 0.02, 1e8, 1.0)
    return np.where(rng.random(rows) < 0.05, rng.choice(REALS, rows), values)


def wholes(rng: np.random.Generator, rows: int, dtype: str) -> Any:
    """Integers that lie close, move up in mid-stream, and at the ends of their type."""
    ends = np.iinfo(dtype)
    low = [0, ends.max // 2, ends.max - 60][int(rng.choice(3))]
    values = [low + int(each) for each in rng.integers(0, 60, rows)]
    jump = int(rng.integers(0, rows + 1))
    if low < ends.max // 2:
        values[jump:] = [each + min(1 << 40, ends.max // 4) for each in values[jump:]]
    some = rng.random(rows) < 0.03
    edges = [ends.min, ends.min + 1, ends.max - 1, ends.max, 0]
    return np.array(
        [edges[each % 5] if odd else each for each, odd in zip(values, some, strict=True)], dtype
    )


def real_width(rng: np.random.Generator) -> str:
    """A width of floating-point numbers."""
    return str(rng.choice(["0", "0.1", "0.25", "3", "-0.1", "1e-320", "1e300", "inf", "-inf"]))


def whole_width(rng: np.random.Generator) -> str:
    """A width of integers: those that matter are small; some are as large as 64 bits, or more."""
    large = [(1 << 62), (1 << 63), (1 << 64) - 1, (1 << 64), 10**30]
    width = int(rng.choice(5)) if rng.random() < 0.8 else large[int(rng.choice(5))]
    return str(-width if rng.random() < 0.15 else width)


def term_of(name: str, rng: np.random.Generator, rows: tuple[int, int]) -> Term:
    """Choose a term of columns of that name."""
    kind = str(rng.choice(["whole band", "real band", "time band", "equal", "text", "real equal"]))
    if kind == "whole band":
        types = [str(each) for each in rng.choice(["int64", "uint64", "int8", "uint32"], 2)]
        sides = tuple(wholes(rng, n, t) for n, t in zip(rows, types, strict=True))
        return Term(None, f"{name}={name}:{whole_width(rng)}:{whole_width(rng)}", sides)
    if kind == "real band":
        types = [str(each) for each in rng.choice(["float64", "float32"], 2)]
        with np.errstate(over="ignore"):
            sides = tuple(reals(rng, n).astype(t) for n, t in zip(rows, types, strict=True))
        return Term(None, f"{name}={name}:{real_width(rng)}:{real_width(rng)}", sides)
    if kind == "time band":
        sides = tuple(rng.integers(0, 200, n).view("M8[ms]") for n in rows)
        return Term(None, f"{name}={name}:{rng.integers(-2, 9)}ms:{rng.integers(0, 5)}ms", sides)
    if kind == "text":
        sides = tuple(np.array([f"t{each}" for each in rng.integers(0, 9, n)]) for n in rows)
        return Term(name, None, sides)
    if kind == "real equal":
        sides = tuple(reals(rng, n).astype(t) for n, t in zip(rows, ["f8", "f8"], strict=True))
        return Term(name, None, sides)
    types = [str(each) for each in rng.choice(["int64", "uint64", "int16"], 2)]
    return Term(name, None, tuple(wholes(rng, n, t) for n, t in zip(rows, types, strict=True)))


def rows_of(result: Any) -> list[tuple[int, int]]:
    """Return the rows of a result."""
    return list(zip(result.r_rows.tolist(), result.s_rows.tolist(), strict=True))


def choose_any_way(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Have any index chosen, with any number of strips, and chosen anew often."""

    def cost(sampled: ways.Sampled, way: ways.Way) -> tuple[float, int]:
        return float(rng.random()), int(rng.choice([1, 2, 3, 30, 1 << ways.STRIP_BITS]))

    monkeypatch.setattr(ways.Sampled, "cost", cost)
    monkeypatch.setattr(coding, "BETTER", 1)
    monkeypatch.setattr(flat_live, "MIN_LIVE", 16)


def make_small(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Fill buffers and parts often, and have threads share small batches."""
    part, pairs = int(rng.choice([7, 16, 128])), int(rng.choice([64, 256]))
    for module, name, value in (
        (index, "MIN_ROOM", 16),
        (index, "SHARED_PAIRS", 64),
        (index, "PART", part),
        (team, "PART", part),
        (team, "MATCH_PAIRS", pairs),
        (output, "OUTPUT_PAIRS", 64),
        (output, "RESERVED_PAIRS", 64),
        (engine, "MIN_SHARED", 2),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("number", range(CASES))
def test_terms_of_any_types_give_the_oracles_rows_in_the_order_asked_for(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(SEED + number)
    rows = tuple(
        int(each) for each in rng.choice([0, 1, 40, 400, 1500], 2, p=[0.05, 0.1, 0.2, 0.35, 0.3])
    )
    terms = [term_of(name, rng, rows) for name in "abc"[: int(rng.choice([1, 1, 2, 3]))]]
    asked: dict[str, Any] = {
        "on": [term.on for term in terms if term.on] or None,
        "band": [term.band for term in terms if term.band] or None,
    }
    ts = [np.sort(rng.integers(0, 1500, n)) for n in rows]
    sides = [
        {**{n: term.sides[i] for n, term in zip("abc", terms, strict=False)}, "ts": ts[i]}
        for i in range(2)
    ]
    window, how = str(rng.choice(WINDOWS)), str(rng.choice(KINDS))
    order, threads = str(rng.choice(["none", "outer", "inner"])), int(rng.integers(1, 5))
    if rng.random() < 0.7:
        choose_any_way(monkeypatch, rng)
    if rng.random() < 0.4:
        make_small(monkeypatch, rng)
    what = f"SEED={SEED + number} CASES=1: {asked}, {window}, {how}, {order}, {threads}"
    right = sj.join(*sides, **asked, window=window, how=how, engine="oracle")
    found, done = [], [0, 0]
    with sj.StreamJoiner(**asked, window=window, how=how, order=order, threads=threads) as joiner:
        pushes = (joiner.push_r, joiner.push_s)
        one_sided = rng.random() < 0.2
        while done != list(rows):
            which = int(done[0] == rows[0]) if one_sided else int(rng.integers(0, 2))
            stop = done[which] + int(rng.choice([0, 1, 1, 7, 100, 1000]))
            pushes[which]({n: each[done[which] : stop] for n, each in sides[which].items()})
            done[which] = min(stop, rows[which])
            if rng.random() < 0.9:
                found += [pair for each in joiner.results() for pair in rows_of(each)]
        joiner.end()
        found += [pair for each in joiner.results() for pair in rows_of(each)]
        session, metrics = joiner._book.now.progress.session, joiner.metrics
    assert sorted(found) == sorted(rows_of(right)), what
    assert metrics["digest"] == right.metrics["digest"], what
    assert isinstance(session, FlatSession) or min(rows) < 40 or how != "inner", what
    if how == "inner":
        whole = sj.join(
            *sides, **asked, window=window, order=order, engine="ibwj-flat", threads=threads
        )
        assert whole.metrics["digest"] == right.metrics["digest"], what
        assert order != "inner" or found == rows_of(whole), what


@pytest.mark.parametrize("other", ["u8", "i8"])
def test_high_unsigned_values_join_one_by_one(other: str) -> None:
    keys = [5, 2**63 - 1, 2**63, 2**64 - 1]
    known = [key for key in keys if other == "u8" or key < 2**63]
    met, found = [known[at % len(known)] for at in range(4)], []
    with sj.StreamJoiner(on="k", window="all") as joiner:
        for at in range(4):
            joiner.push_r({"k": np.array([keys[at]], dtype="u8"), "ts": np.array([2 * at])})
            found += [pair for each in joiner.results() for pair in rows_of(each)]
            joiner.push_s({"k": np.array([met[at]], dtype=other), "ts": np.array([2 * at + 1])})
            found += [pair for each in joiner.results() for pair in rows_of(each)]
        joiner.end()
        found += [pair for each in joiner.results() for pair in rows_of(each)]
    assert sorted(found) == [(r, s) for r in range(4) for s in range(4) if keys[r] == met[s]]


def joined(asked: dict[str, Any], r: dict[str, Any], s: dict[str, Any], piece: int) -> Any:
    """Join two streams of as many tuples live, piece by piece; return the pairs and the session."""
    found = []
    with sj.StreamJoiner(**asked, window="all") as joiner:
        for at in range(0, len(r["ts"]), piece):
            joiner.push_r({name: each[at : at + piece] for name, each in r.items()})
            joiner.push_s({name: each[at : at + piece] for name, each in s.items()})
            found += [pair for each in joiner.results() for pair in rows_of(each)]
        joiner.end()
        found += [pair for each in joiner.results() for pair in rows_of(each)]
        return sorted(found), joiner._book.now.progress.session


@pytest.mark.parametrize(("dtype", "hi"), [("f4", 0.1), ("f8", 0.1), ("f4", 1e-3), ("f8", 1e-17)])
def test_bounds_of_floating_point_bands_are_those_that_are_rounded_once(
    dtype: str, hi: float
) -> None:
    rng, step = np.random.default_rng(5), np.dtype(dtype).type
    s = np.concatenate([rng.random(300), 2.0 ** rng.integers(-9, 9, 100)]).astype(dtype)
    edge = s + step(hi)  # as the definition computes the bound
    near = rng.integers(-1, 2, 400)
    away = np.where(near > 0, np.inf, -np.inf).astype(dtype)
    r = np.where(near == 0, edge, np.nextafter(edge, away)).astype(dtype)
    asked, turns = {"band": f"x=x:0:{hi!r}"}, np.arange(400)
    for later in (0, 1):  # the later one looks the other up
        sides = {"x": r, "ts": 2 * turns + 2 * later}, {"x": s, "ts": 2 * turns + 1}
        found, session = joined(asked, *sides, 37)
        assert isinstance(session, FlatSession)
        assert found == sorted(rows_of(sj.join(*sides, **asked, engine="oracle")))
        assert 100 < sum(r_row == s_row for r_row, s_row in found) < 400


@pytest.mark.parametrize("wide", ["a", "b", "c"])
def test_a_candidate_must_satisfy_every_term_whichever_is_indexed(wide: str) -> None:
    """Of three terms the index is by the two bands' narrower one; any of them may refuse."""
    rng, width = np.random.default_rng(31), {"a": 300, "b": 20, "c": 3}
    del width[wide]
    r, s = ({name: rng.integers(0, 1000, 600) for name in "abc"} for _ in range(2))
    kinds = {wide: rng.integers(0, 3, (2, 600))}
    r[wide], s[wide] = kinds[wide]
    bands = [f"{name}={name}:{each}:{each}" for name, each in width.items()]
    asked: dict[str, Any] = {"on": wide, "band": bands}
    times = {"ts": np.arange(600)}
    right = sj.join(r | times, s | times, **asked, window="count:400", engine="oracle")
    assert len(right) > 0
    found = []
    with sj.StreamJoiner(**asked, window="count:400") as joiner:
        for at in range(0, 600, 50):
            for push, columns in ((joiner.push_r, r), (joiner.push_s, s)):
                push({name: each[at : at + 50] for name, each in (columns | times).items()})
            found += [pair for each in joiner.results() for pair in rows_of(each)]
        joiner.end()
        found += [pair for each in joiner.results() for pair in rows_of(each)]
    assert sorted(found) == sorted(rows_of(right))


@pytest.mark.parametrize(("values", "hashed"), [(2, False), (5000, True)])
def test_the_index_is_by_the_term_that_the_fewest_pairs_satisfy(values: int, hashed: bool) -> None:
    rng, rows = np.random.default_rng(6), 6000
    ts = np.arange(rows)
    r, s = (
        {"k": rng.integers(0, values, rows), "x": rng.random(rows) * 100.0, "ts": ts}
        for _ in range(2)
    )
    asked = {"on": "k", "band": "x=x:0.1:0.1"}
    found, session = joined(asked, r, s, 500)
    assert session._coding.hashed == hashed
    assert found == sorted(rows_of(sj.join(r, s, **asked, engine="duckdb")))


def mixed(words: Any) -> Any:
    """The low 32 bits of the hash of words of one equality."""
    word = words.astype(np.uint64)
    for shift, factor in ((0, 1), (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        if not shift:
            word = word + np.uint64(0x9E3779B97F4A7C15)
            continue
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return word & np.uint64(0xFFFFFFFF)


def test_integers_far_apart_whose_hashes_are_equal_do_not_match() -> None:
    words = np.arange(1 << 19) * ((1 << 40) + 7)
    order = np.argsort(mixed(words), kind="stable")
    same = np.flatnonzero(np.diff(mixed(words)[order]) == 0)
    one, other = words[order[same]], words[order[same + 1]]
    assert len(one) > 10
    ts = np.arange(len(one))
    found, _ = joined({"on": "k"}, {"k": one, "ts": ts}, {"k": other, "ts": ts}, 5)
    assert found == []
    found, _ = joined({"on": "k"}, {"k": one, "ts": ts}, {"k": one, "ts": ts}, 5)
    assert found == [(row, row) for row in ts.tolist()]


TWO_TERMS: dict[str, tuple[dict[str, Any], ways.Way]] = {
    "equality and band": ({"on": "k", "band": "x=x:0.5:0.5"}, ways.Way(ways.HASHED, 1)),
    "two bands": ({"band": ["y=y:40:40", "x=x:0.5:0.5"]}, ways.Way(0, 1)),
    "two equalities": ({"on": ["k", "y"]}, ways.Way(ways.HASHED)),
}


@pytest.mark.parametrize("terms", TWO_TERMS)
@pytest.mark.parametrize("zeros", [False, True])
def test_an_index_by_two_terms_leaves_few_candidates(
    terms: str, zeros: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each term alone leaves 50 or more; a zero has the words of all small numbers beside it."""
    rng, rows, (asked, way) = np.random.default_rng(8), 20_000, TWO_TERMS[terms]
    seen, judge = [], index.FlatIndex._judge

    def judged(flat: index.FlatIndex) -> None:
        seen.append((flat._seen, flat._scanned, flat._candidates))
        judge(flat)

    monkeypatch.setattr(index.FlatIndex, "_judge", judged)
    sides = []
    for side in range(2):
        x = rng.random(rows) * 100.0
        x[:: 50 if zeros else rows] = 0.0
        columns = {"k": rng.integers(0, 64, rows), "y": rng.integers(0, 5000, rows), "x": x}
        sides.append(columns | {"ts": 2 * np.arange(rows) + side})
    found, session = joined(asked, *sides, 500)
    assert session._coding._way.terms == way.terms
    arrivals, scanned, candidates = np.sum(seen[len(seen) // 2 :], axis=0)
    assert candidates < 6 * len(found) / len(sides[0]["ts"]) * arrivals
    assert scanned < 4 * arrivals + candidates // 2
    assert found == sorted(rows_of(sj.join(*sides, **asked, engine="duckdb")))


def test_strips_are_cut_anew_where_values_move(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, rows, cuts = np.random.default_rng(9), 12_000, []
    cut = ways.Strips.cut
    monkeypatch.setattr(
        ways.Strips, "cut", lambda maps, *given: cuts.append(0) or cut(maps, *given)
    )
    sides = []
    for side in range(2):
        at = np.arange(rows) * 2 + side
        x = at + rng.integers(0, 50, rows)
        y = rng.integers(0, 1000, rows)
        sides.append({"x": x, "y": y, "ts": at})
    asked = {"band": ["x=x:100:100", "y=y:10:10"], "window": "count:2000"}
    right = sj.join(*sides, **asked, engine="oracle")
    found = []
    with sj.StreamJoiner(**asked) as joiner:
        for at in range(0, rows, 300):
            for push, columns in zip((joiner.push_r, joiner.push_s), sides, strict=True):
                push({name: each[at : at + 300] for name, each in columns.items()})
            found += [pair for each in joiner.results() for pair in rows_of(each)]
        joiner.end()
        found += [pair for each in joiner.results() for pair in rows_of(each)]
        assert joiner._book.now.progress.session._coding._way.order is not None
    assert sorted(found) == sorted(rows_of(right))
    assert len(cuts) > 12


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("order", ["none", "outer", "inner"])
def test_a_whole_join_by_two_bands_is_that_of_the_oracle(threads: int, order: str) -> None:
    rng, rows = np.random.default_rng(10), 6000
    sides = [
        {"x": rng.integers(0, 500, rows), "y": rng.random(rows), "ts": 2 * np.arange(rows) + side}
        for side in range(2)
    ]
    asked: dict[str, Any] = {"band": ["x=x:3:3", "y=y:0.02:0.01"], "window": "count:3000"}
    right = rows_of(sj.join(*sides, **asked, engine="oracle"))
    right.sort(key=lambda pair: (max(2 * pair[0], 2 * pair[1] + 1), min(pair)))
    for batch in (64, 1 << 16):
        found = sj.join(
            *sides,
            **asked,
            order=order,
            threads=threads,
            engine="ibwj-flat",
            knobs={"batch": batch},
        )
        pairs = rows_of(found)
        assert (pairs if order == "inner" else sorted(pairs)) == (
            right if order == "inner" else sorted(right)
        )


def test_a_push_of_another_type_is_refused_and_the_windows_stay() -> None:
    with sj.StreamJoiner(band=["x=x:0.5:0.5", "y=y:1:1"]) as joiner:
        joiner.push_r({"x": np.array([0.25]), "y": np.array([3])})
        with pytest.raises(InputError, match="x"):
            joiner.push_s({"x": np.array(["a"]), "y": np.array([3])})
        joiner.push_s({"x": np.array([0.5, 0.8]), "y": np.array([4, 3])})
        assert [pair for each in joiner.results() for pair in rows_of(each)] == [(0, 0)]
