"""The filter over R's keys loses no pair, whatever R holds, becomes or hides."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.host.semistream import ByHand, ListStore, PushFeed, expected, joined, settings

import streamjoin as sj
from streamjoin.engines.kernels.semi import layout as kernels
from streamjoin.engines.semi.filter import filter_words

R_ROWS, ABSENT_FROM = 400, 10_000
OTHERS = list(range(1000, 1037))


@pytest.fixture(scope="module")
def r_keys() -> list[int]:
    return np.random.default_rng(1).integers(0, 500, R_ROWS).tolist()


def stream(tuples: int, upto: int) -> list[int]:
    return np.random.default_rng(2).integers(0, upto, tuples).tolist()


@pytest.mark.parametrize(("rows", "bits"), [(R_ROWS, 0), (R_ROWS, 4), (R_ROWS, 64), (20, 4)])
@pytest.mark.parametrize("memory", [20_000, None])
def test_the_filter_changes_no_pair_also_if_r_is_larger_than_it_was_made_for(
    r_keys: list[int], rows: int, bits: int, memory: int | None
) -> None:
    store, feed = ListStore(r_keys), PushFeed(stream(12_000, 3000))
    chosen = settings(memory, 20, filter_rows=rows, filter_bits=bits)
    pairs, join = joined(store, feed, chosen)
    assert sorted(pairs.found) == expected(store.keys, feed.keys)
    known = join.details()["filter"]
    if rows == R_ROWS and bits and memory:
        assert known["used_cycles"] > 3
        assert known["share"] > 0.3
        assert known["cleared"] == 0
    if not bits or (rows == 20 and memory):
        assert (known["share"], known["bytes"]) == (0, 0)  # never there, or given up unused


@hypothesis_settings(max_examples=40, deadline=None)
@given(
    r_keys=st.lists(st.integers(0, 2**64 - 1), max_size=120),
    s_keys=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40),
    bits=st.sampled_from([1, 4, 64]),
)
def test_any_keys_of_r_are_found_and_no_others(
    r_keys: list[int], s_keys: list[int], bits: int
) -> None:
    """Also where R has no row or one; each key of R is met many times, after it was learned."""
    store, feed = ListStore(r_keys), PushFeed((s_keys + r_keys[:60]) * 30)
    pairs, _ = joined(store, feed, settings(20_000, 16, filter_bits=bits))
    assert sorted(pairs.found) == expected(store.keys, feed.keys)


def test_a_filter_in_which_all_bits_are_set_only_makes_tuples_wait(r_keys: list[int]) -> None:
    """False positives by force."""
    hand = ByHand(r_keys, settings(30_000, 40), 8000)
    for key in (*r_keys[:60], ABSENT_FROM, ABSENT_FROM + 1):
        hand.join.tables.shared.filter[:] = kernels.EMPTY
        hand.push(key, 40)
        hand.turn()
    assert hand.join.tables.numbers[kernels.REJECTED] == 0
    hand.finish()
    assert sorted(hand.pairs.found) == expected(hand.store.keys, hand.feed.keys[: hand.feed.so_far])


def test_absent_keys_alone_leave_at_once_and_take_no_memory() -> None:
    store = ListStore(list(range(R_ROWS)))
    feed = PushFeed((ABSENT_FROM + np.arange(80_000)).tolist())
    pairs, join = joined(store, feed, settings(20_000, 40, filter_rows=R_ROWS))
    assert pairs.found == []
    assert join.details()["filter"]["share"] > 0.6
    assert join.details()["cache_share"] == 0


def turns(hand: ByHand, count: int, key: int) -> Iterator[int]:
    for number in range(count):
        hand.push(key, 2)
        hand.turn()
        yield number


@pytest.mark.parametrize("at", [0, 3, 20, 36])
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_row_that_is_inserted_is_met_by_all_that_come_a_cycle_later(at: int, after: int) -> None:
    """The filter was in use and lacked its key; where the row lies in R does not matter."""
    new = 77
    hand = ByHand(OTHERS, settings(30_000, 8), 4000)
    for _ in turns(hand, 17 + after, ABSENT_FROM):
        pass
    assert hand.join.tables.numbers[kernels.REJECTS] == 1
    hand.store.keys[at] = new
    for _ in turns(hand, 5, new):  # a cycle
        pass
    later = hand.feed.so_far
    for _ in turns(hand, 30, new):
        pass
    hand.finish()
    met = [s_row for r_row, s_row in hand.pairs.found if r_row == at]
    assert set(range(later, hand.feed.so_far)) <= set(met)
    assert len(met) == len(set(met))


def test_rows_that_were_always_there_are_joined_while_all_others_change() -> None:
    """So many keys pass through R that the filter fills up and is made anew."""
    rng = np.random.default_rng(5)
    store, feed = ListStore(list(range(300))), PushFeed(rng.integers(0, 600, 60_000).tolist())

    def change(first: int) -> None:
        keys = store.keys.copy()
        keys[100:] = rng.integers(300, 1 << 40, 200)
        store.keys = keys

    store.before_read = change
    pairs, join = joined(store, feed, settings(20_000, 50))
    known = join.details()["filter"]
    assert known["cleared"] > 0
    assert known["share"] > 0
    found = sorted(pair for pair in pairs.found if pair[0] < 100)
    assert found == expected(np.arange(100, dtype=np.uint64), feed.keys)


def test_a_filter_that_spares_less_than_it_takes_turns_into_pages() -> None:
    store, feed = ListStore(list(range(300))), PushFeed(stream(30_000, 300))
    kept, join = joined(store, feed, settings(20_000, 50, filter_bits=32))
    assert join.details()["filter"]["bytes"] == 0
    assert join.tables.shared.filter.nbytes == 8
    assert join.tables.nbytes + 2 * 50 * store.row_bytes > 0.9 * 20_000
    assert sorted(kept.found) == expected(store.keys, feed.keys)


def test_after_a_wait_the_filter_is_used_only_once_all_of_r_was_read_again() -> None:
    hand = ByHand(OTHERS, settings(30_000, 8), 4000)
    for _ in turns(hand, 17, ABSENT_FROM):
        pass
    assert hand.join.tables.numbers[kernels.REJECTS] == 1
    hand.finish()
    hand.feed.wait = lambda taken: hand.push(77, 1)  # type: ignore[method-assign]  # of one object
    hand.store.keys[3] = 77  # while the join waits
    hand.turn()
    assert hand.join.tables.numbers[kernels.REJECTS] == 0
    waited = hand.feed.so_far - 1
    hand.finish()
    assert (3, waited) in hand.pairs.found


def test_a_budget_without_room_for_a_useful_filter_has_none() -> None:
    assert filter_words(1000, 4, None) * 64 >= 4000
    assert 3000 <= filter_words(1000, 4, 1900) * 64 < 4000
    assert filter_words(1000, 4, 1000) == filter_words(1000, 0, None) == filter_words(0, 4, 99) == 0


@pytest.mark.parametrize("on", [["name"], ["a", "b"], ["a"]])
def test_strings_two_columns_and_missing_values_pass_the_filter(on: list[str]) -> None:
    rng = np.random.default_rng(6)

    def side(rows: int, upto: int) -> dict[str, object]:
        a, b = rng.integers(0, upto, rows), rng.integers(0, 3, rows)
        missing = rng.random(rows) < 0.1
        return {"a": np.ma.masked_array(a, missing), "b": b, "name": [f"n{each}" for each in a]}

    knobs = {"store": "raw", "memory_kib": 48, "partition_rows": 50, "r_bytes": 24}
    r, s = side(600, 900), side(20_000, 2000)
    result = sj.join(r, s, on=on, engine="ssbj", knobs=knobs, check=True)
    assert result.metrics["semi_stream"]["filter"]["share"] > 0.1
