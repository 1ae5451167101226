"""The bounds of a float band, from either side: a sum, or which keys have such a sum.

A band of floats is ``r >= fl(s - lo) and r <= fl(s + hi)``, where ``fl`` rounds to nearest, ties to
even. An S tuple's interval of R keys is two sums. An R tuple's interval of S keys is where rounding
makes the difference: rounding is monotonic, so the keys ``x`` with ``fl(x - w) <= y`` are all up to
a greatest one. With ``m`` half way between ``y`` and the next float above it, ``fl(d) <= y`` if and
only if ``d <= m`` where ``y`` is even and ``d < m`` where it is odd. So the greatest ``x`` is ``m +
w``, which is added exactly but for what falls off below the last place, rounded down, and one float
less where ``y`` is odd and nothing fell off. Infinity counts as the float after the greatest one,
and is even, as rounding takes it.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_hw.rtl.floats.add import shift_right_sticky
from streamjoin_hw.rtl.streams import Component, payload_of

_GUARD = 3  # guard, round and sticky bits below the half place


class FloatBound(Component):
    """The upper bound of a key's band, in either direction, pipelined.

    Throughput one bound a cycle, latency :data:`~streamjoin_hw.rtl.floats.add.STAGES` cycles. The
    lower bound is that of the negated key with its sign flipped.

    Parameters
    ----------
    exponent_bits, fraction_bits : int
        The format; float32 unless tests try all numbers of a smaller one.

    Members
    -------
    key, width : In(bits)
        Float bits.
    inverse : In(1)
        Find the greatest float from which ``width`` is subtracted to ``key`` or less, not the sum.
    bound : Out(bits)
        ``key + width`` rounded to nearest even, or that float; NaN if there is none.
    """

    key: Signal
    width: Signal
    inverse: Signal
    bound: Signal

    def __init__(self, exponent_bits: int = 8, fraction_bits: int = 23) -> None:
        self.exponent_bits = exponent_bits
        self.fraction_bits = fraction_bits
        self.bits = 1 + exponent_bits + fraction_bits
        # Of a significand: half a unit in the last place, fraction, leading one; with the guard.
        self.total_bits = fraction_bits + 2 + _GUARD
        self.infinity = ((1 << exponent_bits) - 1) << fraction_bits
        super().__init__(
            {
                "key": In(self.bits),
                "width": In(self.bits),
                "inverse": In(1),
                "bound": Out(self.bits),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the four stages: order, align and add, normalise, round."""
        m = Module()
        self._round(m, self._normalise(m, self._add(m, self._order(m))))
        return m

    def _kept(self, members: dict[str, int]) -> Any:
        """Make a stage's registers: what the result is where it is no sum, and these."""
        special = dict.fromkeys(("sign", "nan", "infinite", "finite", "inverse", "odd"), 1)
        return payload_of(data.StructLayout({**special, **members}), name="stage")

    def _pass(self, before: Any, after: Any) -> list[Any]:
        """Carry what is known along."""
        names = ("sign", "nan", "infinite", "finite", "inverse", "odd")
        return [after[name].eq(before[name]) for name in names]

    def _order(self, m: Module) -> Any:
        """Stage 1: the larger magnitude first, so that a difference is never negative.

        Magnitudes are those of floats with half a unit more in the last place: half way to the
        float above is the same float with that half, or the next one towards zero.
        """
        key, width = self.key[:-1], self.width[:-1]
        key_sign, width_sign = self.key[-1] & key.any(), self.width[-1]
        down = self.inverse & key_sign
        a, b = Cat(self.inverse, (key - down)[: len(key)]), Cat(Const(0, 1), width)
        swap = Signal()
        large = Signal(self.bits)
        small = Signal(self.bits)
        sign = Mux(self.inverse, key_sign, self.key[-1])
        m.d.comb += [
            swap.eq(a < b),
            large.eq(Mux(swap, b, a)),
            small.eq(Mux(swap, a, b)),
        ]
        key_infinite, width_infinite = key == self.infinity, width == self.infinity
        no_number = (key > self.infinity) | (width > self.infinity)
        # No sum: infinity less infinity. No such float: x + infinity is infinite, never less.
        sum_none = key_infinite & width_infinite & (self.key[-1] ^ width_sign)
        key_top = key_infinite & ~self.key[-1]
        inverse_none = width_infinite & width_sign & ~key_top
        top = width_infinite & ~width_sign
        large_hidden, small_hidden = self._hidden(large), self._hidden(small)
        large_exponent = Mux(large_hidden, large[1 + self.fraction_bits :], 1)
        small_exponent = Mux(small_hidden, small[1 + self.fraction_bits :], 1)
        significand = self.fraction_bits + 2
        ordered = self._kept(
            {
                "subtract": 1,
                "exponent": self.exponent_bits,
                "distance": self.exponent_bits,
                "significand": significand,
                "addend": significand,
            }
        )
        m.d.sync += [
            ordered.sign.eq(Mux(swap, width_sign, sign)),
            ordered.subtract.eq(sign ^ width_sign),
            ordered.inverse.eq(self.inverse),
            ordered.odd.eq(self.inverse & key[0]),
            ordered.nan.eq(no_number | Mux(self.inverse, inverse_none, sum_none)),
            ordered.infinite.eq(Mux(self.inverse, key_top, key_infinite | width_infinite)),
            # x - infinity is less than anything, but for x = infinity.
            ordered.finite.eq(self.inverse & top),
            ordered.exponent.eq(large_exponent),
            ordered.distance.eq(large_exponent - small_exponent),
            ordered.significand.eq(Cat(large[: significand - 1], large_hidden)),
            ordered.addend.eq(Cat(small[: significand - 1], small_hidden)),
        ]
        return ordered

    def _hidden(self, magnitude: Value) -> Value:
        """Return the leading one; a subnormal, which has none, has the exponent of a normal."""
        return magnitude[1 + self.fraction_bits :].any()

    def _add(self, m: Module, ordered: Any) -> Any:
        """Stage 2: align the smaller operand and add or subtract it."""
        bits = self.total_bits
        steps = min((bits - 1).bit_length(), self.exponent_bits)
        aligned = Signal(bits)
        shifted = shift_right_sticky(
            Cat(Const(0, _GUARD), ordered.addend), ordered.distance[:steps], bits
        )
        m.d.comb += aligned.eq(shifted)
        if steps < self.exponent_bits:
            with m.If(ordered.distance[steps:].any()):
                m.d.comb += aligned.eq(ordered.addend.any())
        upper = Cat(Const(0, _GUARD), ordered.significand)
        added = self._kept({"exponent": self.exponent_bits, "total": bits + 1})
        m.d.sync += [
            *self._pass(ordered, added),
            added.exponent.eq(ordered.exponent),
            added.total.eq(Mux(ordered.subtract, upper - aligned, upper + aligned)),
        ]
        return added

    def _normalise(self, m: Module, added: Any) -> Any:
        """Stage 3: shift the leading one up, never below the exponent of a subnormal."""
        bits, total = self.total_bits, added.total
        leading = Signal(range(bits + 1))
        room = Signal(self.exponent_bits)
        left = Signal.like(leading)
        m.d.comb += leading.eq(bits)
        for bit in range(bits):
            with m.If(total[bit]):
                m.d.comb += leading.eq(bits - 1 - bit)
        m.d.comb += [
            room.eq(added.exponent - 1),
            left.eq(Mux(leading < room, leading, room)),
        ]
        normal = self._kept({"exponent": self.exponent_bits + 1, "total": bits})
        m.d.sync += self._pass(added, normal)
        with m.If(total[bits]):
            m.d.sync += [
                normal.exponent.eq(added.exponent + 1),
                normal.total.eq(Cat(total[1] | total[0], total[2:])),
            ]
        with m.Else():
            m.d.sync += [
                normal.exponent.eq(added.exponent - left),
                normal.total.eq(total[:bits] << left),
            ]
        return normal

    def _round(self, m: Module, normal: Any) -> None:
        """Stage 4: round to nearest even, or down, and then down by one where the key is odd.

        The carry of the fraction runs into the exponent, and so does what is borrowed.
        """
        total, low = normal.total, _GUARD + 1
        rest, sign = total[:low], normal.sign
        nearest = total[_GUARD] & (total[:_GUARD].any() | total[low])
        exact = ~rest.any()
        # Down is towards zero for a positive bound, away from it for a negative one.
        up = Mux(normal.inverse, sign & (~exact | normal.odd), nearest)
        less = normal.inverse & ~sign & exact & normal.odd
        exponent = Mux(total[-1], normal.exponent, 0)
        largest, magnitude = self.infinity - 1, self.bits - 1
        rounded = Signal(magnitude)
        bound = payload_of(self.bits)
        m.d.comb += [
            rounded.eq(Cat(total[low:-1], exponent[: self.exponent_bits]) + up - less),
            self.bound.eq(bound),
        ]
        over = normal.exponent >= (1 << self.exponent_bits) - 1
        is_largest = normal.finite | (~normal.infinite & over & normal.inverse & ~sign)
        with m.If(normal.nan):
            quiet = self.infinity | 1 << (self.fraction_bits - 1)
            m.d.sync += bound.eq(quiet)
        with m.Elif(is_largest):
            m.d.sync += bound.eq(largest)
        with m.Elif(normal.infinite | over):
            m.d.sync += bound.eq(Cat(Const(self.infinity, magnitude), sign))
        with m.Else():
            m.d.sync += bound.eq(Cat(rounded, sign))
