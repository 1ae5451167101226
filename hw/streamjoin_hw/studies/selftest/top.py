"""The hardware of a self-test: generator, the whole design, checksum, verdict."""

from typing import Any

from amaranth.hdl import Cat, ClockDomain, Module, Signal
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams, TUser, result_layout, tuple_layout
from streamjoin_hw.flow.emit import verilog_around
from streamjoin_hw.rtl.streams import Component
from streamjoin_hw.rtl.top import Top
from streamjoin_hw.studies.selftest.stimulus import (
    CHECKSUM_BITS,
    FACTOR_BITS,
    SEED,
    SHIFTS,
    STATE_BITS,
    Expected,
    key_bits,
)

SELFTEST_MODULE = "streamjoin_selftest"
"""Verilog module of the top level."""

RESET_CYCLES_LOG2 = 4
PATIENCE_LOG2 = 22
"""Logarithm of the cycles without an accepted tuple or a result after which the design has failed:
0.17 s at 25 MHz, a hundred times as long as a drain of the longest window."""


def selftest_verilog(params: DesignParams, tuples: int, expected: Expected) -> str:
    """Return a design's self-test as Verilog; see :class:`SelfTest`."""
    return verilog_around(
        params, lambda: SelfTest(params, tuples, expected, by_reference=True), SELFTEST_MODULE
    )


class SelfTest(Component):
    """The design with what feeds it and judges its results.

    Begins when it is configured, ends by itself. One of ``running``, ``passed``, ``failed`` is 1
    after the reset.

    Parameters
    ----------
    params : DesignParams
        The design, without timestamps.
    tuples : int
        Tuples to give it, at least 1.
    expected : Expected
        The results that are expected (:func:`streamjoin_hw.studies.selftest.stimulus.expected`).
    by_reference : bool
        See :class:`~streamjoin_hw.rtl.chain.array.Chain`.
    patience_log2 : int
        See :data:`PATIENCE_LOG2`.

    Members
    -------
    clk : In(1)
    restart : In(1)
        Begin anew while it is 1; asynchronous, a button.
    fault : In(1)
        If it is 1 as the test begins, a bit of the first result is turned over: the test must fail.
    running, passed, failed : Out(1)
    """

    clk: Signal
    restart: Signal
    fault: Signal
    running: Signal
    passed: Signal
    failed: Signal

    def __init__(
        self,
        params: DesignParams,
        tuples: int,
        expected: Expected,
        *,
        by_reference: bool = False,
        patience_log2: int = PATIENCE_LOG2,
    ) -> None:
        self.params = params
        self.tuples = tuples
        self.expected = expected
        self.by_reference = by_reference
        self.patience_log2 = patience_log2
        inputs = {name: In(1) for name in ("clk", "restart", "fault")}
        super().__init__(inputs | {name: Out(1) for name in ("running", "passed", "failed")})

    def elaborate(self, _platform: object) -> Module:
        """Build reset, generator, checksum and verdict around the design."""
        m = Module()
        m.submodules.top = top = Top(self.params, by_reference=self.by_reference)
        # One clock signal for all: a copy of it would rise later in simulation.
        board: Any = ClockDomain("board", reset_less=True)
        work: Any = ClockDomain("work")
        board.clk = work.clk = top.aclk
        m.domains += [board, work]
        m.d.comb += top.aclk.eq(self.clk)
        self._reset(m, work)
        m.d.comb += [top.aresetn.eq(~work.rst), top.m_axis_results_tready.eq(1)]

        moves = self._generate(m, top), self._judge(m, top)
        quiet = Signal(self.patience_log2)
        stuck = Signal()
        with m.If(moves[0] | moves[1]):
            m.d.work += quiet.eq(0)
        with m.Elif(self.running):
            m.d.work += [quiet.eq(quiet + 1), stuck.eq(stuck | quiet.all())]
        with m.If(stuck):
            m.d.comb += [self.running.eq(0), self.passed.eq(0), self.failed.eq(1)]
        return m

    def _reset(self, m: Module, work: Any) -> None:
        """Reset for some cycles at first, and after the button."""
        pressed = Signal(2)
        waited = Signal(RESET_CYCLES_LOG2)
        reset = Signal(init=1)
        m.d.board += [pressed.eq(Cat(self.restart, pressed)), reset.eq(~waited.all())]
        with m.If(pressed[1]):
            m.d.board += waited.eq(0)
        with m.Elif(~waited.all()):
            m.d.board += waited.eq(waited + 1)
        m.d.comb += work.rst.eq(reset)

    def _generate(self, m: Module, top: Any) -> Signal:
        """Give the tuples; returns whether one is taken."""
        bits = key_bits(self.params)
        state = Signal(STATE_BITS, init=SEED)
        number = Signal(range(self.tuples + 1))
        following = state
        for shift in SHIFTS:
            moved = following << shift if shift > 0 else following >> -shift
            step = Signal(STATE_BITS, name="step")
            m.d.comb += step.eq(following ^ moved[:STATE_BITS])
            following = step
        beat = top.s_axis_tuples_tdata
        for field in tuple_layout(self.params):
            target = beat[field.offset : field.offset + field.width]
            if field.name == "payload":
                m.d.comb += target.eq(number)
            else:
                index = int(field.name.removeprefix("key"))
                m.d.comb += target.eq(state[index * bits : (index + 1) * bits])
        taken = Signal()
        m.d.comb += [
            top.s_axis_tuples_tdest.eq(state[-1]),
            top.s_axis_tuples_tvalid.eq(number != self.tuples),
            top.s_axis_tuples_tlast.eq(number == self.tuples - 1),
            taken.eq(top.s_axis_tuples_tvalid & top.s_axis_tuples_tready),
        ]
        with m.If(taken):
            m.d.work += [state.eq(following), number.eq(number + 1)]
        return taken

    def _judge(self, m: Module, top: Any) -> Signal:
        """Add up the results and compare; returns whether a result is offered."""
        fields = {each.name: each for each in result_layout(self.params)}

        def factor(name: str) -> Signal:
            field = fields[name]
            factor_value = Signal(FACTOR_BITS + 1, name=f"{name}_factor")
            payload = top.m_axis_results_tdata[field.offset : field.offset + field.width]
            m.d.work += factor_value.eq(Cat(1, payload[:FACTOR_BITS]))
            return factor_value

        result_given: Signal = top.m_axis_results_tvalid
        r, s = factor("r_payload"), factor("s_payload")
        wrong = Signal()
        given = Signal(2)
        multiplied = Signal(2)
        product = Signal(CHECKSUM_BITS)
        results = Signal(CHECKSUM_BITS)
        checksum = Signal(CHECKSUM_BITS)
        right = Signal()
        ended = Signal()
        faulty = Signal(2)
        m.d.board += faulty.eq(Cat(self.fault, faulty))
        with m.If(given[0]):
            m.d.work += wrong.eq(0)
        m.d.work += [
            given[0].eq(result_given & top.m_axis_results_tuser[TUser.RESULT]),
            given[1].eq(result_given & top.m_axis_results_tlast),
            product.eq((r ^ Cat(0, wrong)) * s),
            multiplied.eq(given),
            right.eq((checksum == self.expected.checksum) & (results == self.expected.results)),
        ]
        with m.If(multiplied[0]):
            m.d.work += [checksum.eq(checksum + product), results.eq(results + 1)]
        # A verdict of what was added a cycle before; a result after the end spoils it.
        with m.If(multiplied[1]):
            m.d.work += ended.eq(1)
        judged = Signal()
        m.d.work += judged.eq(ended)
        fresh = Signal(init=1)
        m.d.work += fresh.eq(0)
        with m.If(fresh):
            m.d.work += wrong.eq(faulty[1])
        m.d.comb += [
            self.running.eq(~judged),
            self.passed.eq(judged & right),
            self.failed.eq(judged & ~right),
        ]
        return result_given
