"""Window indexes alone: each structure against a sorted list, each index against its window."""

import bisect
import functools
import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjoin import oracle, run, verify
from streamjoin.engines import catalog
from streamjoin.engines.arrivals import live_rows, max_live, numbered_batches
from streamjoin.engines.crew import Crew
from streamjoin.engines.encode import IntervalCodes, encode_intervals
from streamjoin.engines.job import Job
from streamjoin.engines.kernels.trees import btree, immutable, probing
from streamjoin.engines.kernels.trees.nodes import NODE
from streamjoin.engines.sliding import ibwj, mergetrees
from streamjoin.engines.sliding.ibwj import WindowIndex, index_columns
from streamjoin.metrics import Meter
from streamjoin.tuples import Pairs, Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import CountWindow, parse_window

TOP = (1 << 32) - 1
NAMES = ("ibwj-bptree", "ibwj-chain", "ibwj-im", "ibwj-pim")
BAND = Predicate.parse(band="k=k:2:3")


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small inputs merge often and overflow the output."""
    monkeypatch.setattr(mergetrees, "MIN_MERGED", 1)
    monkeypatch.setattr(ibwj, "OUTPUT_PAIRS", 8)


def entries_of(forest: btree.Forest, tree: int) -> list[int]:
    """All entries of a tree from left to right, after a check of every node."""
    if forest.roots[tree] == btree.NO_NODE:
        return []
    entries: list[int] = []
    leaves: list[int] = []

    def visit(node: int, height: int, low: int, high: int, is_root: bool) -> None:
        words = forest.separators if height else forest.leaves
        own = words[node * NODE : node * NODE + NODE]
        own = own[own != btree.NOTHING].tolist()
        assert own == sorted(set(own))
        if height == 0:
            assert all(low < entry <= high for entry in own)
            leaves.append(node)
            entries.extend(own)
            return
        assert len(own) >= (1 if is_root else int(btree.SPARSE) - 1)
        for child, (below, above) in enumerate(itertools.pairwise([low, *own, high])):
            visit(int(forest.children[node * NODE + child]), height - 1, below, above, False)

    visit(int(forest.roots[tree]), int(forest.heights[tree]), -1, int(btree.NOTHING), True)
    linked = [int(forest.nexts[leaf]) for leaf in leaves]
    assert linked == [*leaves[1:], int(btree.NO_NODE)]
    return entries


@pytest.mark.parametrize("seed", range(6))
def test_a_b_tree_holds_what_was_inserted_and_not_deleted(seed: int) -> None:
    chance = random.Random(seed)
    forest = btree.plant(2, 2, btree.leaves_for(4000, int(btree.SPARSE)))
    live: list[list[int]] = [[], []]
    for step in range(6000):
        tree = chance.randrange(2)
        mine, shrink = live[tree], step // 1500 % 2
        if mine and chance.random() < (0.75 if shrink else 0.2):
            gone = mine.pop(0 if chance.random() < 0.5 else chance.randrange(len(mine)))
            btree.delete(forest, tree, tree, np.uint64(gone))
        else:
            entry = chance.randrange(1 << (12 + 10 * seed))
            index = bisect.bisect_left(mine, entry)
            if mine[index : index + 1] != [entry]:
                mine.insert(index, entry)
                btree.insert(forest, tree, tree, np.uint64(entry))
        if step % 500 == 499:
            assert [entries_of(forest, tree) for tree in range(2)] == live
    for tree in range(2):
        for gone in live[tree]:
            btree.delete(forest, tree, tree, np.uint64(gone))
        assert entries_of(forest, tree) == []


@pytest.mark.parametrize("order", ["rising", "falling"])
def test_a_b_tree_that_is_walked_through_reuses_its_nodes(order: str) -> None:
    window = 500
    forest = btree.plant(1, 1, btree.leaves_for(window + 1, int(btree.SPARSE)))
    entries = range(20_000) if order == "rising" else range(20_000, 0, -1)
    for index, entry in enumerate(entries):
        btree.insert(forest, 0, 0, np.uint64(entry))
        if index >= window:
            btree.delete(forest, 0, 0, np.uint64(entries[index - window]))
    assert entries_of(forest, 0) == sorted(entries[-window:])
    assert btree.bytes_in_use(forest) <= 2 * window // int(btree.SPARSE) * 8 * NODE


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 1023, 1024, 1025, 33_000])
def test_an_immutable_tree_finds_the_first_entry_of_every_key(count: int) -> None:
    rng = np.random.default_rng(count)
    keys = np.sort(rng.integers(0, count // 3 + 1, count).astype(np.uint64))
    keys[count // 2 :] += np.uint64(TOP - count)
    entries = keys << np.uint64(32) | np.arange(count, dtype=np.uint64)
    trees = immutable.reserve(2, count)
    first = len(trees.entries) // 2
    trees.entries[first : first + count] = entries
    immutable.build(trees, 1, count)
    asked = {0, 1, TOP - 1, TOP, *keys[:: max(1, count // 100)].tolist()}
    for key in sorted(asked | {key + 1 for key in asked if key < TOP}):
        index = immutable.first_index(trees, 1, np.uint32(key))
        assert index == first + np.searchsorted(entries, np.uint64(key << 32))


@settings(max_examples=50, deadline=None)
@given(
    keys=st.lists(st.integers(0, 30), max_size=600),
    cuts=st.lists(st.integers(1, 200), min_size=1, max_size=5),
    window=st.integers(1, 300),
)
def test_a_merge_keeps_what_is_live_in_order(keys: list[int], cuts: list[int], window: int) -> None:
    forest = btree.plant(3, 1, 100)
    trees = immutable.reserve(2, 700)
    row = tree = 0
    for cut in itertools.cycle(cuts):
        stop = min(row + cut, len(keys))
        for number in range(row, stop):
            part = keys[number] // 11  # trees of disjoint ranges, as those of a PIM-Tree
            btree.insert(forest, 0, part, np.uint64(keys[number] << 32 | number))
        row = stop
        live = max(0, row - window)
        count = immutable.merge(trees, tree, 1 - tree, forest, 0, 3, live)
        tree = 1 - tree
        btree.clear(forest, 0, 0, 3)
        first = tree * len(trees.entries) // 2
        right = sorted(keys[number] << 32 | number for number in range(live, row))
        assert trees.entries[first : first + count].tolist() == right
        if row == len(keys):
            return


KEYS = {
    "duplicates only": lambda rng, rows: np.full(rows, 7),
    "rising": lambda rng, rows: np.arange(rows),
    "falling": lambda rng, rows: np.arange(rows)[::-1],
    "shifting": lambda rng, rows: np.arange(rows) // 3 + rng.integers(0, 40, rows),
    "few": lambda rng, rows: rng.integers(0, 9, rows),
    "ends": lambda rng, rows: rng.choice(np.array([0, 1, 2, TOP - 2, TOP - 1, TOP]), rows),
    "uniform": lambda rng, rows: rng.integers(0, 2 * rows, rows),
}


@functools.cache
def streams_of(name: str, rows: int, seed: int = 3) -> tuple[Stream, Stream]:
    rng = np.random.default_rng(seed)
    r, s = (
        Stream(
            {"k": KEYS[name](rng, many).astype(np.uint32)}, np.sort(rng.integers(0, rows, many)), n
        )
        for n, many in (("r", rows), ("s", rows * 2 // 3))
    )
    return r, s


def indexes_of(name: str, job: Job) -> "list[WindowIndex]":
    """Every kind of an index, at every knob that changes its structure."""
    columns = index_columns(encode_intervals(job.r, job.s, job.predicate))
    live = (
        max(1, max_live(job.r.ts, job.window, of_r=True)),
        max(1, max_live(job.s.ts, job.window, of_r=False)),
    )
    engine, knobs = catalog.get(name), {}
    if name == "ibwj-chain":
        knobs = {"chain": ("b", "ib"), "chain_length": (2, 3, 7)}
    if name in {"ibwj-im", "ibwj-pim"}:
        knobs = {"merge_ratio": mergetrees.RATIOS, "task": (1, 5)}
    if name == "ibwj-pim":
        knobs["insertion_depth"] = (0, 1, 6)
    indexes = []
    for values in itertools.product(*knobs.values()):
        resolved = engine.resolve_knobs(dict(zip(knobs, values, strict=True)))
        indexes.append(engine.index(columns, live, Job(**{**vars(job), "knobs": resolved})))
    return indexes


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("name", NAMES)
def test_an_index_finds_just_what_a_sorted_window_holds(name: str, keys: str) -> None:
    r, s = streams_of(keys, 110)
    for window in ("count:1", "count:7,40", "count:90", "time:25us", "all"):
        job = Job(r, s, BAND, parse_window(window), knobs={"batch": 64})
        right = windowed(keys, window)
        for index in indexes_of(name, job):
            meter = Meter()
            with Crew(1) as crew:
                for batch in numbered_batches(job, meter, 64):
                    index.join(probing.Arrivals(*batch), meter, crew)
                index.finish()
            pairs = meter.pairs()
            verify.check_order(pairs, job, "outer")
            assert sorted(zip(pairs.r_rows, pairs.s_rows, strict=True)) == right, (name, window)


@functools.cache
def windowed(keys_of: str, window: str) -> list[tuple[int, int]]:
    """All pairs, by two sorted lists from which expired tuples are taken out."""
    job = Job(*streams_of(keys_of, 110), BAND, parse_window(window))
    windows: list[list[tuple[int, int]]] = [[], []]
    keys = [job.r.column("k").tolist(), job.s.column("k").tolist()]
    pairs = []
    for rows, firsts, _, _ in numbered_batches(job, Meter(), 1):
        side = int(rows[0] >= job.r.rows)
        row = int(rows[0]) - side * job.r.rows
        first = int(firsts[0]) - (0 if side else job.r.rows)
        other, key = windows[1 - side], keys[side][row]
        other[:] = [entry for entry in other if entry[1] >= first]
        low, high = (key - 2, key + 3) if side else (key - 3, key + 2)
        begin, end = bisect.bisect(other, (low, -1)), bisect.bisect(other, (high + 1, -1))
        pairs += [(met, row) if side else (row, met) for _, met in other[begin:end]]
        bisect.insort(windows[side], (key, row))
    return sorted(pairs)


@functools.cache
def right_of(keys: str, rows: int, window: CountWindow) -> Pairs:
    return oracle.join(*streams_of(keys, rows), BAND, window)


MERGES = (("1/16", 1, 1500), ("1", 8, 16_384), ("1/4", 3, 700))
"""Ratios of merges, tuples of a task and of a batch."""


@pytest.mark.parametrize(
    ("threads", "keys", "merges"),
    [  # each two of the three meet
        (threads, keys, [MERGES[(row + column + step) % 3] for step in (0, 1)])
        for row, threads in enumerate((2, 3, 6))
        for column, keys in enumerate(("uniform", "shifting", "few"))
    ],
)
@pytest.mark.parametrize("name", ["ibwj-im", "ibwj-pim"])
def test_threads_that_merge_and_wait_for_one_another_lose_nothing(
    name: str, threads: int, keys: str, merges: list[tuple[str, int, int]]
) -> None:
    engine, rows = catalog.get(name), 9_000
    r, s = streams_of(keys, rows)
    window = CountWindow(40, 90) if keys == "few" else CountWindow(2000, 900)
    right = right_of(keys, rows, window)
    for ratio, task, batch in merges:
        knobs = {"merge_ratio": ratio, "task": task, "batch": batch}
        job = run.complete(engine, Job(r, s, BAND, window, threads=threads), knobs)
        outcome = run.run(engine, job)
        verify.check(outcome.pairs, right, f"{name} {threads} {knobs}")
        verify.check_order(outcome.pairs, job, "outer")


@pytest.mark.parametrize("keys", ["uniform", "few"])
@pytest.mark.parametrize("name", ["ibwj-im", "ibwj-pim"])
def test_threads_join_in_and_leave_as_batches_grow_and_shrink(name: str, keys: str) -> None:
    engine, rows = catalog.get(name), 3_000
    r, s = streams_of(keys, rows)
    window = CountWindow(40, 90) if keys == "few" else CountWindow(700, 300)
    asked = Job(r, s, BAND, window, threads=4)
    job = run.complete(engine, asked, {"merge_ratio": "1/16", "task": 2})
    rng = np.random.default_rng(6)
    columns = index_columns(encode_intervals(r, s, BAND))
    live = max_live(r.ts, window, of_r=True), max_live(s.ts, window, of_r=False)
    index = engine.index(columns, live, job)
    meter, at_work = Meter(), set()

    class Watched(Crew):
        def each(self, work: Any, *arguments: Any) -> None:
            at_work.add(len(list(arguments[0])))
            super().each(work, *arguments)

    (everything,) = numbered_batches(job, Meter(), job.tuples)
    begin = 0
    with Watched(4) as crew:
        while begin < job.tuples:
            end = begin + int(rng.choice([1, 7, 12, 20, 40, 300]))
            index.join(probing.Arrivals(*(part[begin:end] for part in everything)), meter, crew)
            begin = end
        index.finish()
    assert at_work == {2, 3, 4}
    pairs = meter.pairs()
    verify.check(pairs, right_of(keys, rows, window), name)
    verify.check_order(pairs, job, "outer")


@pytest.mark.parametrize(("min_shared", "at_work"), [(0, {4}), (1 << 14, set())])
def test_one_thread_works_alone_where_merges_are_small(
    min_shared: int, at_work: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mergetrees, "MIN_SHARED", min_shared)
    seen = set()
    each = Crew.each

    def watched(crew: Crew, work: Any, *arguments: Any) -> None:
        seen.add(len(list(arguments[0])))
        each(crew, work, *arguments)

    monkeypatch.setattr(Crew, "each", watched)
    r, s = streams_of("uniform", 3000)
    engine = catalog.get("ibwj-pim")
    job = run.complete(engine, Job(r, s, BAND, CountWindow(500), threads=4), {})
    pairs = run.run(engine, job).pairs
    assert seen == at_work
    verify.check(pairs, oracle.join(r, s, BAND, job.window), "ibwj-pim")


@pytest.mark.parametrize("name", NAMES)
def test_what_an_index_holds_is_bounded_by_the_window(name: str) -> None:
    held = []
    for rows in (6_000, 24_000):
        r, s = streams_of("shifting", rows)
        engine = catalog.get(name)
        job = run.complete(engine, Job(r, s, BAND, CountWindow(300)), {})
        held.append(run.run(engine, job).metrics["structure_bytes"])
    assert held[1] <= 1.5 * held[0]
    assert held[1] <= 600_000


@settings(max_examples=100, deadline=None)
@given(
    intervals=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 90)), max_size=30),
    codes=st.lists(st.integers(0, 500), max_size=30),
    far=st.booleans(),
)
def test_the_range_that_is_looked_up_holds_every_partner(
    intervals: list[tuple[int, int]], codes: list[int], far: bool
) -> None:
    # Bounds that rise together, as those of one width in values do; some intervals are empty.
    offset = TOP - 600 if far else 0
    lows = np.sort(np.array([low for low, _ in intervals], dtype=np.int64)) + offset
    highs = np.sort(np.array([low + width - 9 for low, width in intervals], dtype=np.int64))
    highs = np.maximum(highs + offset, 0)
    r = np.array([[code + offset for code in codes]], dtype=np.uint32).reshape(1, -1)
    shaped = [bounds.astype(np.uint32).reshape(1, -1) for bounds in (lows, highs)]
    columns = index_columns(IntervalCodes(r, *shaped))
    for row, code in enumerate(r[0].tolist()):
        partners = [low for low, high in zip(lows, highs, strict=True) if low <= code <= high]
        assert int(columns.lows[row]) <= min(partners, default=TOP)
        assert int(columns.highs[row]) >= max(partners, default=0)


def test_real_bands_near_zero_are_looked_up_in_narrow_ranges() -> None:
    # In codes of float32 an interval around zero is half of all codes wide, others are short.
    rng = np.random.default_rng(5)
    values = rng.uniform(-1e4, 1e4, (2, 4000)).astype(np.float32)
    r, s = (
        Stream({"y": v}, np.zeros(4000, dtype=np.int64), n)
        for v, n in zip(values, "rs", strict=True)
    )
    columns = index_columns(encode_intervals(r, s, Predicate.parse(band="y=y:10:10")))
    keys = np.sort(columns.keys[4000:])
    lows, highs = columns.lows[:4000], columns.highs[:4000]
    met = np.searchsorted(keys, highs, side="right") - np.searchsorted(keys, lows)
    assert np.median(met) < 20  # 4 of 4000 join on average


def test_the_index_is_on_the_term_that_lets_the_fewest_through() -> None:
    rng = np.random.default_rng(6)
    r, s = (
        Stream(
            {"g": rng.integers(0, 3, 500), "k": rng.integers(0, 500, 500).astype(np.int32)},
            np.zeros(500, dtype=np.int64),
            name,
        )
        for name in "rs"
    )
    codes = encode_intervals(r, s, Predicate.parse(on="g", band="k=k:1:1"))
    assert np.array_equal(index_columns(codes).keys[:500], codes.r[1])


def test_rows_are_live_until_their_window_has_passed_them() -> None:
    ts = np.array([0, 0, 3, 9, 9, 20])
    assert live_rows(ts, parse_window("count:2,4"), of_r=True).tolist() == [0, 0, 1, 2, 3, 4]
    assert live_rows(ts, parse_window("count:2,4"), of_r=False).tolist() == [0, 0, 0, 0, 1, 2]
    assert live_rows(ts, parse_window("time:9us"), of_r=True).tolist() == [0, 0, 0, 2, 2, 5]
    assert live_rows(ts, parse_window("tumbling:9us"), of_r=True).tolist() == [0, 0, 0, 3, 3, 5]
    assert max_live(ts, parse_window("all"), of_r=True) == 6
    assert max_live(np.empty(0, dtype=np.int64), parse_window("all"), of_r=True) == 0
