"""Widths and layouts of the ordered index.

A bucket's *word* holds a few tuples, in *slots*. Words are numbered like buckets and lie in
``ways`` banks in turn, so that a word and the next ones, one of each bank, are read together.
"""

from typing import Any

from amaranth.lib import data

from streamjoin_common.contract import DesignParams

ROUND_BITS = 3
"""Bits of a round's number: a spread looks young again after 8 rounds, which only costs reads."""


def word_bits(params: DesignParams) -> int:
    """Bits of a bucket's or word's number."""
    return params.buckets.bit_length() - 1


def row_bits(params: DesignParams) -> int:
    """Bits of a word's address in its bank."""
    return word_bits(params) - bank_bits(params)


def bank_bits(params: DesignParams) -> int:
    """Lowest bits of a word's number, which say in which bank it is."""
    return params.ways.bit_length() - 1


def bank_of(params: DesignParams, word: Any) -> Any:
    """Return the bank of a word."""
    return word[: bank_bits(params)]


def row_of(params: DesignParams, word: Any) -> Any:
    """Return the address of a word in its bank."""
    return word[bank_bits(params) :]


def rows_of(params: DesignParams, word: Any) -> list[Any]:
    """Return the addresses, in each bank, of a word and the next ones (the first after all)."""
    ahead = [word + (params.ways - 1 - bank) for bank in range(params.ways)]
    return [each[bank_bits(params) : word_bits(params)] for each in ahead]


def ring_bits(params: DesignParams) -> int:
    """Bits of the slot of the ring in which a tuple's position is kept until it expires."""
    return params.ring_tuples.bit_length() - 1


def sequence_bits(params: DesignParams) -> int:
    """Bits of a tuple's number; the lowest are its slot in the ring."""
    return ring_bits(params) + 1


def position_layout(params: DesignParams) -> data.StructLayout:
    """Layout of where a tuple is stored: ``word`` and a bit for its ``slot``."""
    return data.StructLayout({"word": word_bits(params), "slot": params.bucket_slots})


def spread_layout(params: DesignParams) -> data.StructLayout:
    """Layout of how far a bucket's tuples lie behind its word, in words.

    ``now``, of those stored in ``round``; ``before``, of those of the round before. A round ends
    when all tuples of the round before have expired: what is in the window is of these two.
    ``latest``, of the one that was displaced last: the tuples behind it are the next to expire.
    """
    bits = word_bits(params)
    return data.StructLayout({"round": ROUND_BITS, "now": bits, "before": bits, "latest": bits})
