"""Whose turn it is: cores store and expire tuples round robin, each by its own count."""

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_hw.rtl.streams import Component, one_less, payload_of


class Turn(Component):
    """Report every ``cores``-th event, the first being number ``index``.

    Parameters
    ----------
    cores : int
        The number of cores.
    is_late : bool
        ``mine`` is right from the second cycle after an event and after ``clear`` on, and no event
        comes before: it is worked out from registers alone.
    is_far : bool
        As ``is_late``, and a register enables what an event changes: the event comes from far.

    Members
    -------
    index : In(bits_for(cores - 1))
    clear : In(1)
        Begin anew; needed once before the first event, after a reset, too.
    event : In(1)
    mine : Out(1)
        This event, if there is one in this cycle, is the core's.
    """

    index: Signal
    clear: Signal
    event: Signal
    mine: Signal

    def __init__(self, cores: int, *, is_late: bool = False, is_far: bool = False) -> None:
        self.cores = cores
        self.is_late = is_late or is_far
        self.is_far = is_far
        super().__init__(
            {
                "index": In(bits_for(cores - 1)),
                "clear": In(1),
                "event": In(1),
                "mine": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build a counter that runs down to the core's turn."""
        m = Module()
        # `clear` alone resets them: beside the domain's reset it would pass a LUT.
        left = payload_of(range(max(2, self.cores)))
        mine = payload_of(1)
        m.d.comb += self.mine.eq(mine)
        event, less = self.event, one_less(left)
        is_zero: Value = left == 0
        if self.is_late:
            late_less = payload_of(len(left))
            m.d.sync += late_less.eq(less)
            less = late_less
        if self.is_far:
            event = Signal(name="late_event")
            m.d.sync += event.eq(self.event)
            # What it will be once this event has counted; of one core every turn is its own.
            is_zero = left == Mux(event, Const(self.cores > 1, 1), 0)
        with m.If(self.clear):
            m.d.sync += left.eq(self.index)
        with m.Elif(event):
            m.d.sync += left.eq(Mux(mine, self.cores - 1, less))
        if self.is_late:
            m.d.sync += mine.eq(is_zero)
        else:
            with m.If(self.clear):
                m.d.sync += mine.eq(self.index == 0)
            with m.Elif(event):
                m.d.sync += mine.eq(Mux(mine, Const(self.cores == 1, 1), left == 1))
        return m
