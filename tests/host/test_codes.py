"""Codes of columns are equal exactly where the oracle joins their rows: every kind, every end."""

import pickle
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import streamjoin as sj
from streamjoin import oracle
from streamjoin.engines import codes as coding
from streamjoin.engines.codes import Terms, code_columns
from streamjoin.engines.encode import encode_intervals, encode_keys, encode_stream_keys
from streamjoin.inputs.strings import Strings
from streamjoin.streams import as_streams
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow

BITS = [8, 16, 32, 64]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in BITS]
CENTRES = [-(1 << 63), -(1 << 32), -(1 << 31), 0, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 1]
STRING_KINDS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
]
PIECES = st.sampled_from(
    ["", "a", "b", "\0", "é", "漢", "12345678", "12345679", "longer than 16 by"]
)
STRINGS = st.lists(PIECES, max_size=3).map("".join)

Columns = list[NDArray[Any]]


@st.composite
def integers(draw: st.DrawFn, kind: str) -> NDArray[Any]:
    """Values near the ends of types and of 32-bit ranges, with repetitions."""
    info = np.iinfo(kind)
    near = st.sampled_from(CENTRES).flatmap(lambda at: st.integers(at - 2, at + 2))
    fitting = st.one_of(near, st.integers(-3, 3)).map(lambda v: min(max(v, info.min), info.max))
    return np.array(draw(st.lists(fitting, max_size=8)), dtype=kind)


def stream(columns: dict[str, Any], missing: NDArray[np.bool_] | None, source: str) -> Stream:
    rows = len(next(iter(columns.values())))
    return Stream(columns, np.zeros(rows, np.int64), source, missing=missing)


def right(r: Stream, s: Stream, predicate: Predicate) -> set[tuple[int, int]]:
    pairs = oracle.join(r, s, predicate, AllWindow())
    return set(zip(pairs.r_rows.tolist(), pairs.s_rows.tolist(), strict=True))


def equal(r: NDArray[Any], s: NDArray[Any]) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in zip(*np.nonzero(r[:, None] == s), strict=True)}


def check(r: Stream, s: Stream, predicate: Predicate) -> None:
    """Compare all that encodes equalities with the oracle."""
    expected = right(r, s, predicate)
    r_keys, s_keys = encode_keys(r, s, predicate)
    assert equal(r_keys, s_keys) == expected
    assert equal(*encode_stream_keys(r, s, predicate)) == expected
    # R's codes differ where its values do: its own rows join as they do with a copy of it.
    own = Predicate.parse(on=[f"{name}={name}" for name in predicate.r_columns])
    present = np.flatnonzero(~r.missing) if r.missing is not None else np.arange(r.rows)
    there = stream({name: r.held(name)[present] for name in r.columns}, None, "r")
    assert equal(r_keys[present], r_keys[present]) == right(there, there, own)
    intervals = encode_intervals(r, s, predicate)
    inside = np.ones((r.rows, s.rows), np.bool_)
    for codes, lo, hi in zip(intervals.r, intervals.s_lo, intervals.s_hi, strict=True):
        inside &= (codes[:, None] >= lo) & (codes[:, None] <= hi)
    assert {(int(i), int(j)) for i, j in zip(*np.nonzero(inside), strict=True)} == expected


def masks(draw: st.DrawFn, rows: int) -> NDArray[np.bool_] | None:
    if not rows or not draw(st.booleans()):
        return None
    return np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), np.bool_)


@settings(deadline=None, max_examples=60)
@given(st.data(), st.sampled_from([*product(INTEGERS, INTEGERS)]), st.booleans())
def test_codes_of_integers_of_any_two_types_join_as_the_oracle_does(
    data: st.DataObject, kinds: tuple[str, str], is_long: bool
) -> None:
    r, s = (data.draw(integers(kind)) for kind in kinds)
    sides = [
        stream({"k": column}, masks(data.draw, len(column)), name)
        for column, name in ((r, "r"), (s, "s"))
    ]
    with pytest.MonkeyPatch.context() as patch:
        if is_long:  # such columns are read by a kernel
            patch.setattr(coding, "LONG", 1)
        check(sides[0], sides[1], Predicate.parse(on="k"))


@settings(deadline=None, max_examples=30)
@given(st.data(), st.lists(st.sampled_from([*INTEGERS, "strings"]), min_size=2, max_size=4))
def test_codes_of_several_columns_join_as_the_oracle_does(
    data: st.DataObject, kinds: list[str]
) -> None:
    sides = []
    for name in "rs":
        columns: dict[str, Any] = {}
        for index, kind in enumerate(kinds):
            if kind == "strings":
                strings = data.draw(st.lists(STRINGS, max_size=8))
                columns[f"c{index}"] = Strings.of_objects(objects(strings))
            else:
                columns[f"c{index}"] = data.draw(integers(kind))
        rows = min(len(column) for column in columns.values())
        cut = {key: column[:rows] for key, column in columns.items()}
        sides.append(stream(cut, masks(data.draw, rows), name))
    check(sides[0], sides[1], Predicate.parse(on=",".join(f"c{n}" for n in range(len(kinds)))))


def objects(strings: list[str]) -> NDArray[Any]:
    return np.array([*strings, None], dtype=object)[:-1]


def given_as(strings: list[str | None], kind: Any) -> Any:
    """Strings as a user gives them: Arrow's kinds in two chunks of slices, or NumPy's."""
    if kind in ("object", "U"):
        return {"k": np.array([*strings, None], dtype=object)[:-1]}
    if pa.types.is_dictionary(kind):
        whole = pa.array(["x", *strings], pa.string()).dictionary_encode()
    else:
        whole = pa.array(["x", *strings], kind)
    middle = 1 + len(strings) // 2
    parts = [whole.slice(1, middle - 1), whole.slice(middle)]
    return pa.table({"k": pa.chunked_array(parts, type=whole.type)})


@settings(deadline=None, max_examples=60)
@given(
    r=st.lists(st.none() | STRINGS, max_size=8),
    s=st.lists(st.none() | STRINGS, max_size=8),
    kinds=st.tuples(*[st.sampled_from([*STRING_KINDS, "object"])] * 2),
)
@example(r=[None], s=[None, ""], kinds=(pa.string(), pa.string()))
def test_codes_of_strings_join_as_the_oracle_does_however_they_are_given(
    r: list[str | None], s: list[str | None], kinds: tuple[Any, Any]
) -> None:
    predicate = Predicate.parse(on="k")
    streams = as_streams(given_as(r, kinds[0]), given_as(s, kinds[1]), predicate)
    check(*streams, predicate)
    expected = {(i, j) for i, x in enumerate(r) for j, y in enumerate(s) if x == y is not None}
    expected = {(i, j) for i, j in expected if r[i] is not None}
    assert right(*streams, predicate) == expected


@pytest.mark.parametrize("kind", STRING_KINDS, ids=str)
def test_strings_from_arrow_reach_the_codes_without_python_objects(
    kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    predicate = Predicate.parse(on="k")
    table = given_as([f"key {number}" for number in range(100)], kind)
    monkeypatch.setattr(Strings, "objects", lambda _: pytest.fail("objects were made"))
    r, s = as_streams(table, table, predicate)
    assert isinstance(r.held("k"), Strings)
    r_keys, s_keys = encode_keys(r, s, predicate)
    assert np.array_equal(r_keys, s_keys)


def test_many_strings_that_differ_in_one_byte_of_any_position_are_told_apart() -> None:
    strings = [f"{'x' * at}{byte}{'y' * (40 - at)}" for at in range(41) for byte in "abcdefgh"]
    strings += ["z" * length for length in range(1, 40)]
    column = Strings.of_objects(objects(strings))
    (r, s) = code_columns([Terms(column, column[::-1])])
    assert len(np.unique(r)) == len(strings)
    assert np.array_equal(r, s[::-1])


def test_many_wide_integers_are_numbered_exactly() -> None:
    rng = np.random.default_rng(7)
    distinct = rng.integers(-(1 << 63), 1 << 63, 30_000, dtype=np.int64)
    r, s = rng.choice(distinct[:20_000], 50_000), rng.choice(distinct[10_000:], 50_000)
    r_codes, s_codes = code_columns([Terms(r, s)])
    _, right_codes = np.unique(np.concatenate([r, s]), return_inverse=True)
    known = np.isin(s, r)
    of_code = dict(zip(r_codes.tolist(), right_codes[:50_000].tolist(), strict=True))
    assert len(of_code) == len(np.unique(r)) == len(set(of_code.values()))
    assert [of_code.get(code) for code in s_codes[known].tolist()] == right_codes[50_000:][
        known
    ].tolist()
    assert not np.isin(s_codes[~known], r_codes).any()


@settings(deadline=None, max_examples=25)
@given(st.data(), st.sampled_from([*product(["int64", "uint64", "int8"], ["int64", "uint64"])]))
def test_without_compiled_code_the_same_rows_join(
    data: st.DataObject, kinds: tuple[str, str]
) -> None:
    r, s = (data.draw(integers(kind)) for kind in kinds)
    strings = [
        Strings.of_objects(objects(data.draw(st.lists(STRINGS, min_size=len(x), max_size=len(x)))))
        for x in (r, s)
    ]
    sides = (
        stream({"k": r, "t": strings[0]}, None, "r"),
        stream({"k": s, "t": strings[1]}, None, "s"),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coding, "find_spec", lambda _: None)
        for on in ("k", "t", "k,t"):
            check(*sides, Predicate.parse(on=on))


@settings(deadline=None, max_examples=40)
@given(st.lists(STRINGS, max_size=6), st.data())
def test_a_column_of_strings_gives_rows_as_an_array_of_objects_does(
    strings: list[str], data: st.DataObject
) -> None:
    plain, column = objects(strings), Strings.of_objects(objects(strings))
    rows = len(strings)
    ends = st.none() | st.integers(-8, 8)
    step = data.draw(st.sampled_from([None, 1, 2, -1]))
    part = slice(data.draw(ends), data.draw(ends), step)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), np.bool_)
    numbers = data.draw(st.lists(st.integers(0, rows - 1), max_size=5)) if rows else []
    for selected in (part, mask, np.array(numbers, np.int64)):
        chosen = column[selected]
        assert len(chosen) == len(plain[selected])
        assert chosen.objects().tolist() == plain[selected].tolist()
        assert np.asarray(chosen).tolist() == plain[selected].tolist()
        assert pa.array(chosen).to_pylist() == plain[selected].tolist()
        assert pickle.loads(pickle.dumps(chosen)).objects().tolist() == plain[selected].tolist()
        joined = Strings.joined([chosen, plain, column])
        assert joined.objects().tolist() == [*plain[selected], *strings, *strings]


@pytest.mark.parametrize("engine", ["oracle", "duckdb", "npj", "kang", "ibwj-bptree"])
def test_engines_and_yardsticks_take_strings_that_stayed_bytes(engine: str) -> None:
    r = given_as(["one", None, "two", "", "dreißig", "one"], pa.string())
    s = given_as(["", "one", "drei", None, "dreißig"], pa.string_view())
    result = sj.join(r, s, on="k", engine=engine)
    pairs = sorted(zip(result.r_rows.tolist(), result.s_rows.tolist(), strict=True))
    assert pairs == [(0, 1), (3, 0), (4, 4), (5, 1)]


def test_a_live_join_takes_strings_as_bytes_and_as_objects_one_after_another() -> None:
    parts: list[list[str | None]] = [["a", "é"], [None, None], ["", "a"], ["é", "b"]]
    kinds = [pa.string(), pa.string(), "object", pa.string()]
    met = []
    with sj.StreamJoiner(on="k", window="count:100,100", engine="kang") as joiner:
        for number, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
            for push, values in ((joiner.push_r, part), (joiner.push_s, part[::-1])):
                push(with_times(given_as(values, kind), number))
        joiner.end()
        for matches in joiner.results():
            met += [*zip(matches.r_rows.tolist(), matches.s_rows.tolist(), strict=True)]
    r = [key for part in parts for key in part]
    s = [key for part in parts for key in part[::-1]]
    assert sorted(met) == [
        (i, j) for i, x in enumerate(r) for j, y in enumerate(s) if x == y and x is not None
    ]


def with_times(given: Any, ts: int) -> Any:
    """Add an arrival time to two rows."""
    if isinstance(given, dict):
        return {**given, "ts": np.full(2, ts)}
    return given.append_column("ts", pa.array([ts, ts]))
