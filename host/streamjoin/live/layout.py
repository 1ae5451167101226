"""The common schema of a live stream's Arrow tables, whose types become known with values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamjoin.errors import InputError
from streamjoin.inputs.files import arrow

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Layout:
    """Columns of the tables so far.

    Attributes
    ----------
    schema : pyarrow.Schema
        Their names and types.
    valued : tuple of bool
        For each column, whether it has had a value: until then its type is a guess.
    """

    schema: Any
    valued: tuple[bool, ...]

    @classmethod
    def of(cls, table: Any) -> "Layout":
        """Return the layout of one table."""
        return cls(table.schema, tuple(_has_value(column) for column in table.columns))

    def with_table(self, table: Any, source: str) -> "Layout":
        """Return the layout with one more table.

        Raises
        ------
        InputError
            If it has other columns, or a column with values of a type that neither holds the
            values of the type before nor is held by it, as 32-bit integers are by 64-bit ones.
        """
        other, fields, valued = Layout.of(self._in_order(table, source)), [], []
        for before, now, had, has in zip(
            self.schema, other.schema, self.valued, other.valued, strict=True
        ):
            known = now if has and not had else before
            if before.type != now.type and had and has:
                wide = _wider(arrow(), before.type, now.type)
                if wide is None:
                    raise InputError(
                        f"{source}: column {now.name!r} is {now.type} in this batch and was "
                        f"{before.type} in the batches before: cast all batches to one type"
                    )
                known = before.with_type(wide)
            both = before.nullable or now.nullable or before.type != now.type
            fields.append(known.with_nullable(both))
            valued.append(had or has)
        return Layout(arrow().schema(fields, self.schema.metadata), tuple(valued))

    def fit(self, table: Any) -> Any:
        """Convert one of the tables to this schema."""
        if table.schema.equals(self.schema, check_metadata=True):
            return table
        pa, columns = arrow(), []
        for field, column in zip(self.schema, self._in_order(table, "").columns, strict=True):
            if column.type == field.type:
                columns.append(column)
            elif _has_value(column) or _are_real(column.type, field.type):
                columns.append(column.cast(field.type))
            else:
                columns.append(pa.chunked_array([pa.nulls(len(column), field.type)]))
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _in_order(self, table: Any, source: str) -> Any:
        """Return a table with its columns in the order of the others."""
        names = self.schema.names
        if table.column_names == names:
            return table
        if sorted(table.column_names) != sorted(names) or len(set(names)) < len(names):
            raise InputError(f"{source}: this batch has {_difference(names, table.column_names)}")
        return table.select(names)


def _difference(before: list[str], now: list[str]) -> str:
    """Name the first columns by which two lists differ, of the batches before and of this one."""
    lost = next((name for name in before if name not in now), None)
    new = next((name for name in now if name not in before), None)
    if lost is not None:
        instead = f", but a column {new!r}" if new is not None else ""
        return f"no column {lost!r}, which the batches before had{instead}"
    if new is not None:
        return f"a column {new!r} that the batches before did not have"
    for name in before:
        if now.count(name) != before.count(name):
            return (
                f"another number of columns {name!r}, {now.count(name)} and not "
                f"{before.count(name)} as the batches before"
            )
    name = next(name for name in before if before.count(name) > 1)
    return f"its columns in another order than the batches before, and {name!r} more than once"


def _are_real(*types: Any) -> bool:
    """Say whether all types are of floating-point numbers, of which NaN stays one."""
    return all(map(arrow().types.is_floating, types))


def _has_value(column: Any) -> bool:
    """Say whether a column has a value; a floating-point number that is no number is none."""
    pa = arrow()
    if pa.types.is_floating(column.type) and column.type != pa.float16():
        import pyarrow.compute as pc

        column = pc.if_else(pc.is_nan(column), None, column)
    return bool(column.null_count < len(column))


def _wider(pa: Any, one: Any, other: Any) -> Any:
    """Return the type that holds every value of two types, or None."""
    schemas = [pa.schema([("column", kind)]) for kind in (one, other)]
    try:
        wide = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None
    return wide if all(_holds(pa.types, wide, kind) for kind in (one, other)) else None


def _holds(types: Any, wide: Any, kind: Any) -> bool:
    """Say whether a type holds every value of another one, so that casts cannot fail."""
    if wide == kind or types.is_null(kind):
        return True
    families: tuple[Callable[[Any], bool], ...] = (
        types.is_signed_integer,
        types.is_unsigned_integer,
        types.is_floating,
        lambda each: types.is_string(each) or types.is_large_string(each),
        lambda each: types.is_binary(each) or types.is_large_binary(each),
    )
    if any(is_of(wide) and is_of(kind) for is_of in families):
        return True
    if types.is_decimal(wide) and types.is_decimal(kind):
        room = wide.precision - wide.scale >= kind.precision - kind.scale
        return bool(room and wide.scale >= kind.scale)
    inside = range(kind.num_fields) if kind.num_fields == wide.num_fields else ()
    return bool(inside) and all(
        _holds(types, wide.field(index).type, kind.field(index).type) for index in inside
    )
