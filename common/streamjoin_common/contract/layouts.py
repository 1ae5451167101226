"""How tuples and results are packed into beats, and what rides beside them."""

from dataclasses import dataclass

from streamjoin_common.contract.limits import KEY_BITS
from streamjoin_common.contract.params import DesignParams


@dataclass(frozen=True)
class LayoutField:
    """One field of a packed beat: ``width`` bits from bit ``offset`` upwards."""

    name: str
    offset: int
    width: int


def _pack(widths: list[tuple[str, int]]) -> tuple[LayoutField, ...]:
    fields, offset = [], 0
    for name, width in widths:
        fields.append(LayoutField(name, offset, width))
        offset += width
    return tuple(fields)


def tuple_layout(params: DesignParams) -> tuple[LayoutField, ...]:
    """Layout of ``s_axis_tuples_tdata``: keys in the order of the terms, payload, time if any."""
    keys = [(f"key{index}", KEY_BITS) for index in range(len(params.terms))]
    time = [("ts", params.timestamp_bits)] if params.timestamp_bits else []
    return _pack([*keys, ("payload", params.payload_bits), *time])


def result_layout(params: DesignParams) -> tuple[LayoutField, ...]:
    """Layout of one result: the payloads of R and of S.

    Where all kinds of join are decided also which of them is missing; its payload is 0. These bits
    are no part of ``tuser``, which a plain DMA does not pass on.
    """
    payloads = [("r_payload", params.payload_bits), ("s_payload", params.payload_bits)]
    missing = [("r_missing", 1), ("s_missing", 1)] if params.decides_kinds else []
    return _pack([*payloads, *missing])


def result_beat_layout(params: DesignParams) -> tuple[LayoutField, ...]:
    """Layout of ``m_axis_results_tdata``: a result or, in designs for two, another one behind it.

    The second begins at a byte; its fields have the names of the first's and ``_second``. It counts
    if ``tuser`` says so (:attr:`TUser.SECOND`), and is owed after the first.
    """
    first = result_layout(params)
    return first + tuple(
        LayoutField(f"{field.name}_second", beat_bits(first) * number + field.offset, field.width)
        for number in range(1, params.beat_results)
        for field in first
    )


def beat_bits(layout: tuple[LayoutField, ...]) -> int:
    """Width of ``tdata`` for a layout: the fields' bits rounded up to whole bytes."""
    last = layout[-1]
    return -(-(last.offset + last.width) // 8) * 8


SIDE_R, SIDE_S = 0, 1
"""Values of ``tdest`` on the input and of ``tuser``'s side bit on the output."""


class TUser:
    """Bits of ``m_axis_results_tuser``."""

    RESULT = 0
    PUNCTUATION = 1
    SIDE = 2
    SECOND = 3
    BITS = 3
    """Of all designs; :func:`tuser_bits` are a design's."""


def tuser_bits(params: DesignParams) -> int:
    """Width of ``m_axis_results_tuser``: with ``SECOND`` where a beat may have two results."""
    return TUser.SECOND + 1 if params.beat_results > 1 else TUser.BITS
