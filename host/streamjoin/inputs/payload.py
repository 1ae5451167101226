"""Columns that pass through a join: rows of tables are taken whatever their Arrow types.

Arrow takes no rows of strings and bytes that lie in views, nor of runs (run-end encoding), on their
own or inside of lists, structs, maps, unions and extension types. Those are written out before.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamjoin import memory
from streamjoin.inputs.files import arrow
from streamjoin.tuples import lacking
from streamjoin_common.decoded import check_fits, string_bytes


def written_out(table: Any, dictionaries: bool = False) -> Any:
    """Replace what Arrow cannot take rows of by plain types of the same values.

    Parameters
    ----------
    table : pyarrow.Table
        Its other columns are shared.
    dictionaries : bool
        Whether dictionaries are written out too: put together, those of many tables would hold
        all values that ever came.
    """
    pa = arrow()
    for index, field in enumerate(table.schema):
        if _is_odd(pa, field.type, dictionaries):
            plain = plain_column(table.column(index), dictionaries)
            table = table.set_column(index, field.with_type(plain.type), plain)
    return table


def take(table: Any, rows: Any) -> Any:
    """Return rows of a table of any types, by row number."""
    pa = arrow()
    for index, field in enumerate(table.schema):
        column = takeable(table.column(index))
        table = table.set_column(index, field.with_type(column.type), column)
    return table.take(pa.array(rows))


def takeable(column: Any) -> Any:
    """Return a column of the same values whose rows, of all its chunks, Arrow can take."""
    pa = arrow()
    column = _at_its_start(pa, plain_column(column, dictionaries=False))
    if column.num_chunks > 1 and _is_odd(pa, column.type, dictionaries=True):
        return _one_dictionary(pa, column)
    return column


def _at_its_start(pa: Any, column: Any) -> Any:
    """Copy chunks of which Arrow takes wrong rows: parts of lists of a fixed size in such lists."""
    kind = column.type
    if not _has_fixed_in_fixed(pa, kind):
        return column
    schema = pa.schema([pa.field("column", kind)])
    copies = [
        pa.ipc.read_record_batch(pa.record_batch([chunk], schema=schema).serialize(), schema)
        for chunk in column.chunks
    ]
    return pa.chunked_array([copy.column(0) for copy in copies], kind)


def _has_fixed_in_fixed(pa: Any, kind: Any) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_fixed_in_fixed(pa, kind.storage_type)
    fixed = pa.types.is_fixed_size_list
    inside = [kind.field(index).type for index in range(kind.num_fields)]
    if fixed(kind) and fixed(inside[0]):
        return True
    return any(_has_fixed_in_fixed(pa, each) for each in inside)


def take_rows(column: Any, rows: Any) -> Any:
    """Return rows of a takeable column as one array; a row number -1 gives a missing value.

    Chunks are not put together before: that would copy the column for every few rows.
    """
    pa = arrow()
    if not len(column) or not len(rows):
        return pa.nulls(len(rows), column.type)
    mask = lacking(rows)
    filled = [chunk for chunk in column.chunks if len(chunk)]
    if mask is not None:
        rows = np.where(mask, 0, rows)
    if len(filled) == 1:
        return filled[0].take(pa.array(rows, mask=mask))
    ends = np.cumsum([len(chunk) for chunk in filled])
    chunks = np.searchsorted(ends, rows, side="right")
    inside = rows - (ends - [len(chunk) for chunk in filled])[chunks]
    if (chunks == chunks[0]).all():
        return filled[chunks[0]].take(pa.array(inside, mask=mask))
    order = np.argsort(chunks, kind="stable")
    counts = np.bincount(chunks, minlength=len(filled))
    bounds = [0, *np.cumsum(counts)]
    parts = [
        chunk.take(pa.array(inside[order[first:end]]))
        for chunk, first, end in zip(filled, bounds[:-1], bounds[1:], strict=True)
        if first < end
    ]
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(pa.array(back, mask=mask))


def together(column: Any, rows: int) -> Any:
    """Put the chunks of a takeable column together if nearly as many rows are taken of it.

    Then that copies less than taking them of many chunks; the copy stays as long as the result. A
    column of 2 GiB stays as it is: the positions of its strings have 32 bits.
    """
    # Of an empty chunk Arrow may refuse even that: its offset may lie beyond its buffers.
    filled = [chunk for chunk in column.chunks if len(chunk)]
    if len(filled) < 2 or rows < len(column) // 2 or column.nbytes >= 1 << 31:
        return column
    return arrow().chunked_array([arrow().concat_arrays(filled)])


def integers_within(column: Any) -> Iterator[Any]:
    """Yield the 64-bit integers inside of lists, structs and maps of a column, as arrays."""
    pa = arrow()
    for chunk in column.chunks:
        waiting = list(_inside(pa, chunk))
        while waiting:
            array = waiting.pop()
            if pa.types.is_int64(array.type) or pa.types.is_uint64(array.type):
                yield array
            waiting += _inside(pa, array)


def _inside(pa: Any, array: Any) -> Iterator[Any]:
    """Yield the arrays of which an array is made."""
    kind, types = array.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        yield array.storage
    elif types.is_fixed_size_list(kind):  # pandas gets what lies under missing lists, too
        size = kind.list_size
        yield array.values.slice(array.offset * size, len(array) * size)
    elif types.is_struct(kind):
        yield from array.flatten()
    elif types.is_map(kind):
        yield from (array.keys, array.items)
    elif hasattr(array, "flatten"):
        yield array.flatten()


def _one_dictionary(pa: Any, column: Any) -> Any:
    """Give the dictionaries of several chunks room for the values of all of them."""
    kind = column.type
    simple = pa.types.is_dictionary(kind) and not kind.value_type.num_fields
    # Arrow does not put dictionaries together where one holds a missing value.
    if simple and not any(chunk.dictionary.null_count for chunk in column.chunks):
        return column.cast(pa.dictionary(pa.int32(), kind.value_type))
    return plain_column(column)


def plain_column(
    column: Any, dictionaries: bool = True, source: str = "a dictionary-encoded column"
) -> Any:
    """Return a column as :func:`written_out` does.

    Raises
    ------
    InputError
        If the values of a dictionary of strings do not fit into memory.
    """
    import pyarrow.compute as pc

    pa = arrow()
    kind = column.type
    if not _is_odd(pa, kind, dictionaries):
        return column
    if pa.types.is_dictionary(kind) and (
        pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)
    ):
        check_fits(source, string_bytes(pc, column), memory.input_bytes())
    chunks = column.chunks or [pa.nulls(0, column.type)]
    return pa.chunked_array([_plain(pa, chunk, dictionaries) for chunk in chunks])


def _is_odd(pa: Any, kind: Any, dictionaries: bool) -> bool:
    """Say whether a type, or one inside of it, is to be written out."""
    types = pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind) or types.is_run_end_encoded(kind):
        return True
    if types.is_dictionary(kind):
        return dictionaries or _is_odd(pa, kind.value_type, dictionaries)
    if isinstance(kind, pa.BaseExtensionType):
        return _is_odd(pa, kind.storage_type, dictionaries)
    inside = (kind.field(index).type for index in range(kind.num_fields))
    return any(_is_odd(pa, each, dictionaries) for each in inside)


def _plain(pa: Any, array: Any, dictionaries: bool) -> Any:
    kind, types = array.type, pa.types
    if not _is_odd(pa, kind, dictionaries):
        return array
    if types.is_string_view(kind):
        return array.cast(pa.large_string())
    if types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    if types.is_run_end_encoded(kind):
        logical = np.arange(array.offset, array.offset + len(array))
        runs = np.searchsorted(array.run_ends.to_numpy(), logical, side="right")
        return _plain(pa, array.values, dictionaries).take(pa.array(runs))
    if types.is_dictionary(kind):
        values = _plain(pa, array.dictionary, dictionaries)
        if dictionaries and not len(values):  # under a missing struct Arrow leaves the code 0
            return pa.nulls(len(array), values.type)
        if dictionaries:
            return values.take(array.indices)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=kind.ordered)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(pa, array.storage, dictionaries)
    return _plain_nested(pa, array, dictionaries)


def _plain_nested(pa: Any, array: Any, dictionaries: bool) -> Any:
    kind, types = array.type, pa.types
    if types.is_union(kind):
        parts = [_plain(pa, array.field(index), dictionaries) for index in range(kind.num_fields)]
        names = [kind.field(index).name for index in range(kind.num_fields)]
        here = slice(array.offset, array.offset + len(array))  # the arrays' own are of the whole
        codes = pa.array(np.frombuffer(array.buffers()[1], np.int8)[here])
        if kind.mode == "sparse":
            return pa.UnionArray.from_sparse(codes, parts, names, kind.type_codes)
        offsets = pa.array(np.frombuffer(array.buffers()[2], np.int32)[here])
        return pa.UnionArray.from_dense(codes, offsets, parts, names, kind.type_codes)
    if types.is_struct(kind):
        parts = [_plain(pa, array.field(index), dictionaries) for index in range(kind.num_fields)]
        fields = [kind.field(at).with_type(part.type) for at, part in enumerate(parts)]
        missing = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(parts, fields=fields, mask=missing)
    if types.is_map(kind):
        parts = [_plain(pa, part, dictionaries) for part in (array.keys, array.items)]
        fields = [kind.key_field.with_type(parts[0].type), kind.item_field.with_type(parts[1].type)]
        inside = pa.StructArray.from_arrays(parts, fields=fields)
        whole = pa.map_(*fields, keys_sorted=kind.keys_sorted)
        own = 2
    else:
        inside = _plain(pa, array.values, dictionaries)
        field = kind.value_field.with_type(inside.type)
        whole, own = _list_of(pa, kind, field)
    buffers = array.buffers()[:own]
    return pa.Array.from_buffers(
        whole, len(array), buffers, array.null_count, array.offset, children=[inside]
    )


def _list_of(pa: Any, kind: Any, field: Any) -> tuple[Any, int]:
    """Make a kind of list of other values; return it with how many buffers it has itself."""
    types = pa.types
    if types.is_fixed_size_list(kind):
        return pa.list_(field, kind.list_size), 1
    if types.is_list_view(kind):
        return pa.list_view(field), 3
    if types.is_large_list_view(kind):
        return pa.large_list_view(field), 3
    return (pa.large_list if types.is_large_list(kind) else pa.list_)(field), 2
