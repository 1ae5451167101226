"""The stored tuples of one stream's index: words of slots, one of each bank read at a time."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.layouts import (
    bank_of,
    position_layout,
    row_bits,
    row_of,
)
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.streams import Component, View


class Words(Component):
    """A memory for each slot of each bank.

    Parameters
    ----------
    params : DesignParams
        The design.
    body : StructLayout
        Layout of a tuple.

    Members
    -------
    store : In(1), position : In(position_layout(params)), enter : In(body)
        Store a tuple.
    rows : In(ArrayLayout(row_bits(params), ways))
        Read these words, one of each bank.
    tuples : Out(ArrayLayout(body, lanes))
        What was read a cycle ago, bank by bank.
    """

    store: Signal
    position: View
    enter: View
    rows: View
    tuples: View

    def __init__(self, params: DesignParams, body: data.StructLayout) -> None:
        self.params = params
        self.body = body
        super().__init__(
            {
                "store": In(1),
                "position": In(position_layout(params)),
                "enter": In(body),
                "rows": In(data.ArrayLayout(row_bits(params), params.ways)),
                "tuples": Out(data.ArrayLayout(body, params.lanes)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memories."""
        m = Module()
        params = self.params
        slots = params.bucket_slots
        for bank in range(params.ways):
            for slot in range(slots):
                # A tuple is stored in a slot that is not used: who reads it does not count it.
                depth = params.buckets // params.ways
                memory: Any = memory_of(params.window_memory, self.body, depth, is_free=True)
                m.submodules[f"slot{bank}_{slot}"] = memory
                write, read = memory.write_port(), memory.read_port()
                mine = (bank_of(params, self.position.word) == bank) & self.position.slot[slot]
                m.d.comb += [
                    write.addr.eq(row_of(params, self.position.word)),
                    write.data.eq(self.enter),
                    write.en.eq(self.store & mine),
                    read.addr.eq(self.rows[bank]),
                    self.tuples[bank * slots + slot].eq(read.data),
                ]
        return m
