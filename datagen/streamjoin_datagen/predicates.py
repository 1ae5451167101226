"""Join conditions of imported workloads, held against the tables: refused as joins refuse them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin_common.language.predicates import Predicate, check_kinds
from streamjoin_datagen.errors import SpecError


def check_columns(
    predicate: Predicate, tables: dict[str, pa.Table], paths: dict[str, Path]
) -> None:
    """Check that the compared columns are there, are comparable and hold no empty value.

    Raises
    ------
    InputError
        Naming the file and the column, and the row of an empty value.
    """
    for term in predicate.terms:
        r_kind = _kind(term.kind, tables["r"], paths["r"], term.r_column)
        s_kind = _kind(term.kind, tables["s"], paths["s"], term.s_column)
        check_kinds(term, r_kind, s_kind, str(paths["r"]), str(paths["s"]))


def _kind(term: str, table: pa.Table, path: Path, column: str) -> str:
    """Say what a column holds, in the words of :func:`check_kinds`."""
    if column not in table.column_names:
        have = ", ".join(table.column_names)
        raise SpecError(f"{path}: there is no column {column!r}; it has {have}")
    values = table.column(column)
    kinds = {
        "integer": pa.types.is_integer(values.type),
        "floating-point": pa.types.is_floating(values.type),
        "string": pa.types.is_string(values.type) or pa.types.is_large_string(values.type),
    }
    kind = next((name for name, holds in kinds.items() if holds), "")
    if term == "equi" and kind not in {"integer", "string"}:
        raise SpecError(
            f"{path}: column {column!r} of --on must be integers or strings, not {values.type}"
        )
    if term == "band" and kind not in {"integer", "floating-point"}:
        raise SpecError(f"{path}: column {column!r} of --band must be numbers, not {values.type}")
    if values.null_count:
        row = pc.index(values.is_null(), value=True).as_py()
        raise SpecError(f"{path}: column {column!r} is empty in row {row}: remove such rows")
    return kind
