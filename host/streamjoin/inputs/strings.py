"""A column of strings as bytes: what Arrow holds of them, without a Python object for each.

Such a column stands for an array of Python's strings: it has a length and a type, gives rows, and
makes the objects only where somebody asks for them (the oracle, NumPy, pyarrow).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError
from streamjoin.inputs.files import arrow

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, eq=False)
class Strings:
    """Strings in UTF-8, one behind the other.

    Attributes
    ----------
    offsets : ndarray of int64, shape (strings + 1,)
        Where each begins, and the last ends.
    data : ndarray of uint8
        Their bytes; what lies before the first offset is not theirs.
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    dtype = np.dtype(object)
    """That of a column of Python's strings, for which it stands."""

    @classmethod
    def of_arrow(cls, column: Any, name: str, source: str) -> "Strings":
        """View an Arrow column of strings; what is missing is any string.

        Raises
        ------
        InputError
            If a string is not UTF-8.
        """
        pa = arrow()
        strings = pa.chunked_array(column).cast(pa.large_string()).combine_chunks()
        try:
            strings.validate(full=True)
        except pa.ArrowInvalid:
            raise InputError(
                f"{source}: column {name!r} holds strings that are not UTF-8"
            ) from None
        return cls._of_array(strings)

    @classmethod
    def of_objects(cls, values: NDArray[Any]) -> "Strings":
        """Copy Python's strings; half a surrogate pair, which no store holds, is kept as it is."""
        pa = arrow()
        try:
            return cls._of_array(pa.array(values, pa.large_string()))
        except UnicodeEncodeError:
            encoded = [string.encode("utf-8", "surrogatepass") for string in values.tolist()]
            return cls._of_array(pa.array(encoded, pa.large_binary()))

    @classmethod
    def of(cls, column: "NDArray[Any] | Strings") -> "Strings":
        """Return a column of strings as bytes, whatever holds it."""
        return column if isinstance(column, cls) else cls.of_objects(np.asarray(column))

    @classmethod
    def joined(cls, columns: "Sequence[NDArray[Any] | Strings]") -> "Strings":
        """Copy columns of strings one behind the other."""
        parts = [cls.of(column).copy() for column in columns]
        ends = np.cumsum([0, *(len(part.data) for part in parts)])
        offsets = [part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)]
        return cls(
            np.concatenate([*offsets, ends[-1:]]), np.concatenate([part.data for part in parts])
        )

    @classmethod
    def _of_array(cls, strings: Any) -> "Strings":
        _, offsets_buffer, data = strings.buffers()
        if not len(strings):
            return cls(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8))
        offsets = np.frombuffer(offsets_buffer, dtype=np.int64)
        nothing = np.zeros(0, dtype=np.uint8)
        return cls(
            offsets[strings.offset : strings.offset + len(strings) + 1],
            nothing if data is None else np.frombuffer(data, dtype=np.uint8),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: Any) -> "Strings":
        """Strings of a slice, of row numbers or of a mask; a slice of all shares memory."""
        if isinstance(rows, slice):
            first, end, step = rows.indices(len(self))
            if step == 1:
                return Strings(self.offsets[first : max(first, end) + 1], self.data)
            rows = np.arange(first, end, step)
        rows = np.asarray(rows)
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        pa = arrow()
        return self._of_array(self.arrow.take(pa.array(rows.astype(np.int64, copy=False))))

    def __reduce__(self) -> tuple[Any, ...]:
        own = self.copy()  # not the bytes of those around a slice
        return Strings, (own.offsets, own.data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Python's strings, for NumPy."""
        return self.objects() if dtype is None else self.objects().astype(dtype)

    def __arrow_array__(self, type: Any = None) -> Any:  # noqa: A002  # pyarrow's name
        """An Arrow array, for pyarrow."""
        return self.arrow if type is None else self.arrow.cast(type)

    @cached_property
    def arrow(self) -> Any:
        """They as an Arrow array that shares their memory."""
        pa = arrow()
        offsets_buffer, data = pa.py_buffer(self.offsets), pa.py_buffer(self.data)
        return pa.LargeStringArray.from_buffers(len(self), offsets_buffer, data)

    def copy(self) -> "Strings":
        """Their bytes alone, in memory of their own."""
        first, end = int(self.offsets[0]), int(self.offsets[-1])
        return Strings(self.offsets - first, self.data[first:end].copy())

    def objects(self) -> NDArray[Any]:
        """Python's strings; those that are alike are one object."""
        coded = self.arrow.cast(arrow().large_binary()).dictionary_encode()
        strings = [each.decode("utf-8", "surrogatepass") for each in coded.dictionary.to_pylist()]
        distinct = np.array([*strings, None], dtype=object)[:-1]
        return np.asarray(distinct[coded.indices.to_numpy(zero_copy_only=False)])
