"""Interval tests on whole vectors: several probes against a block of stored tuples in one pass.

Each function here returns which of :data:`PROBES` arriving tuples join with any tuple of a block.
They are written as LLVM vectors of :data:`LANES` 32-bit codes, which the compiler maps to the
registers of the machine: it does not vectorise a plain loop over several probes.

A test is one subtraction and one unsigned comparison, ``code - lo <= hi - lo``, and the tests of
all terms are combined without a branch (handshake join, section 5.3). A tuple read from memory is
compared with all probes: a single probe would run at the bandwidth of memory.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
"""Codes in a vector: 512 bits; compilers split it where registers are shorter."""

PROBES = 4
"""Arriving tuples that share one pass. Their bounds take 4 registers each with two terms."""

_CODE = ir.IntType(32)
_CODES = ir.VectorType(_CODE, LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_INDEX = ir.IntType(64)


def _met(terms: int, stored_s: bool) -> Callable[..., Any]:
    """Make the function for probes of one side and a number of terms.

    It takes ``(keys, lo, width, first, vectors, p_keys, p_lo, p_width, probe)``: the stored tuples'
    codes (only their side's are read), the first stored tuple and the number of vectors from it on;
    the probes' codes (only the other side's are read) and the first probe. It returns a uint32
    whose bit ``p`` is set if the probe at ``probe + p`` joins with one of these tuples.
    """

    @intrinsic
    def met(
        typing_context: Any,
        keys: Any,
        lo: Any,
        width: Any,
        first: Any,
        vectors: Any,
        p_keys: Any,
        p_lo: Any,
        p_width: Any,
        probe: Any,
    ) -> Any:
        index = types.uint64
        signature = types.uint32(keys, lo, width, index, index, p_keys, p_lo, p_width, index)

        def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
            def pointer(which: int, term: int, at: Any) -> Any:
                kind = sig.args[which]
                view = context.make_array(kind)(context, builder, args[which])
                indices = [ir.Constant(_INDEX, term), at]
                return cgutils.get_item_pointer(
                    context, builder, kind, view, indices, wraparound=False
                )

            def splat(which: int, term: int, number: int) -> Any:
                at = builder.add(args[8], ir.Constant(_INDEX, number))
                value = builder.load(pointer(which, term, at))
                nothing = ir.Constant(_CODES, ir.Undefined)
                one = builder.insert_element(nothing, value, ir.Constant(_CODE, 0))
                zeros = ir.Constant(ir.VectorType(_CODE, LANES), None)
                return builder.shuffle_vector(one, nothing, zeros)

            stored = (1, 2) if stored_s else (0,)
            probing = (5,) if stored_s else (6, 7)
            bases = [[pointer(which, term, args[3]) for which in stored] for term in range(terms)]
            probes = [
                [[splat(which, term, number) for which in probing] for term in range(terms)]
                for number in range(PROBES)
            ]
            none = ir.Constant(_MASK, None)
            before = builder.block
            test = builder.append_basic_block("met.test")
            body = builder.append_basic_block("met.body")
            after = builder.append_basic_block("met.after")
            builder.branch(test)
            builder.position_at_end(test)
            step = builder.phi(_INDEX)
            step.add_incoming(ir.Constant(_INDEX, 0), before)
            masks = [builder.phi(_MASK) for _ in range(PROBES)]
            for mask in masks:
                mask.add_incoming(none, before)
            builder.cbranch(builder.icmp_unsigned("<", step, args[4]), body, after)
            builder.position_at_end(body)
            offset = builder.mul(step, ir.Constant(_INDEX, LANES))
            loaded = [
                [
                    builder.load(
                        builder.bitcast(builder.gep(base, [offset]), _CODES.as_pointer()), align=4
                    )
                    for base in of_term
                ]
                for of_term in bases
            ]
            for number, mask in enumerate(masks):
                hit = None
                for of_stored, of_probe in zip(loaded, probes[number], strict=True):
                    if stored_s:
                        (low, wide), (code,) = of_stored, of_probe
                    else:
                        (code,), (low, wide) = of_stored, of_probe
                    inside = builder.icmp_unsigned("<=", builder.sub(code, low), wide)
                    hit = inside if hit is None else builder.and_(hit, inside)
                mask.add_incoming(builder.or_(mask, hit), body)
            step.add_incoming(builder.add(step, ir.Constant(_INDEX, 1)), body)
            builder.branch(test)
            builder.position_at_end(after)
            bits = ir.Constant(_CODE, 0)
            for number, mask in enumerate(masks):
                any_lane = builder.icmp_unsigned(
                    "!=",
                    builder.bitcast(mask, ir.IntType(LANES)),
                    ir.Constant(ir.IntType(LANES), 0),
                )
                bit = builder.shl(builder.zext(any_lane, _CODE), ir.Constant(_CODE, number))
                bits = builder.or_(bits, bit)
            return bits

        return signature, generate

    return met


s_met_by_r_1 = _met(1, stored_s=True)
s_met_by_r_2 = _met(2, stored_s=True)
r_met_by_s_1 = _met(1, stored_s=False)
r_met_by_s_2 = _met(2, stored_s=False)
