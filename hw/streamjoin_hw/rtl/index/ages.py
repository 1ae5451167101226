"""Where the tuples of a window are stored, in the order in which they expire."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.layouts import (
    ROUND_BITS,
    position_layout,
    ring_bits,
    sequence_bits,
)
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.streams import Component, View


class Ages(Component):
    """A ring of positions, the oldest known before it is asked for.

    With each tuple that arrives at most one expires: the oldest of a full count window or, with
    timestamps, one whose time window has ended. Tuples that should have left already, after a
    pause, are dropped one by one when they are compared.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    clear : In(1)
        Empty the window.
    arrive, full : In(1), position : In(position_layout(params))
        A tuple arrives, its count window is full, and where it is stored.
    end, now : In(timestamp_bits), if there are timestamps
        The first time at which its time window no longer holds it; when it arrived.
    expires : Out(1), oldest : Out(position_layout(params))
        With this arrival a tuple expires, and where it is stored.
    round : Out(ROUND_BITS)
        The round in which a tuple arrives. One ends when all tuples of the round before have
        expired, so that all that are in the window are of this one or of the one before.
    held : Out(sequence_bits(params))
        How many are in the window.
    evicted : Out(1), if there are timestamps
        Pulse: in the last cycle a tuple left by count before its time.
    """

    clear: Signal
    arrive: Signal
    full: Signal
    position: View
    end: Signal
    now: Signal
    expires: Signal
    oldest: View
    round: Signal
    held: Signal
    evicted: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        bits = params.timestamp_bits
        times = {"end": In(bits), "now": In(bits), "evicted": Out(1)} if bits else {}
        super().__init__(
            {
                **{name: In(1) for name in ("clear", "arrive", "full")},
                "position": In(position_layout(params)),
                **times,
                "expires": Out(1),
                "oldest": Out(position_layout(params)),
                "round": Out(ROUND_BITS),
                "held": Out(sequence_bits(params)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memory and the pointers into it."""
        m = Module()
        bits, slot = self.params.timestamp_bits, ring_bits(self.params)
        times = {"end": bits} if bits else {}
        kept = data.StructLayout({"position": position_layout(self.params), **times})
        memory: Any = memory_of(self.params.window_memory, kept, self.params.ring_tuples)
        m.submodules.memory = memory
        write = memory.write_port()
        read = memory.read_port(transparent_for=(write,))
        # `head` is the next tuple, `tail` the oldest of the window; `counted`, the oldest of the
        # count window, is there or before it. The round began with `begin`.
        head, tail, counted, begin, after = (
            Signal(sequence_bits(self.params), name=name)
            for name in ("head", "tail", "counted", "begin", "after")
        )
        leaves = Signal()
        m.d.comb += [
            leaves.eq(self.full & (tail == counted)),
            self.held.eq(head - tail),
            self.oldest.eq(read.data.position),
            after.eq(tail + (self.arrive & self.expires)),
            read.addr.eq(after[:slot]),
            write.addr.eq(head[:slot]),
            write.data.position.eq(self.position),
            write.en.eq(self.arrive),
        ]
        if bits:
            over = Signal()
            m.d.comb += [
                write.data.end.eq(self.end),
                over.eq(read.data.end <= self.now),
                self.expires.eq((self.held != 0) & (leaves | over)),
            ]
            m.d.sync += self.evicted.eq(self.arrive & leaves & ~over)
        else:
            m.d.comb += self.expires.eq(leaves)
        m.d.sync += [
            tail.eq(after),
            counted.eq(counted + (self.arrive & self.full)),
            head.eq(head + self.arrive),
        ]
        with m.If((tail == begin) & (head != begin)):
            # What is stored in this cycle is of the round that ends.
            m.d.sync += [self.round.eq(self.round + 1), begin.eq(head + self.arrive)]
        with m.If(self.clear):
            m.d.sync += [each.eq(0) for each in (head, tail, counted, begin)]
        return m
