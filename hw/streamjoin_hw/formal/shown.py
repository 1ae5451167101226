"""One stream's ordered index, small: a tuple is shown exactly as long as it is in the window."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data

from streamjoin_common.contract import DesignParams
from streamjoin_hw.formal.faults import Fault
from streamjoin_hw.formal.harness import Harness
from streamjoin_hw.rtl.index.half import Half
from streamjoin_hw.rtl.index.occupancy import Occupancy

NUMBER_BITS = 4
BODY = data.StructLayout({"payload": NUMBER_BITS})

FREED_LATE = Fault(
    "rtl.index.occupancy",
    "Mux(goes & (row_of(params, going.word) == shown), going.slot, 0)",
    "Mux(goes & ~goes, going.slot, 0)",
    "a slot that is freed is shown as used for another cycle",
)
SPREAD_IGNORED = Fault(
    "rtl.index.half",
    "end = bucket + _reach(spread, now)",
    "end = bucket + (_reach(spread, now) & 0)",
    "displaced tuples are not looked for",
)


def _params(window: int) -> DesignParams:
    """Return four words of one slot each, two of them looked at in a cycle."""
    return DesignParams(
        design="splitjoin-index", cores=1, segment_tuples=window, lanes=2, ways=2, buckets=4
    )


class Shown(Harness):
    """An index that is given errands; the solver chooses them, and one tuple to watch.

    A tuple that follows a search may be stored in its last cycle, in which the next errand begins.

    Parameters
    ----------
    window : int
        Count window in tuples, at most 3.
    """

    def __init__(self, window: int) -> None:
        super().__init__()
        self.params = _params(window)
        self.window = window
        self.starts = self.free(1, "starts")
        self.stores = self.free(1, "stores")
        self.word = self.free(2, "word")
        self.extent = self.free(2, "extent")
        self.hold = self.free(1, "hold")
        self.ahead = self.free(2, "ahead")
        self.follows = self.free(1, "follows")
        self.watched = self.constant(NUMBER_BITS, "watched")

    def prove(self, m: Module) -> None:
        """Number the tuples, watch one, claim of every errand that looks what it shows."""
        m.submodules.dut = half = Half(self.params, BODY)
        dut: Any = half
        stored, held = Signal(NUMBER_BITS), Signal(range(self.window + 1))
        number, full = Signal(NUMBER_BITS), Signal()
        self.assume(m, ~self.starts | (dut.done & ~dut.clearing))
        # At most two are stored in a cycle.
        self.assume(m, ~(self.starts | self.follows) | (stored < (1 << NUMBER_BITS) - 2))
        joined = Signal()
        m.d.comb += [
            dut.start.eq(self.starts),
            dut.errand.stores.eq(self.stores),
            dut.errand.word.eq(self.word),
            dut.errand.extent.eq(Mux(self.stores, 0, self.extent)),
            dut.hold.eq(self.hold),
            dut.ahead.eq(self.ahead),
            dut.follows.eq(self.follows),
            joined.eq(dut.joins & dut.done),
            dut.enter.payload.eq(Mux(dut.joins, stored, number)),
            dut.full.eq(Mux(dut.joins, held == self.window, full)),
        ]
        # The watched tuple: is it in the window of the next errand, its bucket, and those since.
        here, bucket, since = Signal(), Signal(2), Signal(range(self.window + 2))
        looks, allowed, owed, fresh = Signal(), Signal(), Signal(), Signal()
        m.d.sync += fresh.eq(0)
        with m.If(dut.done):
            m.d.sync += looks.eq(0)
        window = (stored, held, here, bucket, since)
        between = self._store(m, "joined", joined, self.last(m, self.ahead), window)
        after = self._store(m, "begun", self.starts & self.stores, self.word, between)
        m.d.sync += [now.eq(then) for now, then in zip(window, after, strict=True)]
        with m.If(self.starts & self.stores):
            m.d.sync += [number.eq(between[0]), full.eq(between[1] == self.window)]
        with m.If(self.starts & ~self.stores):
            m.d.sync += [
                looks.eq(1),
                fresh.eq(1),
                allowed.eq(between[2]),
                owed.eq(between[2] & ((between[3] - self.word)[:2] <= self.extent)),
            ]
        self._claim(m, dut, (looks, allowed, owed, fresh))

    def _store(
        self, m: Module, name: str, stores: Value, word: Value, before: tuple[Signal, ...]
    ) -> tuple[Signal, ...]:
        """Return what the window is after a tuple, if one is stored.

        How many were stored and are held; of the watched one: is it held, its bucket, and those
        since, itself one.
        """
        after = tuple(Signal(each.shape(), name=f"{name}_{k}") for k, each in enumerate(before))
        stored, held, here, _, since = before
        m.d.comb += [then.eq(now) for now, then in zip(before, after, strict=True)]
        with m.If(stores):
            m.d.comb += [
                after[0].eq(stored + 1),
                after[1].eq(Mux(held == self.window, held, held + 1)),
                after[4].eq(since + here),
            ]
            with m.If(stored == self.watched):
                m.d.comb += [after[2].eq(1), after[3].eq(word), after[4].eq(1)]
            with m.Elif(here & (since == self.window)):
                m.d.comb += after[2].eq(0)
        return after

    def _claim(self, m: Module, dut: Any, errand: tuple[Signal, Signal, Signal, Signal]) -> None:
        """Claim what is shown a cycle after it was read."""
        looks, allowed, owed, fresh = errand
        lanes = [
            dut.live[lane] & (dut.tuples[lane].payload == self.watched)
            for lane in range(self.params.lanes)
        ]
        shown, twice, before = Signal(), Signal(), Signal()
        scanned, ends = self.last(m, dut.scan), self.last(m, looks & dut.done)
        m.d.comb += [
            shown.eq(scanned & (lanes[0] | lanes[1])),
            twice.eq(scanned & ((lanes[0] & lanes[1]) | (shown & before & ~self.last(m, fresh)))),
        ]
        with m.If(self.last(m, fresh)):
            m.d.sync += before.eq(shown)
        with m.Elif(shown):
            m.d.sync += before.eq(1)
        seen = shown | (before & ~self.last(m, fresh))
        self.claim(m, ~shown | self.last(m, allowed), "only a tuple of the window is shown")
        self.claim(m, ~twice, "no errand shows a tuple twice")
        self.claim(
            m, ~(ends & self.last(m, owed)) | seen, "a tuple of the buckets asked for is shown"
        )


class Slots(Harness):
    """The words of an index: the solver stores, lets expire and looks; one slot is watched."""

    def __init__(self) -> None:
        super().__init__()
        self.params = _params(3)
        self.look = self.free(2, "look")
        self.take = self.free(1, "take")
        self.into = self.free(1, "into")
        self.free_one = self.free(1, "free_one")
        self.freed = self.free(2, "freed")
        self.ahead = self.free(2, "ahead")
        self.beside = self.free(1, "beside")
        self.watched = self.constant(2, "watched")

    def prove(self, m: Module) -> None:
        """Follow the watched word's slot, and claim that a look shows it."""
        m.submodules.dut = occupancy = Occupancy(self.params)
        dut: Any = occupancy
        word, used = Signal(2), Signal(self.params.buckets)
        m.d.sync += word.eq(self.look)
        other = self.last(m, self.ahead)
        into = Mux(self.beside, other, (word + self.into)[:2])
        takes = self.take & ~dut.clearing & ~used.bit_select(into, 1)
        frees = self.free_one & ~dut.clearing & used.bit_select(self.freed, 1)
        m.d.comb += [
            dut.look.eq(self.look),
            dut.ahead.eq(self.ahead),
            dut.beside.eq(self.beside),
            dut.take.eq(takes),
            dut.taken.word.eq(into),
            dut.taken.slot.eq(1),
            dut.free.eq(frees),
            dut.freed.word.eq(self.freed),
            dut.freed.slot.eq(1),
        ]
        one = Const(1, self.params.buckets)
        m.d.sync += used.eq(
            (used | Mux(takes, (one << into)[:4], 0)) & ~Mux(frees, (one << self.freed)[:4], 0)
        )
        is_first, is_second = word == self.watched, (word + 1)[:2] == self.watched
        shown = Mux(self.watched[0], dut.used[1], dut.used[0])
        self.claim(
            m,
            dut.clearing
            | ~self.last(m, ~dut.clearing)
            | ~(is_first | is_second)
            | (shown == used.bit_select(self.watched, 1)),
            "a slot is shown as used from when it is taken until it is freed",
        )
        self.claim(
            m,
            dut.clearing
            | ~self.last(m, ~dut.clearing)
            | (dut.used_ahead == used.bit_select(other, 1)),
            "the slot ahead is shown as used from when it is taken until it is freed",
        )
