"""A queue in front of each half's tree, and one behind it: one half need not wait for the other."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.queues import LANDING_PLACES
from streamjoin_hw.rtl.streams import Component


def has_root_queues(params: DesignParams) -> bool:
    """Return whether queues at the roots of the trees are in block RAM, as windows are.

    Otherwise the queues of the leaves, and the one behind a root's merger, are long enough.
    """
    return params.window_memory == "bram"


def queue_places(params: DesignParams) -> int:
    """Count the places of a queue, a power of two: a block RAM's, or those of two batches."""
    if has_root_queues(params):
        return 512
    return max(LANDING_PLACES, 1 << (2 * params.probes - 1).bit_length())


class Queue(Component):
    """A FIFO that costs no cycle: while it is empty the output follows the input.

    Throughput 1 payload a cycle. The output follows the input, so that a register stage has to be
    behind it; ``i.ready`` is from registers.

    Parameters
    ----------
    layout : Layout
        Layout of the payload.
    places : int
        Payloads that it holds, a power of two.
    window_memory : str
        As in :class:`~streamjoin_common.contract.DesignParams`.

    Members
    -------
    i : In(stream.Signature(layout))
    o : Out(stream.Signature(layout))
    busy : Out(1)
        A payload is inside; from a register.
    """

    i: stream.Interface
    o: stream.Interface
    busy: Signal

    def __init__(self, layout: data.Layout, places: int, window_memory: str = "auto") -> None:
        self.layout = layout
        self.places = places
        self.window_memory = window_memory
        self.level = Signal(range(places + 1))
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memory; it reads ahead, so that the first payload is always there."""
        m = Module()
        memory: Any = memory_of(self.window_memory, self.layout, self.places)
        m.submodules.memory = memory
        write = memory.write_port()
        read = memory.read_port(transparent_for=(write,))
        end = Signal(range(self.places))
        start = Signal(range(self.places))
        level = self.level
        enters = Signal()
        leaves = Signal()
        m.d.comb += [
            self.i.ready.eq(level != self.places),
            self.busy.eq(level != 0),
            self.o.valid.eq(self.busy | self.i.valid),
            self.o.payload.eq(Mux(self.busy, read.data, self.i.payload)),
            leaves.eq(self.busy & self.o.ready),
            enters.eq(self.i.valid & self.i.ready & (self.busy | ~self.o.ready)),
            write.addr.eq(end),
            write.data.eq(self.i.payload),
            write.en.eq(enters),
            read.addr.eq(start + leaves),
        ]
        m.d.sync += [
            end.eq(end + enters),
            start.eq(start + leaves),
            level.eq(level + enters - leaves),
        ]
        return m
