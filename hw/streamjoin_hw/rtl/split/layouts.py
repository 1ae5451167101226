"""What travels inside SplitJoin, and how large a core's rings are."""

import math
from typing import Any

from amaranth.hdl import Const, Value
from amaranth.lib import data
from amaranth.utils import bits_for

from streamjoin_common.contract import SIDE_R, DesignParams
from streamjoin_hw.rtl.intake import ordered_layout
from streamjoin_hw.rtl.streams import probe_layout, r_layout, s_layout

SPARE_SLOTS = 8
"""Slots of a ring beyond a sub-window's tuples, at least, where comparators are shared."""

_MAX_CHANGE_BITS = 6
_RARER_SIDE = 10
"""One in so many tuples may be of the rarer side, and its batches are full where windows keep
points."""


def is_single(params: DesignParams) -> bool:
    """Return whether a batch is one probe behind all changes of the window.

    What expires is then not looked at again, if it is not for its time.
    """
    by_itself = params.probes == 1 and not params.has_shared_comparators
    return by_itself and not params.timestamp_bits and not params.has_groups


def max_changes(params: DesignParams) -> int:
    """Return the maximum tuples that a batch of points' probes sees stored, and sees expire.

    So many that a batch of the rarer side is full before, in an input with a tenth of it.
    """
    stored = math.ceil((_RARER_SIDE - 1) * params.probes / params.cores)
    return (1 << min(_MAX_CHANGE_BITS, bits_for(stored))) - 1


def max_recent(params: DesignParams) -> int:
    """Return the maximum tuples that expire between a batch's first probe and its last result,
    where windows keep points."""
    return 2 * max_changes(params) + 1


def edge_words(params: DesignParams) -> int:
    """Return the maximum words of a pass, at each end, that not all probes of a batch look at."""
    return math.ceil((max_changes(params) + params.lanes - 1) / params.lanes)


def ring_words(params: DesignParams) -> int:
    """Count the words of a sub-window's ring.

    A batch that :func:`is_single` needs no more than a sub-window has tuples, where a word more
    may double a memory: what expires with it is written over as it begins.

    A pass looks at one tuple more than a sub-window holds: the one that expires and the one that
    is stored while its probes are collected. With a word to spare these never share a slot, no
    word is both the first and the last of a pass, and the next tuple to be stored is never in the
    way of a pass: there are at least two slots more than a sub-window has tuples.

    Where windows keep points there is room for all that expired since the first probe of the oldest
    batch whose results are given, and for lanes that are no tuples' at both ends.
    """
    if params.has_point_windows:
        return params.segment_words + math.ceil((max_recent(params) + params.lanes) / params.lanes)
    if is_single(params):
        # A memory without address bits is no memory to some tools.
        return max(2, params.segment_words)
    if params.has_shared_comparators:
        return params.segment_words + math.ceil(SPARE_SLOTS / params.lanes)
    return params.segment_words + (2 if params.lanes == 1 else 1)


def pass_words(params: DesignParams) -> int:
    """Count the words of the longest pass, which may end in the word that it began in."""
    return params.segment_words + 1 if is_single(params) else ring_words(params)


def row_bits(params: DesignParams) -> int:
    """Bits of a row number, so many that cyclic differences within a ring are signed numbers."""
    return bits_for(2 * pass_words(params) * params.lanes)


def row_member(params: DesignParams) -> dict[str, int]:
    """``row``, a tuple's number in its core's order of storing, if the inner order needs it."""
    return {"row": row_bits(params)} if params.order == "inner" else {}


def star_member(params: DesignParams) -> dict[str, int]:
    """``star``, which ends a tuple's results, if any order needs it."""
    return {"star": 1} if params.order != "none" else {}


def routed_layout(params: DesignParams) -> data.StructLayout:
    """Layout of an arrival on its way to the cores; where stars are grouped, with ``closes``.

    It is the last one of its group. Where windows keep points the body is a probe's for the half
    that compares it; for the one that stores it a point's code is in place of an interval's ``lo``.
    """
    closes = {"closes": 1} if params.has_groups else {}
    members = {**ordered_layout(params).members, **closes}
    if params.has_point_windows:
        members["body"] = probe_layout(params).size
    return data.StructLayout(members)


def ordered_port(params: DesignParams) -> tuple[str, ...]:
    """``ordered``, whether results are given by probe; grouped tuples say it themselves."""
    return () if params.has_groups else ("ordered",)


def body_layout(params: DesignParams, side: int) -> data.StructLayout:
    """Layout of a tuple of a side."""
    return r_layout(params) if side == SIDE_R else s_layout(params)


def key_layout(params: DesignParams, side: int) -> data.StructLayout:
    """Layout of what a comparison looks at: a tuple without its payload unless theta sees it."""
    members = body_layout(params, side).members
    return data.StructLayout(
        {
            name: shape
            for name, shape in members.items()
            if name != "payload" or params.theta is not None
        }
    )


def token_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what a half gives: a result, or with an order the ``star`` that ends a tuple's.

    ``row`` is that of the earlier tuple.
    """
    payloads = {"r_payload": params.payload_bits, "s_payload": params.payload_bits}
    return data.StructLayout({**star_member(params), **payloads, **row_member(params)})


def is_star(params: DesignParams, token: Any) -> Value:
    """Return whether a token is a star; without an order none is, whatever a core's wires say."""
    star: Value = token.star if star_member(params) else Const(0, 1)
    return star
