"""Exact float32 addition, the one arithmetic operation a float band needs.

IEEE 754-2008 binary32, round to nearest, ties to even; subnormals, infinities, signed zeros and
NaN included: the result equals NumPy's ``np.float32(a) + np.float32(b)`` bit for bit, save that
every NaN is the one quiet NaN ``0x7FC00000``.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_hw.rtl.streams import Component, payload_of

QUIET_NAN = 0x7FC00000
INFINITY_BITS = 0x7F800000

STAGES = 4
"""Cycles from operands to sum, counted in cycles with ``enable``."""

_GUARD = 3  # guard, round and sticky bits below the significand
_WIDTH = 24 + _GUARD

_ORDERED = data.StructLayout(
    {
        "sign": 1,
        "subtract": 1,
        "nan": 1,
        "infinite": 1,
        "exponent": 8,
        "distance": 8,
        "significand": 24,
        "addend": 24,
    }
)
_ADDED = data.StructLayout(
    {"sign": 1, "zero_sign": 1, "nan": 1, "infinite": 1, "exponent": 8, "total": _WIDTH + 1}
)
_NORMAL = data.StructLayout({"sign": 1, "nan": 1, "infinite": 1, "exponent": 9, "total": _WIDTH})


def shift_right_sticky(value: Value, amount: Value, width: int) -> Value:
    """Shift right; the lowest bit of the result also collects all that falls off."""
    for level in range(len(amount)):
        distance = 1 << level
        lost = value[: min(distance, width)].any()
        moved = value[distance:] if distance < width else Const(0, 1)
        shifted = Cat(moved[:1] | lost, moved[1:])
        value = Mux(amount[level], shifted, value)[:width]
    return value


class FloatAdder(Component):
    """A pipelined float32 adder.

    Throughput one sum a cycle, latency :data:`STAGES` cycles. Subtract by flipping bit 31 of ``b``.

    Members
    -------
    a, b : In(32)
        Operands, float32 bits.
    sum : Out(32)
        ``a + b``, float32 bits.
    """

    a: Signal
    b: Signal
    sum: Signal

    def __init__(self) -> None:
        super().__init__({"a": In(32), "b": In(32), "sum": Out(32)})

    def elaborate(self, _platform: object) -> Module:
        """Build the four stages: order, align and add, normalise, round."""
        m = Module()
        self._round(m, self._normalise(m, self._add(m, self._order(m))))
        return m

    def _order(self, m: Module) -> Any:
        """Stage 1: the larger magnitude first, so that a difference is never negative."""
        swap = Signal()
        large = Signal(32)
        small = Signal(32)
        m.d.comb += [
            swap.eq(self.a[:31] < self.b[:31]),
            large.eq(Mux(swap, self.b, self.a)),
            small.eq(Mux(swap, self.a, self.b)),
        ]
        # A subnormal has the exponent of the smallest normal number and no hidden one.
        large_hidden, small_hidden = large[23:31].any(), small[23:31].any()
        large_exponent = Mux(large_hidden, large[23:31], 1)
        small_exponent = Mux(small_hidden, small[23:31], 1)
        large_infinite = large[23:31].all() & ~large[:23].any()
        small_infinite = small[23:31].all() & ~small[:23].any()
        subtract = large[31] ^ small[31]
        ordered = payload_of(_ORDERED)
        m.d.sync += [
            ordered.sign.eq(large[31]),
            ordered.subtract.eq(subtract),
            # NaN has the larger magnitude, so looking at the larger operand is enough.
            ordered.nan.eq(
                (large[23:31].all() & large[:23].any())
                | (large_infinite & small_infinite & subtract)
            ),
            ordered.infinite.eq(large_infinite),
            ordered.exponent.eq(large_exponent),
            ordered.distance.eq(large_exponent - small_exponent),
            ordered.significand.eq(Cat(large[:23], large_hidden)),
            ordered.addend.eq(Cat(small[:23], small_hidden)),
        ]
        return ordered

    def _add(self, m: Module, ordered: Any) -> Any:
        """Stage 2: align the smaller operand and add or subtract it."""
        far = ordered.distance[5:].any()
        aligned = Signal(_WIDTH)
        addend = Cat(Const(0, _GUARD), ordered.addend)
        shifted = shift_right_sticky(addend, ordered.distance[:5], _WIDTH)
        m.d.comb += aligned.eq(Mux(far, ordered.addend.any(), shifted))
        upper = Cat(Const(0, _GUARD), ordered.significand)
        added = payload_of(_ADDED)
        m.d.sync += [
            added.sign.eq(ordered.sign),
            added.zero_sign.eq(ordered.sign & ~ordered.subtract),
            added.nan.eq(ordered.nan),
            added.infinite.eq(ordered.infinite),
            added.exponent.eq(ordered.exponent),
            added.total.eq(Mux(ordered.subtract, upper - aligned, upper + aligned)),
        ]
        return added

    def _normalise(self, m: Module, added: Any) -> Any:
        """Stage 3: shift the leading one up, never below the exponent of a subnormal."""
        total = added.total
        leading = Signal(5)
        room = Signal(8)
        left = Signal(5)
        m.d.comb += leading.eq(_WIDTH)
        for bit in range(_WIDTH):
            with m.If(total[bit]):
                m.d.comb += leading.eq(_WIDTH - 1 - bit)
        m.d.comb += [
            room.eq(added.exponent - 1),
            left.eq(Mux(leading < room, leading, room)),
        ]
        normal = payload_of(_NORMAL)
        m.d.sync += [
            normal.sign.eq(Mux(total.any(), added.sign, added.zero_sign)),
            normal.nan.eq(added.nan),
            normal.infinite.eq(added.infinite),
        ]
        with m.If(total[_WIDTH]):
            m.d.sync += [
                normal.exponent.eq(added.exponent + 1),
                normal.total.eq(Cat(total[1] | total[0], total[2:])),
            ]
        with m.Else():
            m.d.sync += [
                normal.exponent.eq(added.exponent - left),
                normal.total.eq(total[:_WIDTH] << left),
            ]
        return normal

    def _round(self, m: Module, normal: Any) -> None:
        """Stage 4: round to nearest, ties to even.

        The carry of the fraction runs into the exponent, which turns the largest subnormal into
        the smallest normal number and the largest normal number into infinity, as it must.
        """
        total = normal.total
        round_up = total[2] & (total[1] | total[0] | total[3])
        exponent = Mux(total[_WIDTH - 1], normal.exponent, 0)
        rounded = Signal(31)
        result = payload_of(32)
        m.d.comb += [
            rounded.eq(Cat(total[_GUARD : _WIDTH - 1], exponent[:8]) + round_up),
            self.sum.eq(result),
        ]
        with m.If(normal.nan):
            m.d.sync += result.eq(QUIET_NAN)
        with m.Elif(normal.infinite | (normal.exponent >= 255)):
            m.d.sync += result.eq(Cat(Const(INFINITY_BITS, 31), normal.sign))
        with m.Else():
            m.d.sync += result.eq(Cat(rounded, normal.sign))
