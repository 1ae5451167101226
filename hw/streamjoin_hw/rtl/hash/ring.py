"""The stored tuples of one stream: a ring in memory, and which of its slots are in the window.

Slot number ``row * lanes + lane``, one memory for each lane, so that ``lanes`` tuples are read in a
cycle wherever in the ring they are, if no two of them share a lane.
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.hash.index import ring_bits, sequence_bits
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.streams import Component, View, payload_of


def lane_bits(params: DesignParams) -> int:
    """Bits of a slot that name its lane; 0 where there is one lane."""
    return params.lanes.bit_length() - 1


def row_bits(params: DesignParams) -> int:
    """Bits of a slot that name its row."""
    return ring_bits(params) - lane_bits(params)


def lane_of(params: DesignParams, slot: Value) -> Value:
    """Return a slot's lane."""
    return slot[: lane_bits(params)]


def row_of(params: DesignParams, slot: Value) -> Value:
    """Return a slot's row."""
    return slot[lane_bits(params) : ring_bits(params)]


class Ring(Component):
    """Tuples and their links.

    Parameters
    ----------
    params : DesignParams
        The design.
    body : StructLayout
        Layout of a tuple.

    Members
    -------
    store : In(1), slot : In(ring_bits(params))
        Store in this slot.
    enter : In(body), link : In(sequence_bits(params))
        The tuple, and the number of the one that it is linked to.
    rows : In(ArrayLayout(row_bits(params), lanes))
        Read this row of each lane.
    tuples : Out(ArrayLayout(body, lanes)), links : Out(ArrayLayout(sequence_bits, lanes))
        What was read a cycle ago, as it was before a store of that cycle.
    """

    store: Signal
    slot: Signal
    enter: View
    link: Signal
    rows: View
    tuples: View
    links: View

    def __init__(self, params: DesignParams, body: data.StructLayout) -> None:
        self.params = params
        self.body = body
        super().__init__(
            {
                "store": In(1),
                "slot": In(ring_bits(params)),
                "enter": In(body),
                "link": In(sequence_bits(params)),
                "rows": In(data.ArrayLayout(row_bits(params), params.lanes)),
                "tuples": Out(data.ArrayLayout(body, params.lanes)),
                "links": Out(data.ArrayLayout(sequence_bits(params), params.lanes)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build a memory for each lane."""
        m = Module()
        params = self.params
        kept = data.StructLayout({"body": self.body, "link": sequence_bits(params)})
        for lane in range(params.lanes):
            memory = memory_of(params.window_memory, kept, 1 << row_bits(params))
            m.submodules[f"lane{lane}"] = memory
            write, read = memory.write_port(), memory.read_port()
            mine = lane_of(params, self.slot) == lane if lane_bits(params) else True
            m.d.comb += [
                write.addr.eq(row_of(params, self.slot)),
                write.data.body.eq(self.enter),
                write.data.link.eq(self.link),
                write.en.eq(self.store & mine),
                read.addr.eq(self.rows[lane]),
                self.tuples[lane].eq(read.data.body),
                self.links[lane].eq(read.data.link),
            ]
        return m


class Span(Component):
    """Which tuples of a stream are in its window: those from ``tail`` up to before ``head``.

    A tuple leaves when the count window is full and another one enters. With timestamps it also
    leaves when its time window has ended, one tuple for each arrival of either side: as many as
    can enter. Tuples that should have left already, after a pause, are dropped one by one when
    they are compared.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    clear : In(1)
        Empty the window.
    arrive, full : In(1)
        A tuple of this stream arrives; its count window is full.
    end : In(timestamp_bits)
        With it: the first time at which its time window no longer holds it.
    passes : In(1), now : In(timestamp_bits)
        A tuple of either stream arrives, and when. Ports of no time are one bit and unused.
    head, tail : Out(sequence_bits(params))
        Number of the next tuple, and of the oldest in the window.
    evicted : Out(1)
        Pulse: in the last cycle a tuple left by count before its time.
    """

    clear: Signal
    arrive: Signal
    full: Signal
    end: Signal
    passes: Signal
    now: Signal
    head: Signal
    tail: Signal
    evicted: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        bits = params.timestamp_bits
        times = {"end": In(bits), "passes": In(1), "now": In(bits), "evicted": Out(1)}
        super().__init__(
            {
                **{name: In(1) for name in ("clear", "arrive", "full")},
                **(times if bits else {}),
                "head": Out(sequence_bits(params)),
                "tail": Out(sequence_bits(params)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the pointers and, with timestamps, the memory of ends."""
        m = Module()
        # The oldest of the count window; `tail` is there or, by time, further on.
        oldest = Signal(sequence_bits(self.params))
        leaves = Signal()
        expires = Signal()
        after = Signal(sequence_bits(self.params))
        m.d.comb += [
            leaves.eq(self.arrive & self.full & (self.tail == oldest)),
            after.eq(self.tail + (leaves | expires)),
        ]
        m.d.sync += [
            self.head.eq(self.head + self.arrive),
            oldest.eq(oldest + (self.arrive & self.full)),
            self.tail.eq(after),
        ]
        with m.If(self.clear):
            m.d.sync += [oldest.eq(self.head), self.tail.eq(self.head)]
        if self.params.timestamp_bits:
            self._expire(m, after, leaves, expires)
        return m

    def _expire(self, m: Module, after: Signal, leaves: Signal, expires: Signal) -> None:
        """Look at the end of the tuple at the tail."""
        bits = self.params.timestamp_bits
        layout = data.StructLayout({"end": bits})
        m.submodules.ends = memory = memory_of(
            self.params.window_memory, layout, self.params.ring_tuples
        )
        write, read = memory.write_port(), memory.read_port()
        entered = payload_of(layout)
        is_new = Signal()
        slot = ring_bits(self.params)
        tail_end = Signal(bits)
        over = Signal()
        m.d.comb += [
            write.addr.eq(self.head[:slot]),
            write.data.end.eq(self.end),
            write.en.eq(self.arrive),
            read.addr.eq(after[:slot]),
            # A tuple that enters an empty window is the oldest before it is in memory.
            tail_end.eq(Mux(is_new, entered.end, read.data.end)),
            over.eq(tail_end <= self.now),
            expires.eq(self.passes & (self.tail != self.head) & over),
        ]
        m.d.sync += [
            entered.end.eq(self.end),
            is_new.eq(self.arrive & (after == self.head)),
            self.evicted.eq(leaves & ~over),
        ]
