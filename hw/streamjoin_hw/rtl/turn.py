"""Whose turn it is: cores store and expire tuples round robin, each by its own count."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_hw.rtl.streams import Component, payload_of


class Turn(Component):
    """Report every ``cores``-th event, the first being number ``index``.

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

    def __init__(self, cores: int) -> None:
        self.cores = cores
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
        with m.If(self.clear):
            m.d.sync += [left.eq(self.index), mine.eq(self.index == 0)]
        with m.Elif(self.event):
            alone = Const(self.cores == 1, 1)
            m.d.sync += [
                left.eq(Mux(mine, self.cores - 1, left - 1)),
                mine.eq(Mux(mine, alone, left == 1)),
            ]
        return m
