"""The join that looks tuples up, small: what a window owes is given once, in order."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams, KeyType, Term, TermKind
from streamjoin_hw.formal.faults import Fault
from streamjoin_hw.formal.harness import Harness
from streamjoin_hw.rtl.hash.join import HashJoin
from streamjoin_hw.rtl.streams import r_layout

NUMBER_BITS = 4
MAX_TUPLES = 15
"""Maximum tuples of both sides in the input of a proof; they are numbered from 0."""

NEVER_EXPIRED = Fault(
    "rtl.hash.ring",
    "self.arrive & self.full & (self.tail == oldest)",
    "self.arrive & self.full & (self.tail != oldest)",
    "no tuple leaves a full window",
)
LINK_CUT = Fault(
    "rtl.hash.walk",
    "follows.eq(leads_on & returned[step] & (place < before))",
    "follows.eq(leads_on & returned[step] & (place + 1 < before))",
    "a walk skips the tuple right before the last",
)
CLAIMED_AND_LOST = Fault(
    "rtl.hash.stream_index",
    "table.push.eq(self.push & (is_own | claims))",
    "table.push.eq(self.push & is_own)",
    "a tuple that claims an own bucket is named nowhere",
)


class Lookup(Harness):
    """Index, rings, queue and walker, from encoded tuples to results.

    The payload of a tuple is its number in the order of arrival. The solver chooses sides, keys of
    one bit, gaps, stalls, when both windows are emptied (as the intake does: nothing is inside
    then), and the two tuples that are watched.

    Parameters
    ----------
    windows : (int, int)
        Count windows of R and S in tuples.
    dense : bool
        Tuples of one key arrive without gaps, as many as the solver chooses, and results are taken
        at once: the search, with less to choose, sees more of them.
    own : bool
        With two lanes, own buckets and two results a beat. Dense tuples may have two keys then,
        which share a bucket.
    """

    def __init__(self, windows: tuple[int, int], *, dense: bool = False, own: bool = False) -> None:
        super().__init__()
        self.params = DesignParams(
            design="splitjoin-hash",
            cores=1,
            segment_tuples=max(windows),
            payload_bits=8,
            terms=(Term(TermKind.EQUI, KeyType.UINT32),),
            buckets=2,
            ways=2,
            lead_tuples=8,
            lanes=2 if own else 1,
            own_buckets=2 if own else 0,
            beat_results=2 if own else 1,
        )
        self.windows = windows
        self.side = self.free(1, "side")
        self.key: Value = Const(0, 1) if dense and not own else self.free(1, "key")
        self.clear = Const(0) if dense else self.free(1, "clear")
        self.dense = dense
        self.offers: Value = (
            self.constant(NUMBER_BITS, "tuples") if dense else self.free(1, "offers")
        )
        self.ready: Value = Const(1) if dense else self.free(1, "ready")
        self.early = self.constant(NUMBER_BITS, "early")
        self.late = self.constant(NUMBER_BITS, "late")

    def prove(self, m: Module) -> None:
        """Number the tuples, watch two, claim."""
        m.submodules.dut = dut = HashJoin(self.params)
        # How many tuples of each side the windows hold, as the intake counts them.
        held = [
            Signal(range(window + 1), name=f"held_{k}") for k, window in enumerate(self.windows)
        ]
        number = Signal(NUMBER_BITS)
        body: Any = Signal(r_layout(self.params))
        full = [count == window for count, window in zip(held, self.windows, strict=True)]
        m.d.comb += [
            # Two keys in the same bucket.
            body.code0.eq(self.key << 1 if self.params.own_buckets else self.key),
            body.payload.eq(number),
            dut.i.valid.eq((number < self.offers) if self.dense else self.offers & ~self.clear),
            dut.i.p.side.eq(self.side),
            dut.i.p.body.eq(body),
            dut.i.p.full.eq(Mux(self.side == SIDE_S, full[SIDE_S], full[SIDE_R])),
            dut.clear.eq(self.clear),
            dut.results.ready.eq(self.ready),
        ]
        self.keep_the_rules(m, dut.i)
        self.claim_the_rules(m, dut.results, "the results")
        self.assume(m, ~self.clear | ~dut.busy)
        taken = dut.i.valid & dut.i.ready
        self.assume(m, ~taken | (number != MAX_TUPLES))
        self.assume(m, self.early < self.late)
        with m.If(taken):
            m.d.sync += number.eq(number + 1)
        for side in (SIDE_R, SIDE_S):
            with m.If(self.clear):
                m.d.sync += held[side].eq(0)
            with m.Elif(taken & (self.side == side) & ~full[side]):
                m.d.sync += held[side].eq(held[side] + 1)

        owed, met = Signal(), Signal()
        self._follow(m, taken, number, owed)
        last = Signal(self.params.payload_bits)
        p = dut.results.p
        was_met: Value = met
        before: Value = last
        results = [(p.r_payload, p.s_payload, dut.results.valid)]
        if self.params.beat_results > 1:
            valid = dut.results.valid & p.second
            results.append((p.r_payload_second, p.s_payload_second, valid))
        for r, s, valid in results:
            later = Mux(r > s, r, s)
            is_pair = valid & (Mux(r > s, s, r) == self.early) & (later == self.late)
            with m.If(valid & dut.results.ready):
                m.d.sync += last.eq(later)
            self.claim(m, ~is_pair | owed, "a pair is given only if the windows owe it")
            self.claim(m, ~is_pair | ~was_met, "no pair is given twice")
            self.claim(
                m,
                ~valid | ((later < number) & (later >= before)),
                "results are in the order of the later tuple's arrival",
            )
            was_met, before = was_met | is_pair, later
        with m.If(dut.results.valid & dut.results.ready):
            m.d.sync += met.eq(was_met)
        self.claim(
            m, dut.busy | (met == owed), "what is owed has been given when nothing is inside"
        )

    def _follow(self, m: Module, taken: Value, number: Signal, owed: Signal) -> None:
        """Work out, by the definition, whether the watched pair is owed."""
        # The early tuple: is it here, its side and key, and tuples of its side since, itself one.
        here, side, key = Signal(), Signal(), Signal()
        since = Signal(range(max(self.windows) + 1))
        window = Mux(side == SIDE_S, self.windows[SIDE_S], self.windows[SIDE_R])
        with m.If(self.clear):
            m.d.sync += here.eq(0)
        with m.Elif(taken & (number == self.early)):
            m.d.sync += [here.eq(1), side.eq(self.side), key.eq(self.key), since.eq(1)]
        with m.Elif(taken & here & (self.side == side)):
            m.d.sync += [since.eq(since + 1), here.eq(since < window)]
        with m.If(taken & here & (number == self.late)):
            m.d.sync += owed.eq((self.side != side) & (self.key == key))
