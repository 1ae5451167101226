"""The index of one stream: hash buckets in memory, each naming its last tuples.

A bucket is one word that names the last ``ways`` tuples stored in it, newest first: for each its
sequence number and a few more bits of its hash, the *tag*. A tuple that is named no longer is
linked: each stored tuple keeps the number of the one that was stored ``ways`` before it in the same
bucket, the one that its own name pushed out. Thus a bucket is ``ways`` chains side by side, which
can be followed in one order, newest first, at a tuple a cycle although a link takes some cycles.

So that nobody follows the links of a frequent key in search of another one, the word also says
which tags were pushed out in this round of the ring and in the last. What is still in the window
was pushed out in one of these, or not yet: since then the ring has not wrapped.

Nothing is ever deleted and no bucket is ever cleared, not even by a reset: names expire by age
(:mod:`streamjoin_hw.rtl.hash.walk` says why that is exact).
"""

from functools import reduce
from operator import xor
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import KEY_BITS, DesignParams, TermKind
from streamjoin_hw.rtl.streams import Component, View, payload_of, signal_of

TAG_BITS = 4
"""A tuple of another key in the same bucket is read in vain once in 16 times."""

GENERATION_BITS = 3
"""Bits of a sequence number above a slot's: a name looks young again after 8 rounds of the ring.

A read then shows that it is another tuple's, and costs nothing else.
"""

_SEED = 0x9E3779B97F4A7C15
"""Bits without a pattern (the golden ratio's): where the search for a polynomial begins."""


def ring_bits(params: DesignParams) -> int:
    """Bits of a slot of the ring."""
    return params.ring_tuples.bit_length() - 1


def sequence_bits(params: DesignParams) -> int:
    """Bits of a sequence number; the lowest are the tuple's slot in the ring."""
    return ring_bits(params) + GENERATION_BITS


def bucket_bits(params: DesignParams) -> int:
    """Bits of a bucket's number."""
    return params.buckets.bit_length() - 1


def name_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what a bucket knows of a tuple: ``sequence`` and ``tag``."""
    return data.StructLayout({"sequence": sequence_bits(params), "tag": TAG_BITS})


def round_of(params: DesignParams, sequence: Value) -> Value:
    """Return the round of the ring in which a tuple arrives."""
    return sequence[ring_bits(params) : sequence_bits(params)]


def word_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a bucket.

    ``names`` of its last tuples, newest first; ``round`` of the last push; a bit for each tag of a
    name that was pushed out in that round (``gone``), and in the one before (``gone_before``).
    """
    return data.StructLayout(
        {
            "names": data.ArrayLayout(name_layout(params), params.ways),
            "round": GENERATION_BITS,
            "gone": 1 << TAG_BITS,
            "gone_before": 1 << TAG_BITS,
        }
    )


def gone_by(word: View, now: Value) -> tuple[Value, Value]:
    """Return which tags a bucket pushed out in the round ``now`` and in the one before.

    Rounds are counted modulo a few: a bucket that nobody pushed into for long may show more tags
    than there are. It never shows fewer.
    """
    is_same = word.round == now
    is_last = (word.round + 1)[:GENERATION_BITS] == now
    before = Mux(is_same, word.gone_before, Mux(is_last, word.gone, 0))
    return Mux(is_same, word.gone, 0), before


def _product(a: int, b: int, modulus: int) -> int:
    """Multiply polynomials over GF(2), bits being coefficients, modulo a third."""
    degree, product = modulus.bit_length() - 1, 0
    while b:
        product ^= a if b & 1 else 0
        a, b = a << 1, b >> 1
        a ^= modulus if a >> degree else 0
    return product


def _divisor(a: int, b: int) -> int:
    """Return the greatest common divisor of polynomials over GF(2)."""
    while b:
        while a.bit_length() >= b.bit_length():
            a ^= b << (a.bit_length() - b.bit_length())
        a, b = b, a
    return a


def irreducible(degree: int) -> int:
    """Return an irreducible polynomial over GF(2) of many terms; bits are coefficients.

    The first one from a number without a pattern upwards, by Ben-Or's test: it has no divisor of a
    degree up to half its own.

    Parameters
    ----------
    degree : int
        2 to 32.
    """
    candidate = (_SEED & ((1 << degree) - 1)) | 1 << degree | 1
    while True:
        power = 2  # x
        for _ in range(degree // 2):
            power = _product(power, power, candidate)
            if _divisor(candidate, power ^ 2) != 1:
                break
        else:
            return candidate
        # Never past the degree: the lower half of the numbers has irreducible ones as well.
        candidate = 1 << degree | ((candidate + 2) & ((1 << degree) - 1))


def hashed(params: DesignParams, body: View) -> tuple[Value, Value]:
    """Return the bucket and the tag of a tuple: its first equi code, modulo a polynomial.

    Codes that differ in a run of as many bits as bucket and tag have together never share both,
    wherever in the code the run is: numbered keys, and keys a power of two apart, spread evenly.

    Parameters
    ----------
    params : DesignParams
        The design.
    body : View
        A tuple of either side.
    """
    first = next(i for i, term in enumerate(params.terms) if term.kind is TermKind.EQUI)
    code = body[f"code{first}"]
    degree = bucket_bits(params) + TAG_BITS
    modulus = irreducible(degree)
    residues = [1]
    for _ in range(KEY_BITS - 1):
        residues.append(_product(residues[-1], 2, modulus))
    bits = [
        reduce(
            xor, [code[position] for position, residue in enumerate(residues) if residue >> bit & 1]
        )
        for bit in range(degree)
    ]
    return Cat(*bits[:-TAG_BITS]), Cat(*bits[-TAG_BITS:])


class Rewritten(Component):
    """A memory whose word that is read in one cycle may be written anew in the next.

    Parameters
    ----------
    shape : StructLayout
        A word.
    depth : int
        Number of words, a power of two.

    Members
    -------
    address : In
        Read this word.
    word : Out(shape)
        The word read a cycle ago, with everything that was written before.
    push : In(1), after : In(shape)
        Write that word anew.
    """

    address: Signal
    word: View
    push: Signal
    after: View

    def __init__(self, shape: data.StructLayout, depth: int) -> None:
        self.shape, self.depth = shape, depth
        super().__init__(
            {
                "address": In(range(depth)),
                "word": Out(shape),
                "push": In(1),
                "after": In(shape),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memory and the way past it."""
        m = Module()
        memory: Any = Memory(shape=self.shape, depth=self.depth, init=[])
        m.submodules.memory = memory
        read, write = memory.read_port(), memory.write_port()
        looked_at = payload_of(len(self.address))
        pushed = payload_of(self.shape)
        # A word that is written while it is read again is not in memory yet.
        again = Signal()
        m.d.comb += [
            read.addr.eq(self.address),
            self.word.eq(Mux(again, pushed.as_value(), Value.cast(read.data))),
            write.addr.eq(looked_at),
            write.data.eq(self.after),
            write.en.eq(self.push),
        ]
        m.d.sync += [
            looked_at.eq(self.address),
            pushed.eq(self.after),
            again.eq(self.push & (self.address == looked_at)),
        ]
        return m


class BucketTable(Component):
    """The buckets of one stream.

    A bucket that is looked at in one cycle is known in the next, with everything that was pushed
    before, and a name may be pushed into it then. A lookup and a push in every cycle.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    bucket : In(bucket_bits(params))
        Look at this bucket.
    word : Out(word_layout(params))
        The bucket looked at a cycle ago.
    push : In(1), name : In(name_layout(params))
        Put a name in front of that word; its last one is pushed out.
    """

    bucket: Signal
    word: View
    push: Signal
    name: View

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                "bucket": In(bucket_bits(params)),
                "word": Out(word_layout(params)),
                "push": In(1),
                "name": In(name_layout(params)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build what a push makes of a bucket."""
        m = Module()
        word = word_layout(self.params)
        m.submodules.words = words = Rewritten(word, self.params.buckets)
        after = signal_of(word)
        now = round_of(self.params, self.name.sequence)
        gone, gone_before = gone_by(self.word, now)
        pushed_out = Const(1, 1 << TAG_BITS) << self.word.names[self.params.ways - 1].tag
        m.d.comb += [
            words.address.eq(self.bucket),
            self.word.eq(words.word),
            after.names[0].eq(self.name),
            *(after.names[k + 1].eq(self.word.names[k]) for k in range(self.params.ways - 1)),
            after.round.eq(now),
            after.gone.eq(gone | pushed_out),
            after.gone_before.eq(gone_before),
            words.after.eq(after),
            words.push.eq(self.push),
        ]
        return m
