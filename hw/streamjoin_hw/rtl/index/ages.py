"""Where the tuples of a window are stored, in the order in which they expire."""

from typing import Any

from amaranth.hdl import Assert, Module, ResetInserter, Signal
from amaranth.lib import data
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.layouts import ROUND_BITS, position_layout, sequence_bits
from streamjoin_hw.rtl.streams import Component, PipeReg, View, payload_of

SHORTEST_ROUND = 1024
"""Tuples of a round, or half a window's if that is less: where one ends, all is planned anew."""


class Ages(Component):
    """A queue of positions, the oldest known before it is asked for.

    With each tuple that arrives in a full count window the oldest expires, unless it has already.
    With timestamps others expire in between, one every other cycle, when their time window has
    ended; who looks for partners before they do drops them by their time.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    clear : In(1)
        Empty the window.
    full : In(1)
        The count window of the tuple that arrives next is full.
    blocked : Out(1)
        That one may not arrive yet: the oldest, a few cycles old, is not known.
    arrive : In(1), position : In(position_layout(params)), bit : In(1)
        It arrives: where it is stored, and what its slot's bit has become.
    end, now : In(timestamp_bits), if there are timestamps
        The first time at which its time window no longer holds it; when it arrived.
    free : Out(1), freed : Out(position_layout(params)), freed_bit : Out(1)
        A tuple expires, where it is stored, and its slot's bit.
    over, turn : Out(1), In(1)
        All tuples from before this round have expired, and it was long enough; begin the next one
        after this cycle, in which none may arrive.
    round : Out(ROUND_BITS)
        The round in which a tuple arrives: all that are in the window are of this one or of the
        one before.
    held : Out(sequence_bits(params))
        How many were in the window in the cycle before.
    evicted : Out(1), if there are timestamps
        Pulse: two cycles ago a tuple left by count before its time.
    """

    clear: Signal
    full: Signal
    blocked: Signal
    arrive: Signal
    position: View
    bit: Signal
    end: Signal
    now: Signal
    free: Signal
    freed: View
    freed_bit: Signal
    over: Signal
    turn: Signal
    round: Signal
    held: Signal
    evicted: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        bits = params.timestamp_bits
        times = {"end": In(bits), "now": In(bits), "evicted": Out(1)} if bits else {}
        super().__init__(
            {
                **{name: In(1) for name in ("clear", "full", "arrive", "bit", "turn")},
                **{name: Out(1) for name in ("blocked", "free", "freed_bit", "over")},
                "position": In(position_layout(params)),
                "freed": Out(position_layout(params)),
                **times,
                "round": Out(ROUND_BITS),
                "held": Out(sequence_bits(params)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the queue and the counters beside it."""
        m = Module()
        bits = self.params.timestamp_bits
        times = {"end": bits} if bits else {}
        kept = data.StructLayout({"position": position_layout(self.params), "bit": 1, **times})
        entry: Any = Signal(kept)
        # The few behind it hold four; a small one also needs the cycles from one to the other.
        queue = SyncFIFOBuffered(width=kept.size, depth=max(8, self.params.ring_tuples))
        # A block RAM gives its words late in a cycle: they go to one register each.
        m.submodules.queue = ResetInserter(self.clear)(queue)
        read = payload_of(kept)
        is_read = Signal()
        oldest = PipeReg(kept)
        m.submodules.oldest = ResetInserter(self.clear)(oldest)
        # As of the cycle before: `head` is the next tuple, `tail` the oldest of the window. The
        # round began with `begin`. The oldest is `before` tuples younger than that of the count
        # window.
        head, tail, begin, before = (
            Signal(sequence_bits(self.params), name=name)
            for name in ("head", "tail", "begin", "before")
        )
        # Tuples that are still to be stored in this round.
        shortest = min(SHORTEST_ROUND, (self.params.window_capacity + 1) // 2)
        expired = Signal()
        stays = Signal(range(shortest + 1))
        is_lost = Signal()
        has_arrived = Signal()
        was_freed = Signal()
        m.d.sync += is_lost.eq(self.arrive & ~queue.w_rdy)
        pushes = Signal()
        leaves = Signal()
        times_out = Signal()
        m.d.comb += [
            entry.position.eq(self.position),
            entry.bit.eq(self.bit),
            queue.w_data.eq(entry),
            queue.w_en.eq(self.arrive),
            queue.r_en.eq(~is_read | oldest.i.ready),
            oldest.i.valid.eq(is_read),
            oldest.i.payload.eq(read),
            # Without timestamps the window is never younger than the count window.
            pushes.eq(self.full & ((before == 0) if bits else 1)),
            self.blocked.eq(pushes & ~oldest.o.valid),
            leaves.eq(self.arrive & pushes),
            self.free.eq(leaves | times_out),
            oldest.o.ready.eq(self.free),
            self.freed.eq(oldest.o.p.position),
            self.freed_bit.eq(oldest.o.p.bit),
            self.held.eq(head - tail),
            Assert(~is_lost, "the ring of an index overflowed"),
            self.over.eq(expired & (stays == 0)),
        ]
        m.d.sync += [
            has_arrived.eq(self.arrive),
            was_freed.eq(self.free),
            head.eq(head + has_arrived),
            tail.eq(tail + was_freed),
            before.eq(before + self.free - (self.arrive & self.full)),
            expired.eq((expired | ((tail == begin) & (head != begin))) & ~self.turn),
        ]
        with m.If(queue.r_en):
            m.d.sync += [is_read.eq(queue.r_rdy), read.eq(queue.r_data)]
        with m.If(has_arrived & (stays != 0)):
            m.d.sync += stays.eq(stays - 1)
        with m.If(self.turn):
            m.d.sync += stays.eq(shortest)
            # What arrived in the cycle before is of the round that ends; nothing does in this one.
            m.d.sync += [self.round.eq(self.round + 1), begin.eq(head + has_arrived)]
        with m.If(self.clear):
            m.d.sync += [
                each.eq(0)
                for each in (head, tail, has_arrived, was_freed, begin, before, expired, stays)
            ]
            m.d.sync += is_read.eq(0)
        if bits:
            self._time(m, oldest, (leaves, times_out))
            m.d.comb += entry.end.eq(self.end)
        return m

    def _time(self, m: Module, oldest: PipeReg, expiry: tuple[Signal, Signal]) -> None:
        """Let the oldest expire when it is over; count those that were not."""
        leaves, times_out = expiry
        bits = self.params.timestamp_bits
        latest = payload_of(bits)
        is_over = Signal()
        left = Signal()
        end = payload_of(bits)
        now = payload_of(bits)
        with m.If(self.arrive):
            m.d.sync += latest.eq(self.now)
        m.d.comb += times_out.eq(is_over & ~leaves)
        m.d.sync += [
            is_over.eq(oldest.o.valid & (oldest.o.p.end <= latest) & ~self.free & ~self.clear),
            left.eq(leaves & ~self.clear),
            end.eq(oldest.o.p.end),
            now.eq(self.now),
            self.evicted.eq(left & (end > now)),
        ]
