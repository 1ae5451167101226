"""The manifest: a built design described in JSON values."""

import dataclasses
from typing import Any

from streamjoin_common.contract.layouts import beat_bits, result_layout, tuple_layout
from streamjoin_common.contract.params import INTERFACE_VERSION, DesignParams
from streamjoin_common.contract.register_map import registers

BOARDS = ("pynq-z2", "zcu104", "kv260")
"""Boards that the driver knows, by the names that bitstreams are built for."""


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
        "interface_version": INTERFACE_VERSION,
        "digest": params.digest,
        "params": params.to_dict(),
        "window_capacity": params.window_capacity,
        "tuple_bits": beat_bits(tuple_layout(params)),
        "tuple_layout": rows(tuple_layout(params)),
        "result_bits": beat_bits(result_layout(params)),
        "result_layout": rows(result_layout(params)),
        "registers": rows(registers(params)),
        "source_revision": source_revision,
        "tools": tools or {},
        "resources": resources,
        "clock": clock,
        "board": board,
    }
