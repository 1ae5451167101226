"""Layouts that travel between components, and the register that cuts a stream's paths.

Streams are Amaranth's (``amaranth.lib.stream``): a payload is handed over in every cycle in
which ``valid`` and ``ready`` are both 1. The rules every component here keeps:

- ``valid`` never waits for ``ready``, and once 1 it stays 1, with the same payload, until the
  payload is taken;
- ``ready`` may rise and fall, and may depend on ``valid`` of the same side;
- no component has a combinational path from an input's ``valid`` or ``payload`` to an output's
  ``valid``, nor from an output's ``ready`` to an input's ``ready``, unless it says so.

Inside the design a key is an unsigned *code* (see :mod:`streamjoin_hw.rtl.encode`), so that a term
of the predicate is one or two unsigned comparisons.
"""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import KEY_BITS, DesignParams, TermKind

if TYPE_CHECKING:  # generic for type checkers only
    Component = wiring.Component[Any]
    View = data.View[Any]
else:
    Component = wiring.Component
    View = data.View


def signal_of(layout: data.Layout, name: str | None = None) -> Any:
    """Make a signal of a layout, named after what it is assigned to."""
    return Signal(layout, name=name, src_loc_at=1)


PAYLOAD = "payload"
"""Attribute of registers without a reset: proofs let them begin with any value."""


def payload_of(shape: Any, name: str | None = None) -> Any:
    """Make registers without a reset, for what counts only where a control bit says so.

    They are most of a design's registers. Reset empties a design by its control bits alone, so that
    the wires of the reset reach few of its flip-flops.
    """
    return Signal(shape, name=name, reset_less=True, attrs={PAYLOAD: 1}, src_loc_at=1)


def flags_apart(m: Module, many: int) -> Signal:
    """Return bits that are 1 for ever, from some cycles after power-up on, one after the other.

    Registers that are given the same hold the same, and a synthesis tool makes one of them, whose
    wires then reach all that they were to reach. A bit of these in front of each keeps them apart.
    The last bit is the last one to rise.
    """
    there = Signal(many, reset_less=True)
    m.d.sync += there.eq(Cat(Const(1, 1), there[:-1]))
    return there


def registers_of(
    layout: data.StructLayout, *control: str, name: str, reset_less: bool = False
) -> Any:
    """Make the registers of a layout: the ``control`` members have a reset, the others none.

    ``reset_less``: the control members are not reset by their domain either, since whoever makes
    them does that.
    """
    parts = [
        Signal(field.shape, name=f"{name}_{member}", reset_less=reset_less)
        if member in control
        else payload_of(field.shape, name=f"{name}_{member}")
        for member, field in layout
    ]
    return data.View(layout, Cat(Value.cast(part) for part in parts))


def bits_of(clear: Value | None, *names: str) -> list[Signal]:
    """Make registers of a bit, each of a name; for :func:`empty_at`."""
    return [Signal(name=name, reset_less=clear is not None) for name in names]


def empty_at(m: Module, clear: Value | None, states: Sequence[Any]) -> None:
    """Reset registers at the edge after ``clear``, if there is one; their domain does not then.

    After all else that is assigned to them.
    """
    if clear is not None:
        with m.If(clear):
            m.d.sync += [state.eq(state.init) for state in states]


def one_of(choices: Sequence[tuple[Value, Any]]) -> Value:
    """Return the value of the one choice whose bit is 1, 0 if there is none.

    An OR of what the bits let through: no bit waits for the others, as in a chain of conditions,
    and a LUT of 4 inputs takes two choices.

    Parameters
    ----------
    choices : sequence of (Value, value-castable)
        At most one bit is 1.
    """
    let_through = [
        Value.cast(value) & bit.replicate(len(Value.cast(value))) for bit, value in choices
    ]
    return reduce(or_, let_through)


GATED_BITS = 6
"""Bits of a number up to which gates count it in as few levels as a carry chain does."""


def one_more(number: Value) -> Value:
    """Return a number and one more, round to 0; by gates and no carry chain if it has few bits."""
    if len(number) > GATED_BITS:
        return (number + 1)[: len(number)]
    return Cat(bit ^ number[:k].all() for k, bit in enumerate(number))


def one_less(number: Value) -> Value:
    """Return a number and one less, round to its highest; in the same way."""
    if len(number) > GATED_BITS:
        return (number - 1)[: len(number)]
    return Cat(bit ^ ~number[:k].any() for k, bit in enumerate(number))


def r_layout(params: DesignParams) -> data.StructLayout:
    """Layout of an R tuple inside.

    ``code<i>`` for each term, ``key<i>`` where its kind is key, then ``payload``, times if any.
    """
    members = {}
    for index, term in enumerate(params.terms):
        members[f"{'key' if term.kind is TermKind.KEY else 'code'}{index}"] = KEY_BITS
    return data.StructLayout({**members, "payload": params.payload_bits, **_times(params)})


def s_layout(params: DesignParams) -> data.StructLayout:
    """Layout of an S tuple inside.

    ``code<i>`` for each equality, ``lo<i>`` and ``hi<i>`` (an interval of codes, both ends
    included) for each band, ``key<i>`` for each key, then ``payload`` and times as in R.
    """
    members = {}
    for index, term in enumerate(params.terms):
        if term.kind is TermKind.BAND:
            members[f"lo{index}"] = KEY_BITS
            members[f"hi{index}"] = KEY_BITS
        elif term.kind is TermKind.KEY:
            members[f"key{index}"] = KEY_BITS
        else:
            members[f"code{index}"] = KEY_BITS
    return data.StructLayout({**members, "payload": params.payload_bits, **_times(params)})


def point_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a stored tuple of either side where windows keep points: codes and ``payload``."""
    return r_layout(params)


def probe_layout(params: DesignParams) -> data.StructLayout:
    """Layout of an arriving tuple of either side there: what it compares stored codes with.

    As an S tuple everywhere: an interval for each band, a code for each equality, ``payload``.
    """
    return s_layout(params)


def crossing_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a tuple there before it is known which of both it is: all their members."""
    return data.StructLayout({**point_layout(params).members, **probe_layout(params).members})


def _times(params: DesignParams) -> dict[str, int]:
    """``ts``, and ``end``: the first time at which the tuple's window no longer holds it."""
    bits = params.timestamp_bits
    return {"ts": bits, "end": bits} if bits else {}


def slot_layout(body: data.StructLayout) -> data.StructLayout:
    """Layout of one window slot: a tuple and whether it is one (``valid``) or a bubble."""
    return data.StructLayout({"valid": 1, "body": body})


def arrival_layout(params: DesignParams) -> data.StructLayout:
    """Layout of an encoded tuple on its way to the chain.

    ``side`` is 0 for R, 1 for S; ``body`` holds :func:`r_layout` or :func:`s_layout`, whichever
    the side says, in its lowest bits, or :func:`crossing_layout` where windows keep points;
    ``wanted`` is :func:`wanted_layout`, for an ordered index.
    """
    body_bits = max(r_layout(params).size, s_layout(params).size)
    if params.has_point_windows:
        body_bits = crossing_layout(params).size
    wanted = {"wanted": wanted_layout()} if params.design == "splitjoin-index" else {}
    return data.StructLayout({"side": 1, "body": body_bits, **wanted})


def wanted_layout() -> data.StructLayout:
    """Layout of what an ordered index needs of an arrival, in codes of its indexed term.

    ``home``, the tuple's own. The other side's that it may match lie from ``low`` to ``high``,
    both included; there are none if ``low`` is above ``high``.
    """
    return data.StructLayout({"home": KEY_BITS, "low": KEY_BITS, "high": KEY_BITS})


def result_layout(params: DesignParams) -> data.StructLayout:
    """Layout of one result inside: both payloads and the side of the tuple that probed.

    Where a beat may have two results it has the payloads of another one of the same tuple, and
    whether there is one (``second``).
    """
    bits = params.payload_bits
    pair = {"r_payload_second": bits, "s_payload_second": bits, "second": 1}
    return data.StructLayout(
        {
            "r_payload": bits,
            "s_payload": bits,
            "side": 1,
            **(pair if params.beat_results > 1 else {}),
        }
    )


def met_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a result whose payloads are not told apart by side yet.

    ``probe`` is that of the tuple that probed, of ``side``; ``met`` that of the one it met.
    """
    bits = params.payload_bits
    return data.StructLayout({"side": 1, "probe": bits, "met": bits})


class Stage(Component):
    """A register stage: what enters leaves a cycle later at the earliest, in order.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape))
    busy : Out(1)
        A payload is inside.

    Attributes
    ----------
    soon : None
        It does not say a cycle ahead whether it is ready, as a link does.
    """

    i: stream.Interface
    o: stream.Interface
    busy: Signal
    soon: Signal | None = None

    def __init__(self, shape: data.Layout) -> None:
        self.shape = shape
        super().__init__(
            {"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "busy": Out(1)}
        )


class PipeReg(Stage):
    """A two-entry register stage that cuts every path of a stream.

    Latency 1 cycle, throughput 1 payload a cycle. ``i.ready``, ``o.valid`` and ``o.payload``
    are driven by flip-flops; the second entry takes the payload that arrives in the cycle
    in which the output was not ready.
    """

    def elaborate(self, _platform: object) -> Module:
        """Build the stage."""
        m = Module()
        front_valid = Signal()
        spare_valid = Signal()
        front = payload_of(self.shape)
        spare = payload_of(self.shape)
        m.d.comb += [
            self.i.ready.eq(~spare_valid),
            self.o.valid.eq(front_valid),
            self.o.payload.eq(front),
            self.busy.eq(front_valid),
        ]
        # The spare entry is only ever filled behind a full front entry, so order is kept.
        with m.If(self.o.ready | ~front_valid):
            m.d.sync += [
                front_valid.eq(self.i.valid | spare_valid),
                spare_valid.eq(0),
            ]
            with m.If(spare_valid):
                m.d.sync += front.eq(spare)
            with m.Else():
                m.d.sync += front.eq(self.i.payload)
        with m.Elif(self.i.valid):
            m.d.sync += spare_valid.eq(1)
        # Whatever is offered is copied; it counts once the spare entry is valid. So no long path
        # decides about so many registers.
        with m.If(~spare_valid):
            m.d.sync += spare.eq(self.i.payload)
        return m


class PingPongReg(Stage):
    """Two registers that take turns: a stage whose registers lie far from each other.

    Latency 1 cycle, throughput 1 payload a cycle, as :class:`PipeReg`. Whether a register of a
    payload is written is one flip-flop's to say, and no stream's: a register that is not full
    copies whatever is offered. ``i.ready`` and ``o.valid`` are flip-flops; ``o.payload`` is chosen
    from both registers, a LUT for each bit.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    clear : Signal, optional
        Empties it at the next edge, in place of the domain's reset, which then does not reach it.
    """

    def __init__(self, shape: data.Layout, clear: Signal | None = None) -> None:
        super().__init__(shape)
        self.clear = clear

    def elaborate(self, _platform: object) -> Module:
        """Build the registers and their turns."""
        m = Module()
        # Which register is full, whether one is, and both.
        states = [
            Signal(name=name, reset_less=self.clear is not None)
            for name in ("full0", "full1", "one", "both", "enters", "leaves")
        ]
        *full, one, both, enters, leaves = states
        comes, goes = self.i.valid & ~both, self.o.ready & one
        kept = [payload_of(self.shape, name=f"kept{k}") for k in (0, 1)]
        m.d.comb += [
            self.i.ready.eq(~both),
            self.o.valid.eq(one),
            self.o.payload.eq(Mux(leaves, kept[1].as_value(), kept[0].as_value())),
            self.busy.eq(one),
        ]
        m.d.sync += [
            enters.eq(enters ^ comes),
            leaves.eq(leaves ^ goes),
            one.eq(comes | both | (one & ~goes)),
            both.eq((one & comes & ~goes) | (both & ~goes)),
        ]
        for k, (register, holds) in enumerate(zip(kept, full, strict=True)):
            with m.If(~holds):
                m.d.sync += [register.eq(self.i.payload), holds.eq(comes & (enters == k))]
            with m.Elif(goes & (leaves == k)):
                m.d.sync += holds.eq(0)
        empty_at(m, self.clear, states)
        return m
