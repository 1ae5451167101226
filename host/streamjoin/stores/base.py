"""What every store offers: rows by their place, as keys, row numbers and packed bytes.

A semi-stream join scans its relation in a cycle and assumes nothing about order or index. It asks
for places ``first`` to below ``end``; a place is a position that a row keeps while it is there (a
row number, a rowid), so that a cycle's partitions hold the same places in every cycle, and a read
that failed is repeated without a row being lost or met twice.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError

Words = NDArray[np.uint64]
WORD_BYTES = 8

MOST_SPARSE = 100
"""Places for each row beyond which a scan by place would mostly read nothing."""

KEY_TYPES = "whole numbers of up to 64 bits"


@dataclass(frozen=True)
class Projection:
    """Which columns of a relation a join needs.

    Attributes
    ----------
    key : str
        The join column: whole numbers. A row without a value joins with nothing.
    columns : tuple of str
        What is kept of a row, in this order; every one of a fixed width and without missing
        values.
    row : str or None
        The column with the number by which results name a row; None for its place in the store.
    """

    key: str
    columns: tuple[str, ...] = ()
    row: str | None = None

    @property
    def names(self) -> list[str]:
        """All columns to be read, each once."""
        wanted = [self.key, *([self.row] if self.row else []), *self.columns]
        return list(dict.fromkeys(wanted))


@dataclass(frozen=True)
class Partition:
    """Rows of a relation in memory: the disk buffer.

    Attributes
    ----------
    keys : ndarray of uint64, shape (rows,)
        Join values; negative ones by their two's complement.
    rows : ndarray of uint64, shape (rows,)
        Row numbers.
    payload : ndarray of uint64
        The kept columns: those of row ``i`` begin at word ``first + i * stride``.
    first, stride : int
        Words.
    """

    keys: Words
    rows: Words
    payload: Words
    first: int = 0
    stride: int = 0

    def __len__(self) -> int:
        return len(self.keys)


class Store(ABC):
    """A relation on disk or in a database.

    Parameters
    ----------
    place : Path
        The file or folder.
    projection : Projection
        What is read of it.

    Attributes
    ----------
    dtype : numpy.dtype
        The kept columns packed, padded to whole words: what :attr:`Partition.payload` holds of a
        row.

    Raises
    ------
    InputError
        If it cannot be opened, or a column is missing or of a type that cannot be kept.
    """

    kind: ClassVar[str]

    def __init__(self, place: Path, projection: Projection) -> None:
        self.place, self.projection = place, projection
        self.dtype = np.dtype([])
        self._open()

    @property
    def payload_words(self) -> int:
        """Words that are kept of a row."""
        return self.dtype.itemsize // WORD_BYTES

    @property
    def row_bytes(self) -> int:
        """Bytes of what is kept of a row: key, row number, columns."""
        return (2 + self.payload_words) * WORD_BYTES

    @property
    def read_bytes(self) -> int:
        """Bytes of a row that are read, and lie in the disk buffer."""
        return self.row_bytes

    @property
    @abstractmethod
    def places(self) -> int:
        """How many places there are now, free ones among them."""

    @abstractmethod
    def read(self, first: int, end: int) -> Partition:
        """Read the rows at places ``first`` to below ``end``."""

    @abstractmethod
    def _open(self) -> None:
        """Open, or open again after a failure; sets :attr:`dtype`."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections; may be called twice."""

    @classmethod
    def unwritable(cls) -> str | None:
        """Why no relation can be written here, or None."""
        return None

    def discard(self) -> None:  # noqa: B027  (what lies in a folder goes with it)
        """Remove what :func:`write_store` has put where it outlasts the folder."""

    def interrupt(self) -> None:  # noqa: B027  (most reads cannot hang for long)
        """Have a read that is under way in another thread end soon, with an error."""

    def reopen(self) -> None:
        """Open anew after a failure.

        Raises
        ------
        InputError
            If the columns are not what they were.
        """
        before = self.dtype
        self.close()
        self._open()
        if before.itemsize and self.dtype != before:
            raise InputError(
                f"{self.place}: the kept columns were {_told(before)} and are {_told(self.dtype)} "
                "now: start the join anew"
            )


def packed(fields: list[tuple[str, Any]]) -> "np.dtype[Any]":
    """Lay columns behind each other, padded to whole words."""
    plain = np.dtype(fields)
    width = -(-plain.itemsize // WORD_BYTES) * WORD_BYTES
    offsets = [plain.fields[name][1] for name, _ in fields] if plain.fields else []
    return np.dtype(
        {
            "names": [name for name, _ in fields],
            "formats": [np.dtype(kind) for _, kind in fields],
            "offsets": offsets,
            "itemsize": width,
        }
    )


def key_words(keys: NDArray[Any]) -> Words:
    """Keys of any whole type as words that are equal if and only if the keys are."""
    wide = np.uint64 if keys.dtype.kind == "u" else np.int64
    return np.ascontiguousarray(keys, dtype=wide).view(np.uint64)


def refuse_column(place: Path, name: str, have: list[str]) -> InputError:
    """Say that a column is missing."""
    return InputError(f"{place}: there is no column {name!r}; it has {', '.join(have) or 'none'}")


def _told(dtype: "np.dtype[Any]") -> str:
    return ", ".join(f"{name} {dtype[name]}" for name in dtype.names or ()) or "none"
