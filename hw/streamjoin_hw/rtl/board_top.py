"""The top level for boards: the design between two streams of words that a plain DMA carries.

What the words are, and why, is in :mod:`streamjoin_common.contract.packets`.
"""

from typing import Any

from amaranth.hdl import ClockDomain, Const, DomainRenamer, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import (
    GROUP_TUPLES,
    HEADER,
    MARK,
    PACKET_CYCLES,
    PACKET_RESULTS,
    TRAILER,
    DesignParams,
    LayoutField,
    TUser,
    beat_bits,
    input_word_bits,
    result_beat_layout,
    result_layout,
    result_word_bits,
    tuple_layout,
    tuser_bits,
)
from streamjoin_hw.rtl.registers import axi_lite_members
from streamjoin_hw.rtl.streams import Component
from streamjoin_hw.rtl.top import Top

BOARD_MODULE = "streamjoin_board"
"""Verilog module of the top level for boards."""


def _bits(word: Any, layout: tuple[LayoutField, ...], name: str) -> Any:
    (each,) = (field for field in layout if field.name == name)
    return word[each.offset : each.offset + each.width]


class GroupReader(Component):
    """Takes the tuples out of groups: a word in every cycle, which is a header or a tuple.

    A word where a header belongs that does not carry the mark is dropped. Words pass on in the
    cycle in which they are offered.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    i_data : In, i_valid : In(1), i_ready : Out(1)
        Words.
    o_data : Out, o_side : Out(1), o_last : Out(1), o_valid : Out(1), o_ready : In(1)
        Tuples.
    """

    i_data: Signal
    i_valid: Signal
    i_ready: Signal
    o_data: Signal
    o_side: Signal
    o_last: Signal
    o_valid: Signal
    o_ready: Signal

    def __init__(self, params: DesignParams) -> None:
        tuple_bits = beat_bits(tuple_layout(params))
        super().__init__(
            {
                "i_data": In(input_word_bits(params)),
                "i_valid": In(1),
                "i_ready": Out(1),
                "o_data": Out(tuple_bits),
                "o_side": Out(1),
                "o_last": Out(1),
                "o_valid": Out(1),
                "o_ready": In(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Count the tuples of a group down."""
        m = Module()
        left = Signal(range(GROUP_TUPLES + 1))
        sides = Signal(GROUP_TUPLES)
        last = Signal()
        in_group = Signal()
        m.d.comb += [
            in_group.eq(left != 0),
            self.o_data.eq(self.i_data),
            self.o_side.eq(sides[0]),
            self.o_last.eq(last & (left == 1)),
            self.o_valid.eq(self.i_valid & in_group),
            self.i_ready.eq(~in_group | self.o_ready),
        ]
        with m.If(self.i_valid & self.i_ready):
            with m.If(in_group):
                m.d.sync += [left.eq(left - 1), sides.eq(sides >> 1)]
            with m.Elif(_bits(self.i_data, HEADER, "mark") == MARK):
                m.d.sync += [
                    left.eq(_bits(self.i_data, HEADER, "tuples")),
                    sides.eq(_bits(self.i_data, HEADER, "sides")),
                    last.eq(_bits(self.i_data, HEADER, "last")),
                ]
        return m


class PacketWriter(Component):
    """Puts results into packets; punctuation stops here, an input's end passes on.

    Results pass on in the cycle in which they are offered; a trailer takes a cycle more, and so
    does the second result of a beat.

    Parameters
    ----------
    params : DesignParams
        The design.
    packet_results : int
        Maximum results in a packet.
    packet_cycles : int
        Cycles after its first result in which a packet is closed; those in which a word waits to
        be taken do not count.

    Members
    -------
    i_data : In, i_user : In, i_last : In(1), i_valid : In(1), i_ready : Out(1)
        What the design gives.
    o_data : Out, o_last : Out(1), o_valid : Out(1), o_ready : In(1)
        Words.
    """

    i_data: Signal
    i_user: Signal
    i_last: Signal
    i_valid: Signal
    i_ready: Signal
    o_data: Signal
    o_last: Signal
    o_valid: Signal
    o_ready: Signal

    def __init__(
        self,
        params: DesignParams,
        *,
        packet_results: int = PACKET_RESULTS,
        packet_cycles: int = PACKET_CYCLES,
    ) -> None:
        self.params = params
        self.packet_results, self.packet_cycles = packet_results, packet_cycles
        super().__init__(
            {
                "i_data": In(beat_bits(result_beat_layout(params))),
                "i_user": In(tuser_bits(params)),
                "i_last": In(1),
                "i_valid": In(1),
                "i_ready": Out(1),
                "o_data": Out(result_word_bits(params)),
                "o_last": Out(1),
                "o_valid": Out(1),
                "o_ready": In(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Count results and cycles of a packet up, and close it."""
        m = Module()
        results = Signal(range(self.packet_results + 1))
        age = Signal(range(self.packet_cycles))
        closing = Signal()
        end = Signal()
        is_result = Signal()
        taken = Signal()
        waits = Signal()
        given = Signal()
        # The result that is given, and whether another one of the same beat follows.
        result, follows = self._result(m, given)
        m.d.comb += [
            is_result.eq(self.i_user[TUser.RESULT]),
            self.o_valid.eq(closing | (self.i_valid & is_result)),
            self.o_last.eq(closing),
            self.i_ready.eq(~closing & ((self.o_ready & ~follows) | ~is_result)),
            taken.eq(self.i_valid & self.i_ready),
            given.eq(self.i_valid & is_result & ~closing & self.o_ready),
            waits.eq(self.o_valid & ~self.o_ready),
        ]
        with m.If(closing):
            m.d.comb += [
                _bits(self.o_data, TRAILER, "results").eq(results),
                _bits(self.o_data, TRAILER, "end").eq(end),
                _bits(self.o_data, TRAILER, "mark").eq(MARK),
            ]
            with m.If(self.o_ready):
                m.d.sync += [results.eq(0), age.eq(0), closing.eq(0), end.eq(0)]
        with m.Else():
            m.d.comb += self.o_data.eq(result)
            with m.If(given):
                m.d.sync += results.eq(results + 1)
            is_old = age == self.packet_cycles - 1
            # Waiting does not make it old: where the other side is slow, packets would be closed
            # as soon as they go on, with next to nothing in them.
            with m.If((results != 0) & ~is_old & ~waits):
                m.d.sync += age.eq(age + 1)
            full = given & (results == self.packet_results - 1)
            ends = taken & self.i_last
            # A word that is offered stays until it is taken; only then the trailer may follow.
            m.d.sync += [closing.eq(full | ends | (is_old & ~waits)), end.eq(ends)]
        return m

    def _result(self, m: Module, given: Signal) -> tuple[Any, Any]:
        """Return a beat's results one after the other, and whether one follows."""
        if self.params.beat_results == 1:
            return self.i_data, Const(0)
        bits = beat_bits(result_layout(self.params))
        is_second = Signal()
        follows = Signal()
        m.d.comb += follows.eq(self.i_user[TUser.SECOND] & ~is_second)
        with m.If(given):
            m.d.sync += is_second.eq(follows)
        return Mux(is_second, self.i_data[bits:], self.i_data[:bits]), follows


class BoardTop(Component):
    """A design with words of groups in, words of packets out, and AXI4-Lite control.

    As of :class:`~streamjoin_hw.rtl.top.Top`, no output depends on an input of the same cycle, and
    reset and soft reset empty it: a group that was begun and a packet that is not closed are
    dropped with the tuples and results. A soft reset waits for a word that is offered.

    Parameters
    ----------
    params : DesignParams
        The design.
    by_reference : bool
        See :class:`~streamjoin_hw.rtl.chain.array.Chain`.

    Members
    -------
    aclk, aresetn : In(1)
    s_axis_words_tdata : In, tvalid : In(1), tready : Out(1)
        Groups (``contract.HEADER``).
    m_axis_words_tdata : Out, tkeep : Out, tvalid : Out(1), tready : In(1), tlast : Out(1)
        Packets (``contract.TRAILER``); every byte is kept.
    s_axil_ctrl_*
        Registers, by ``contract.registers``.
    """

    aclk: Signal
    aresetn: Signal
    s_axis_words_tdata: Signal
    s_axis_words_tvalid: Signal
    s_axis_words_tready: Signal
    m_axis_words_tdata: Signal
    m_axis_words_tkeep: Signal
    m_axis_words_tvalid: Signal
    m_axis_words_tready: Signal
    m_axis_words_tlast: Signal

    def __init__(self, params: DesignParams, *, by_reference: bool = False) -> None:
        self.params = params
        self.by_reference = by_reference
        control = {f"s_axil_ctrl_{name}": port for name, port in axi_lite_members().items()}
        super().__init__(
            {
                "aclk": In(1),
                "aresetn": In(1),
                "s_axis_words_tdata": In(input_word_bits(params)),
                "s_axis_words_tvalid": In(1),
                "s_axis_words_tready": Out(1),
                "m_axis_words_tdata": Out(result_word_bits(params)),
                "m_axis_words_tkeep": Out(result_word_bits(params) // 8),
                "m_axis_words_tvalid": Out(1),
                "m_axis_words_tready": In(1),
                "m_axis_words_tlast": Out(1),
                **control,
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Put the design between reader and writer, which are reset with it."""
        m = Module()
        waits = Signal()
        m.submodules.top = top = Top(self.params, by_reference=self.by_reference, waits=waits)
        # The domain of the design's own, which soft reset empties.
        words: Any = ClockDomain("words")
        m.domains += words
        in_words = DomainRenamer("words")
        m.submodules.reader = reader = in_words(GroupReader(self.params))
        m.submodules.writer = writer = in_words(PacketWriter(self.params))
        m.d.comb += [
            top.aclk.eq(self.aclk),
            top.aresetn.eq(self.aresetn),
            words.clk.eq(self.aclk),
            words.rst.eq(top.restart),
        ]
        for name, port in axi_lite_members().items():
            inner, outer = (getattr(each, f"s_axil_ctrl_{name}") for each in (top, self))
            m.d.comb += inner.eq(outer) if port.flow == In else outer.eq(inner)
        m.d.comb += [
            waits.eq(self.m_axis_words_tvalid & ~self.m_axis_words_tready),
            reader.i_data.eq(self.s_axis_words_tdata),
            reader.i_valid.eq(self.s_axis_words_tvalid & ~top.closed),
            self.s_axis_words_tready.eq(reader.i_ready & ~top.closed),
            top.s_axis_tuples_tdata.eq(reader.o_data),
            top.s_axis_tuples_tdest.eq(reader.o_side),
            top.s_axis_tuples_tlast.eq(reader.o_last),
            top.s_axis_tuples_tvalid.eq(reader.o_valid),
            reader.o_ready.eq(top.s_axis_tuples_tready),
            writer.i_data.eq(top.m_axis_results_tdata),
            writer.i_user.eq(top.m_axis_results_tuser),
            writer.i_last.eq(top.m_axis_results_tlast),
            writer.i_valid.eq(top.m_axis_results_tvalid),
            top.m_axis_results_tready.eq(writer.i_ready),
            self.m_axis_words_tdata.eq(writer.o_data),
            self.m_axis_words_tkeep.eq(Const(-1, len(self.m_axis_words_tkeep))),
            self.m_axis_words_tlast.eq(writer.o_last),
            self.m_axis_words_tvalid.eq(writer.o_valid & ~top.restart),
            writer.o_ready.eq(self.m_axis_words_tready & ~top.restart),
        ]
        return m
