"""What travels inside SplitJoin, and how large a core's rings are."""

import math
from typing import Any

from amaranth.hdl import Const, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out
from amaranth.utils import bits_for

from streamjoin_common.contract import SIDE_R, DesignParams
from streamjoin_hw.rtl.intake import ordered_layout
from streamjoin_hw.rtl.streams import r_layout, s_layout

SPARE_SLOTS = 8
"""Slots of a ring beyond a sub-window's tuples, at least, where comparators are shared."""


def is_single(params: DesignParams) -> bool:
    """Return whether a batch is one probe behind all changes of the window.

    What expires is then not looked at again, if it is not for its time.
    """
    by_itself = params.probes == 1 and not params.has_shared_comparators
    return by_itself and not params.timestamp_bits and not params.has_groups


def ring_words(params: DesignParams) -> int:
    """Count the words of a sub-window's ring.

    A batch that :func:`is_single` needs no more than a sub-window has tuples, where a word more
    may double a memory: what expires with it is written over as it begins.

    A pass looks at one tuple more than a sub-window holds: the one that expires and the one that
    is stored while its probes are collected. With a word to spare these never share a slot, no
    word is both the first and the last of a pass, and the next tuple to be stored is never in the
    way of a pass: there are at least two slots more than a sub-window has tuples.
    """
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

    It is the last one of its group.
    """
    closes = {"closes": 1} if params.has_groups else {}
    return data.StructLayout({**ordered_layout(params).members, **closes})


def ordered_port(params: DesignParams) -> tuple[str, ...]:
    """``ordered``, whether results are given by probe; grouped tuples say it themselves."""
    return () if params.has_groups else ("ordered",)


def soon_member(params: DesignParams, *names: str) -> dict[str, wiring.Member]:
    """Ports by which what gives results without order says a cycle ahead that it offers one."""
    return {name: Out(1) for name in names} if params.order == "none" else {}


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
