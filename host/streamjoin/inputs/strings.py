"""A column of texts as bytes: what Arrow holds of them, without a Python object for each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError
from streamjoin.inputs.columns import python_strings
from streamjoin.inputs.files import arrow


@dataclass(frozen=True)
class Strings:
    """Strings in UTF-8, one behind the other.

    Attributes
    ----------
    offsets : ndarray of int64, shape (texts + 1,)
        Where each begins, and the last ends.
    data : ndarray of uint8
        Their bytes; what lies before the first offset is not theirs.
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    dtype = np.dtype(object)
    """That of a column of Python's texts, for which it stands."""

    @classmethod
    def of_arrow(cls, column: Any, name: str, source: str) -> "Strings":
        """View an Arrow column of texts; what is missing is any text.

        Raises
        ------
        InputError
            If a text is not UTF-8.
        """
        pa = arrow()
        texts = pa.chunked_array(column).cast(pa.large_string()).combine_chunks()
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            raise InputError(
                f"{source}: column {name!r} holds strings that are not UTF-8"
            ) from None
        return cls._of_array(texts)

    @classmethod
    def of_objects(cls, values: NDArray[Any]) -> "Strings":
        """Copy Python's texts; half a surrogate pair, which no store holds, is kept as it is."""
        pa = arrow()
        try:
            return cls._of_array(pa.array(values, pa.large_string()))
        except UnicodeEncodeError:
            encoded = [text.encode("utf-8", "surrogatepass") for text in values.tolist()]
            return cls._of_array(pa.array(encoded, pa.large_binary()))

    @classmethod
    def _of_array(cls, texts: Any) -> "Strings":
        _, offsets_buffer, data = texts.buffers()
        if not len(texts):
            return cls(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8))
        offsets = np.frombuffer(offsets_buffer, dtype=np.int64)
        nothing = np.zeros(0, dtype=np.uint8)
        return cls(
            offsets[texts.offset : texts.offset + len(texts) + 1],
            nothing if data is None else np.frombuffer(data, dtype=np.uint8),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def copy(self) -> "Strings":
        """Their bytes alone, in memory of their own."""
        first, end = int(self.offsets[0]), int(self.offsets[-1])
        return Strings(self.offsets - first, self.data[first:end].copy())

    def objects(self) -> NDArray[Any]:
        """Python's texts."""
        pa = arrow()
        offsets_buffer, data = pa.py_buffer(self.offsets), pa.py_buffer(self.data)
        return python_strings(pa.LargeStringArray.from_buffers(len(self), offsets_buffer, data))
