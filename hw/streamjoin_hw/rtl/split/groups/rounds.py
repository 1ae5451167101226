"""Which probes of a batch are served together: those of one group of arrivals."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_hw.rtl.streams import Component


class Rounds(Component):
    """Divide a batch after each probe that ends a group; the last round may end none.

    Parameters
    ----------
    probes : int
        Probes of a batch, at least 1.

    Members
    -------
    take : In(1), count : In, ends : In(probes)
        A batch begins: how many probes, and a bit for each that a star follows.
    step : In(1)
        The next round begins.
    serves : Out(probes)
        The probes of the round; from registers, as all outputs.
    last : Out(1)
        It is the batch's last.
    star : Out(1)
        A star follows it.
    """

    take: Signal
    count: Signal
    ends: Signal
    step: Signal
    serves: Signal
    last: Signal
    star: Signal

    def __init__(self, probes: int) -> None:
        self.probes = probes
        super().__init__(
            {
                **{name: In(1) for name in ("take", "step")},
                "count": In(bits_for(probes)),
                "ends": In(probes),
                "serves": Out(probes),
                **{name: Out(1) for name in ("last", "star")},
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the probes that are left, and the first of their groups a cycle ahead."""
        m = Module()
        probes = self.probes
        left = Signal(probes)
        ends = Signal(probes)
        next_left = Signal(probes)
        next_ends = Signal(probes)
        following = Signal(probes)
        all_of: Any = Signal(probes)
        m.d.comb += [
            all_of.eq((1 << self.count) - 1),
            next_left.eq(Mux(self.take, all_of, left & ~self.serves)),
            next_ends.eq(Mux(self.take, self.ends, ends)),
            following.eq(next_left & up_to_lowest(next_left & next_ends)),
        ]
        with m.If(self.take | self.step):
            m.d.sync += [
                left.eq(next_left),
                ends.eq(next_ends),
                self.serves.eq(following),
                self.last.eq(next_left == following),
                self.star.eq((next_left & next_ends).any()),
            ]
        return m


def up_to_lowest(bits: Signal | Value) -> Value:
    """Return 1 in all places up to the lowest that is 1; everywhere if none is."""
    lowest = bits & (~bits + 1)[: len(bits)]
    return lowest | (lowest - 1)[: len(bits)]
