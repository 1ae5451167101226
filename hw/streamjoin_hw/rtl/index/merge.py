"""The results of both indexes, in the order of arrival of the tuple that looked for them."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.index.layouts import NUMBER_BITS, found_layout
from streamjoin_hw.rtl.matching import Serialiser
from streamjoin_hw.rtl.streams import Component, PipeReg, View, payload_of, result_layout

LEAD = 1 << NUMBER_BITS - 2
"""Arrivals by which an index may be ahead of what waits in front of the output."""


def is_before(one: Value, other: Value) -> Value:
    """Return whether a number is before another, if they are less than half of all apart."""
    return (one - other)[NUMBER_BITS - 1]


def whole_member(params: DesignParams) -> dict[str, wiring.Member]:
    """Return the port ``whole``, none where results are not ordered any further."""
    return {"whole": Out(1)} if params.order == "inner" else {}


class InOrder(Component):
    """Take words with matches from the index that the older arrival asked.

    A word is taken if the other index has none and has passed the arrival.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    is_found, choose : In(2), Out(2), number : In(ArrayLayout(NUMBER_BITS, 2))
        The number of the oldest word of the index of R and of S; it is removed.
    take : Out(2), found : In(ArrayLayout(found_layout(params), 2))
        The word, there as soon as its number and as long as it is not taken; it is removed.
    passed, next_number : In(ArrayLayout(NUMBER_BITS, 2))
        Those of both indexes (:class:`~streamjoin_hw.rtl.index.side.Side`).
    far : Out(2)
        An index is so far ahead that numbers might be mistaken for others; from a register, two
        cycles late.
    results : Out(stream.Signature(result_layout(params)))
    busy : Out(1)
        A result is inside.
    whole : Out(1), if the order is inner
        The results of the arrival whose word was taken last have all been taken.
    """

    is_found: Signal
    choose: Signal
    number: View
    take: Signal
    found: View
    passed: View
    next_number: View
    far: Signal
    results: stream.Interface
    busy: Signal
    whole: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        numbers = data.ArrayLayout(NUMBER_BITS, 2)
        super().__init__(
            {
                "is_found": In(2),
                "choose": Out(2),
                "number": In(numbers),
                "take": Out(2),
                "found": In(data.ArrayLayout(found_layout(params), 2)),
                "passed": In(numbers),
                "next_number": In(numbers),
                "far": Out(2),
                "results": Out(stream.Signature(result_layout(params))),
                "busy": Out(1),
                **whole_member(params),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the choice, and what turns words into results."""
        m = Module()
        m.submodules.serialiser = serialiser = Serialiser(self.params)
        m.submodules.output = output = PipeReg(result_layout(self.params))
        wiring.connect(m, serialiser.results, output.i)
        wiring.connect(m, output.o, wiring.flipped(self.results))
        # The oldest arrival whose matches may still be on their way out of an index.
        oldest = [Signal(NUMBER_BITS, name=f"oldest{side}") for side in (SIDE_R, SIDE_S)]
        for side in (SIDE_R, SIDE_S):
            m.d.comb += oldest[side].eq(
                Mux(self.is_found[side], self.number[side], self.passed[side])
            )
        is_r = Signal()
        base = Signal(NUMBER_BITS)
        was_base = Signal(NUMBER_BITS)
        # What was chosen a cycle ago, or has been waiting since: it takes most of a cycle.
        is_chosen = Signal()
        chose_r = payload_of(1)
        goes_on = Signal()
        m.d.comb += [
            # An index that is at an arrival itself does not delay what the other one found for it.
            is_r.eq(
                Mux(
                    self.is_found[SIDE_R],
                    ~is_before(oldest[SIDE_S], oldest[SIDE_R]),
                    is_before(oldest[SIDE_R], oldest[SIDE_S]),
                )
            ),
            base.eq(Mux(is_r, oldest[SIDE_R], oldest[SIDE_S])),
        ]
        m.d.sync += was_base.eq(base)
        for side in (SIDE_R, SIDE_S):
            ahead = (self.next_number[side] - was_base)[:NUMBER_BITS]
            m.d.sync += self.far[side].eq(ahead >= LEAD)
        with m.If(goes_on):
            m.d.sync += [is_chosen.eq(self.choose.any()), chose_r.eq(is_r)]
        word, chosen = serialiser.word, Mux(chose_r, *(self.found[k].as_value() for k in (0, 1)))
        one = found_layout(self.params)(chosen)
        m.d.comb += [
            *(word[name].eq(one[name]) for name in ("probe", "mask", "single", "payloads")),
            # Those that are stored with S were asked for by R.
            word.side.eq(Mux(chose_r, SIDE_S, SIDE_R)),
            serialiser.word_valid.eq(is_chosen),
            self.take.eq(Mux(serialiser.word_taken & is_chosen, Mux(chose_r, 1, 2), 0)),
            goes_on.eq(serialiser.word_taken | ~is_chosen),
            self.choose[SIDE_R].eq(goes_on & is_r & self.is_found[SIDE_R]),
            self.choose[SIDE_S].eq(goes_on & ~is_r & self.is_found[SIDE_S]),
            self.busy.eq(is_chosen | serialiser.busy | output.busy),
        ]
        if whole_member(self.params):
            last = payload_of(NUMBER_BITS)
            its_side = payload_of(1)
            with m.If(self.choose.any()):
                m.d.sync += [last.eq(base), its_side.eq(~is_r)]
            follows = [
                Mux(
                    self.is_found[side],
                    self.number[side] == last,
                    ~is_before(last, self.passed[side]),
                )
                for side in (SIDE_R, SIDE_S)
            ]
            m.d.comb += self.whole.eq(~self.busy & ~Mux(its_side, follows[1], follows[0]))
        return m
