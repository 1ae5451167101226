"""What is particular to the sort-merge joins: merging, splitters, ranges."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamjoin as sj
from streamjoin import oracle, run, verify
from streamjoin.engines import catalog
from streamjoin.engines.intra import sortmerge
from streamjoin.engines.intra.window import WindowTuples
from streamjoin.engines.job import Job
from streamjoin.engines.kernels.intra import merging, sorting
from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow

ON_K = Predicate.parse(on="k")
runs = st.lists(
    st.lists(st.one_of(st.integers(0, 9), st.sampled_from([2**64 - 1, 2**63])), max_size=12),
    min_size=1,
    max_size=9,
)


def sorted_runs(lists: list[list[int]]) -> tuple[np.ndarray, Int64s]:
    tuples = np.array([value for each in lists for value in sorted(each)], dtype=np.uint64)
    return tuples, np.concatenate([[0], np.cumsum([len(each) for each in lists])])


@settings(deadline=None)
@given(lists=runs)
def test_all_runs_are_merged_at_once(lists: list[list[int]]) -> None:
    tuples, bounds = sorted_runs(lists)
    out = np.empty_like(tuples)
    merging.merge_many(tuples, bounds, out)
    assert out.tolist() == sorted(tuples.tolist())


@pytest.mark.parametrize("runs_count", [1, 2, 3, 8, 13])
def test_runs_longer_than_the_merge_tree_are_merged_too(runs_count: int) -> None:
    rng = np.random.default_rng(runs_count)
    lengths = rng.integers(0, 3 * merging.TREE_TUPLES // runs_count, runs_count)
    lists = [rng.integers(0, 500, length).tolist() for length in lengths]
    tuples, bounds = sorted_runs(lists)
    out = np.empty_like(tuples)
    merging.merge_many(tuples, bounds, out)
    right = np.sort(tuples)
    assert (out == right).all()
    assert (merging.merge_in_passes(tuples, bounds) == right).all()


def test_mway_reads_its_runs_once_and_mpass_in_passes_of_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sortmerge, "RUN_TUPLES", 100)
    keys = {"k": np.random.default_rng(1).permutation(1000).astype(np.int32)}
    merge_pair, merge_many = merging.merge_pair, merging.merge_many
    merged: list[int] = []

    def count_pair(runs: Any, *bounds: Any) -> None:
        merged.append(bounds[3] - bounds[0])
        merge_pair(runs, *bounds)

    def count_many(runs: Any, bounds: Any, out: Any) -> None:
        merged.append(int(bounds[-1] - bounds[0]))
        merge_many(runs, bounds, out)

    monkeypatch.setattr(merging, "merge_pair", count_pair)
    monkeypatch.setattr(merging, "merge_many", count_many)
    tuples_moved = {}
    for name in ("mway", "mpass"):
        merged.clear()
        assert len(sj.join(keys, keys, on="k", engine=name, knobs={"ranges": 1})) == 1000
        tuples_moved[name] = sum(merged[1:])  # the first merge is the preparation's
    assert tuples_moved["mway"] == 2 * 1000  # both streams, once
    assert tuples_moved["mpass"] == 2 * 1000 * 4  # ten runs: 5, 3, 2, 1


@settings(deadline=None)
@given(lists=runs)
@pytest.mark.parametrize("engine", [sortmerge.MWay(), sortmerge.MPass()], ids=lambda e: e.name)
def test_both_ways_of_merging_give_a_sorted_range(
    engine: sortmerge.MWay | sortmerge.MPass, lists: list[list[int]]
) -> None:
    tuples, bounds = sorted_runs(lists)
    right = sorted(tuples.tolist())
    assert engine._merged(tuples, bounds).tolist() == right


KEYS = {
    "dense": np.arange(3000),
    "one far away": np.concatenate([np.arange(2000), [2**31 - 1]]),
    "one key": np.full(300, 7),
    "one heavy key": np.concatenate([np.full(700, 9), np.arange(2000)]),
    "ends": np.array([-(2**31), -1, 0, 1, 2**31 - 1] * 20),
}


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("ranges", [0, 1, 2, 7, 500])
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("name", ["mway", "mpass"])
def test_every_number_of_ranges_gives_the_oracles_result(
    name: str, keys: str, ranges: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamjoin.engines.intra.window.OUTPUT_PAIRS", 1000)
    monkeypatch.setattr(sortmerge, "RUN_TUPLES", 300)  # so that small inputs have several runs
    rng = np.random.default_rng(1)
    r, s = (
        Stream(
            {"k": rng.permutation(KEYS[keys]).astype(np.int32)},
            np.zeros(len(KEYS[keys]), np.int64),
            source,
        )
        for source in ("r", "s")
    )
    engine = catalog.get(name)
    job = run.complete(engine, Job(r, s, ON_K, AllWindow(), threads=threads), {"ranges": ranges})
    verify.check(run.run(engine, job).pairs, oracle.join(r, s, ON_K, AllWindow()), name)


def test_splitters_divide_a_skewed_input_evenly() -> None:
    rng = np.random.default_rng(3)
    keys = (rng.zipf(1.3, 200_000) % (1 << 32)).astype(np.uint32)
    spread = rng.integers(0, 1 << 32, 200_000).astype(np.uint32)
    window = WindowTuples(keys, spread, 0, 0)
    splitters = sortmerge._splitters(window, 32, 1)
    ranges = np.searchsorted(splitters, np.concatenate([keys, spread]), side="right")
    sizes = np.bincount(ranges)
    # One key alone may be a large range; the others stay near their share.
    assert np.sort(sizes)[:-2].max() < 4 * len(ranges) / 32


keys_of_bits = st.integers(0, 32).flatmap(lambda bits: st.integers(0, (1 << bits) - 1))


@settings(deadline=None)
@given(
    few=st.lists(keys_of_bits, max_size=60),
    offset=st.sampled_from([0, 1, 2**31, 2**32 - 1]),
    shift=st.integers(0, 20),
    repeated=st.integers(1, 40),
)
def test_digits_sort_as_comparisons_do(
    few: list[int], offset: int, shift: int, repeated: int
) -> None:
    keys = np.array(few * repeated, dtype=np.uint64)
    keys = ((keys << np.uint64(shift)) + np.uint64(offset)) & np.uint64(2**32 - 1)
    tuples = keys << np.uint64(32) | np.arange(len(keys), dtype=np.uint64)
    right = np.sort(tuples)
    spare = np.full(len(tuples) + 3, 5, dtype=np.uint64)
    sorting.sort_by_digits(tuples, spare)
    assert tuples.tolist() == right.tolist()
    assert spare[len(tuples) :].tolist() == [5, 5, 5]


@pytest.mark.parametrize("count", [0, 1, 2, sorting.FEW_TUPLES, sorting.FEW_TUPLES + 1, 70_000])
def test_every_pass_count_of_digits_keeps_equal_keys_in_order(count: int) -> None:
    rng = np.random.default_rng(count)
    for bits in (1, 2, 11, 12, 22, 23, 32):
        keys = rng.integers(0, 1 << bits, count).astype(np.uint64)
        keys[rng.random(count) < 0.3] = (1 << bits) - 1
        tuples = keys << np.uint64(32) | np.arange(count, dtype=np.uint64)
        right = np.sort(tuples)
        sorting.sort_by_digits(tuples, np.empty_like(tuples))
        assert (tuples == right).all()


@pytest.mark.parametrize("sort", ["radix", "simd", "scalar"])
@pytest.mark.parametrize("name", ["mway", "mpass"])
def test_every_sort_gives_the_oracles_result(
    name: str, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sortmerge, "RUN_TUPLES", 300)
    rng = np.random.default_rng(7)
    r, s = ({"k": rng.integers(-(2**31), 2**31, 900) // 2**23} for _ in "rs")
    result = sj.join(r, s, on="k", engine=name, threads=2, knobs={"sort": sort}, check=True)
    assert len(result)


def clustered(rng: np.random.Generator, count: int, of_left: bool) -> np.ndarray:
    """Values in stretches that only one of two runs has."""
    stretches = 2 * rng.integers(0, 6, count).astype(np.uint64) + np.uint64(of_left)
    return np.sort(stretches * np.uint64(1000) + rng.integers(0, 1000, count).astype(np.uint64))


@pytest.mark.parametrize("right_count", [0, 1, 7, 8, 9, 16, 31, 200, 3001])
@pytest.mark.parametrize("left_count", [0, 1, 8, 15, 33, 1000, 4096])
def test_vectors_merge_two_runs_as_comparisons_do(left_count: int, right_count: int) -> None:
    rng = np.random.default_rng(left_count * 10_000 + right_count)
    ends = np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64)

    def of_kind(name: str, count: int, of_left: bool) -> np.ndarray:
        if name == "spread":
            return np.sort(rng.integers(0, 2**64, count, dtype=np.uint64))
        if name == "few values":
            return np.sort(rng.integers(0, 3, count).astype(np.uint64))
        if name == "ends":
            return np.sort(ends[rng.integers(0, len(ends), count)])
        if name == "one below the other":
            return np.asarray(np.arange(count, dtype=np.uint64) + ends[2 * of_left])
        return clustered(rng, count, of_left)

    for name in ("spread", "few values", "ends", "one below the other", "stretches"):
        left, right = of_kind(name, left_count, True), of_kind(name, right_count, False)
        runs = np.concatenate([left, right])
        out = np.full(len(runs) + 5, 7, dtype=np.uint64)
        merging.merge_pair(runs, 0, left_count, left_count, len(runs), out, 2)
        assert (out[2:-3] == np.sort(runs)).all(), name
        assert out[:2].tolist() == [7, 7], name
        assert out[-3:].tolist() == [7, 7, 7], name
