"""Groups of tuples and packets of results as a DMA carries them: ``streamjoin_common.contract``.

The layouts of header and trailer are the contract's; here they are encoded and decoded, many at
once.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamjoin.device.base import Beats, Bytes
from streamjoin.device.packing import pack, unpack
from streamjoin.errors import DeviceError
from streamjoin_common.contract import (
    GROUP_TUPLES,
    HEADER,
    MARK,
    TRAILER,
    DesignParams,
    beat_bits,
    input_word_bits,
    result_layout,
    result_word_bits,
)


def grouped_words(tuples: int) -> int:
    """Return the words of ``tuples`` tuples and their headers."""
    return tuples + -(-tuples // GROUP_TUPLES)


def group(params: DesignParams, beats: Beats, *, last: bool) -> Bytes:
    """Encode tuples as groups.

    Parameters
    ----------
    params : DesignParams
        The design.
    beats : Beats
        At least one tuple.
    last : bool
        Whether the input ends with them.

    Returns
    -------
    ndarray of uint8, shape (words, word bytes)
    """
    tuples = len(beats.dest)
    groups = -(-tuples // GROUP_TUPLES)
    words = np.zeros((grouped_words(tuples), input_word_bits(params) // 8), dtype=np.uint8)
    at = np.arange(tuples)
    words[at + at // GROUP_TUPLES + 1, : beats.data.shape[1]] = beats.data
    sides = np.zeros((groups, GROUP_TUPLES), dtype=np.uint8)
    sides.reshape(-1)[:tuples] = beats.dest
    counts = np.full(groups, GROUP_TUPLES, dtype=np.uint32)
    counts[-1] = tuples - (groups - 1) * GROUP_TUPLES
    lasts = np.zeros(groups, dtype=np.uint32)
    lasts[-1] = last
    columns = {
        "sides": np.packbits(sides, axis=1, bitorder="little").view("<u4")[:, 0],
        "tuples": counts,
        "last": lasts,
        "mark": np.full(groups, MARK, dtype=np.uint32),
    }
    header = pack(HEADER, columns, groups)
    words[:: GROUP_TUPLES + 1, : header.shape[1]] = header
    return words


@dataclass(frozen=True)
class Packet:
    """A packet of results.

    Attributes
    ----------
    data : ndarray of uint8, shape (results, result bytes)
        Packed results; a copy.
    end : bool
        Whether the input has drained.
    """

    data: Bytes
    end: bool


def packet(params: DesignParams, received: NDArray[np.uint8]) -> Packet:
    """Decode a packet.

    Parameters
    ----------
    params : DesignParams
        The design.
    received : ndarray of uint8, shape (bytes,)
        The bytes that a transfer wrote.

    Raises
    ------
    DeviceError
        If it is not a whole packet.
    """
    word_bytes = result_word_bits(params) // 8
    words, rest = divmod(len(received), word_bytes)
    if words == 0 or rest:
        raise DeviceError(
            f"a packet of results has {len(received)} bytes, which is no multiple of a word's "
            f"{word_bytes} bytes: it is too short"
        )
    whole = received.reshape(words, word_bytes)
    trailer = unpack(TRAILER, whole[-1:, : beat_bits(TRAILER) // 8])
    mark, results = int(trailer["mark"][0]), int(trailer["results"][0])
    if mark != MARK:
        raise DeviceError(
            f"a packet of {words} words does not end with its trailer: it is cut or misaligned"
        )
    if results != words - 1:
        raise DeviceError(
            f"a packet of results has {words - 1} of the {results} that its trailer names: "
            "it is too short"
        )
    data = whole[:-1, : beat_bits(result_layout(params)) // 8].copy()
    return Packet(data, bool(trailer["end"][0]))
