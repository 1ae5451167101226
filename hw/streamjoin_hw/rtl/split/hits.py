"""A word with matches, and how many of them a half keeps in its list."""

from amaranth.hdl import Cat, Value
from amaranth.lib import data
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.split.layouts import ring_words, row_member
from streamjoin_hw.rtl.split.subwindow import word_bits

IN_FLIGHT = 5
"""Words of a list that are free until ``nearly_full`` rises: one arrives before its register shows
it, three are between read and list, so that one stays free."""


def hit_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a word with matches: ``mask[p][l]`` is 1 if probe ``p`` matches lane ``l``.

    The last word of a pass is there whether it has matches or not, with ``last``.
    """
    return data.StructLayout(
        {
            "mask": data.ArrayLayout(params.lanes, params.probes),
            "word": word_bits(params),
            **row_member(params),
            "last": 1,
        }
    )


BANKS = 4
"""Batches of a half between the first one's begin and its last result, where comparators are
shared: one whose results are given, others that wait, and one that is collected.
"""


def list_words(params: DesignParams) -> int:
    """Count the words of a list; all batches' fit where comparators are shared."""
    if params.has_shared_comparators:
        needed = max(params.result_fifo_words, BANKS * ring_words(params) + IN_FLIGHT)
        return 1 << (needed - 1).bit_length()
    return params.result_fifo_words


def index_of(onehot: Value, count: int) -> Value:
    """Return the number of the bit that is 1."""
    bits = []
    for bit in range(bits_for(count - 1)):
        positions = [onehot[k] for k in range(count) if k >> bit & 1]
        bits.append(Cat(*positions).any() if positions else onehot[:0].any())
    return Cat(*bits)
