"""How much memory a file takes once it is decoded, from its metadata, before it is read.

Every figure is a lower bound, so what is refused cannot fit. Arrow's modules are given by the
caller: this package needs the standard library only.
"""

import struct
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from streamjoin_common import csv_fields
from streamjoin_common.errors import InputError

OFFSET_BYTES = 4
"""Bytes of a string's offset, beside its own."""

CSV_GROWTH = 16
"""A CSV file that takes less than this many times its size fits without a look into it."""

_PLAIN = frozenset({"PLAIN", "RLE", "BIT_PACKED", "DELTA_LENGTH_BYTE_ARRAY"})
"""Encodings of strings that hold every value."""

_ARROW_MAGIC = b"ARROW1"


def check_fits(source: object, needed_bytes: int, free_bytes: int | None) -> None:
    """Refuse an input that needs more memory than there is.

    Raises
    ------
    InputError
        Naming both amounts.
    """
    if free_bytes is not None and needed_bytes > free_bytes:
        raise InputError(
            f"{source}: takes at least {needed_bytes:,} bytes of memory once it is decoded, and "
            f"{free_bytes:,} bytes may be taken: join a part of it at a time, free memory, or use "
            "streamjoin spark-join, which reads Parquet files in parts"
        )


def parquet_bytes(
    pq: Any, pc: Any, files: Sequence[str | Path], names: Collection[str], free_bytes: int
) -> int:
    """Memory of columns of Parquet files: their numbers of rows by their types.

    Strings in a dictionary are measured by the longest; where so many might not fit, exactly, for
    which their indices are read and no string is written out.
    """
    total, maximum = 0, 0
    packed: list[tuple[str | Path, int, str]] = []
    for path in files:
        with pq.ParquetFile(path) as file:
            paths = [file.schema.column(index).path for index in range(len(file.schema))]
            flat = [leaf for leaf in paths if leaf in names]
            total += _nested_bytes(file, paths, names)
        with pq.ParquetFile(path, read_dictionary=flat) as file:
            for group, name, rows, column, first in _chunks(file, names):
                if column.physical_type != "BYTE_ARRAY":
                    total += rows * _row_bits(file.schema_arrow.field(name).type) // 8
                    continue
                if not hasattr(first, "dictionary"):  # a type of its own around strings
                    total += column.total_uncompressed_size
                    continue
                total += rows * OFFSET_BYTES
                if _PLAIN.issuperset(column.encodings):
                    total += max(0, column.total_uncompressed_size - OFFSET_BYTES * rows)
                    continue
                maximum += rows * _longest(pc, first)
                packed.append((path, group, name))
    if total + maximum <= free_bytes:
        return total
    for path, group, name in packed:
        if total > free_bytes:
            break
        with pq.ParquetFile(path, read_dictionary=[name]) as file:
            total += string_bytes(pc, file.read_row_group(group, columns=[name]).column(0))
    return total


def _nested_bytes(file: Any, paths: Sequence[str], names: Collection[str]) -> int:
    """Bytes of the columns in lists, structs and maps, as they are encoded: at least so many."""
    nested = {index: path for index, path in enumerate(paths) if path not in names}
    nested = {at: path for at, path in nested.items() if path.partition(".")[0] in names}
    total = 0
    for group in range(file.metadata.num_row_groups if nested else 0):
        next(file.iter_batches(1, row_groups=[group], columns=list(nested.values())), None)
        about = file.metadata.row_group(group)
        total += sum(about.column(index).total_uncompressed_size for index in nested)
    return total


def _row_bits(kind: Any) -> int:
    """Bits of a row of a type of a fixed width, or of what a type of its own is stored as."""
    try:
        return int(getattr(kind, "storage_type", kind).bit_width)
    except ValueError:  # that of columns without values has no width
        return 0


def _chunks(file: Any, names: Collection[str]) -> Iterator[tuple[int, str, int, Any, Any]]:
    """Each column of each row group: the group, its name, rows and metadata, and its first row."""
    paths = [file.schema.column(index).path for index in range(len(file.schema))]
    indices = {path: index for index, path in enumerate(paths) if path in names}
    for group in range(file.metadata.num_row_groups):
        # A row is read before the metadata are: damaged ones raise there, and end Python here.
        first = next(file.iter_batches(1, row_groups=[group], columns=list(indices)), None)
        if first is None:
            continue
        about = file.metadata.row_group(group)
        for name, index in indices.items():
            yield group, name, about.num_rows, about.column(index), first.column(name)


def _longest(pc: Any, array: Any) -> int:
    return int(pc.max(pc.binary_length(array.dictionary)).as_py() or 0)


def string_bytes(pc: Any, column: Any) -> int:
    """Bytes of the strings of a dictionary-encoded column, once they are written out."""
    total = 0
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary)
        total += int(pc.sum(lengths.take(chunk.indices)).as_py() or 0)
    return total


def ipc_bytes(pa: Any, path: str | Path) -> int:
    """Memory of an Arrow IPC file's or stream's compressed buffers; others are mapped, not read.

    Each compressed buffer begins with its length. Returns 0 for what is damaged: the reader says.
    """
    total = 0
    try:
        with pa.memory_map(str(path)) as source:
            start = 8 if source.read(6) == _ARROW_MAGIC else 0
            source.seek(start)
            for message in pa.ipc.MessageReader.open_stream(source):
                if message.type in {"record batch", "dictionary"}:
                    total += _message_bytes(memoryview(message.metadata), memoryview(message.body))
    except (pa.ArrowException, struct.error, IndexError, ValueError, OSError, EOFError):
        return total
    return total


def _message_bytes(metadata: memoryview, body: memoryview) -> int:
    """Sum the lengths of a message's compressed buffers (Arrow's Message.fbs)."""
    (root,) = struct.unpack_from("<I", metadata, 0)
    (kind,) = struct.unpack_from("<B", metadata, _field(metadata, root, 1))
    batch = _follow(metadata, _field(metadata, root, 2))
    if kind == 2:  # a dictionary batch holds its values as a record batch
        batch = _follow(metadata, _field(metadata, batch, 1))
    if not _field(metadata, batch, 3):
        return 0  # not compressed
    buffers = _follow(metadata, _field(metadata, batch, 2))
    (count,) = struct.unpack_from("<I", metadata, buffers)
    total = 0
    for number in range(count):
        offset, length = struct.unpack_from("<qq", metadata, buffers + 4 + 16 * number)
        if length >= 8:
            (decoded,) = struct.unpack_from("<q", body, offset)
            total += decoded if decoded >= 0 else length - 8
    return total


def _field(metadata: memoryview, table: int, number: int) -> int:
    """Return where a flatbuffer table has a field, or 0 where it has it not."""
    vtable = table - int(struct.unpack_from("<i", metadata, table)[0])
    (size,) = struct.unpack_from("<H", metadata, vtable)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, vtable + 4 + 2 * number)
    return table + int(offset) if offset else 0


def _follow(metadata: memoryview, offset: int) -> int:
    return offset + int(struct.unpack_from("<I", metadata, offset)[0])


def csv_bytes(csv: Any, path: str | Path, free_bytes: int) -> int:
    """Memory of a CSV file, as its first block grows; 0 where it fits however it grows."""
    size = Path(path).stat().st_size
    if size * CSV_GROWTH <= free_bytes:
        return 0
    parse = csv.ParseOptions(newlines_in_values=True)

    def grown(read: Any) -> int:
        with csv.open_csv(str(path), read, parse) as reader:
            first = reader.read_next_batch()
        return int(first.nbytes * max(1, size // read.block_size))

    return int(csv_fields.in_blocks(csv, grown))
