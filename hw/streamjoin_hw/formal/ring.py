"""A segment ring holds the last tuples that entered it, and hands on the one before them."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data

from streamjoin_common.contract import DesignParams
from streamjoin_hw.formal.harness import Harness
from streamjoin_hw.rtl.memory import SegmentRing

BODY = data.StructLayout({"number": 2})


class RingMemory(Harness):
    """A ring of up to four slots, its length the solver's choice.

    The solver also chooses one step of the ring: ``age`` counts the steps since then. What entered
    in it must be found by every scan while ``age`` is below the length, once, and be the oldest
    slot when ``age`` is one below it.

    Parameters
    ----------
    lanes : int
        1, 2 or 4.
    """

    SLOTS = 4

    def __init__(self, lanes: int) -> None:
        super().__init__()
        self.params = DesignParams(cores=1, segment_tuples=self.SLOTS, lanes=lanes)
        self.lanes = lanes
        self.length = self.constant(range(self.SLOTS + 1), "length")
        self.pick = self.free(1, "pick")
        self.next_step = self.free(1, "next_step")
        self.clear = self.free(1, "clear")
        self.entering = self.free(BODY.size + 1, "entering")
        self.next_word = self.free(range(max(2, self.params.segment_words)), "next_word")

    def prove(self, m: Module) -> None:
        """Follow one slot from the step that filled it until it is handed on."""
        m.submodules.dut = dut = SegmentRing(self.params, BODY)
        ring: Any = dut
        step, word = self.last(m, self.next_step), self.last(m, self.next_word)
        m.d.comb += [
            ring.last.word.eq((self.length - 1) // self.lanes),
            ring.last.lane.eq((self.length - 1) % self.lanes),
            ring.step.eq(step),
            ring.clear.eq(self.clear),
            ring.enter.eq(self.entering),
            ring.scan.eq(1),
            ring.next_step.eq(self.next_step),
            ring.next_scan_word.eq(self.next_word),
        ]
        stepped = self.last(m, step)
        # The commands as the sequencer gives them: steps two cycles apart, none with a clear or in
        # the two cycles after it; a clear first of all.
        self.assume(m, self.clear | self.started)
        renewed = self.last(m, self.clear)
        rested = ~renewed & ~self.last(m, renewed)
        self.assume(m, (self.length != 0) & (self.length <= self.SLOTS))
        self.assume(m, word < self.params.segment_words)
        self.assume(m, ~(step & (stepped | ~rested)) & ~(self.clear & (step | stepped)))

        steps = Signal(range(self.SLOTS + 1))
        followed, age = Signal(), Signal(range(self.SLOTS + 1))
        kept, position = Signal(BODY.size + 1), Signal(range(self.SLOTS))
        following = Signal()
        with m.If(step):
            # `steps` counts modulo the length: it is the slot that the step fills.
            m.d.sync += steps.eq(Mux(steps + 1 == self.length, 0, steps + 1))
            with m.If(self.pick & ~following):
                m.d.sync += [following.eq(1), age.eq(0), kept.eq(self.entering)]
                m.d.sync += position.eq(steps)
            with m.Elif(following):
                m.d.sync += [age.eq(age + 1), following.eq(age + 1 != self.length)]
        with m.If(self.clear):
            m.d.sync += [following.eq(0), steps.eq(0)]

        since_clear = Signal(range(self.SLOTS + 1))
        with m.If(self.clear):
            m.d.sync += since_clear.eq(0)
        with m.Elif(step & (since_clear != self.SLOTS)):
            m.d.sync += since_clear.eq(since_clear + 1)
        read_word = self.last(m, word)
        # Not in the cycle of a step, nor in the next one, in which the memory is written.
        scanned = self.started & ~stepped & ~self.last(m, stepped) & self.settled(m)
        seen = Signal(self.lanes)
        m.d.comb += followed.eq(following)
        for lane in range(self.lanes):
            slot = ring.slots[lane].as_value()
            mine = read_word * self.lanes + lane == position
            m.d.comb += seen[lane].eq(ring.live[lane] & slot[0])
            self.claim(
                m,
                ~(scanned & followed & mine) | (ring.live[lane] & (slot == kept)),
                f"a scan finds a tuple of the window, unchanged, in lane {lane}",
            )
            self.claim(
                m,
                ~scanned
                | ~seen[lane]
                | (
                    (read_word * self.lanes + lane < self.length)
                    & (read_word * self.lanes + lane < since_clear)
                ),
                f"lane {lane} shows nothing that did not enter since the ring was empty",
            )
        due = followed & (age + 1 == self.length) & ~stepped
        self.claim(m, ~due | (ring.oldest.as_value() == kept), "the oldest slot is handed on")
        self.claim(
            m,
            ~(self.started & ~stepped & (since_clear < self.length)) | ~ring.oldest.valid,
            "a ring that is not full hands on nothing",
        )

    def settled(self, m: Module) -> Any:
        """Return 1 if a word shown now was scanned at least three cycles after a clear."""
        cleared = self.last(m, self.clear)
        before = self.last(m, cleared)
        return ~cleared & ~before & ~self.last(m, before)
