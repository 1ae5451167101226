"""A column of strings, or of bytes, as Arrow holds them, without a Python object for each.

Such a column stands for an array of Python's strings: it has a length and a type, gives rows, and
makes the objects only where somebody asks for them (the oracle, NumPy, pyarrow).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError
from streamjoin.inputs.files import arrow

if TYPE_CHECKING:
    from collections.abc import Sequence
OBJECT = np.dtype(object)
"""Type of a column of Python's strings."""

MAX_CHUNK_BYTES = (1 << 31) - 1
"""Maximum bytes of the strings of an Arrow array with 32-bit offsets."""

BINARY = np.dtype("S")
"""Type of a column of bytes, until both sides are seen to be of this type."""


def with_nulls(column: Any, missing: NDArray[np.bool_]) -> Any:
    """Return an array, or an Arrow array, as an Arrow array in which some rows are null."""
    pa = arrow()
    if isinstance(column, np.ndarray):
        return pa.array(column, mask=missing)
    from pyarrow import compute

    return compute.if_else(pa.array(missing), pa.scalar(None, column.type), column)


@dataclass(frozen=True, eq=False)
class Strings:
    """Strings in UTF-8, or bytes, one behind the other.

    Attributes
    ----------
    offsets : ndarray of int64, shape (strings + 1,)
        Where each begins, and the last ends.
    data : ndarray of uint8
        Their bytes; what lies before the first offset is not theirs.
    dtype : dtype
        That of a column of Python's objects, for which it stands, or :data:`BINARY`.
    is_binary : bool
        Whether the values are bytes.
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    dtype: "np.dtype[Any]" = OBJECT
    is_binary: bool = False

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
            strings.validate()
            held = cls._of_array(strings)
            if not held.is_ascii:  # a tenth of the time of the rest
                strings.validate(full=True)
        except pa.ArrowInvalid:
            raise InputError(
                f"{source}: column {name!r} holds strings that are not UTF-8"
            ) from None
        return held

    @property
    def is_ascii(self) -> bool:
        """Whether they are seen to be ASCII one behind the other, and thus UTF-8."""
        offsets = self.offsets
        if (offsets[1:] < offsets[:-1]).any():
            return False
        used = self.data[offsets[0] : offsets[-1]]
        return not len(used) or bool(used.max() < 0x80)

    @classmethod
    def of_bytes(cls, column: Any) -> "Strings":
        """View an Arrow column of bytes, or copy an array of bytes."""
        if isinstance(column, np.ndarray):
            return cls._of_byte_array(np.ascontiguousarray(column))
        pa = arrow()
        held = cls._of_array(pa.chunked_array(column).cast(pa.large_binary()).combine_chunks())
        return replace(held, dtype=BINARY, is_binary=True)

    @classmethod
    def _of_byte_array(cls, column: NDArray[Any]) -> "Strings":
        each = column.dtype.itemsize
        matrix = column.view(np.uint8).reshape(len(column), each)
        if column.dtype.kind == "V":
            return cls.of_rows(matrix)
        lengths = np.char.str_len(column)  # NumPy strips bytes of 0 at the end
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        data = matrix[np.arange(each) < lengths[:, None]]
        return cls(offsets, data, BINARY, is_binary=True)

    @classmethod
    def of_rows(cls, matrix: NDArray[np.uint8]) -> "Strings":
        """Copy bytes of one length, shape (values, length)."""
        rows, each = matrix.shape
        offsets = np.arange(rows + 1, dtype=np.int64) * each
        return cls(offsets, matrix.reshape(-1), BINARY, is_binary=True)

    @property
    def as_objects(self) -> "Strings":
        """They as a column of Python's objects, strings or bytes."""
        return replace(self, dtype=OBJECT)

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
    def of_python(cls, values: NDArray[Any]) -> "Strings | None":
        """Copy Python's or NumPy's strings; None if one is missing, no string or no UTF-8."""
        if len(values) == 1 and type(values[0]) is str:  # a fifth of Arrow's time
            try:
                data = values[0].encode()
            except UnicodeEncodeError:
                return None
            return cls(np.array([0, len(data)]), _writable(data))
        listed = values.tolist()
        try:  # half of Arrow's time
            raw = _writable("\0".join(listed).encode())
        except (TypeError, UnicodeEncodeError):
            return None
        between = raw == 0
        ends = np.flatnonzero(between)
        if len(ends) == len(listed) - 1:  # no string has a zero
            offsets = np.zeros(len(listed) + 1, dtype=np.int64)
            offsets[1:-1], offsets[-1] = ends, len(raw)
            offsets[1:] -= np.arange(len(listed))
            return cls(offsets, raw[~between])
        pa = arrow()
        try:
            strings = pa.array(values)
        except (pa.ArrowException, UnicodeEncodeError, TypeError, ValueError, OverflowError):
            return None
        if type(strings) is not pa.StringArray or strings.null_count:
            return None
        _, offsets, data = strings.buffers()
        if offsets is None or data is None:
            return cls(np.zeros(len(strings) + 1, dtype=np.int64), np.zeros(0, dtype=np.uint8))
        ends = np.frombuffer(offsets, dtype=np.int32, count=len(strings) + 1).astype(np.int64)
        return cls(ends, _writable(data))

    @classmethod
    def of(cls, column: "NDArray[Any] | Strings") -> "Strings":
        """Return a column of strings as bytes, whatever holds it."""
        if isinstance(column, cls):
            return column
        array = np.asarray(column)
        return cls.of_bytes(array) if array.dtype.kind == "S" else cls.of_objects(array)

    @classmethod
    def joined(cls, columns: "Sequence[NDArray[Any] | Strings]") -> "Strings":
        """Copy columns of strings one behind the other."""
        parts = [cls.of(column) for column in columns]
        ends = np.cumsum([len(part.offsets) for part in parts])
        lengths = np.diff(np.concatenate([part.offsets for part in parts]))
        lengths = np.delete(lengths, ends[:-1] - 1)  # from one part's end to another's begin
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = np.concatenate([part.data[part.offsets[0] : part.offsets[-1]] for part in parts])
        return replace(parts[0], offsets=offsets, data=data)

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
                return replace(self, offsets=self.offsets[first : max(first, end) + 1])
            rows = np.arange(first, end, step)
        rows = np.asarray(rows)
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        pa = arrow()
        taken = self._of_array(self.arrow.take(pa.array(rows.astype(np.int64, copy=False))))
        return replace(taken, dtype=self.dtype, is_binary=self.is_binary)

    def __reduce__(self) -> tuple[Any, ...]:
        own = self.copy()  # not the bytes of those around a slice
        return Strings, (own.offsets, own.data, own.dtype, own.is_binary)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Python's strings or bytes, for NumPy."""
        return self.objects() if dtype is None else self.objects().astype(dtype)

    def __arrow_array__(self, type: Any = None) -> Any:  # noqa: A002  # pyarrow's name
        """An Arrow array, for pyarrow."""
        return self.arrow if type is None else self.arrow.cast(type)

    @cached_property
    def arrow(self) -> Any:
        """They as an Arrow array that shares their memory."""
        pa = arrow()
        offsets_buffer, data = pa.py_buffer(self.offsets), pa.py_buffer(self.data)
        kind = pa.large_binary() if self.is_binary else pa.large_string()
        return pa.Array.from_buffers(kind, len(self), [None, offsets_buffer, data])

    @property
    def is_utf8(self) -> bool:
        """Whether all are characters, or bytes; half of a surrogate pair, in Python's, is none."""
        try:
            self.arrow.validate(full=True)
        except arrow().ArrowInvalid:
            return False
        return True

    def table_column(self) -> Any:
        """They as an Arrow column of its usual type, in chunks of less than 2 GB."""
        pa = arrow()
        first, chunks = 0, []
        while first < len(self):
            limit = self.offsets[first] + MAX_CHUNK_BYTES
            end = max(first + 1, int(np.searchsorted(self.offsets, limit, side="right")) - 1)
            chunks.append(self[first:end].copy().arrow.cast(pa.string()))
            first = end
        return pa.chunked_array(chunks, pa.string())

    def copy(self) -> "Strings":
        """Their bytes alone, in memory of their own."""
        first, end = int(self.offsets[0]), int(self.offsets[-1])
        return replace(self, offsets=self.offsets - first, data=self.data[first:end].copy())

    def objects(self) -> NDArray[Any]:
        """Python's strings, or bytes; those that are alike are one object."""
        coded = self.arrow.cast(arrow().large_binary()).dictionary_encode()
        strings = coded.dictionary.to_pylist()
        if not self.is_binary:
            strings = [each.decode("utf-8", "surrogatepass") for each in strings]
        distinct = np.array([*strings, None], dtype=object)[:-1]
        return np.asarray(distinct[coded.indices.to_numpy(zero_copy_only=False)])


def _writable(data: Any) -> NDArray[np.uint8]:
    """Copy bytes to an array of a kernel's usual type; one byte of 0 if there are none."""
    return np.frombuffer(bytearray(data) or bytearray(1), dtype=np.uint8)
