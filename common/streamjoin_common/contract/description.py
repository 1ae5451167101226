"""The manifest: a built design described in JSON values."""

import dataclasses
from typing import Any

from streamjoin_common.contract.layouts import (
    SIDE_R,
    SIDE_S,
    TUser,
    beat_bits,
    result_beat_layout,
    tuple_layout,
    tuser_bits,
)
from streamjoin_common.contract.params import DesignParams
from streamjoin_common.contract.register_map import registers

BOARDS = ("pynq-z2", "zcu104", "kv260")
"""Boards that the driver knows, by the names that bitstreams are built for."""


CLOCK, RESET = "aclk", "aresetn"
"""Ports of the top level: everything is synchronous to the rising edge of one clock."""


def ports(params: DesignParams) -> list[dict[str, Any]]:
    """Describe the ports of the top level but those of AXI4-Lite, whose names are AXI's.

    Parameters
    ----------
    params : DesignParams
        The design.
    """
    tuples, results = "s_axis_tuples", "m_axis_results"
    rows = [
        (CLOCK, "in", 1, "Clock; everything else is synchronous to its rising edge."),
        (RESET, "in", 1, "Reset, active low, synchronous; one cycle is enough."),
        (f"{tuples}_tdata", "in", beat_bits(tuple_layout(params)), "A tuple, by tuple_layout."),
        (f"{tuples}_tdest", "in", 1, f"Its side: {SIDE_R} for R, {SIDE_S} for S."),
        (f"{tuples}_tvalid", "in", 1, "A tuple is offered."),
        (f"{tuples}_tready", "out", 1, "It is accepted, if one is offered."),
        (f"{tuples}_tlast", "in", 1, "It is the input's last: the design then drains."),
        (
            f"{results}_tdata",
            "out",
            beat_bits(result_beat_layout(params)),
            "A result, or two, by result_layout; does not count in a beat that is none."
            if params.beat_results > 1
            else "A result, by result_layout; does not count in a beat that is none.",
        ),
        (f"{results}_tuser", "out", tuser_bits(params), "What the beat is, by tuser."),
        (f"{results}_tvalid", "out", 1, "A beat is offered."),
        (f"{results}_tready", "in", 1, "It is taken, if one is offered."),
        (f"{results}_tlast", "out", 1, "It is the punctuation that ends the input."),
    ]
    names = ("name", "direction", "bits", "doc")
    return [dict(zip(names, row, strict=True)) for row in rows]


TUSER = (
    {"name": "result", "bit": TUser.RESULT, "doc": "The beat is a result."},
    {
        "name": "punctuation",
        "bit": TUser.PUNCTUATION,
        "doc": "The beat is no result. With tlast it ends the input, and everything owed has been "
        "given; every input has exactly one, also an empty one that was ended by the drain bit. "
        "Without tlast it ends the results of one tuple, or of a group of arrivals (register "
        "order, bit punctuate).",
    },
    {
        "name": "side",
        "bit": TUser.SIDE,
        "doc": f"The side of the arrival that made the two tuples meet: {SIDE_R} for R, {SIDE_S} "
        "for S. Where tuples are forwarded at once that is the later tuple itself; in lock step it "
        "is any tuple of that side, and R while the design drains. 0 with tlast.",
    },
)
"""Bits of ``m_axis_results_tuser``; they mean the same in all designs."""

TUSER_SECOND = {
    "name": "second",
    "bit": TUser.SECOND,
    "doc": "The beat is two results of the same arrival: the second is given after the first.",
}
"""The bit that only designs have whose beats may be two results."""


def tuser_of(params: DesignParams) -> list[dict[str, Any]]:
    """Describe the bits of a design's ``m_axis_results_tuser``."""
    return [dict(bit) for bit in (*TUSER, *[TUSER_SECOND][: params.beat_results - 1])]


def manifest(
    params: DesignParams,
    *,
    source_revision: str = "",
    tools: dict[str, str] | None = None,
    resources: dict[str, Any] | None = None,
    clock: dict[str, Any] | None = None,
    board: str | None = None,
) -> dict[str, Any]:
    """Describe a built design in JSON values: what the driver needs and what made it.

    Parameters
    ----------
    params : DesignParams
        The design.
    source_revision : str
        Revision of the source that built it, empty where unknown.
    tools : dict of str to str
        Tool names and versions.
    resources, clock : dict
        After synthesis: what the design uses, the clock in Hz, each with its source.
    board : str
        The board that a bitstream is for.
    """

    def rows(items: tuple[Any, ...]) -> list[dict[str, Any]]:
        return [dataclasses.asdict(item) for item in items]

    return {
        "interface_version": params.interface_version,
        "digest": params.digest,
        "params": params.to_dict(),
        "window_capacity": params.window_capacity,
        "tuple_bits": beat_bits(tuple_layout(params)),
        "tuple_layout": rows(tuple_layout(params)),
        "result_bits": beat_bits(result_beat_layout(params)),
        "result_layout": rows(result_beat_layout(params)),
        "registers": rows(registers(params)),
        "ports": ports(params),
        "sides": {"R": SIDE_R, "S": SIDE_S},
        "tuser": tuser_of(params),
        "reset": {"port": RESET, "active": "low", "synchronous": True, "clock": CLOCK},
        "source_revision": source_revision,
        "tools": tools or {},
        "resources": resources,
        "clock": clock,
        "board": board,
    }
