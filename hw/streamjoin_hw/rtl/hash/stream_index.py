"""The index of one stream: its buckets, and buckets of their own for frequent keys.

In a bucket that has a frequent key all others are pushed out soon, and whoever looks for one of
them follows the links of the frequent one. So a key whose names fill its bucket may claim one of
``own_buckets`` more: from then on its tuples are pushed into that one and no longer into the bucket
that it shares. An own bucket holds names of one bucket's one tag, known by the rest of its hash
(``key``), and begins as what the shared one held: the walk from its names through their links is
the walk through the shared bucket as it was, behind the tuples pushed since. So all tuples of the
tag are found by it, in order of age, whatever has been pushed into either bucket in between.

An own bucket can be claimed by another tag once its newest tuple has left the window: then all
tuples of its tag have. Nothing depends on what memories held at the start: the tuples of a tag are
pushed where they are looked for, and a bucket changes hands only when none of them is left.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.hash.index import (
    GENERATION_BITS,
    TAG_BITS,
    BucketTable,
    Rewritten,
    bucket_bits,
    gone_by,
    ring_bits,
    sequence_bits,
)
from streamjoin_hw.rtl.streams import Component, View, signal_of


def own_bits(params: DesignParams) -> int:
    """Bits of the number of an own bucket: the lowest of a bucket's."""
    return max(0, params.own_buckets.bit_length() - 1)


def own_layout(params: DesignParams) -> data.StructLayout:
    """Layout of an own bucket: ``names`` of its last tuples, newest first, and whose it is."""
    return data.StructLayout(
        {
            "names": data.ArrayLayout(sequence_bits(params), params.ways),
            "key": bucket_bits(params) - own_bits(params) + TAG_BITS,
        }
    )


class StreamIndex(Component):
    """What a stream's tuples are named by, looked at and pushed into in every cycle.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    next_bucket : In(bucket_bits(params))
        The bucket of the tuple that is here in the next cycle.
    bucket : In(bucket_bits(params)), tag : In(TAG_BITS)
        Those of the tuple that is here in this cycle, of either stream.
    push : In(1), sequence : In(sequence_bits(params)), held : In(ring_bits(params))
        It is of this stream: push its name. The window held so many tuples before it.
    round : In(GENERATION_BITS)
        If it is of the other stream: the round of this one.
    link : Out(sequence_bits(params))
        The number of the tuple that a push pushes out.
    names : Out(ArrayLayout(sequence_bits(params), ways))
        The tuples named before the push, newest first.
    alike : Out(ways)
        Which of them may be of the tuple's key.
    behind : Out(1)
        There may be others of its key behind them.
    """

    next_bucket: Signal
    bucket: Signal
    tag: Signal
    push: Signal
    sequence: Signal
    held: Signal
    round: Signal
    link: Signal
    names: View
    alike: Signal
    behind: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                "next_bucket": In(bucket_bits(params)),
                "bucket": In(bucket_bits(params)),
                "tag": In(TAG_BITS),
                "push": In(1),
                "sequence": In(sequence_bits(params)),
                "held": In(ring_bits(params)),
                "round": In(GENERATION_BITS),
                "link": Out(sequence_bits(params)),
                "names": Out(data.ArrayLayout(sequence_bits(params), params.ways)),
                "alike": Out(params.ways),
                "behind": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build both tables and the choice between them."""
        m = Module()
        ways = self.params.ways
        m.submodules.buckets = table = BucketTable(self.params)
        shared = table.word
        is_own, claims, own = self._own(m, shared)
        gone, gone_before = gone_by(shared, self.round)
        m.d.comb += [
            table.bucket.eq(self.next_bucket),
            table.name.sequence.eq(self.sequence),
            table.name.tag.eq(self.tag),
            table.push.eq(self.push & ~is_own & ~claims),
            self.behind.eq(is_own | (gone | gone_before).bit_select(self.tag, 1)),
        ]
        for way in range(ways):
            name = shared.names[way]
            number: Value = name.sequence
            if own is not None:
                number = Mux(is_own, own.names[way], number)
            m.d.comb += [
                self.names[way].eq(number),
                self.alike[way].eq(is_own | (name.tag == self.tag)),
            ]
        m.d.comb += self.link.eq(self.names[ways - 1])
        return m

    def _own(self, m: Module, shared: View) -> tuple[Value, Value, View | None]:
        """Build the own buckets; return if one is the tuple's, if it claims one, and its word."""
        if not self.params.own_buckets:
            return Const(0), Const(0), None
        bits = own_bits(self.params)
        layout = own_layout(self.params)
        m.submodules.own = table = Rewritten(layout, self.params.own_buckets)
        own = table.word
        key = Signal(len(own.key))
        is_own = Signal()
        claims = Signal()
        oldest = shared.names[self.params.ways - 1]
        after = signal_of(layout)
        m.d.comb += [
            table.address.eq(self.next_bucket[:bits]),
            key.eq(Cat(self.bucket[bits:], self.tag)),
            is_own.eq(own.key == key),
            # A name that is pushed out although it is in the window, by one of the same tag.
            claims.eq(
                ~is_own
                & (oldest.tag == self.tag)
                & self._is_held(oldest.sequence)
                & ~self._is_held(own.names[0])
            ),
            after.key.eq(key),
            after.names[0].eq(self.sequence),
            *(after.names[k + 1].eq(self.names[k]) for k in range(self.params.ways - 1)),
            table.after.eq(after),
            table.push.eq(self.push & (is_own | claims)),
        ]
        return is_own, claims, own

    def _is_held(self, number: Value) -> Value:
        """Return whether a number is that of a tuple in this stream's window.

        It is if no more have been pushed since than the window held before this push.
        """
        # One less than their difference, by one adder.
        pushed_since = (self.sequence + ~number)[: sequence_bits(self.params)]
        return pushed_since < self.held
