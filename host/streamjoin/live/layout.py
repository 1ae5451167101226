"""The common schema of a live stream's Arrow tables, whose types become known with values."""

from dataclasses import dataclass
from typing import Any

from streamjoin.errors import InputError
from streamjoin.inputs.files import arrow


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
            If it has other columns, or a column with values of another type.
        """
        other, fields, valued = Layout.of(self._in_order(table, source)), [], []
        for before, now, had, has in zip(
            self.schema, other.schema, self.valued, other.valued, strict=True
        ):
            if before.type != now.type and had and has:
                raise InputError(
                    f"{source}: column {now.name!r} is {now.type} in this batch and was "
                    f"{before.type} in the batches before"
                )
            known = now if has and not had else before
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
            same = column.type == field.type
            nothing = None if same else pa.nulls(len(column), field.type)
            columns.append(column if same else pa.chunked_array([nothing]))
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _in_order(self, table: Any, source: str) -> Any:
        """Return a table with its columns in the order of the others."""
        names = self.schema.names
        if table.column_names == names:
            return table
        if sorted(table.column_names) != sorted(names) or len(set(names)) < len(names):
            raise InputError(f"{source}: this batch has other columns than the batches before")
        return table.select(names)


def _has_value(column: Any) -> bool:
    return bool(column.null_count < len(column))
