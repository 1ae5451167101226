"""How a DMA carries an input and its results: words of a power of two of bits.

An AXI DMA in direct register mode passes on data and nothing else: no ``tdest``, no ``tuser``,
and a ``tlast`` at the end of every transfer, wherever the driver cut the input (PG021). So what
rides beside the tuples travels in words of its own:

- *groups* in: a header, then up to :data:`GROUP_TUPLES` tuples, a word each. The header names
  their number, the side of each and whether the last of them ends the input;
- *packets* out: results, a word each, also where a beat of the design has two, then a trailer that
  names their number and whether the input has drained. Only the trailer carries ``tlast``. A packet
  is closed when it is full, when it is :data:`PACKET_CYCLES` old, not counting those in which it
  waits to be taken, and at the end; so it always fits the buffer that waits for it, as a DMA in
  this mode asks, and no result stays unseen while tuples arrive.
"""

from streamjoin_common.contract.layouts import LayoutField, beat_bits, result_layout, tuple_layout
from streamjoin_common.contract.params import DesignParams

MIN_WORD_BITS = 64
"""Minimum width of a word of a DMA stream in bits."""

GROUP_TUPLES = 32
"""Maximum tuples in a group."""

PACKET_RESULTS = 1 << 16
"""Maximum results in a packet."""

PACKET_CYCLES = 1 << 16
"""Maximum age of a packet in cycles, without those in which it waits to be taken."""

MARK = 0x534A
"""In every header and trailer, so that a stream that lost words is noticed."""

HEADER = (
    LayoutField("sides", 0, GROUP_TUPLES),
    LayoutField("tuples", 32, 6),
    LayoutField("last", 38, 1),
    LayoutField("mark", 48, 16),
)
"""A group's header: bit ``i`` of ``sides`` is the side of its tuple ``i``."""

TRAILER = (
    LayoutField("results", 0, 17),
    LayoutField("end", 17, 1),
    LayoutField("mark", 48, 16),
)
"""A packet's trailer."""


def _word_bits(layout: tuple[LayoutField, ...]) -> int:
    return max(MIN_WORD_BITS, 1 << (beat_bits(layout) - 1).bit_length())


def input_word_bits(params: DesignParams) -> int:
    """Bits of a word of input: the smallest power of two that holds a tuple and a header."""
    return _word_bits(tuple_layout(params))


def result_word_bits(params: DesignParams) -> int:
    """Bits of a word of output: the smallest power of two that holds a result and a trailer."""
    return _word_bits(result_layout(params))


def max_packet_bytes(params: DesignParams) -> int:
    """Bytes of the largest packet: what a buffer for results must hold."""
    return (PACKET_RESULTS + 1) * result_word_bits(params) // 8
