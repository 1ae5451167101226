"""The stage that decides kinds of join, by itself, behind an array that is played by the test."""

import random
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import pytest
from amaranth.hdl import ResetInserter, Signal
from tests.hw.checks import simulate

from streamjoin_common.contract import (
    JOIN_KINDS,
    SIDE_R,
    SIDE_S,
    SWEPT_ROWS,
    DesignParams,
)
from streamjoin_hw.rtl.kinds.rows import RowRing
from streamjoin_hw.rtl.kinds.stage import KindStage, Marks
from streamjoin_hw.rtl.streams import result_layout
from streamjoin_hw.sim.testing import rows_of_kind

PARAMS = DesignParams(
    cores=1, segment_tuples=40, forward="fast", kinds="all", payload_bits=10, window_memory="bram"
)
LATE_CYCLES = 5
"""Cycles after which an array's ``busy`` shows what entered it, at most."""

PATIENCE_CYCLES = 500


class Array:
    """Plays an array: keeps both windows, finds pairs, and gives them after a while.

    ``owed`` are pairs of slots, ``pairs`` those of row numbers.
    """

    def __init__(self, windows: Sequence[int], chance: random.Random, domain: int) -> None:
        self.windows = [deque[tuple[int, int, int]](maxlen=window) for window in windows]
        self.owed: deque[tuple[int, int, int]] = deque()
        self.entering: deque[tuple[int, int, int]] = deque()
        self.pairs: list[tuple[int, int]] = []
        self.counts = [0, 0]
        self.was_busy = deque([False] * LATE_CYCLES, maxlen=LATE_CYCLES)
        self._chance, self._domain = chance, domain

    def accept(self, side: int, slot: int) -> None:
        """Take a tuple in front of the array."""
        self.entering.append((side, slot, self.counts[side]))
        self.counts[side] += 1

    def enter(self) -> None:
        """Store the oldest tuple that was accepted and find its pairs."""
        side, slot, row = self.entering.popleft()
        key = self._chance.randrange(self._domain)
        for other_key, other_slot, other_row in self.windows[1 - side]:
            if key == other_key:
                both = (slot, other_slot), (row, other_row)
                (r, s), pair = both if side == SIDE_R else ((b, a) for a, b in both)
                self.owed.append((r, s, side))
                self.pairs.append(pair)
        self.windows[side].append((key, slot, row))

    @property
    def busy(self) -> bool:
        """What the array reports: late by some cycles, as that of the designs."""
        return self.was_busy[0] or bool(self.owed)


class Bench:
    """Drives a stage cycle by cycle and keeps what it gives: payload or None of R and S."""

    def __init__(self, ctx: Any, stage: Any, chance: random.Random) -> None:
        self.ctx, self.stage, self.chance = ctx, stage, chance
        self.given: list[tuple[int | None, int | None]] = []
        self.offered: Any = None

    async def tick(self, stall: float) -> bool:
        """Let a cycle pass; returns whether the stage took the result."""
        ctx, stage = self.ctx, self.stage
        ready = self.chance.random() >= stall
        ctx.set(stage.o.ready, ready)
        takes = bool(ctx.get(stage.results.valid) and ctx.get(stage.results.ready))
        if ctx.get(stage.o.valid):
            beat = ctx.get(stage.o.payload)
            r = None if beat.r_missing else beat.r_payload
            s = None if beat.s_missing else beat.s_payload
            row = (r, s)
            assert self.offered in (None, row), "an offered result changed"
            self.offered = None if ready else row
            if None in row:
                assert beat.side == (SIDE_R if row[1] is None else SIDE_S), "of the wrong side"
                assert beat[f"{'rs'[1 - beat.side]}_payload"] == 0, "a payload is missing and not 0"
            if ready:
                self.given.append(row)
        else:
            assert self.offered is None, "an offered result was withdrawn"
        await ctx.tick()
        return takes

    async def begin(self, kind: str, windows: Sequence[int]) -> None:
        """Set an input up."""
        ctx, stage = self.ctx, self.stage
        ctx.set(stage.kind, JOIN_KINDS.index(kind))
        ctx.set(stage.window_r, windows[SIDE_R])
        ctx.set(stage.window_s, windows[SIDE_S])
        ctx.set(stage.draining, 0)
        ctx.set(stage.idle, 1)
        ctx.set(stage.clear, 1)
        await self.tick(0)
        ctx.set(stage.clear, 0)
        self.given = []

    async def run(
        self, array: Array, sides: Sequence[int], *, stall: float = 0, gap: float = 0
    ) -> None:
        """Give tuples whose payloads are their row numbers, as far as there is room."""
        ctx, stage, left = self.ctx, self.stage, deque(sides)
        waited = 0
        while left or array.entering or array.owed:
            accepts = bool(left) and bool(ctx.get(stage.room)) and len(array.entering) < 7
            accepts &= self.chance.random() >= gap
            ctx.set(stage.taken, accepts)
            if accepts:
                side = left.popleft()
                ctx.set(stage.side, side)
                ctx.set(stage.payload, array.counts[side] % (1 << PARAMS.payload_bits))
                array.accept(side, ctx.get(stage.slot))
            enters = len(array.entering) > accepts and self.chance.random() < 0.6
            ctx.set(stage.passed, enters)
            array.was_busy.append(bool(array.owed))
            offers = bool(ctx.get(stage.results.valid)) or self.chance.random() < 0.8
            ctx.set(stage.results.valid, bool(array.owed) and offers)
            if array.owed:
                r, s, of = array.owed[0]
                ctx.set(stage.results.payload, {"r_payload": r, "s_payload": s, "side": of})
            ctx.set(stage.working, array.busy)
            takes = await self.tick(stall)
            ctx.set(stage.idle, 0)
            if takes:
                array.owed.popleft()
            if enters:
                array.enter()
            waited = 0 if accepts or takes else waited + 1
            assert waited < PATIENCE_CYCLES, "no tuple is accepted any more"
        for name in ("taken", "passed"):
            ctx.set(getattr(stage, name), 0)
        ctx.set(stage.results.valid, 0)

    async def end(self, array: Array, *, stall: float = 0) -> None:
        """Drain the stage."""
        ctx, stage = self.ctx, self.stage
        ctx.set(stage.draining, 1)
        for _ in range(PATIENCE_CYCLES + 10 * PARAMS.kept_rows):
            array.was_busy.append(False)
            ctx.set(stage.working, array.busy)
            await self.tick(stall)
            if not ctx.get(stage.busy):
                break
        assert not ctx.get(stage.busy), "the stage does not end"

    def check(self, array: Array, kind: str) -> None:
        """Compare what was given with what the kind of join asks for."""
        mask = (1 << PARAMS.payload_bits) - 1
        expected = rows_of_kind(array.pairs, range(array.counts[0]), range(array.counts[1]), kind)
        owed = Counter(tuple(x if x is None else x & mask for x in row) for row in expected)
        given = Counter((r, None if kind == "semi" else s) for r, s in self.given)
        wrong = f"missing {dict(owed - given)}, surplus {dict(given - owed)}"
        assert given == owed, f"rows differ: {wrong}"


def drawn(chance: random.Random, tuples: int, share_s: float) -> list[int]:
    return [int(chance.random() < share_s) for _ in range(tuples)]


def made(*, reset: Signal | None = None) -> tuple[Any, Any]:
    """Return a stage and what is simulated."""
    stage = KindStage(PARAMS, result_layout(PARAMS.array))
    return stage, stage if reset is None else ResetInserter(reset)(stage)


@pytest.mark.parametrize("kind", JOIN_KINDS)
def test_a_stage_gives_the_rows_of_each_kind(kind: str) -> None:
    """One input after the other, with windows of any size, gaps and stalls of any density."""
    stage, simulated = made()
    chance = random.Random(JOIN_KINDS.index(kind))

    async def testbench(ctx: Any) -> None:
        bench = Bench(ctx, stage, chance)
        inputs = [
            ((40, 40), 230, 0.5, 30, 0.0, 0.1),
            ((40, 1), 230, 0.2, 60, 0.3, 0.0),
            ((3, 7), 210, 0.5, 2, 0.0, 0.0),
            ((9, 40), 1, 0.5, 1, 0.5, 0.0),
        ]
        for windows, tuples, share_s, domain, stall, gap in inputs:
            await bench.begin(kind, windows)
            array = Array(windows, chance, domain)
            await bench.run(array, drawn(chance, tuples, share_s), stall=stall, gap=gap)
            await bench.end(array, stall=stall)
            bench.check(array, kind)

    simulate(simulated, testbench)


def test_rows_come_out_while_an_input_runs() -> None:
    """Rows beyond the window are given once the array rests, and those within it are not."""
    stage, simulated = made()
    chance = random.Random(1)

    async def testbench(ctx: Any) -> None:
        bench = Bench(ctx, stage, chance)
        windows = (SWEPT_ROWS + 1, 8)
        await bench.begin("full", windows)
        array = Array(windows, chance, 1 << 30)
        await bench.run(array, [SIDE_R] * (3 * SWEPT_ROWS - 1))
        for _ in range(150):
            await bench.tick(0)
        # Groups are given as a whole.
        early = [(row, None) for row in range(SWEPT_ROWS)]
        assert bench.given == early, "rows differ"
        await bench.end(array)
        bench.check(array, "full")

    simulate(simulated, testbench)


def test_rows_wait_until_the_array_rests() -> None:
    """Neither tuples in front of it nor results of which it does not report yet are forgotten."""
    stage, simulated = made()

    async def testbench(ctx: Any) -> None:
        bench = Bench(ctx, stage, random.Random(4))

        async def see(cycles: int, given: int) -> None:
            for _ in range(cycles):
                await bench.tick(0)
            assert bench.given == [(row, None) for row in range(given)], "given too early"

        await bench.begin("left", (1, 1))
        for row in range(SWEPT_ROWS + 1):
            ctx.set(stage.taken, 1)
            ctx.set(stage.payload, row)
            ctx.set(stage.passed, row != SWEPT_ROWS)
            await bench.tick(0)
        ctx.set(stage.taken, 0)
        ctx.set(stage.passed, 0)
        await see(60, 0)
        ctx.set(stage.passed, 1)
        await see(1, 0)
        ctx.set(stage.passed, 0)
        await see(LATE_CYCLES, 0)
        ctx.set(stage.working, 1)
        await see(60, 0)
        ctx.set(stage.working, 0)
        await see(60, SWEPT_ROWS)

    simulate(simulated, testbench)


def test_after_a_reset_in_the_middle_the_next_input_is_exact() -> None:
    reset = Signal()
    stage, simulated = made(reset=reset)
    chance = random.Random(2)

    async def testbench(ctx: Any) -> None:
        bench = Bench(ctx, stage, chance)
        for kind, tuples in (("full", 110), ("anti", 60)):
            await bench.begin(kind, (40, 40))
            # Nearly every row has a partner, and its mark is set.
            await bench.run(Array((40, 40), chance, 9), drawn(chance, tuples, 0.5))
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)
            bench.offered = None
            await bench.begin(kind, (40, 40))
            array = Array((40, 40), chance, 200)
            await bench.run(array, drawn(chance, 100, 0.5))
            await bench.end(array)
            bench.check(array, kind)

    simulate(simulated, testbench)


def test_marks_of_rows_side_by_side_are_all_kept() -> None:
    """Rows of one group and of others, one a cycle, with pauses in which nothing moves."""
    marks = Marks(PARAMS)
    chance = random.Random(3)
    rows = [(chance.randrange(2), chance.randrange(SWEPT_ROWS)) for _ in range(150)]

    async def testbench(ctx: Any) -> None:
        seen: set[tuple[int, int]] = set()
        before = None
        for group, row in [*rows, (0, 0)]:
            for moves in (*[0] * (chance.random() < 0.3), 1):
                ctx.set(marks.moves, moves)
                ctx.set(marks.address, group if moves else 1 - group)
                if before is not None:
                    ctx.set(marks.row, before[1])
                    ctx.set(marks.marks, 1)
                    assert ctx.get(marks.was_met) == (before in seen), "a mark was lost"
                await ctx.tick()
            seen |= {before} if before else set()
            before = (group, row)

    simulate(marks, testbench)


def test_a_ring_has_room_for_all_its_rows_but_none_for_more() -> None:
    ring = RowRing(PARAMS)

    async def testbench(ctx: Any) -> None:
        ctx.set(ring.window, 40)
        ctx.set(ring.clear, 1)
        await ctx.tick()
        ctx.set(ring.clear, 0)
        accepted = 0

        async def fill() -> None:
            nonlocal accepted
            ready = 0  # a register, as that of the encoder
            for _ in range(2 * PARAMS.kept_rows):
                accepts, ready = ready, ctx.get(ring.room)
                assert ctx.get(ring.slot) == accepted % PARAMS.kept_rows
                ctx.set(ring.arrives, accepts)
                accepted += accepts
                await ctx.tick()

        await fill()
        assert 0 < PARAMS.kept_rows - accepted <= SWEPT_ROWS, "too few are free"
        assert not ctx.get(ring.due), "rows whose partners may be on their way"
        ctx.set(ring.settles, 1)
        await ctx.tick().repeat(2)
        ctx.set(ring.settles, 0)
        assert ctx.get(ring.due)
        assert ctx.get(ring.live) == (1 << SWEPT_ROWS) - 1
        # The group that is due need not have left for arrivals to go on.
        await fill()
        assert accepted == PARAMS.kept_rows

    simulate(ring, testbench)
