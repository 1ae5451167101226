"""Streams, arrival order, digest and difference."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamjoin as sj
from streamjoin import tuples
from streamjoin.errors import InputError
from streamjoin.tuples import Pairs, Stream, arrival_order, arrival_positions

times = st.lists(st.integers(-5, 5), max_size=30).map(sorted)
pair_lists = st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), max_size=30)


@given(r=times, s=times)
def test_arrival_order_is_by_time_then_r_before_s_then_position(r: list[int], s: list[int]) -> None:
    right = sorted([(t, 0, i) for i, t in enumerate(r)] + [(t, 1, i) for i, t in enumerate(s)])
    is_s, rows = arrival_order(np.array(r, np.int64), np.array(s, np.int64))
    assert list(zip(is_s.tolist(), rows.tolist(), strict=True)) == [
        (bool(side), row) for _, side, row in right
    ]
    r_positions, s_positions = arrival_positions(np.array(r, np.int64), np.array(s, np.int64))
    assert sorted([*r_positions, *s_positions]) == list(range(len(right)))


@given(pairs=pair_lists, seed=st.integers(0, 100))
def test_the_digest_does_not_depend_on_order(pairs: list[tuple[int, int]], seed: int) -> None:
    mixed = [pairs[i] for i in np.random.default_rng(seed).permutation(len(pairs))]
    assert Pairs.of(pairs).digest == Pairs.of(mixed).digest


@given(pairs=pair_lists.filter(bool))
def test_the_digest_notices_a_lost_doubled_or_swapped_pair(pairs: list[tuple[int, int]]) -> None:
    digest = Pairs.of(pairs).digest
    assert Pairs.of(pairs[1:]).digest != digest
    assert Pairs.of([*pairs, pairs[0]]).digest != digest
    r, s = pairs[0]
    if r != s:
        assert Pairs.of([(s, r), *pairs[1:]]).digest != digest


def plain_mix(value: int) -> int:
    """SplitMix64's step as its definition has it, on Python integers."""
    mask = (1 << 64) - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & mask
    return value ^ value >> 31


def test_the_digest_is_what_its_definition_says() -> None:
    assert Pairs.of([]).digest == "0000000000000000"
    pairs = [(0, 0), (7, 9), (2**32 - 1, 2**32 - 1)]
    right = sum(plain_mix(plain_mix(r + 1) ^ s) for r, s in pairs) % 2**64
    assert Pairs.of(pairs).digest == f"{right:016x}"
    as32 = Pairs(*np.array(pairs, np.uint32).T)
    assert as32.digest == Pairs.of(pairs).digest


def test_the_digest_does_not_depend_on_how_it_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    pairs = Pairs(*rng.integers(0, 1 << 32, (2, 1000), dtype=np.uint32))
    whole = pairs.digest
    monkeypatch.setattr(tuples, "DIGEST_STEP_PAIRS", 7)
    assert Pairs(pairs.r_rows, pairs.s_rows).digest == whole
    assert pairs.digest is whole, "a result that several rounds are compared with has it ready"


def test_a_difference_names_the_first_missing_and_surplus_pair() -> None:
    mine, right = Pairs.of([(1, 1), (5, 5), (5, 5)]), Pairs.of([(1, 1), (2, 2), (3, 3), (5, 5)])
    assert mine.difference(right) == (
        "3 pairs where 4 are right; first missing (r_row, s_row) = (2, 2); "
        "first surplus (r_row, s_row) = (5, 5)"
    )
    assert right.difference(right) is None


def test_time_must_not_go_back() -> None:
    with pytest.raises(InputError, match=r"^here: ts goes back at row 2, from 4 to 3: sort "):
        Stream({}, np.array([1, 4, 3, 2]), "here")


def test_columns_must_have_the_streams_length() -> None:
    with pytest.raises(InputError, match="column 'k' has 3 rows and ts 2"):
        Stream({"k": np.zeros(3)}, np.array([1, 4]), "here")


@pytest.mark.parametrize("as_frame", [False, True])
def test_times_that_go_back_are_named_and_shown_as_the_user_wrote_them(as_frame: bool) -> None:
    seen = np.array(["2024-05-01T10:03", "2024-05-01T09:58:00.5"], "datetime64[ms]")
    s: object = {"k": np.arange(2), "seen": seen}
    s = pa.table(s) if as_frame else s
    r = {"k": np.arange(2), "due at": np.array([4, 3])}
    back = "goes back at row 1, from 2024-05-01T10:03:00 to 2024-05-01T09:58:00.500000"
    with pytest.raises(InputError, match=rf"^s: seen {back}: sort the input by seen, or "):
        sj.join({"k": np.arange(2), "ts": seen[::-1]}, s, on="k", ts="ts=seen")
    with pytest.raises(InputError, match=r"^r: 'due at' goes back at row 1, from 4 to 3: sort "):
        sj.join(r, s, on="k", ts="due at=seen")
    with (
        pytest.raises(InputError, match=rf"^s: seen {back}: push in order of seen, or "),
        sj.StreamJoiner(on="k", ts="ts=seen") as joiner,
    ):
        joiner.push_s(s)
