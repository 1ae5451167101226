"""The flat window index alone: its map, its chains, and what random cases rarely reach."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from streamjoin import memory, oracle, run, verify
from streamjoin.engines import catalog
from streamjoin.engines.crew import Crew
from streamjoin.engines.job import Job
from streamjoin.engines.kernels.flat import cuts, listing, plans, ranges, sharing, sorting
from streamjoin.engines.sliding.flat import engine as flat_engine
from streamjoin.engines.sliding.flat import index as flat_index
from streamjoin.engines.sliding.flat import output as flat_output
from streamjoin.engines.sliding.flat import team as flat_team
from streamjoin.metrics import Meter
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window

BAND = Predicate.parse(band="k=k:2:3")
TERMS = Predicate.parse(band=["g=g:1:0", "k=k:2:3"])
EDGES = np.array([-(1 << 31), 1 - (1 << 31), 0, (1 << 31) - 2, (1 << 31) - 1], dtype=np.int64)


@pytest.mark.parametrize("seed", range(3))
def test_a_map_keeps_the_order_of_codes_and_fills_blocks_evenly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    crowd = rng.integers(1 << 30, (1 << 30) + 5000, 20_000)
    samples = [rng.integers(0, 1 << 32, 20_000), crowd, np.append(crowd, [0, (1 << 32) - 1])]
    sample, blocks = samples[seed].astype(np.uint32), 500
    words, tables = np.zeros(cuts.CUT_WORDS, np.uint64), np.zeros(cuts.TABLE_WORDS, np.uint64)
    cuts.cut_evenly(sample, blocks, 0, words, tables)
    asked = np.sort(np.append(sample, [0, (1 << 32) - 1]).astype(np.uint32))
    by = cuts.Map(*map(np.uint64, cuts.map_of(words, np.uint64(0))))
    found = [int(cuts.block_of(tables, by, code)) for code in asked[::7]]
    assert found == sorted(found)
    assert 0 <= found[0] <= found[-1] < blocks
    assert np.bincount(found, minlength=blocks).max() * 7 < 6 * len(sample) / blocks


def test_groups_of_any_length_are_sorted() -> None:
    rng = np.random.default_rng(3)
    for count in (0, 1, 2, 24, 25, 300):
        rows = rng.integers(0, 1000, count + 2).astype(np.uint32)
        right = [rows[0], *sorted(rows[1 : count + 1]), rows[count + 1]]
        sorting.sort(rows, np.uint64(1), np.uint64(count + 1))
        assert rows.tolist() == right


def keys_of(name: str, count: int, rng: np.random.Generator) -> Any:
    """Keys that crowd, move, or lie at the ends of their type."""
    if name == "all equal":
        return np.full(count, 7)
    if name == "moving":
        return np.arange(count) * 5 + rng.integers(0, 9, count)
    return rng.choice(EDGES, count)


@pytest.mark.parametrize("order", ["none", "outer", "inner"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_hard_keys_in_small_batches_give_the_oracles_result(
    threads: int, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"MIN_RECUT": 8, "MIN_ROOM": 16, "SHARED_PAIRS": 64}.items():
        monkeypatch.setattr(flat_index, name, value)
    monkeypatch.setattr(flat_output, "OUTPUT_PAIRS", 64)
    monkeypatch.setattr(flat_output, "RESERVED_PAIRS", 64)
    monkeypatch.setattr(flat_engine, "MIN_SHARED", 2)
    monkeypatch.setattr(flat_team, "MATCH_PAIRS", 64)
    monkeypatch.setattr(flat_team, "CHUNK_PAIRS", 40)
    monkeypatch.setattr(flat_team, "PART", 16)
    monkeypatch.setattr(flat_index, "PART", 16)
    monkeypatch.setattr(flat_index, "MOVED_ROWS", 16)
    engine, rng = catalog.get("ibwj-flat"), np.random.default_rng(1)
    for name in ("all equal", "moving", "ends"):
        ts = [np.sort(rng.integers(0, 60, 150)).astype(np.int64) for _ in range(2)]
        r, s = (
            Stream({"k": keys_of(name, 150, rng), "g": rng.integers(0, 4, 150)}, each, "x")
            for each in ts
        )
        windows = ("count:90,20", "time:9us,30us", "all")
        for window, predicate in itertools.product(windows, (BAND, TERMS)):
            job = Job(r, s, predicate, parse_window(window), threads=threads, order=order)
            job = run.complete(engine, job, {"batch": 40})
            pairs, what = run.run(engine, job).pairs, f"{name}, {window}, {predicate.text}"
            verify.check(pairs, oracle.join(r, s, predicate, job.window), what)
            verify.check_order(pairs, job, engine.promise(job))
            assert engine.promise(job) == ("outer" if (order, threads) == ("none", 1) else order)


@pytest.mark.parametrize("order", ["none", "outer"])
def test_an_interrupt_while_threads_are_sent_to_work_ends_those_that_wait(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.arange(100)
    r, s = (Stream({"k": rows}, rows, "x") for _ in range(2))
    job = Job(r, s, BAND, parse_window("all"), threads=2, order=order)
    job = run.complete(catalog.get("ibwj-flat"), job, {"batch": 200})
    crew, submitted = Crew(2), []
    index, submit = flat_engine.index_of(job, crew, 1), crew._pools[0].submit

    def interrupted(*call: Any) -> Any:
        submitted.append(at_work := submit(*call))
        deadline_s = time.monotonic() + 30
        while not (at_work.running() or at_work.done()) and time.monotonic() < deadline_s:
            time.sleep(1e-3)
        raise KeyboardInterrupt  # the other thread never arrives at the first barrier

    monkeypatch.setattr(crew._pools[0], "submit", interrupted)
    with crew, pytest.raises(KeyboardInterrupt):
        index.join_shared(slice(0, 100), slice(0, 100), Meter(), crew)
    assert submitted[0].done()


def test_pages_are_touched_once_and_no_word_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_output, "RESERVED_PAIRS", 10_000)
    monkeypatch.setattr(flat_output, "HUGE_FROM_PAIRS", 3000)
    buffer, page, touched = flat_output.Buffer(True), 1024, []
    buffer.make_room(16)
    buffer.words[:] = np.arange(20_000)
    for pairs, likely, stop in ((2500, 5000, 9000), (700, 50, 9000), (600, 2600, 9000)) * 3:
        before, room = buffer.used, buffer.room_for(stop, likely, page)
        assert room.first == before
        assert before >= 3000 or not room.pages
        touched += [room.untouched + each * page for each in range(room.pages)]
        assert all(before <= at < stop for at in touched[len(touched) - room.pages :])
        buffer.emit(min(pairs, 9000 - before), Meter())
    assert len(touched) > 3
    assert min(itertools.starmap(lambda low, high: high - low, itertools.pairwise(touched))) >= page
    sharing.touch(0, 1, buffer.words, 0, 1)
    assert (buffer.words == np.arange(20_000)).all()


@pytest.mark.parametrize("lengths", [(0, 40), (40, 0), (1, 300), (300, 7), (123, 130)])
def test_rows_are_listed_with_those_that_arrived_before(lengths: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(lengths))
    for span in (0, 40, 2000):
        # Rows behind the end of a part are of no part: they never count.
        ts = [np.sort(rng.integers(0, span + 1, 3 + rows + 20)) for rows in lengths]
        ends = [3 + rows for rows in lengths]
        room = max(lengths) + 16
        marks = (rng.random(2 * room) < 0.6).astype(np.uint8)
        chosen = [
            np.flatnonzero(marks[at : at + n]) for at, n in ((0, lengths[0]), (room, lengths[1]))
        ]
        rows, places = (np.zeros(2 * room, dtype=np.uint32) for _ in range(2))
        groups = np.zeros(2 * (room // 16 + 2), dtype=np.uint64)
        first, u64 = (0, len(groups) // 2), np.uint64
        counts = [
            listing.list_marked(marks, u64(side * room), u64(n), rows, groups, u64(first[side]))
            for side, n in enumerate(lengths)
        ]
        assert [int(count) for count in counts] == [len(each) for each in chosen]
        bounds = [(u64(3), u64(end)) for end in ends]
        lists = [(u64(side * room), u64(counts[side])) for side in range(2)]
        listing.place(*ts, *bounds, *lists, rows, places)
        for side, listed in enumerate(chosen):
            at = slice(side * room, side * room + len(listed))
            assert rows[at].tolist() == listed.tolist()
            other = ts[1 - side][3 : ends[1 - side]]
            before = np.searchsorted(other, ts[side][3 + listed], side="right" if side else "left")
            assert places[at].tolist() == before.tolist()
            for row in range(lengths[side] + 1):
                found = listing.listed_before(groups, u64(first[side]), u64(row))
                assert int(found) == int((listed < row).sum())


class Parts(Meter):
    """Keeps what is emitted."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[Any] = []

    def emit(self, r_rows: Any, s_rows: Any, *given: Any) -> bool:
        """Note the arrays."""
        self.parts.append((r_rows, s_rows))
        return super().emit(r_rows, s_rows, *given)


@pytest.mark.parametrize("chunk", [1, 17, 300, 5000])
@pytest.mark.parametrize("threads", [2, 3])
def test_chunks_of_any_size_are_filled_and_leave_no_gaps(
    threads: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flat_team, "CHUNK_PAIRS", chunk)
    monkeypatch.setattr(flat_team, "MATCH_PAIRS", 64)
    rng, engine = np.random.default_rng(7), catalog.get("ibwj-flat")
    ts = np.arange(6000)
    for keys in (4000, 300, 3):  # few, some, and very many matches of an arrival
        r, s = (Stream({"k": rng.integers(0, keys, 6000)}, ts, "x") for _ in range(2))
        s = s.slice(0, 0) if keys == 300 and threads == 3 else s
        job = Job(r, s, BAND, parse_window("count:150"), threads=threads)
        job = run.complete(engine, job, {"batch": 2500})
        pairs = run.run(engine, job).pairs
        verify.check(pairs, oracle.join(r, s, BAND, job.window), f"{keys} keys")


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pairs_of_all_threads_lie_side_by_side(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flat_team, "CHUNK_PAIRS", 1000)
    rng = np.random.default_rng(5)
    r, s = (Stream({"k": rng.integers(0, 500, 9000)}, np.arange(9000), "x") for _ in range(2))
    job = Job(r, s, BAND, parse_window("count:300"), threads=threads)
    job = run.complete(catalog.get("ibwj-flat"), job, {"batch": 3000})
    meter = Parts()
    catalog.get("ibwj-flat").run(job, None, meter)
    assert len(meter.parts) > 2
    for before, after in itertools.pairwise(meter.parts):
        assert all(memory.follows(*rows) for rows in zip(before, after, strict=True))


def shared_out(index: Any, team: Any, threads: int, arrivals: int) -> Iterator[tuple[Any, Any]]:
    """Yield what is planned of each arrival in all, and by each thread."""
    whole = np.zeros((arrivals, plans.PLAN_WORDS), dtype=np.uint32)
    keys, flat = index._columns.keys, index.flat
    plans.plan(index._times, keys, flat.tables, flat.cuts, (0, 0), 0, arrivals, whole)
    by_row: dict[int, list[Any]] = {int(plan[plans.ROW]): [] for plan in whole}
    share = team._share
    for thread in range(threads):
        entries = ranges.plan_own(
            index._times, keys, flat, (0, 0), arrivals, share.owned, np.uint64(thread), share.work
        )
        own = share.work.plan[thread * flat_team.PART :][: int(entries)]
        rows = [int(plan[plans.ROW]) for plan in own]
        assert rows == [row for row in by_row if row in set(rows)]  # in the order of arrival
        for row, plan in zip(rows, own.copy(), strict=True):
            by_row[row].append(plan)
    for plan in whole:
        yield plan, by_row[int(plan[plans.ROW])]


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["band", "equality"])
def test_each_block_of_an_arrival_is_planned_by_the_thread_that_owns_it(
    kind: str, threads: int
) -> None:
    rng = np.random.default_rng(threads)
    for lengths, span in (((400, 300), 90), ((500, 3), 700), ((1, 300), 5), ((250, 250), 0)):
        ts = [np.sort(rng.integers(0, span + 1, each)).astype(np.int64) for each in lengths]
        r, s = (Stream({"k": rng.integers(0, 400, len(each))}, each, "x") for each in ts)
        predicate = Predicate.parse("k") if kind == "equality" else Predicate.parse(band="k=k:2:30")
        job = Job(r, s, predicate, parse_window("time:50us"), threads=threads)
        job = run.complete(catalog.get("ibwj-flat"), job, {})
        with Crew(threads) as crew:
            index = flat_engine.index_of(job, crew, 1)
        rows = slice(0, lengths[0]), slice(0, lengths[1])
        for side, of_side in enumerate(rows):
            index._cut_if_due(side, of_side)
        team = flat_team.Team(threads)
        team.begin(index.flat, index._columns.keys, ((0, lengths[0]), (0, lengths[1])), 0)
        for plan, parts in shared_out(index, team, threads, sum(lengths)):
            inserted = [int(part[plans.OWN]) for part in parts if part[plans.OWN] != plans.NOWHERE]
            assert inserted == [int(plan[plans.OWN])] * bool(plan[plans.OWN] != plans.NOWHERE)
            looked_up = sorted(
                block
                for part in parts
                if part[plans.SPAN]
                for block in range(int(part[plans.LOW_BLOCK]), int(part[plans.HIGH_BLOCK]) + 1)
            )
            blocks = range(int(plan[plans.LOW_BLOCK]), int(plan[plans.HIGH_BLOCK]) + 1)
            assert looked_up == list(blocks) * bool(plan[plans.SPAN])
            same = [plans.FIRST, plans.EXPIRED, plans.LOW, plans.WIDTH, plans.KEY]
            assert all((part[same] == plan[same]).all() for part in parts)
