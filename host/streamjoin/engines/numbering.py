"""Numbers of values: of a side's by their first rows, of the other's by those of the first.

Tables of hashes that compare whole values; what they hold, and how, is said in
:mod:`~streamjoin.engines.kernels.integers` and :mod:`~streamjoin.engines.kernels.strings`.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.inputs.strings import Strings

Codes = NDArray[np.uint32]
Uint64s = NDArray[np.uint64]
Int64s = NDArray[np.int64]


def number_integers(values: Uint64s, numbers: Codes) -> Uint64s:
    """Number values by the rows that hold them first; return the table for :func:`find_integers`.

    Parameters
    ----------
    values : ndarray of uint64
    numbers : ndarray of uint32, shape of ``values``
        Receives the numbers.
    """
    from streamjoin.engines.kernels import integers as kernels

    slots = _empty_slots(len(values))
    kernels.number_integers(values, slots, numbers)
    return slots


def find_integers(
    values: Uint64s, known: Uint64s, table: Uint64s, numbers: Codes, absent: int
) -> None:
    """Find the numbers of values among known ones.

    Parameters
    ----------
    values, known : ndarray of uint64
    table : ndarray of uint64
        What :func:`number_integers` returned for the known ones.
    numbers : ndarray of uint32, shape of ``values``
        Receives the numbers.
    absent : int
        Number of a value that is not known.
    """
    from streamjoin.engines.kernels import integers as kernels

    kernels.find_integers(values, known, table, numbers, absent)


def number_strings(strings: Strings, numbers: Codes | Int64s) -> Uint64s:
    """Number strings by the rows that hold them first; return the table for :func:`find_strings`.

    Parameters
    ----------
    strings : Strings
    numbers : ndarray of uint32 or int64, shape (strings,)
        Receives the numbers.
    """
    from streamjoin.engines.kernels import strings as kernels

    slots = _empty_slots(len(strings))
    kernels.number_strings(strings.offsets, strings.data, hashes(strings), slots, numbers)
    return slots


def find_strings(
    strings: Strings, known: Strings, table: Uint64s, numbers: Codes | Int64s, absent: int
) -> None:
    """Find the numbers of strings among known ones.

    Parameters
    ----------
    strings, known : Strings
    table : ndarray of uint64
        What :func:`number_strings` returned for the known ones.
    numbers : ndarray of uint32 or int64, shape (strings,)
        Receives the numbers.
    absent : int
        Number of a string that is not known.
    """
    from streamjoin.engines.kernels import strings as kernels

    held = (strings.offsets, strings.data, hashes(strings))
    kernels.find_strings(*held, known.offsets, known.data, table, numbers, absent)


def hashes(strings: Strings) -> Uint64s:
    """Hash strings: equal ones have one hash."""
    from streamjoin.engines.kernels import strings as kernels

    mixed = np.empty(len(strings), dtype=np.uint64)
    kernels.hash_strings(strings.offsets, strings.data, mixed)
    return mixed


def _empty_slots(values: int) -> Uint64s:
    """Return the empty slots of a table of so many values."""
    return np.zeros(1 << max(1, (2 * values - 1).bit_length()), dtype=np.uint64)
