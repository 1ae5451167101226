"""SplitJoin, small: stars and results in their order, and what the windows owe exactly once."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value

from streamjoin_common.contract import ORDERS, SIDE_R, SIDE_S, DesignParams, KeyType, Term, TermKind
from streamjoin_hw.formal.faults import Fault
from streamjoin_hw.formal.harness import Harness
from streamjoin_hw.formal.lookup import MAX_TUPLES, NUMBER_BITS, Lookup
from streamjoin_hw.rtl.split.array import SplitArray
from streamjoin_hw.rtl.split.trees import StarMerger
from streamjoin_hw.rtl.streams import r_layout

EQUI = (Term(TermKind.EQUI, KeyType.UINT32),)

BEHIND_A_PROBE = Fault(
    "rtl.split.collector",
    "no_store.eq((probing | self.store) & stays)",
    "no_store.eq(self.store & stays)",
    "a probe meets what is stored after it",
)
EARLY_THERE = Fault(
    "rtl.split.collector",
    ".eq(self.store),",
    ".eq(1),",
    "a probe meets what is stored after it",
)

BOTH_HALVES = Fault(
    "rtl.split.shared_core",
    "push & (hit_side == half)",
    "push",
    "a match is given to both halves",
)


HASTY_STAR = Fault(
    "rtl.split.trees",
    "together = stars.all()",
    "together = stars.any()",
    "one input's star is taken for all",
)

HALF_A_STAR = Fault(
    "rtl.split.groups.combiner",
    "closed & (stars | ~theirs).all()",
    "closed & (stars & theirs).any()",
    "a group's star is given when one half has given its own",
)


class StarOrder(Harness):
    """A star merger: what was between two stars of an input is between the same two behind it.

    The solver chooses results, stars, gaps and stalls, and one result that is watched, marked by
    its payload.

    Parameters
    ----------
    inputs : int
        Streams to merge.
    """

    STAR_BITS = 4

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.params = DesignParams(
            design="splitjoin",
            order="outer",
            cores=inputs,
            segment_tuples=1,
            payload_bits=8,
            terms=EQUI,
        )
        self.offers = self.free(inputs, "offers")
        self.stars = self.free(inputs, "stars")
        self.marks = self.free(inputs, "marks")
        self.ready = self.free(1, "ready")

    def prove(self, m: Module) -> None:
        """Count stars on both sides of the merger, and follow the marked result."""
        inputs = self.params.cores
        m.submodules.dut = dut = StarMerger(self.params, inputs)
        marked, given_out = Signal(), Signal()
        before = Signal(self.STAR_BITS)
        m.d.comb += [dut.control.outer.eq(1), dut.o.ready.eq(self.ready)]
        self.claim_the_rules(m, dut.o, "the output")
        for k in range(inputs):
            each: Any = dut.i[k]
            stars = Signal(self.STAR_BITS, name=f"stars_{k}")
            mark = self.marks[k] & ~self.stars[k]
            m.d.comb += [
                each.valid.eq(self.offers[k]),
                each.p.star.eq(self.stars[k]),
                each.p.r_payload.eq(mark),
            ]
            self.keep_the_rules(m, each)
            # One result is marked, ever.
            self.assume(m, ~(each.valid & mark & marked))
            for other in range(k):
                self.assume(m, ~(self.offers[k] & mark & self.offers[other] & self.marks[other]))
            taken = each.valid & each.ready
            self.assume(m, ~(taken & self.stars[k]) | (stars != (1 << self.STAR_BITS) - 1))
            with m.If(taken & self.stars[k]):
                m.d.sync += stars.eq(stars + 1)
            with m.If(taken & mark):
                m.d.sync += [marked.eq(1), before.eq(stars)]
        given, stars_out = Signal(), Signal(self.STAR_BITS)
        m.d.comb += given.eq(dut.o.valid & dut.o.ready)
        is_star, is_marked = dut.o.p.star, ~dut.o.p.star & (dut.o.p.r_payload != 0)
        with m.If(given & is_star):
            m.d.sync += stars_out.eq(stars_out + 1)
        with m.If(given & is_marked):
            m.d.sync += given_out.eq(1)
        self.claim(m, ~(dut.o.valid & is_marked) | (marked & ~given_out), "a result is given once")
        self.claim(
            m,
            ~(dut.o.valid & is_marked) | (stars_out == before),
            "a result follows the stars that it followed at the input",
        )
        self.claim(
            m,
            ~(dut.o.valid & is_star & marked & (stars_out == before)) | given_out,
            "no star overtakes a result of its input",
        )


class SplitMeeting(Lookup):
    """The trees, the cores and the combiner, from encoded tuples to results and stars.

    As in :class:`~streamjoin_hw.formal.lookup.Lookup` the payload of a tuple is its number. One
    star is given for each tuple, in the order of arrival: when the late tuple's star is given, all
    results that it owes must have been given.

    Parameters
    ----------
    cores, probes : int
        The array; a core holds one tuple of each side.
    windows : (int, int)
        Count windows of R and S in tuples.
    dense : bool
        Tuples arrive without gaps until the last, and results are taken at once.
    order : str
        The order that is built and asked for.
    comparators : str
        Whether the halves of a core share them.
    group : int
        Arrivals of a group where stars are grouped, a power of two; 0 where they are not. Then the
        input may end at any time, with a shorter group, and a star is given for each.
    """

    def __init__(
        self,
        cores: int,
        probes: int,
        windows: tuple[int, int],
        *,
        dense: bool = False,
        order: str = "outer",
        comparators: str = "own",
        group: int = 0,
    ) -> None:
        super().__init__(windows)
        self.group = max(1, group)
        self.ends = self.free(1, "ends") if group else Const(0)
        self.params = DesignParams(
            design="splitjoin",
            order=order,
            comparators=comparators,
            stars="grouped" if group else "each",
            cores=cores,
            probes=probes,
            segment_tuples=1,
            payload_bits=8,
            terms=EQUI,
        )
        self.dense = dense
        if dense:
            self.ready = Const(1)

    def prove(self, m: Module) -> None:
        """Number the tuples, watch two, claim."""
        params = self.params
        m.submodules.dut = dut = SplitArray(params)
        first = Signal(init=1)
        m.d.sync += first.eq(0)
        held = [
            Signal(range(window + 1), name=f"held_{k}") for k, window in enumerate(self.windows)
        ]
        number, ended = Signal(NUMBER_BITS), Signal()
        m.d.sync += ended.eq(ended | self.ends)
        body: Any = Signal(r_layout(params))
        full = [count == window for count, window in zip(held, self.windows, strict=True)]
        m.d.comb += [
            body.code0.eq(self.key),
            body.payload.eq(number),
            # A dense input ends, so that results come after all of it, too.
            dut.i.valid.eq((number != MAX_TUPLES if self.dense else self.offers) & ~first & ~ended),
            dut.i.p.side.eq(self.side),
            dut.i.p.body.eq(body),
            dut.i.p.full.eq(Mux(self.side == SIDE_S, full[SIDE_S], full[SIDE_R])),
            dut.clear.eq(first),
            dut.idle.eq(first),
            dut.order.eq(ORDERS.index(params.order)),
            dut.punctuate.eq(1),
            dut.results.ready.eq(self.ready),
        ]
        if params.order == "inner":
            m.d.comb += dut.interval.eq(1)
        if params.has_groups:
            m.d.comb += [dut.group.eq(self.group), dut.draining.eq(ended)]
        self.keep_the_rules(m, dut.i)
        self.claim_the_rules(m, dut.results, "the results")
        self.assume(m, ~self.clear)
        taken = dut.i.valid & dut.i.ready
        self.assume(m, ~taken | (number != MAX_TUPLES))
        self.assume(m, self.early < self.late)
        # Whether a tuple of S is in the late one's group, which may be the late one alone.
        late_side = Signal()
        with m.If(taken):
            m.d.sync += number.eq(number + 1)
            with m.If(self._group(number) == self._group(self.late)):
                m.d.sync += late_side.eq(late_side | self.side)
        for side in (SIDE_R, SIDE_S):
            with m.If(taken & (self.side == side) & ~full[side]):
                m.d.sync += held[side].eq(held[side] + 1)

        owed, met = Signal(), Signal()
        self._follow(m, taken, number, owed)
        out = dut.results
        r, s = out.p.r_payload, out.p.s_payload
        later, earlier = Mux(r > s, r, s), Mux(r > s, s, r)
        is_result, is_star = out.valid & ~out.p.star, out.valid & out.p.star
        is_pair = is_result & (earlier == self.early) & (later == self.late)
        stars, last = Signal(NUMBER_BITS), Signal(params.payload_bits)
        inside = Signal()
        with m.If(out.valid & out.ready):
            m.d.sync += [met.eq(met | is_pair), inside.eq(~out.p.star), last.eq(earlier)]
            with m.If(out.p.star):
                m.d.sync += stars.eq(stars + 1)
        self.claim(m, ~is_pair | owed, "a pair is given only if the windows owe it")
        self.claim(m, ~is_pair | ~met, "no pair is given twice")
        self.claim(
            m,
            ~is_result | (self._group(later) == stars),
            "a result is given before its tuple's star",
        )
        arrived = (stars < self._group(number)) | (ended & (stars * self.group < number))
        self.claim(m, ~is_star | arrived, "no star is given before its tuple arrives")
        self.claim(
            m,
            ~(is_star & (stars == self._group(self.late)))
            | ((met == owed) & (out.p.side == late_side)),
            "before a tuple's star all its results have been given",
        )
        if params.order == "inner":
            ordered: Value = ~inside | (earlier > last)
            self.claim(
                m, ~is_result | ordered, "a tuple's results are ordered by the earlier tuple"
            )

    def _group(self, number: Value) -> Value:
        """Return the number of a tuple's group, all of which have as many: a power of two."""
        return number >> (self.group.bit_length() - 1)
