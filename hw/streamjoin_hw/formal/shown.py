"""One stream's ordered index, small: a tuple is shown exactly as long as it is in the window."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from streamjoin_common.contract import DesignParams
from streamjoin_hw.formal.faults import Fault
from streamjoin_hw.formal.harness import Harness
from streamjoin_hw.rtl.index.half import Half
from streamjoin_hw.rtl.index.occupancy import Occupancy

NUMBER_BITS = 4
BODY = data.StructLayout({"payload": NUMBER_BITS})

FREED_SHOWN = Fault(
    "rtl.index.occupancy",
    "self.used[bank].eq(entered ^ left)",
    "self.used[bank].eq(entered | left)",
    "a slot that was used twice is shown when it is free",
)
STORED_TWICE = Fault(
    "rtl.index.place",
    "reduce(or_, new, known)",
    "known",
    "two tuples that follow one another are stored in one slot",
)


def _params(window: int) -> DesignParams:
    """Return four words of one slot each, two of them looked at in a cycle."""
    return DesignParams(
        design="splitjoin-index", cores=1, segment_tuples=window, lanes=2, ways=2, buckets=4
    )


class Shown(Harness):
    """An index that is given errands; the solver chooses them, and one tuple to watch.

    Parameters
    ----------
    window : int
        Count window in tuples, at most 3.
    """

    WAITING = 4

    def __init__(self, window: int) -> None:
        super().__init__()
        self.params = _params(window)
        self.window = window
        self.put = self.free(1, "put")
        self.stores = self.free(1, "stores")
        self.word = self.free(2, "word")
        self.extent = self.free(2, "extent")
        self.hold = self.free(1, "hold")
        self.wait = self.free(1, "wait")
        self.watched = self.constant(NUMBER_BITS, "watched")

    def prove(self, m: Module) -> None:
        """Keep the errands that wait, watch a tuple, claim of every search what it shows."""
        m.submodules.dut = half = Half(self.params, BODY, 2 * self.WAITING)
        dut: Any = half
        layout = data.StructLayout({"stores": 1, "word": 2, "extent": 2})
        queue = [Signal(layout, name=f"waits{k}") for k in range(self.WAITING + 2)]
        waiting, stored = Signal(range(self.WAITING + 1)), Signal(NUMBER_BITS)
        done = dut.stored + dut.searched
        self.assume(m, ~self.put | (~dut.clearing & (waiting != self.WAITING)))
        self.assume(m, stored < (1 << NUMBER_BITS) - 2)
        m.d.comb += [
            dut.put.eq(self.put),
            dut.errand.stores.eq(self.stores),
            dut.errand.looks.eq(1),
            dut.errand.word.eq(self.word),
            dut.errand.extent.eq(self.extent),
            dut.errand.until.eq(self.word + self.extent),
            dut.hold.eq(self.hold),
            dut.wait.eq(self.wait),
            dut.enter.payload.eq(stored),
            dut.full.eq(stored >= self.window),
        ]
        m.d.sync += waiting.eq(waiting + self.put - done)
        for k in range(self.WAITING):
            moved = Mux(done == 2, queue[k + 2], Mux(done == 1, queue[k + 1], queue[k]))
            new = Cat(self.stores, self.word, self.extent)
            m.d.sync += queue[k].eq(Mux(self.put & (waiting - done == k), new, moved))
        entry: Any = queue[0]
        entering: Any = Signal(layout)
        m.d.comb += entering.eq(Mux(dut.searched, queue[1], entry))
        # The watched tuple: is it in the window, its bucket, and those stored since.
        here, bucket, since = Signal(), Signal(2), Signal(range(self.window + 2))
        with m.If(dut.stored):
            m.d.sync += [stored.eq(stored + 1), since.eq(since + here)]
            with m.If(stored == self.watched):
                m.d.sync += [here.eq(1), bucket.eq(entering.word), since.eq(1)]
            with m.Elif(here & (since == self.window)):
                m.d.sync += here.eq(0)
        owed = here & ((bucket - entry.word)[:2] <= entry.extent)
        self._claim(m, dut, (entry, entering, here, owed))

    def _claim(self, m: Module, dut: Any, errand: tuple[Any, Any, Value, Value]) -> None:
        """Claim what is shown a cycle after it was read, of the oldest errand."""
        entry, entering, here, owed = errand
        lanes = [
            dut.live[lane] & (dut.tuples[lane].payload == self.watched)
            for lane in range(self.params.lanes)
        ]
        shown, before = Signal(), Signal()
        scanned, ends = self.last(m, dut.scan), self.last(m, dut.searched)
        m.d.comb += shown.eq(scanned & (lanes[0] | lanes[1]))
        twice = scanned & ((lanes[0] & lanes[1]) | (shown & before))
        m.d.sync += before.eq((before | shown) & ~ends)
        self.claim(m, ~dut.scan | ~entry.stores, "words are read for a search")
        self.claim(m, ~dut.searched | ~entry.stores, "a tuple is not stored in its turn")
        self.claim(m, ~dut.stored | entering.stores, "a search is passed over")
        self.claim(m, ~shown | self.last(m, here), "only a tuple of the window is shown")
        self.claim(m, ~twice, "no errand shows a tuple twice")
        self.claim(
            m,
            ~(ends & self.last(m, owed)) | shown | before,
            "a tuple of the buckets asked for is shown",
        )


class Slots(Harness):
    """The words of an index: the solver stores, lets expire and looks; one word is watched."""

    def __init__(self) -> None:
        super().__init__()
        self.params = _params(3)
        self.rows = self.free(2, "rows")
        self.into = self.free(2, "into")
        self.take = self.free(1, "take")
        self.place = self.free(2, "place")
        self.free_one = self.free(1, "free_one")
        self.freed = self.free(2, "freed")
        self.watched = self.constant(2, "watched")

    def prove(self, m: Module) -> None:
        """Follow the used slots, and claim that a look shows the watched one."""
        m.submodules.dut = occupancy = Occupancy(self.params)
        dut: Any = occupancy
        used, bits = Signal(self.params.buckets), Signal(self.params.buckets)
        takes = self.take & ~used.bit_select(self.place, 1)
        frees = self.free_one & used.bit_select(self.freed, 1)
        m.d.comb += [
            dut.rows.eq(self.rows),
            dut.into.eq(self.into),
            dut.take.eq(takes),
            dut.position.word.eq(self.place),
            dut.position.slot.eq(1),
            dut.bits.eq(~bits.bit_select(self.place, 1)),
            dut.free.eq(frees),
            dut.freed.word.eq(self.freed),
            dut.freed.slot.eq(1),
            dut.bit.eq(bits.bit_select(self.freed, 1)),
        ]
        one = Const(1, self.params.buckets)
        new = Mux(takes, (one << self.place)[:4], 0)
        m.d.sync += [
            used.eq((used | new) & ~Mux(frees, (one << self.freed)[:4], 0)),
            bits.eq(bits ^ new),
        ]
        for name, row, shown in (
            ("a word that is read shows what it holds", self.rows, dut.used),
            ("a word in which to store shows what it holds", self.into, dut.taken),
        ):
            is_read = self.last(m, row.bit_select(self.watched[0], 1) == self.watched[1])
            seen = Mux(self.watched[0], shown[1], shown[0])
            self.claim(m, ~is_read | (seen == self.last(m, used.bit_select(self.watched, 1))), name)
