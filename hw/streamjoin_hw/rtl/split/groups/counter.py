"""Which arrival is the last one of its group."""

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from streamjoin_hw.rtl.streams import Component

SIZE_BITS = 32
"""Bits of a group's length in arrivals: a whole register."""


class GroupCounter(Component):
    """Count arrivals of both sides together, group by group.

    Members
    -------
    idle : In(1)
        Between two inputs: ``size`` is looked at now, and kept while an input runs.
    size : In(SIZE_BITS)
        Arrivals of a group; 0: the whole input is one.
    arrives : In(1)
        A tuple arrives.
    closes : Out(1)
        The next one is its group's last, or the one that arrives now; from a register.
    """

    idle: Signal
    size: Signal
    arrives: Signal
    closes: Signal

    def __init__(self) -> None:
        super().__init__({"idle": In(1), "size": In(SIZE_BITS), "arrives": In(1), "closes": Out(1)})

    def elaborate(self, _platform: object) -> Module:
        """Build a counter that runs down; what is compared with is on no path to the cores."""
        m = Module()
        size = Signal(SIZE_BITS)
        left = Signal(SIZE_BITS)
        single = Signal()
        endless = Signal()
        with m.If(self.idle):
            m.d.sync += [
                size.eq(self.size),
                left.eq(self.size),
                single.eq(self.size == 1),
                endless.eq(self.size == 0),
                self.closes.eq(self.size == 1),
            ]
        with m.Elif(self.arrives & self.closes):
            m.d.sync += [left.eq(size), self.closes.eq(single)]
        with m.Elif(self.arrives):
            m.d.sync += [left.eq(left - 1), self.closes.eq((left == 2) & ~endless)]
        return m
