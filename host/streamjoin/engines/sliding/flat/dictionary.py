"""Strings of a live join as 64-bit integers: equal where the strings are.

A dictionary grows with the strings that arrive, and shrinks to those in the windows when the
buffers of the windows are moved, so that it holds a few windows' strings at most. A string that
left it and arrives again gets another number: no tuple that can meet it has the former one.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.session import Arriving
from streamjoin.inputs.strings import Strings
from streamjoin.tuples import Int64s

FEW = 1 << 10
"""Strings up to which a dictionary is not made smaller."""


class _Known(NamedTuple):
    """Strings with room behind them.

    Attributes
    ----------
    offsets : ndarray of int64, shape (room + 1,)
        Where each begins, and the last ends.
    data : ndarray of uint8
        Their bytes.
    hashes : ndarray of uint64, shape (room,)
        Their hashes.
    numbers : ndarray of int64, shape (room,)
        What each is called.
    slots : ndarray of uint64
        A hash table of their positions.
    notes : ndarray of int64, shape (2,)
        How many there are, and the number of the next one.
    """

    offsets: Int64s
    data: NDArray[np.uint8]
    hashes: NDArray[np.uint64]
    numbers: Int64s
    slots: NDArray[np.uint64]
    notes: Int64s


def _with_room(strings: int, size: int, before: _Known | None = None) -> _Known:
    """Return the same strings with room for so many, and so many bytes."""
    from streamjoin.engines.kernels import strings as kernels

    room = 1 << max(6, (strings - 1).bit_length())
    known = _Known(
        np.zeros(room + 1, dtype=np.int64),
        np.zeros(1 << max(10, (size - 1).bit_length()), dtype=np.uint8),
        np.zeros(room, dtype=np.uint64),
        np.zeros(room, dtype=np.int64),
        np.zeros(2 * room, dtype=np.uint64),
        np.zeros(2, dtype=np.int64),
    )
    if before is not None:
        count = int(before.notes[0])
        used = int(before.offsets[count])
        known.offsets[: count + 1] = before.offsets[: count + 1]
        known.data[:used] = before.data[:used]
        known.hashes[:count] = before.hashes[:count]
        known.numbers[:count] = before.numbers[:count]
        known.notes[:] = before.notes
        kernels.enter_hashes(known.hashes[:count], known.slots)
    return known


class Dictionary:
    """Numbers of strings.

    What fails or is interrupted leaves strings that nobody needs at most.
    """

    def __init__(self) -> None:
        self._known = _with_room(0, 0)

    def __len__(self) -> int:
        return int(self._known.notes[0])

    def numbers_of(self, strings: Strings) -> Int64s:
        """Return the numbers of strings, new ones for those that are not there."""
        from streamjoin.engines.kernels import strings as kernels

        known, count = self._known, len(self)
        size = int(strings.offsets[-1] - strings.offsets[0])
        used = int(known.offsets[count])
        if count + len(strings) > len(known.hashes) or used + size > len(known.data):
            known = self._known = _with_room(count + len(strings), used + size, known)
        hashes = np.empty(len(strings), dtype=np.uint64)
        numbers = np.empty(len(strings), dtype=np.int64)
        kernels.learn_strings(strings.offsets, strings.data, hashes, *known, numbers)
        return numbers

    def limit_to(self, live: list[Int64s]) -> None:
        """Forget strings but those of live numbers, where that is the lesser part."""
        count = len(self)
        if count <= max(FEW, 2 * sum(each.shape[1] for each in live)):
            return
        known = self._known
        kept = np.isin(known.numbers[:count], np.concatenate([each.ravel() for each in live]))
        strings = Strings(known.offsets[: count + 1], known.data, is_binary=True)[kept].copy()
        left, size = len(strings), len(strings.data)
        few = _Known(
            strings.offsets,
            strings.data,
            known.hashes[:count][kept],
            known.numbers[:count][kept],
            known.slots,
            np.array([left, known.notes[1]]),
        )
        self._known = _with_room(left, size, few)


def in_words(tuples: Arriving, dictionary: Dictionary | None) -> Arriving:
    """Return tuples with the numbers of their strings."""
    if dictionary is None:
        return tuples
    columns: dict[str, Any] = {
        name: dictionary.numbers_of(Strings.of(column)) if column.dtype.kind == "O" else column
        for name, column in tuples.columns.items()
    }
    return Arriving(columns, tuples.ts, tuples.numbers, tuples.missing)
