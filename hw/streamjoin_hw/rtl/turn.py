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

    def __init__(self, cores: int, *, is_late: bool = False) -> None:
        self.cores = cores
        self.is_late = is_late
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
        less: Value = one_less(left)
        if self.is_late:
            late_less = payload_of(len(left))
            m.d.sync += [late_less.eq(less), mine.eq(left == 0)]
            less = late_less
        with m.If(self.clear):
            m.d.sync += left.eq(self.index)
        with m.Elif(self.event):
            m.d.sync += left.eq(Mux(mine, self.cores - 1, less))
        if not self.is_late:
            with m.If(self.clear):
                m.d.sync += mine.eq(self.index == 0)
            with m.Elif(self.event):
                m.d.sync += mine.eq(Mux(mine, Const(self.cores == 1, 1), left == 1))
        return m
