"""What rides between a DMA and the design: groups are read and packets written without a fault.

Both components pass words on in the cycle in which they are offered, so that nothing is inside
them to be lost: the claims say of every cycle which word may pass, and what it becomes.
"""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from streamjoin_common.contract import (
    GROUP_TUPLES,
    HEADER,
    MARK,
    TRAILER,
    DesignParams,
    LayoutField,
    TUser,
)
from streamjoin_hw.formal.harness import Harness
from streamjoin_hw.rtl.board_top import GroupReader, PacketWriter

PARAMS = DesignParams(cores=1, segment_tuples=1, lanes=1)


def _field(word: Any, layout: tuple[LayoutField, ...], name: str) -> Any:
    (each,) = (each for each in layout if each.name == name)
    return word[each.offset : each.offset + each.width]


class GroupPassage(Harness):
    """Groups of any size, headers that are none, marks among the tuples, any gaps and stalls.

    The header that was taken last is kept, and the words that were taken since are counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.left = self.probe(range(GROUP_TUPLES + 1), "dut.left")
        self.sides = self.probe(GROUP_TUPLES, "dut.sides")
        self.ends = self.probe(1, "dut.last")

    def prove(self, m: Module) -> None:
        """Count the words since a header, claim."""
        dut = GroupReader(PARAMS)
        self.drive(m, dut)
        source = SimpleNamespace(payload=dut.i_data, valid=dut.i_valid, ready=dut.i_ready)
        payload = Cat(dut.o_data, dut.o_side, dut.o_last)
        sink = SimpleNamespace(payload=payload, valid=dut.o_valid, ready=dut.o_ready)
        self.keep_the_rules(m, source)
        self.claim_the_rules(m, sink)

        header, since = Signal(len(dut.i_data)), Signal(range(2 * GROUP_TUPLES))
        tuples, sides = (_field(header, HEADER, name) for name in ("tuples", "sides"))
        inside = Signal()
        m.d.comb += inside.eq(since < tuples)
        with m.If(dut.i_valid & dut.i_ready):
            with m.If(inside):
                m.d.sync += since.eq(since + 1)
            with m.Elif(_field(dut.i_data, HEADER, "mark") == MARK):
                m.d.sync += [header.eq(dut.i_data), since.eq(0)]

        self.claim(
            m,
            dut.o_valid == (dut.i_valid & inside),
            "a tuple is offered with every word of a group and with no other",
        )
        self.claim(m, dut.o_data == dut.i_data, "a tuple is its word, unchanged")
        self.claim(
            m,
            dut.o_side == (sides >> since)[0],
            "a tuple has the side that the header gives its index",
        )
        is_last = _field(header, HEADER, "last") & (since + 1 == tuples)
        self.claim(
            m, ~dut.o_valid | (dut.o_last == is_last), "an input ends with a group's last tuple"
        )
        self.claim(
            m,
            dut.i_ready == (~inside | dut.o_ready),
            "a tuple's word is taken when the tuple is, any other at once",
        )
        # Which states there are, for induction.
        self.claim(m, since <= tuples, "no more words belong to a group than its header says")
        self.claim(
            m,
            (self.left == tuples - since)
            & (self.sides == sides >> since)
            & (self.ends == _field(header, HEADER, "last")),
            "what is left of a group is known",
        )


class PacketPassage(Harness):
    """Results, punctuation and ends of inputs in any order, any gaps and stalls.

    Counted are the results since the last trailer, and the cycles since the first of them in which
    no word waits to be taken.

    Parameters
    ----------
    packet_results, packet_cycles : int
        Of the writer.
    """

    def __init__(self, packet_results: int, packet_cycles: int) -> None:
        super().__init__()
        self.packet_results, self.packet_cycles = packet_results, packet_cycles
        self.count = self.probe(range(packet_results + 1), "dut.results")
        self.age = self.probe(range(packet_cycles), "dut.age")
        self.closing = self.probe(1, "dut.closing")
        self.ends = self.probe(1, "dut.end")

    def prove(self, m: Module) -> None:
        """Count what a packet has, claim."""
        dut = PacketWriter(
            PARAMS, packet_results=self.packet_results, packet_cycles=self.packet_cycles
        )
        self.drive(m, dut)
        payload = Cat(dut.i_data, dut.i_user, dut.i_last)
        source = SimpleNamespace(payload=payload, valid=dut.i_valid, ready=dut.i_ready)
        words = Cat(dut.o_data, dut.o_last)
        sink = SimpleNamespace(payload=words, valid=dut.o_valid, ready=dut.o_ready)
        self.keep_the_rules(m, source)
        self.claim_the_rules(m, sink)

        taken, given, result, trailer = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            taken.eq(dut.i_valid & dut.i_ready),
            given.eq(dut.o_valid & dut.o_ready),
            result.eq(dut.i_user[TUser.RESULT]),
            trailer.eq(dut.o_valid & dut.o_last),
        ]
        count, ended = Signal(range(self.packet_results + 2)), Signal()
        cycles, waits = Signal(range(self.packet_cycles + 2)), Signal()
        m.d.comb += waits.eq(dut.o_valid & ~dut.o_ready)
        with m.If(given & dut.o_last):
            m.d.sync += [count.eq(0), ended.eq(0), cycles.eq(0)]
        with m.Else():
            m.d.sync += [count.eq(count + (taken & result)), ended.eq(ended | taken & dut.i_last)]
            with m.If((count != 0) & ~waits & (cycles < self.packet_cycles)):
                m.d.sync += cycles.eq(cycles + 1)

        self.claim(
            m,
            (taken & result) == (given & ~dut.o_last),
            "a result is given when it is taken, and nothing else but trailers is",
        )
        self.claim(
            m,
            ~(dut.o_valid & ~dut.o_last) | (dut.i_valid & result & (dut.o_data == dut.i_data)),
            "a result is its word, unchanged",
        )
        self._claim_trailers(m, dut, trailer, count, ended)
        waited = self.last(m, waits)
        self.claim(
            m,
            ~((cycles == self.packet_cycles) & ~waited) | trailer,
            "a packet is closed when it is old, unless its next word waits to be taken",
        )
        self.claim(
            m,
            ~trailer | ended | (count == self.packet_results) | (cycles == self.packet_cycles),
            "a packet is closed for no other reason",
        )
        # Which states there are, for induction.
        self.claim(m, (self.count == count) & (self.ends == ended), "what is counted is known")
        self.claim(m, self.closing == dut.o_last, "a trailer is offered as long as one is owed")
        young = Value.cast(cycles < self.packet_cycles)
        self.claim(
            m,
            Mux(young, self.age == cycles, self.age == self.packet_cycles - 1) | self.closing,
            "a packet's age is known",
        )
        self.claim(m, cycles <= self.packet_cycles, "no age is counted beyond the greatest")
        self.claim(m, (count != 0) | (cycles == 0), "an empty packet has no age")

    def _claim_trailers(
        self, m: Module, dut: Any, trailer: Signal, count: Signal, ended: Signal
    ) -> None:
        names = {"results": count, "end": ended, "mark": MARK}
        for name, wanted in names.items():
            self.claim(
                m,
                ~trailer | (_field(dut.o_data, TRAILER, name) == wanted),
                f"a trailer's {name} is right",
            )
        self.claim(m, count <= self.packet_results, "a packet is never larger than its buffer")
        full = count == self.packet_results
        self.claim(
            m, ~(full | ended) | trailer, "a trailer follows a full packet and an input's end"
        )
