"""What every store offers: rows by their position, as keys, row numbers and packed bytes.

A semi-stream join scans its relation in a cycle and assumes nothing about order or index. It asks
for positions ``first`` to below ``end``. A position is a number that a row keeps while it is there
(a row number, a rowid): a cycle's partitions hold the same positions in every cycle, and a read
that failed is repeated without a row being lost or read twice.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.inputs.strings import Strings
from streamjoin.relations import queries

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")
Words = NDArray[np.uint64]
Columns = Mapping[str, tuple[NDArray[Any] | Strings, NDArray[np.bool_] | None]]
"""Columns as a join compares them: values, and which are missing."""

WORD_BYTES = 8

KEY_TYPES = "integers of at most 64 bits"


@dataclass(frozen=True)
class Projection:
    """Which columns of a relation a join needs.

    Attributes
    ----------
    key : str or None
        The join column: integers. A row without a value joins with nothing. None where rows
        are only asked for by :meth:`Store.columns`.
    columns : tuple of str
        What is kept of a row, in this order; every one of a fixed width and without missing
        values.
    row : str or None
        The column with the number by which results name a row; None for its position in the store.
    compared : tuple of str
        Columns of any type that can be joined on, which :meth:`Store.columns` reads.
    passed : tuple of str
        Columns of any type, which :meth:`Store.looked_up` reads.
    """

    key: str | None = None
    columns: tuple[str, ...] = ()
    row: str | None = None
    compared: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """All columns to be read, each once."""
        return list(dict.fromkeys([*self.whole, *self.columns, *self.compared, *self.passed]))

    @property
    def whole(self) -> list[str]:
        """Return the columns that must hold integers."""
        return [name for name in (self.key, self.row) if name is not None]


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
    location : Path
        The file or folder.
    projection : Projection
        What is read of it.
    table : str, optional
        Which of a database's tables; where there is only one, or one called ``r``, that one.

    Attributes
    ----------
    names : list of str
        All columns that the relation has.
    dtype : numpy.dtype
        The kept columns packed, padded to whole words: what :attr:`Partition.payload` holds of a
        row.

    Raises
    ------
    InputError
        If it cannot be opened, or a column is missing or of a type that cannot be kept.
    """

    kind: ClassVar[str]

    def __init__(self, location: Path, projection: Projection, table: str | None = None) -> None:
        self.location, self.projection, self.table = location, projection, table
        self.dtype = np.dtype([])
        self.names: list[str] = []
        self._open()

    @property
    def address(self) -> str:
        """What opens it again."""
        return str(self.location)

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
    def positions(self) -> int:
        """How many positions there are now, free ones among them."""

    @abstractmethod
    def read(self, first: int, end: int) -> Partition:
        """Read the rows at positions ``first`` to below ``end``."""

    def columns(self, first: int, end: int) -> tuple[Words, Columns]:
        """Read the compared columns of the rows at positions ``first`` to below ``end``.

        Returns
        -------
        numbers : ndarray of uint64
            Row numbers.
        columns : mapping
            By name.

        Raises
        ------
        UnsupportedError
            If the store reads keys alone, as one of another package may.
        """
        raise UnsupportedError(f"{self.location}: a store of kind {self.kind} reads keys alone")

    def looked_up(self, first: int, end: int) -> "tuple[Words, pa.Table]":
        """Read the passed columns of the rows at positions ``first`` to below ``end``.

        Returns
        -------
        numbers : ndarray of uint64
            Row numbers.
        table : pyarrow.Table
            The columns; of the same types whichever the rows, even if there are none.

        Raises
        ------
        UnsupportedError
            If the store reads keys alone, as one of another package may.
        """
        raise UnsupportedError(
            f"{self.location}: a store of kind {self.kind} gives no rows: look them up there, by "
            "the numbers in r_rows"
        )

    @abstractmethod
    def _open(self) -> None:
        """Open, or open again after a failure; sets :attr:`dtype` and :attr:`names`."""

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
        """Have a query that is under way in another thread end soon, with an error."""

    def _bounded(self, query: Callable[[], Result], what: str) -> Result:
        """Run a query so that signals and a deadline end it; ``what`` it does is for the error."""
        return queries.run_with_deadline(
            query, self.interrupt, queries.DEADLINE_S, f"{self.location}: {what}"
        )

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
                f"{self.location}: the kept columns were {_listed(before)} and are now "
                f"{_listed(self.dtype)}: start the join anew"
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


def _listed(dtype: "np.dtype[Any]") -> str:
    return ", ".join(f"{name} {dtype[name]}" for name in dtype.names or ()) or "none"
