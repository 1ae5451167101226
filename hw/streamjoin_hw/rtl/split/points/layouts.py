"""What a core keeps of a tuple, what it compares it with, and what a pass looks at."""

from typing import Any

from amaranth.hdl import Value
from amaranth.lib import data
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.memory import lane_bits
from streamjoin_hw.rtl.split.layouts import max_changes, ring_words, row_member
from streamjoin_hw.rtl.split.subwindow import word_bits
from streamjoin_hw.rtl.streams import point_layout, probe_layout


def point_key_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a stored tuple's codes."""
    return _without_payload(point_layout(params))


def probe_key_layout(params: DesignParams) -> data.StructLayout:
    """Layout of an arriving tuple's intervals and codes."""
    return _without_payload(probe_layout(params))


def _without_payload(layout: data.StructLayout) -> data.StructLayout:
    return data.StructLayout(
        {name: shape for name, shape in layout.members.items() if name != "payload"}
    )


def pass_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what a pass looks at: ``words`` from ``first_word`` on, round the ring.

    Of the first one lanes from ``first_lane`` on hold tuples; the last ``pad`` lanes of the last
    one hold none. ``row`` is the number of lane 0 of the first word.
    """
    return data.StructLayout(
        {
            "words": bits_for(ring_words(params)),
            "first_word": word_bits(params),
            "first_lane": lane_bits(params),
            "pad": lane_bits(params),
            **row_member(params),
        }
    )


def change_bits(params: DesignParams) -> int:
    """Bits of a count of the tuples that are stored, or expire, while a batch is collected."""
    return bits_for(max_changes(params))


def seen_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what happened to a window between a batch's first probe and one of its probes.

    So many tuples were ``gone``, so many more ``there``.
    """
    return data.StructLayout({"gone": change_bits(params), "there": change_bits(params)})


def points_match(params: DesignParams, point: Any, probe: Any) -> list[Value]:
    """Return the conditions under which a stored and an arriving tuple match."""
    conditions: list[Value] = []
    for name in probe.shape().members:
        index = name.removeprefix("lo").removeprefix("hi").removeprefix("code")
        code = point[f"code{index}"]
        if name.startswith("lo"):
            conditions.append(probe[name] <= code)
        else:
            conditions.append(code <= probe[name] if name.startswith("hi") else code == probe[name])
    return conditions
