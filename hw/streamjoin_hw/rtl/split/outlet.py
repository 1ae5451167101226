"""What stands between an emitter's decisions and the trees: its reads of payloads."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import SIDE_S, DesignParams
from streamjoin_hw.rtl.memory import lane_bits
from streamjoin_hw.rtl.split.layouts import row_member, star_member, token_layout
from streamjoin_hw.rtl.split.subwindow import word_bits
from streamjoin_hw.rtl.streams import Component, payload_of, signal_of


def order_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what is to be given: where the stored payload lies, whose results these are.

    With a ``star`` neither counts.
    """
    return data.StructLayout(
        {
            **star_member(params),
            "word": word_bits(params),
            "lane": lane_bits(params),
            "probe": bits_for(params.probes - 1),
            **row_member(params),
        }
    )


class Outlet(Component):
    """Fetch both payloads of what is to be given, and offer it until it is taken.

    Latency 1 cycle, throughput 1 result a cycle. While what was fetched is not taken one more
    order can wait, so that ``i.ready`` is a register: what the trees decide reaches the output's
    registers and not the emitter. Orders are a fifth as wide as results, and cost as much less.

    Parameters
    ----------
    params : DesignParams
        The design.
    side : int
        The side that is stored.

    Members
    -------
    i : In(stream.Signature(order_layout(params)))
    fetch : Out(1), fetch_word, fetch_lane : Out, payload : In(payload_bits)
        Read of a stored payload, there a cycle later, and kept until the next ``fetch``.
    probe : Out, probing : In(payload_bits)
        Read of a probe's payload, there in the same cycle.
    o : Out(stream.Signature(token_layout(params)))
    """

    i: stream.Interface
    fetch: Signal
    fetch_word: Signal
    fetch_lane: Signal
    payload: Signal
    probe: Signal
    probing: Signal
    o: stream.Interface

    def __init__(self, params: DesignParams, side: int) -> None:
        self.params = params
        self.side = side
        super().__init__(
            {
                "i": In(stream.Signature(order_layout(params))),
                "fetch": Out(1),
                "fetch_word": Out(word_bits(params)),
                "fetch_lane": Out(lane_bits(params)),
                "payload": In(params.payload_bits),
                "probe": Out(bits_for(params.probes - 1)),
                "probing": In(params.payload_bits),
                "o": Out(stream.Signature(token_layout(params))),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the order that waits and the output register, beside the memory's."""
        m = Module()
        params = self.params
        valid = Signal()
        waits = Signal()
        token = payload_of(token_layout(params))
        probing = payload_of(params.payload_bits)
        waiting = payload_of(order_layout(params))
        given = signal_of(order_layout(params))
        m.d.comb += [
            self.i.ready.eq(~waits),
            given.eq(Mux(waits, waiting.as_value(), self.i.payload.as_value())),
            # Read whether anything is given or not: what is read counts only with `valid`.
            self.fetch.eq(~valid | self.o.ready),
            self.fetch_word.eq(given.word),
            self.fetch_lane.eq(given.lane),
            self.probe.eq(given.probe),
            self.o.valid.eq(valid),
            self.o.payload.eq(token),
        ]
        # By gates alone: an enable or a reset of one flip-flop is a wire to its tile.
        m.d.sync += [
            valid.eq(waits | self.i.valid | (valid & ~self.o.ready)),
            waits.eq((waits | self.i.valid) & ~self.fetch),
        ]
        with m.If(self.fetch):
            m.d.sync += probing.eq(self.probing)
            for name in (*star_member(params), *row_member(params)):
                m.d.sync += token[name].eq(given[name])
        with m.If(~waits):
            m.d.sync += waiting.eq(self.i.payload)
        out: Any = self.o.p
        if self.side == SIDE_S:
            m.d.comb += [out.r_payload.eq(probing), out.s_payload.eq(self.payload)]
        else:
            m.d.comb += [out.r_payload.eq(self.payload), out.s_payload.eq(probing)]
        return m
