"""Ingress: keys of every type become unsigned codes once, before the chain.

An R key becomes an order-preserving unsigned 32-bit *code*; an S key of a band becomes the
interval of codes ``s - lo .. s + hi`` that matches it. Join cores then compare unsigned
integers only. All bounds are computed here, once a tuple, not once a pair:

- integers in 34 bits, so that nothing wraps; the interval is cut to the type's range, and one
  wholly outside it is the empty interval (``lo`` all ones, ``hi`` zero), which no code is in;
- float32 in one float32 operation for each bound, rounded to nearest even; NaN in a bound makes
  the empty interval, NaN in R a code above every bound.

Where windows keep points (``has_point_windows``) every key has a code, and the interval of an R key
is that of the S keys that match it: ``r - hi .. r + lo`` for integers, and for float32 the keys
whose rounded bounds it lies between (:mod:`streamjoin_hw.rtl.floats.bound`).
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueCastable
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import (
    KEY_BITS,
    SIDE_S,
    DesignParams,
    KeyType,
    TermKind,
    tuple_layout,
)
from streamjoin_hw.rtl.floats.add import STAGES as ADD_STAGES
from streamjoin_hw.rtl.floats.add import FloatAdder
from streamjoin_hw.rtl.floats.bound import FloatBound
from streamjoin_hw.rtl.queues import LANDING_PLACES, Landing
from streamjoin_hw.rtl.streams import (
    Component,
    View,
    arrival_layout,
    crossing_layout,
    payload_of,
    r_layout,
    s_layout,
    signal_of,
)

NAN_CODE_R = 0xFFFFFFFF
"""Code of NaN in R: above the code of +infinity, so in no interval."""

NAN_CODE_S = 0xFFFFFFFE
"""Code of NaN in S under equality: no key of R has it."""

EMPTY_LO, EMPTY_HI = 0xFFFFFFFF, 0
"""The interval that holds no code."""

LANDING_RESERVE = 5
"""Places that the queue keeps free beside the stages of the bounds: for the codes, for what is
accepted until the queue's level is heard of (2 cycles), and as :class:`Landing` says.
"""

_LIMITS = {KeyType.INT32: (-(1 << 31), (1 << 31) - 1), KeyType.UINT32: (0, (1 << 32) - 1)}


def input_layout(params: DesignParams) -> data.StructLayout:
    """Layout of the ingress payload: ``side`` and the fields of the tuple beat."""
    fields = {field.name: field.width for field in tuple_layout(params)}
    return data.StructLayout({"side": 1, **fields})


def band_layout(params: DesignParams) -> data.StructLayout:
    """Layout of the band-width registers: ``lo<i>``, ``hi<i>`` for each band term."""
    members = {}
    for index, term in enumerate(params.terms):
        if term.kind is TermKind.BAND:
            members[f"lo{index}"] = KEY_BITS
            members[f"hi{index}"] = KEY_BITS
    return data.StructLayout(members)


def band_members(params: DesignParams) -> dict[str, wiring.Member]:
    """Return the port ``band``, none for a design without band terms.

    A port of no bits would have a range in Verilog that is not one.
    """
    layout = band_layout(params)
    return {"band": In(layout)} if layout.size else {}


def is_nan(bits: Value) -> Value:
    """Return whether float32 bits are a NaN."""
    return bits[23:31].all() & bits[:23].any()


def order_code(bits: Value, key_type: KeyType) -> Value:
    """Map a key's 32 bits to an unsigned code of the same order; NaN to :data:`NAN_CODE_R`."""
    if key_type is KeyType.UINT32:
        return bits
    if key_type is KeyType.INT32:
        return bits ^ Const(1 << 31, 32)
    positive = Mux(bits[:31].any(), bits, Const(0, 32))  # both zeros are one key
    ordered = Mux(positive[31], ~positive, positive ^ Const(1 << 31, 32))
    return Mux(is_nan(bits), Const(NAN_CODE_R, 32), ordered)[:32]


def bound_stages(params: DesignParams) -> int:
    """Cycles from a tuple's acceptance to the bounds of its intervals."""
    floats = any(t.kind is TermKind.BAND and t.type is KeyType.FLOAT32 for t in params.terms)
    return ADD_STAGES if floats else 1


def _as_bits(value: ValueCastable | Value) -> Value:
    return Value.cast(value)


def time_members(params: DesignParams) -> dict[str, wiring.Member]:
    """Return the ports ``time_r`` and ``time_s``, none for a design without timestamps."""
    bits = params.timestamp_bits
    return {f"time_{side}": In(bits) for side in "rs"} if bits else {}


def _next_below(bits: Value) -> Value:
    """Return the bits of the next float32 below one; minus infinity stays."""
    negative, is_zero = bits[31], bits[:31] == 0
    lowest = bits == Const(0xFF800000, 32)
    moved = Mux(negative, bits + ~lowest, bits - 1)[:32]
    return Mux(is_zero, Const(0x80000001, 32), moved)


def _next_above(bits: Value) -> Value:
    """Return the bits of the next float32 above one; infinity stays."""
    sign = Const(1 << 31, 32)
    return _next_below(bits ^ sign) ^ sign


class Encoder(Component):
    """Turn tuple beats into encoded tuples.

    Throughput 1 tuple a cycle. Latency: one cycle for the bounds (:data:`ADD_STAGES` if a band
    is of floats), one for the codes and one for the queue behind them. Nothing on this way waits:
    the queue has room for what is on it. The band widths that count for a tuple are those of the
    cycle in which it is accepted.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    i : In(stream.Signature(input_layout(params)))
        ``ready`` is a register.
    opens : In(1)
        A tuple may be accepted in the next cycle.
    band : In(band_layout(params)), if there are band terms
        Band widths: signed int32, or float32 bits for a term of floats.
    time_r, time_s : In(params.timestamp_bits), if there are timestamps
        Time windows; all ones is no limit.
    o : Out(stream.Signature(arrival_layout(params)))
    """

    i: stream.Interface
    opens: Signal
    band: View
    time_r: Signal
    time_s: Signal
    o: stream.Interface

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                "i": In(stream.Signature(input_layout(params))),
                "opens": In(1),
                **band_members(params),
                **time_members(params),
                "o": Out(stream.Signature(arrival_layout(params))),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the pipeline."""
        m = Module()
        is_ordered = self.params.design == "splitjoin-index"
        self._indexed = self.params.indexed_term if is_ordered else None
        stages = bound_stages(self.params)
        # What is accepted until the queue's level is heard of here still finds a place.
        reserve = stages + LANDING_RESERVE
        m.submodules.queue = queue = Landing(
            arrival_layout(self.params), LANDING_PLACES, reserve, deciding=("side",)
        )
        arrives = Signal(stages + 1)
        m.d.sync += [
            self.i.ready.eq(self.opens & ~queue.few),
            arrives.eq(Cat(self.i.valid & self.i.ready, arrives)),
        ]
        m.d.comb += queue.arrives.eq(arrives[-1])

        side = self._delayed(m, self.i.p.side, stages, "side")
        payload = self._delayed(m, self.i.p.payload, stages, "payload")
        r_body = signal_of(r_layout(self.params))
        s_body = signal_of(s_layout(self.params))
        m.d.comb += [r_body.payload.eq(payload), s_body.payload.eq(payload)]
        if self.params.timestamp_bits:
            ts = self._delayed(m, self.i.p.ts, stages - 1, "ts")
            end = self._window_end(m, ts)
            ts = self._delayed(m, ts, 1, "ts_last")
            for body in (r_body, s_body):
                m.d.comb += [body.ts.eq(ts), body.end.eq(end)]
        wanted: tuple[Value, ...] = ()
        for index, term in enumerate(self.params.terms):
            key = _as_bits(self.i.p[f"key{index}"])
            late_key = self._delayed(m, key, stages, f"key{index}")
            if term.kind is TermKind.KEY:
                m.d.comb += [
                    r_body[f"key{index}"].eq(late_key),
                    s_body[f"key{index}"].eq(late_key),
                ]
                continue
            m.d.comb += r_body[f"code{index}"].eq(order_code(late_key, term.type))
            if term.kind is TermKind.EQUI:
                code = order_code(late_key, term.type)
                if term.type is KeyType.FLOAT32:
                    code = Mux(is_nan(late_key), NAN_CODE_S, code)
                m.d.comb += s_body[f"code{index}"].eq(code)
                if index == self._indexed:
                    wanted = (order_code(late_key, term.type),) * 3
                continue
            lo, hi = self._interval(m, index, key)
            m.d.comb += [s_body[f"lo{index}"].eq(lo), s_body[f"hi{index}"].eq(hi)]
            if index == self._indexed:
                if term.type is KeyType.FLOAT32:
                    lo, hi = self._float_bounds_of_r(late_key, side, lo, hi)
                wanted = (order_code(late_key, term.type), lo, hi)

        arrival = payload_of(arrival_layout(self.params))
        body = self._body(m, side, r_body, s_body)
        m.d.sync += [arrival.side.eq(side), arrival.body.eq(body)]
        if wanted:
            m.d.sync += arrival.wanted.eq(Cat(*wanted))
        m.d.comb += queue.payload.eq(arrival)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        return m

    def _body(self, m: Module, side: Value, r_body: View, s_body: View) -> Value:
        """Return a tuple as R or S; where windows keep points as the point that is stored and as
        the probe that it is on arrival.
        """
        if not self.params.has_point_windows:
            return Mux(side == SIDE_S, s_body.as_value(), r_body.as_value())
        both = signal_of(crossing_layout(self.params))
        for name in both.shape().members:
            parts = [body[name] for body in (r_body, s_body) if name in body.shape().members]
            # NaN of an equality has a code for each side.
            m.d.comb += both[name].eq(Mux(side == SIDE_S, parts[-1], parts[0]))
        return _as_bits(both)

    def _interval(self, m: Module, index: int, key: Value) -> tuple[Value, Value]:
        """Return the codes that a band's key is looked up by: those of its interval."""
        term, is_s = self.params.terms[index], self.i.p.side == SIDE_S
        widths = (_as_bits(self.band[f"lo{index}"]), _as_bits(self.band[f"hi{index}"]))
        keys = (key, key)
        points = self.params.has_point_windows
        if index == self._indexed or points:
            # R looks for the S tuples whose interval it is in: the widths change sides.
            widths = Mux(is_s, *widths), Mux(is_s, *widths[::-1])
            if term.type is KeyType.FLOAT32 and points:
                return self._exact_interval(m, index, key, widths)
            if term.type is KeyType.FLOAT32:
                keys = Mux(is_s, key, _next_below(key)), Mux(is_s, key, _next_above(key))
        if term.type is KeyType.FLOAT32:
            return self._float_interval(m, index, keys, widths)
        return self._integer_interval(m, index, key, widths)

    @staticmethod
    def _delayed(m: Module, value: Value, cycles: int, name: str) -> Value:
        """Carry a value along the pipeline."""
        for stage in range(cycles):
            register = payload_of(len(value), name=f"{name}_{stage + 1}")
            m.d.sync += register.eq(value)
            value = register
        return value

    def _window_end(self, m: Module, ts: Value) -> Value:
        """Return, a cycle later, when a tuple's time window ends; all ones is never."""
        bits = self.params.timestamp_bits
        # The register's value at the tuple's acceptance travels with it.
        accepted = Mux(self.i.p.side == SIDE_S, self.time_s, self.time_r)
        length = self._delayed(m, accepted, bound_stages(self.params) - 1, "end_length")
        total = Signal(bits + 1)
        end: Signal = payload_of(bits, name="end")
        m.d.comb += total.eq(ts + length)
        m.d.sync += end.eq(Mux(total[-1] | length.all(), ~Const(0, bits), total[:bits]))
        return end

    def _integer_interval(
        self,
        m: Module,
        index: int,
        key: Value,
        widths: tuple[Value, Value],
    ) -> tuple[Value, Value]:
        """Return the codes of ``key - lo`` and ``key + hi``, cut to the type's range."""
        term = self.params.terms[index]
        lo_width, hi_width = widths
        minimum, maximum = _LIMITS[term.type]
        number = key.as_signed() if term.type is KeyType.INT32 else key
        low = payload_of(range(-(1 << 33), 1 << 33), name=f"low{index}")
        high = payload_of(range(-(1 << 33), 1 << 33), name=f"high{index}")
        m.d.sync += [
            low.eq(number - lo_width.as_signed()),
            high.eq(number + hi_width.as_signed()),
        ]
        later = bound_stages(self.params) - 1
        low_bits = self._delayed(m, low, later, f"low{index}_d").as_signed()
        high_bits = self._delayed(m, high, later, f"high{index}_d").as_signed()
        lo = order_code(low_bits[:32], term.type)
        lo = Mux(low_bits < minimum, order_code(Const(minimum & 0xFFFFFFFF, 32), term.type), lo)
        hi = order_code(high_bits[:32], term.type)
        hi = Mux(high_bits > maximum, order_code(Const(maximum & 0xFFFFFFFF, 32), term.type), hi)
        outside = (low_bits > maximum) | (high_bits < minimum)
        return Mux(outside, EMPTY_LO, lo), Mux(outside, EMPTY_HI, hi)

    def _float_interval(
        self,
        m: Module,
        index: int,
        keys: tuple[Value, Value],
        widths: tuple[Value, Value],
    ) -> tuple[Value, Value]:
        """Return the codes of ``keys - lo`` and ``keys + hi``, each rounded once."""
        lo_width, hi_width = widths
        m.submodules[f"below{index}"] = below = FloatAdder()
        m.submodules[f"above{index}"] = above = FloatAdder()
        m.d.comb += [
            below.a.eq(keys[0]),
            below.b.eq(lo_width ^ Const(1 << 31, 32)),
            above.a.eq(keys[1]),
            above.b.eq(hi_width),
        ]
        empty = is_nan(below.sum) | is_nan(above.sum)
        lo = Mux(empty, EMPTY_LO, order_code(below.sum, KeyType.FLOAT32))
        hi = Mux(empty, EMPTY_HI, order_code(above.sum, KeyType.FLOAT32))
        return lo, hi

    def _exact_interval(
        self, m: Module, index: int, key: Value, widths: tuple[Value, Value]
    ) -> tuple[Value, Value]:
        """Return the codes of the keys of the other side that match, whichever side it is."""
        sign = Const(1 << 31, 32)
        bounds = []
        # The lower bound is the upper one of the negated key, negated.
        for name, flip, width in (("lower", sign, widths[0]), ("upper", Const(0, 32), widths[1])):
            m.submodules[f"{name}{index}"] = unit = FloatBound()
            m.d.comb += [
                unit.key.eq(key ^ flip),
                unit.width.eq(width),
                unit.inverse.eq(self.i.p.side != SIDE_S),
            ]
            bounds.append(unit.bound ^ flip)
        empty = is_nan(bounds[0]) | is_nan(bounds[1])
        codes = [order_code(bound, KeyType.FLOAT32) for bound in bounds]
        return Mux(empty, EMPTY_LO, codes[0]), Mux(empty, EMPTY_HI, codes[1])

    @staticmethod
    def _float_bounds_of_r(key: Value, side: Value, lo: Value, hi: Value) -> tuple[Value, Value]:
        """Return the codes between which an arrival's partners lie.

        Those of an S tuple are its interval. An R tuple was widened by one float32 on each side:
        ``s + hi`` is rounded to ``r`` or above only if it is above the float32 below ``r``, so
        that ``s`` is above the exact difference and, rounding being monotonic, not below the
        rounded one. A bound that is no number tells nothing.
        """
        no_bound = (lo == EMPTY_LO) & (hi == EMPTY_HI)
        is_r = side != SIDE_S
        low = Mux(is_r & no_bound & ~is_nan(key), Const(0, KEY_BITS), lo)
        high = Mux(is_r & no_bound & ~is_nan(key), Const(NAN_CODE_R, KEY_BITS), hi)
        return low, high
