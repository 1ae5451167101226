"""Queues that cannot refuse what is written: their level says early that little room is left.

What is far from its taker moves on in every cycle, so that nothing on its way has to wait; a core's
results wait where whoever writes them knows that there is room.
"""

from typing import Any

from amaranth.hdl import Assert, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from streamjoin_hw.rtl.streams import Component, View, bits_of, empty_at, payload_of

LANDING_PLACES = 16
"""Places of a queue at a far end, at least: the words of an ECP5's LUT RAM."""

UNARY = LANDING_PLACES
"""Count up to which a flip-flop for each number costs about what a comparison does."""


def landing_places(reserve: int, least: int = LANDING_PLACES) -> int:
    """Return the places of a queue, so that it is not always nearly full: twice the reserve."""
    return max(least, 1 << (2 * reserve - 1).bit_length())


class LateCount:
    """Counts what enters and leaves a cycle late, and yet tells how many there are now.

    What decides about either comes late in its cycle; here it ends in a flip-flop. Up to
    :data:`UNARY` are counted in unary: whether there are so many is a flip-flop, too.

    Parameters
    ----------
    m : Module
        Where it is built.
    enters, leaves : Value
        One more, one less, at the next clock edge.
    maximum : int
        The maximum count.
    clear : Signal, optional
        Sets it to 0 at the next edge, in place of the domain's reset.
    is_unary : bool, optional
        Counts in unary however many there may be.
    is_flat : bool, optional
        Tells them by an OR of ANDs: two LUTs then do for that and what is decided beside it.
    """

    def __init__(
        self,
        m: Module,
        enters: Value,
        leaves: Value,
        maximum: int,
        clear: Signal | None = None,
        *,
        is_unary: bool = False,
        is_flat: bool = False,
    ) -> None:
        self._maximum = maximum
        self._is_flat = is_flat
        self._is_unary = is_unary or maximum <= UNARY
        shape = maximum if self._is_unary else range(maximum + 1)
        self._came, self._went, self._late = counts = [
            Signal(of, name=name, reset_less=clear is not None)
            for name, of in (("came", 1), ("went", 1), ("late_count", shape))
        ]
        m.d.sync += [self._came.eq(enters), self._went.eq(leaves)]
        more, fewer = self._late + 1, self._late - 1
        if self._is_unary:
            more, fewer = Cat(1, self._late), self._late >> 1
        with m.If(self._came ^ self._went):
            m.d.sync += self._late.eq(Mux(self._came, more, fewer))
        empty_at(m, clear, counts)

    def at_least(self, number: int) -> Value:
        """Return whether there are at least so many, 1 or more; from registers."""
        more, as_many, fewer = (self._late_at_least(number + by) for by in (-1, 0, 1))
        if self._is_flat:
            grew, fell = self._came & ~self._went, self._went & ~self._came
            return (fewer | (as_many & ~fell)) | (more & grew)
        return Mux(self._came == self._went, as_many, Mux(self._came, more, fewer))

    def _late_at_least(self, number: int) -> Value:
        """Return whether the late count is at least so much, by LUTs and no carry chain."""
        if number == 0:
            return Const(1, 1)
        if number > self._maximum:
            return Const(0, 1)
        below = number - 1
        if self._is_unary:
            return self._late[below]
        # Some bit is 1 where it is 0 in the number below, and no bit above it is less than there.
        return Cat(
            bit
            & Cat(
                above for at, above in enumerate(self._late[k + 1 :], k + 1) if below >> at & 1
            ).all()
            for k, bit in enumerate(self._late)
            if not below >> k & 1
        ).any()


class Countdown:
    """A number that is counted down, by four bits now and by the others two cycles later.

    A carry through many bits, and behind it the choice of a new number, would be among the longest
    paths. The upper bits count down once in 16 times, so what they are then is worked out before.

    Parameters
    ----------
    m : Module
        Where it is built.
    counts : Value
        One less, at the next clock edge.
    loads : Value
        Else it becomes ``given``; for at least three cycles before it first ``counts``.
    given : Value
        Of more than :attr:`LOW_BITS` bits.
    name : str
        What its registers are called.

    Attributes
    ----------
    low : Signal
        Its lower bits.
    no_high : Signal
        The others are 0, a cycle ago; right where the lower bits have just been counted down too.
    """

    LOW_BITS = 4

    def __init__(self, m: Module, counts: Value, loads: Value, given: Value, *, name: str) -> None:
        bits = self.LOW_BITS
        self.low = low = payload_of(bits, name=f"{name}_low")
        high, less = (payload_of(len(given) - bits, name=f"{name}_{it}") for it in ("high", "less"))
        self.no_high, borrows = (
            payload_of(1, name=f"{name}_no_high"),
            Signal(name=f"{name}_borrows"),
        )
        m.d.sync += [
            less.eq(high - 1),
            self.no_high.eq(high == 0),
            borrows.eq(counts & (low == 0)),
        ]
        with m.If(counts):
            m.d.sync += low.eq(low - 1)
        with m.Elif(loads):
            m.d.sync += low.eq(given[:bits])
        with m.If(borrows):
            m.d.sync += high.eq(less)
        with m.Elif(loads):
            m.d.sync += high.eq(given[bits:])


class Landing(Component):
    """The queue at the far end of a way.

    Latency 1 cycle, throughput 1 payload a cycle.

    Parameters
    ----------
    layout : StructLayout
        Layout of the payload.
    places : int
        Payloads that it holds, a power of two.
    reserve : int
        Places that are kept for what is on its way: the cycles from ``few`` to the sender and
        from there to here, and three. Of these one stays free, as it is always written.
    deciding : tuple of str
        Members by which the taker decides whether it takes a payload: they come from registers,
        and have a memory and pointers of their own, which lie near the taker.
    clear : Signal, optional
        As of :class:`ResultQueue`.

    Members
    -------
    payload : In(layout), arrives : In(1)
        A payload is here. There is no way to refuse it.
    few : Out(1)
        Fewer than ``reserve`` places are free; from a register, a cycle late. Nothing is to set
        out any more.
    o : Out(stream.Signature(layout))
        ``valid`` is a register.
    """

    payload: View
    arrives: Signal
    few: Signal
    o: stream.Interface

    def __init__(
        self,
        layout: data.StructLayout,
        places: int,
        reserve: int,
        deciding: tuple[str, ...] = (),
        clear: Signal | None = None,
    ) -> None:
        self.layout = layout
        self.places = places
        self.reserve = reserve
        self.clear = clear
        self.deciding = deciding
        super().__init__(
            {
                "payload": In(layout),
                "arrives": In(1),
                "few": Out(1),
                "o": Out(stream.Signature(layout)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memories, and count what they hold."""
        m, leaves = Module(), Signal()
        there, few, lost = bits_of(self.clear, "there", "becomes_few", "lost")
        level = LateCount(m, self.arrives, leaves, self.places, self.clear)
        many = level.at_least(2)
        m.d.comb += [
            self.o.valid.eq(there),
            self.few.eq(few),
            leaves.eq(there & self.o.ready),
            Assert(~lost, "a queue overflowed"),
        ]
        deciding = {name: field for name, field in self._fields() if name in self.deciding}
        others = {name: field for name, field in self._fields() if name not in self.deciding}
        # Whether a payload leaves is decided late, so it decides between what is known.
        if others:
            head = self._memory(m, "memory", others, leaves, step=1)
            m.d.comb += [self.o.p[name].eq(head[name]) for name in others]
        if deciding:
            self._decide(m, deciding, there, many, leaves)
        m.d.sync += [
            there.eq(self.arrives | many | (there & ~leaves)),
            few.eq(level.at_least(self.places - self.reserve + 1)),
            lost.eq(level.at_least(self.places)),
        ]
        empty_at(m, self.clear, (there, few, lost))
        return m

    def _fields(self) -> list[tuple[str, Any]]:
        return [(str(name), field.shape) for name, field in self.layout]

    def _decide(self, m: Module, fields: Any, there: Signal, many: Value, leaves: Signal) -> None:
        """Build the registers of the oldest payload's members; their memory has what follows it."""
        follows = Mux(there, leaves & (many | self.arrives), self.arrives)
        after = self._memory(m, "deciding", fields, follows, step=-1)
        for name, shape in fields.items():
            head: Any = payload_of(shape, name=f"head_{name}")
            with m.If(leaves | ~there):
                m.d.sync += head.eq(Mux(many, after[name], self.payload[name]))
            m.d.comb += self.o.p[name].eq(head)

    def _memory(self, m: Module, name: str, fields: Any, leaves: Value, *, step: int) -> Any:
        """Build a memory of some members; return the oldest one's until it ``leaves``.

        Its pointers count up or down: synthesis takes two that count alike for one, whose wires
        then are as long as those of the longest memory.
        """
        memory: Any = Memory(shape=data.StructLayout(fields), depth=self.places, init=[])
        m.submodules[name] = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        end, start = (
            Signal(range(self.places), name=f"{name}_{it}", reset_less=self.clear is not None)
            for it in ("end", "start")
        )
        # The place at the end is free: what is offered is written, and counts if it arrives.
        m.d.comb += [
            *(write.data[member].eq(self.payload[member]) for member in fields),
            write.addr.eq(end),
            write.en.eq(Const(1)),
            read.addr.eq(start),
        ]
        with m.If(self.arrives):
            m.d.sync += end.eq(end + step)
        with m.If(leaves):
            m.d.sync += start.eq(start + step)
        empty_at(m, self.clear, (end, start))
        return read.data


class ResultQueue(Component):
    """A FIFO that nobody asks for room.

    It tells the writer early enough that little is left, so none of its own decisions depends on
    how much it holds. That is counted a cycle late; whether a word waits is a flip-flop, and
    ``take`` passes one LUT to it and to the clock enables of the head. A word is at the head two
    cycles after it was written, and one leaves in every cycle.

    Parameters
    ----------
    layout : Layout
        Layout of a word.
    words : int
        Words that it holds, with the one at its head; at least 3.
    free_words : int
        Words that are free while there are not ``few``.
    clear : Signal, optional
        Empties it at the next edge, in place of the domain's reset, which then does not reach it.
    is_flat : bool, optional
        See :class:`LateCount`; for a ``take`` that does not come from a register.

    Members
    -------
    write : In(1), word : In(layout)
        A word enters; not while it holds ``words``.
    head : Out(layout), is_there : Out(1)
        The oldest word, if there is one; from registers.
    take : In(1)
        The head leaves, if it is there.
    few : Out(1)
        Fewer than ``free_words`` words are free; from a register, a cycle late.
    busy : Out(1)
        A word is inside.
    """

    write: Signal
    word: View
    head: View
    is_there: Signal
    take: Signal
    few: Signal
    busy: Signal

    def __init__(
        self,
        layout: data.Layout,
        words: int,
        free_words: int,
        clear: Signal | None = None,
        *,
        is_flat: bool = False,
    ) -> None:
        self.layout = layout
        self.is_flat = is_flat
        self.words = words
        self.free_words = free_words
        self.clear = clear
        super().__init__(
            {
                "write": In(1),
                "word": In(layout),
                "head": Out(layout),
                "is_there": Out(1),
                "take": In(1),
                "few": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memory, whether a word waits, and the count of those."""
        m = Module()
        keeps = self.clear is not None
        places = 1 << (self.words - 2).bit_length()
        memory: Any = Memory(shape=self.layout, depth=places, init=[])
        m.submodules.memory = memory
        write, read = memory.write_port(), memory.read_port(domain="sync")
        # Where words are read and written; some word waits; one is at the head.
        emptied = [
            Signal(shape, name=name, reset_less=keeps)
            for name, shape in (
                *((name, range(places)) for name in ("begin", "end")),
                *((name, 1) for name in ("some", "there")),
            )
        ]
        begin, end, some, there = emptied
        goes = Signal(name="goes")
        form = {"is_unary": True, "is_flat": self.is_flat}
        waits = LateCount(m, self.write, goes, self.words - 1, self.clear, **form)
        m.d.comb += [
            self.is_there.eq(there),
            goes.eq(some & (~there | self.take)),
            write.addr.eq(end),
            write.data.eq(self.word),
            write.en.eq(self.write),
            read.addr.eq(begin),
            read.en.eq(goes),
            self.head.eq(read.data),
            self.busy.eq(some | there),
        ]
        with m.If(goes):
            m.d.sync += begin.eq(begin + 1)
        m.d.sync += [
            end.eq(end + self.write),
            # One that waits alone stays where the head is there and not taken.
            some.eq(self.write | waits.at_least(2) | (some & there & ~self.take)),
            there.eq(goes | (there & ~self.take)),
        ]
        empty_at(m, self.clear, emptied)
        few, lost = bits_of(self.clear, "becomes_few", "lost")
        # With the word at the head, which is there while others wait.
        m.d.sync += [
            few.eq(waits.at_least(self.words - self.free_words)),
            lost.eq(self.write & waits.at_least(self.words - 1)),
        ]
        m.d.comb += [self.few.eq(few), Assert(~lost, "a result FIFO overflowed")]
        return m
