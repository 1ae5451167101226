"""On a small array, each pair that the windows owe is given once, and no other is."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value

from streamjoin_common.contract import (
    SIDE_R,
    SIDE_S,
    DesignParams,
    KeyType,
    Term,
    TermKind,
    TUser,
    active_cores,
)
from streamjoin_hw.formal.harness import Harness, StandIn
from streamjoin_hw.rtl.chain.segments import Planner
from streamjoin_hw.rtl.join import Join

ROW_BITS = 3
TIME_BITS = 8
MAX_ROWS = 7
"""Maximum rows of each side in the input of a proof; they are numbered from 0."""


def plan_of(params: DesignParams, window_r: int, window_s: int) -> dict[str, Any]:
    """Return the plan that :class:`~streamjoin_hw.rtl.chain.segments.Planner` gives."""

    def position(slot: int) -> dict[str, int]:
        word, lane = divmod(slot, params.lanes)
        return {"word": word, "lane": lane}

    active = active_cores(params, window_r, window_s)
    plan: dict[str, Any] = {"active": active}
    for side, window in (("r", window_r), ("s", window_s)):
        tuples, longer = divmod(window, active)
        plan[f"longer_{side}"] = longer
        plan[f"last_{side}"] = position(tuples - 1)
        # Nobody looks at it where no segment is longer, and it may not fit its width there.
        plan[f"last_longer_{side}"] = position(tuples if longer else tuples - 1)
    return plan


class ArrayMeeting(Harness):
    """The whole ``handshake`` design without registers, its windows fixed.

    The planner is cut out and its answer tied to what the contract says: its divisions take
    longer than a bounded proof can see, and ``tests/hw/test_segments.py`` holds it to that
    answer. The solver chooses gaps, sides, keys of one bit, stalls, the end of each input, and
    the one pair of rows that is watched.

    Parameters
    ----------
    cores, segment_tuples, lanes : int
        The array.
    window_r, window_s : int
        Count windows in tuples.
    dense : bool
        Tuples arrive without gaps and results are taken at once: the search, with less to choose,
        sees more tuples.
    forward : str
        As in :class:`~streamjoin_common.contract.DesignParams`; only the lock-step chain has a
        planner.
    times : (int, int), optional
        Time windows of R and S; the solver then also chooses the gaps in time, 0 or 1.
    """

    def __init__(
        self,
        cores: int,
        segment_tuples: int,
        lanes: int,
        window_r: int,
        window_s: int,
        *,
        dense: bool = False,
        forward: str = "step",
        times: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self.params = DesignParams(
            cores=cores,
            segment_tuples=segment_tuples,
            lanes=lanes,
            payload_bits=8,
            terms=(Term(TermKind.EQUI, KeyType.UINT32),),
            forward=forward,
            timestamp_bits=TIME_BITS if times else 0,
        )
        self.times = times
        self.later: Value = self.free(1, "later") if times else Const(0)
        self.windows = {SIDE_R: window_r, SIDE_S: window_s}
        self.side = self.free(1, "side")
        self.key = self.free(1, "key")
        self.ends = self.free(1, "ends")
        self.offers: Value = Const(1) if dense else self.free(1, "offers")
        self.ready: Value = Const(1) if dense else self.free(1, "ready")
        # The first input or the second, for which the first has to leave nothing behind.
        self.which = self.constant(1, "which")
        self.rows = [self.constant(ROW_BITS, "row_r"), self.constant(ROW_BITS, "row_s")]

    def _fixed_planner(self) -> Any:
        """Make the stand-in for the planner."""
        params, windows = self.params, self.windows
        plan = plan_of(params, windows[SIDE_R], windows[SIDE_S])

        class FixedPlanner(Planner):
            """Has always planned these windows."""

            def elaborate(self, _platform: object) -> Module:
                """Drive every output with its constant."""
                m = Module()
                m.d.comb += [
                    self.done.eq(1),
                    self.legal.eq(1),
                    self.window.eq(windows[SIDE_R]),
                    self.plan.eq(self.plan.shape().const(plan)),
                ]
                for side, word in ((SIDE_R, self.last_word_r), (SIDE_S, self.last_word_s)):
                    longest = -(-windows[side] // plan["active"])
                    m.d.comb += word.eq((longest - 1) // params.lanes)
                return m

        return FixedPlanner

    def prove(self, m: Module) -> None:
        """Number the rows, watch one pair, claim."""
        m.submodules.dut = dut = Join(self.params)
        if self.params.forward == "step":
            self.stand_ins.append(StandIn("rtl.chain.sequencer", "Planner", self._fixed_planner()))
        m.d.comb += [
            dut.window_r.eq(self.windows[SIDE_R]),
            dut.window_s.eq(self.windows[SIDE_S]),
        ]
        now = Signal(TIME_BITS)
        if self.times:
            # Time stands still while an offer waits, and advances by 0 or 1 with every tuple.
            arriving_ts: Any = dut.i.p.beat
            with m.If(dut.i.valid & dut.i.ready):
                m.d.sync += now.eq(now + self.later)
            m.d.comb += [
                arriving_ts.ts.eq(now),
                dut.time_r.eq(self.times[0]),
                dut.time_s.eq(self.times[1]),
            ]
        counts = [Signal(ROW_BITS, name="rows_r"), Signal(ROW_BITS, name="rows_s")]
        arriving: Any = dut.i.p.beat
        m.d.comb += [
            dut.enable.eq(1),
            dut.i.valid.eq(self.offers),
            dut.i.p.last.eq(self.ends),
            arriving.side.eq(self.side),
            arriving.key0.eq(self.key),
            dut.o.ready.eq(self.ready),
        ]
        self.keep_the_rules(m, dut.i)
        self.claim_the_rules(m, dut.o)
        taken, given = Signal(), Signal()
        m.d.comb += [taken.eq(dut.i.valid & dut.i.ready), given.eq(dut.o.valid & dut.o.ready)]
        punctuates = dut.o.p.user[TUser.PUNCTUATION]
        # The next input may enter while the punctuation of the last one still waits.
        inputs_begun, inputs_ended = Signal(2), Signal(2)
        self.assume(m, inputs_begun != 3)
        with m.If(taken & self.ends):
            m.d.sync += inputs_begun.eq(inputs_begun + 1)
        with m.If(given & punctuates):
            m.d.sync += inputs_ended.eq(inputs_ended + 1)
        counts_now = Mux(self.side == SIDE_S, counts[SIDE_S], counts[SIDE_R])
        m.d.comb += arriving.payload.eq(counts_now)

        owed, met = Signal(), Signal()
        self._follow(m, taken, counts, owed, (inputs_begun == self.which, now))
        mine = dut.o.valid & (inputs_ended == self.which)
        is_pair = mine & dut.o.p.user[TUser.RESULT]
        is_pair &= dut.o.p.r_payload == self.rows[SIDE_R]
        is_pair &= dut.o.p.s_payload == self.rows[SIDE_S]
        with m.If(is_pair & dut.o.ready):
            m.d.sync += met.eq(1)
        self.claim(m, ~is_pair | owed, "a pair is given only if the windows owe it")
        self.claim(m, ~is_pair | ~met, "no pair is given twice")
        self.claim(
            m,
            ~(mine & punctuates) | (met == owed),
            "before the punctuation every pair that the windows owe has been given",
        )
        self.claim(
            m,
            ~dut.o.valid
            | punctuates
            | (inputs_begun != inputs_ended)
            | ((dut.o.p.r_payload < counts[SIDE_R]) & (dut.o.p.s_payload < counts[SIDE_S])),
            "both rows of a result have arrived",
        )

    def _follow(
        self, m: Module, taken: Value, counts: list[Any], owed: Signal, when: tuple[Value, Value]
    ) -> None:
        """Count rows and work out, by the definition, whether the watched pair is owed."""
        watched, now = when
        keys = [Signal(name="key_r"), Signal(name="key_s")]
        arrival_times = [Signal(TIME_BITS, name="came_r"), Signal(TIME_BITS, name="came_s")]
        for side in (SIDE_R, SIDE_S):
            other = 1 - side
            arrives = taken & (self.side == side)
            self.assume(m, ~arrives | (counts[side] != MAX_ROWS))
            arrived = counts[other] > self.rows[other]
            in_window = counts[other] - self.rows[other] <= self.windows[other]
            if self.times:
                in_window &= now < arrival_times[other] + self.times[other]
            with m.If(arrives):
                m.d.sync += counts[side].eq(counts[side] + 1)
                with m.If(counts[side] == self.rows[side]):
                    m.d.sync += [keys[side].eq(self.key), arrival_times[side].eq(now)]
                    with m.If(watched & arrived & in_window & (keys[other] == self.key)):
                        m.d.sync += owed.eq(1)
        # An input's rows are numbered from 0.
        with m.If(taken & self.ends):
            m.d.sync += [count.eq(0) for count in counts]
