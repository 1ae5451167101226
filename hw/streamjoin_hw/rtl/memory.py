"""One core's segment of one stream's window: a ring in memory.

Handshake join (Teubner and Mueller, SIGMOD 2011, section 6.2) draws the windows as shift
registers. A ring does the same without moving data: the entering tuple is written over the
oldest one, which was read into a register beforehand and moves to the neighbour.

Slot number ``word * lanes + lane``; one memory for each lane, so that a word, ``lanes`` slots,
is read in one cycle.
"""

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.streams import (
    Component,
    View,
    one_more,
    one_of,
    payload_of,
    signal_of,
    slot_layout,
)


def word_bits(params: DesignParams) -> int:
    """Bits of a word number of a segment."""
    return bits_for(params.segment_words - 1)


def word_after(word: Value, words: int) -> Value:
    """Return the word of a ring of so many after one."""
    after = one_more(word)
    return after if words == 1 << len(word) else Mux(word == words - 1, 0, after)


def lane_bits(params: DesignParams) -> int:
    """Bits of a lane number."""
    return bits_for(params.lanes - 1)


def position_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a slot's position: ``word`` and ``lane``."""
    return data.StructLayout({"word": word_bits(params), "lane": lane_bits(params)})


class Position(NamedTuple):
    """A slot of a ring: registers, but for the lane where there is one."""

    word: Signal
    lane: Signal | Const

    @property
    def registers(self) -> list[Signal]:
        """The parts that change."""
        return [each for each in self if isinstance(each, Signal)]

    def becomes(self, other: "Position") -> list[Any]:
        """Assign the position of another slot of the same ring."""
        parts = zip(self.registers, other.registers, strict=True)
        return [part.eq(to) for part, to in parts]


def position_of(bits: int, lanes: int, name: str) -> Position:
    """Make the registers of a slot's position in a ring whose words have numbers of so many bits.

    Synthesis is not to wonder which lane it is if there is one.
    """
    lane = bits_for(lanes - 1)
    return Position(
        payload_of(bits, name=f"{name}_word"),
        Const(0, lane) if lanes == 1 else payload_of(lane, name=f"{name}_lane"),
    )


def advance(m: Module, position: Position, step: Value, words: int, lanes: int) -> None:
    """Move a position by one slot round a ring of so many words."""
    word, lane = position
    if isinstance(lane, Const):
        with m.If(step):
            m.d.sync += word.eq(word_after(word, words))
        return
    with m.If(step & (lane == lanes - 1)):
        m.d.sync += [lane.eq(0), word.eq(word_after(word, words))]
    with m.Elif(step):
        m.d.sync += lane.eq(lane + 1)


RAM_STYLES = {
    "registers": "registers",
    "lutram": "distributed",
    "bram": "block",
    "uram": "ultra",
}
"""What synthesis tools call each kind of memory, in the attribute ``ram_style``."""


def memory_of(kind: str, shape: data.Layout | int, depth: int, *, is_free: bool = False) -> Any:
    """Make an empty memory of a kind (``window_memory``) that synthesis tools are asked for.

    If ``is_free``, what is read of a word that is written in the same cycle does not count: Yosys
    then adds no logic behind the block RAM of parts that do not give the old word.
    """
    style = RAM_STYLES.get(kind)
    attributes: dict[str, Any] = {} if style is None else {"ram_style": style}
    if is_free:
        attributes["no_rw_check"] = 1
    return Memory(shape=shape, depth=depth, init=[], attrs=attributes)


def lane_memory(params: DesignParams, shape: data.StructLayout) -> Any:
    """Make the memory of one lane of a segment, of the kind that the design asks for."""
    # At least two words: a memory without address bits is no memory to some tools.
    return memory_of(params.window_memory, shape, max(2, params.segment_words))


def _compared(m: Module, number: Value, limit: Value) -> tuple[Value, Value]:
    """Return whether a number is a limit and whether it is above it, both of a cycle ago.

    Two bits at a time, each a LUT to a register, as a carry would take most of a cycle.
    """
    wide = Cat(number, Const(0, len(limit) - len(number)))
    sames, aboves = list[Value](), list[Value]()
    for at in range(0, len(limit), 2):
        one, other = wide[at : at + 2], limit[at : at + 2]
        more, differs = one & ~other, one ^ other
        same, above = payload_of(1, name=f"same{at}"), payload_of(1, name=f"above{at}")
        m.d.sync += [same.eq(~differs.any()), above.eq(more[-1] | (more[0] & ~differs[-1]))]
        sames.append(same)
        aboves.append(above)
    is_above = Cat(above & Cat(sames[k + 1 :]).all() for k, above in enumerate(aboves)).any()
    return Cat(sames).all(), is_above


class SegmentRing(Component):
    """The ring of one side in one core.

    A ``step`` writes ``enter`` over the oldest slot and makes the next one ``oldest`` two
    cycles later; steps are therefore at least two cycles apart. The word of a ``scan`` in cycle
    ``t`` appears on ``slots`` in cycle ``t + 1``, except when cycle ``t`` has a ``step`` of this
    side, which needs the read port to look ahead, or the cycle before had one, as the memory is
    written a cycle after it. What is read and what is written, and where, comes from registers:
    memories of LUTs lie far apart. So both are told a cycle before.

    Parameters
    ----------
    params : DesignParams
        The design: lanes and words.
    body : StructLayout
        Layout of a tuple.

    Members
    -------
    last : In(position_layout(params))
        The last slot in use: the segment's length less one. Constant while tuples are inside and
        in the three cycles before the first step.
    clear : In(1)
        Empty the ring in this cycle. No step or scan comes in it, nor in the two cycles after it.
        Needed once before the first step, and after a reset of
        the domain, which reaches no more than whether a word is scanned.
    step : In(1)
        Move one slot on.
    enter : In(slot_layout(body))
        What enters, when ``step``.
    entered : Out(slot_layout(body))
        What entered last: the probing tuple.
    oldest : Out(slot_layout(body))
        What the next step pushes out; a bubble while the ring is not full.
    scan : In(1)
        Read the word that was told a cycle before.
    next_step : In(1), next_scan_word : In(word_bits(params))
        ``step`` of the next cycle, and the word of its scan. Where no step ever comes, as in a core
        that takes no part, it changes ``live`` alone: all that entered is a bubble.
    slots : Out(ArrayLayout(slot_layout(body), lanes))
        The word read a cycle ago.
    live : Out(lanes)
        Which of its slots hold something written since the ring was empty, when it was scanned.
    """

    last: View
    clear: Signal
    step: Signal
    enter: View
    entered: View
    oldest: View
    scan: Signal
    next_step: Signal
    next_scan_word: Signal
    slots: View
    live: Signal

    def __init__(self, params: DesignParams, body: data.StructLayout) -> None:
        self.params = params
        self.slot = slot_layout(body)
        # A position, or that of the end.
        bounds = {"word": word_bits(params) + 1, "lane": lane_bits(params)}
        self._bounds = data.StructLayout(bounds)
        super().__init__(
            {
                "last": In(position_layout(params)),
                "clear": In(1),
                "step": In(1),
                "enter": In(self.slot),
                "entered": Out(self.slot),
                "oldest": Out(self.slot),
                "scan": In(1),
                "next_step": In(1),
                "next_scan_word": In(word_bits(params)),
                "slots": Out(data.ArrayLayout(self.slot, params.lanes)),
                "live": Out(params.lanes),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build memories, pointers and the look-ahead."""
        m = Module()
        lanes = self.params.lanes
        # `clear` alone resets what is here: beside the domain's reset it would pass a LUT.
        # The slot to be written next (the oldest, once full) and the one after it.
        here = payload_of(position_layout(self.params))
        after = payload_of(position_layout(self.params))
        # Slots below this position were written since the ring was empty.
        filled = payload_of(self._bounds)
        full, fills = payload_of(1), payload_of(1)
        stepped = payload_of(1)
        entered, oldest = payload_of(self.slot), payload_of(self.slot)
        m.d.comb += [self.entered.eq(entered), self.oldest.eq(oldest)]

        # A segment of one slot looks ahead at the very slot being written.
        single = payload_of(1, name="single")
        m.d.sync += single.eq(self.last.as_value() == 0)
        self._follow(m, _Pointers(here, after, filled, fills), single)

        m.d.sync += stepped.eq(self.step)
        # What enters is written from its register.
        written = payload_of(word_bits(self.params), name="written")
        writes = payload_of(lanes, name="writes")
        m.d.sync += written.eq(here.word)
        with m.If(self.step):
            m.d.sync += [entered.eq(self.enter), full.eq(fills)]

        read_word = payload_of(word_bits(self.params), name="read_word")
        m.d.sync += read_word.eq(Mux(self.next_step, after.word, self.next_scan_word))
        ahead = signal_of(self.slot)
        # Where the scan is beside the word that is not full.
        scanned, beyond = Signal(name="scanned"), payload_of(1, name="beyond")
        partly = payload_of(lanes, name="partly")
        is_same, is_above = _compared(m, self.next_scan_word, filled.word)
        m.d.sync += [scanned.eq(self.scan), beyond.eq(is_same | is_above)]
        if lanes > 1:
            # A partly filled word never has its last lane filled.
            is_filled = Cat(lane < filled.lane for lane in range(lanes - 1))
            m.d.sync += partly.eq(Mux(is_same, is_filled, 0))
        for lane in range(lanes):
            memory = lane_memory(self.params, self.slot)
            m.submodules[f"lane{lane}"] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.addr.eq(written),
                write.data.eq(entered),
                write.en.eq(writes[lane]),
                read.addr.eq(read_word),
                self.slots[lane].eq(read.data),
            ]
            m.d.sync += writes[lane].eq(self.step & (here.lane == lane))
            with m.If(here.lane == lane):
                m.d.comb += ahead.eq(read.data)
            m.d.comb += self.live[lane].eq(scanned & (~beyond | partly[lane]))

        with m.If(stepped):
            m.d.sync += oldest.eq(Mux(single, entered, ahead))
            with m.If(~full):
                m.d.sync += oldest.valid.eq(0)
        with m.If(self.clear):
            m.d.sync += [
                full.eq(0),
                stepped.eq(0),
                oldest.valid.eq(0),
                entered.valid.eq(0),
            ]
        return m

    def _is_last(self, lane: Any) -> Value:
        """Return whether a lane is the last one; a tool cannot know that the only one is."""
        lanes = self.params.lanes
        return Const(1, 1) if lanes == 1 else lane == lanes - 1

    def _follow(self, m: Module, at: "_Pointers", single: Signal) -> None:
        """Build the pointers of a ring.

        All are registers, so that nothing is compared on the way to a memory's address. Steps are
        two cycles apart: what follows a slot is worked out in the first one. What enables them is
        a register of their own, as ``step`` reaches the tuple that enters, and no LUT lies in
        front of an enable or a reset: those wires are among the longest.
        """
        lanes = self.params.lanes
        second_word, second_lane = divmod(1, lanes)
        # From `clear` until the first step.
        fresh, moves, ends = payload_of(1), payload_of(1), payload_of(1)
        further = payload_of(position_layout(self.params), name="further")
        bound = payload_of(self._bounds, name="bound")
        after, last = at.after, self.last
        m.d.sync += [
            bound.lane.eq(Mux(self._is_last(last.lane), 0, last.lane + 1)),
            bound.word.eq(last.word + self._is_last(last.lane)),
            ends.eq((after.word == last.word) & (after.lane == last.lane)),
            further.lane.eq(Mux(self._is_last(after.lane), 0, after.lane + 1)),
            further.word.eq(after.word + self._is_last(after.lane)),
            fresh.eq(self.clear | (fresh & ~self.next_step)),
            moves.eq(self.clear | fresh | self.next_step),
        ]
        second = Cat(Const(second_word, len(after.word)), Const(second_lane, len(after.lane)))
        with m.If(moves):
            m.d.sync += [
                at.here.eq(one_of([(~fresh, after)])),
                after.eq(one_of([(~fresh & ~ends, further), (fresh & ~single, second)])),
                at.fills.eq(Mux(fresh, single, at.fills | ends)),
            ]
            for name in ("word", "lane"):
                limit = one_of(
                    [(~fresh & ~at.fills, after[name]), (~fresh & at.fills, bound[name])]
                )
                m.d.sync += at.filled[name].eq(limit)


class _Pointers(NamedTuple):
    """Where a ring is written, up to where it was, and whether it is full after the next step."""

    here: View
    after: View
    filled: View
    fills: Signal
