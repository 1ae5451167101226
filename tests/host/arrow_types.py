"""A column of every type that Arrow can make, each of :data:`ROWS` values."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

ROWS = 4
DAY = datetime.date(2020, 2, 29)
STRINGS = ["a", "", "longer than the twelve bytes of a view", None]
NUMBERS = [1, 2, 3, None]
EXAMPLES: dict[Any, list[Any]] = {
    pa.null(): [None] * ROWS,
    pa.bool_(): [True, False, True, None],
    pa.float16(): [1.0, 2.0, 3.0, None],
    pa.float32(): [1.5, 2.5, 3.5, None],
    pa.float64(): [1.5, 2.5, 3.5, None],
    pa.string(): STRINGS,
    pa.large_string(): STRINGS,
    pa.string_view(): STRINGS,
    pa.binary(3): [b"abc", b"def", b"ghi", None],
    pa.date32(): [DAY, DAY, DAY, None],
    pa.date64(): [DAY, DAY, DAY, None],
    pa.month_day_nano_interval(): [(1, 2, 3), (4, 5, 6), (7, 8, 9), None],
}
for _kind in (pa.int8, pa.int16, pa.int32, pa.int64, pa.uint8, pa.uint16, pa.uint32, pa.uint64):
    EXAMPLES[_kind()] = NUMBERS
for _bytes in (pa.binary(), pa.large_binary(), pa.binary_view()):
    EXAMPLES[_bytes] = [None if text is None else text.encode() for text in STRINGS]
for _decimal in (pa.decimal32(5, 2), pa.decimal64(9, 2), pa.decimal128(20, 2), pa.decimal256(50)):
    EXAMPLES[_decimal] = [Decimal(1), Decimal(2), Decimal(3), None]
for _unit in ("s", "ms", "us", "ns"):
    clock = pa.time32(_unit) if _unit in {"s", "ms"} else pa.time64(_unit)
    for _time in (pa.timestamp(_unit), pa.timestamp(_unit, "UTC"), pa.duration(_unit), clock):
        EXAMPLES[_time] = NUMBERS

INSIDE = [pa.int32(), pa.string(), pa.string_view(), pa.binary_view()]


def _made(kind: Any, values: list[Any]) -> Any:
    if pa.types.is_temporal(kind) and not pa.types.is_date(kind) and values is NUMBERS:
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return pa.array(values, kind)


def _runs(values: Any) -> Any:
    """Three runs in four rows; the last but one value has two."""
    return pa.RunEndEncodedArray.from_arrays(pa.array([1, 3, 4], pa.int32()), values)


def _around(values: Any) -> Iterator[Any]:
    """All types that hold others, around these four values."""
    kind, indices = values.type, pa.array([2, 0, 1, None], pa.int8())
    coded = pa.DictionaryArray.from_arrays(indices, values.slice(0, 3))
    yield coded
    yield _runs(values.slice(1))
    first, second, third = values[0].as_py(), values[1].as_py(), values[2].as_py()
    lists = [[first], [second, None, third], [], None]
    for list_of in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view):
        yield pa.array(lists, list_of(kind))
    yield pa.array([[first, None], [second, third], [third, first], None], pa.list_(kind, 2))
    structs = [{"x": first}, {"x": None}, {"x": second}, None]
    yield pa.array(structs, pa.struct([("x", kind)]))
    yield pa.array([[("k", first)], [], [("l", None)], None], pa.map_(pa.string(), kind))
    codes = pa.array([0, 1, 0, 0], pa.int8())
    flags = pa.array([True, False, True, False])
    yield pa.UnionArray.from_sparse(codes, [values, flags])
    offsets = pa.array([0, 0, 1, 2], pa.int32())
    yield pa.UnionArray.from_dense(codes, offsets, [values, flags.slice(0, 1)])
    inside = pa.StructArray.from_arrays([coded, _runs(values.slice(1))], ["coded", "runs"])
    yield inside
    yield pa.ListArray.from_arrays(pa.array([0, 1, 3, 4, 4], pa.int32()), inside)
    yield pa.array([[[first]], [[second, None], []], [], None], pa.list_(pa.list_(kind)))


def _extensions() -> Iterator[Any]:
    words = pa.array([b"a" * 16, b"b" * 16, b"c" * 16, None], pa.binary(16))
    yield pa.ExtensionArray.from_storage(pa.uuid(), words)
    yield pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, 1, None], pa.int8()))
    for kind in (pa.string(), pa.string_view()):
        plain = pa.array(['"a"', "2", "[3]", None], kind)
        yield pa.ExtensionArray.from_storage(pa.json_(kind), plain)
        yield pa.ExtensionArray.from_storage(pa.opaque(kind, "type", "vendor"), plain)
    tensors = pa.array([[1, 2], [3, 4], [5, 6], None], pa.list_(pa.int32(), 2))
    yield pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), [2]), tensors)


def _all() -> Iterator[Any]:
    yield from (_made(kind, values) for kind, values in EXAMPLES.items())
    for kind in INSIDE:
        yield from _around(_made(kind, EXAMPLES[kind]))
    yield from _extensions()


COLUMNS = {f"{number}: {column.type}": column for number, column in enumerate(_all())}
