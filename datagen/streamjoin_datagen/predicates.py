"""Join conditions of imported workloads, read from the command line and checked on tables."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin_datagen.errors import SpecError


@dataclass(frozen=True)
class Predicate:
    """Pairs of columns that are compared, and the texts they were read from.

    Attributes
    ----------
    kind : str
        ``"on"`` or ``"band"``.
    texts : tuple of str
        One condition each, as ``workload.json`` has them.
    r_columns, s_columns : tuple of str
        The columns of each condition.
    """

    kind: str
    texts: tuple[str, ...]
    r_columns: tuple[str, ...]
    s_columns: tuple[str, ...]


def parse_predicate(on: str | None, band: Sequence[str]) -> Predicate:
    """Read ``--on COL[=COL][,COL...]`` or ``--band COL=COL:LO:HI``.

    Raises
    ------
    SpecError
        If not exactly one of both is given, or a text is not of that form.

    Examples
    --------
    >>> parse_predicate("k,a=b", []).s_columns
    ('k', 'b')
    """
    if (on is None) == (not band):
        raise SpecError("an import needs either --on COL[=COL][,COL...] or --band COL=COL:LO:HI")
    if on is not None:
        texts = tuple(on.split(","))
        sides = [text.partition("=") for text in texts]
        pairs = [(left, right if equals else left) for left, equals, right in sides]
        if not all(left and right for left, right in pairs):
            raise SpecError(f"--on must be COL[=COL][,COL...], not {on!r}")
        return _predicate("on", texts, pairs)
    pairs = []
    for text in band:
        columns, *widths = text.split(":")
        left, _, right = columns.partition("=")
        if not (left and right and len(widths) == 2 and all(map(_is_width, widths))):
            raise SpecError(f"--band must be COL=COL:LO:HI, not {text!r}")
        pairs.append((left, right))
    return _predicate("band", tuple(band), pairs)


def _predicate(kind: str, texts: tuple[str, ...], pairs: list[tuple[str, str]]) -> Predicate:
    left, right = zip(*pairs, strict=True)
    return Predicate(kind, texts, left, right)


def _is_width(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def check_columns(
    predicate: Predicate, tables: dict[str, pa.Table], paths: dict[str, Path]
) -> None:
    """Check that the compared columns are there, are comparable and hold no empty value.

    Raises
    ------
    SpecError
        Naming the file and the column, and the row of an empty value.
    """
    sides = {"r": predicate.r_columns, "s": predicate.s_columns}
    for stream, columns in sides.items():
        for column in columns:
            _check_column(predicate.kind, tables[stream], paths[stream], column)
    for left, right in zip(predicate.r_columns, predicate.s_columns, strict=True):
        types = tables["r"].schema.field(left).type, tables["s"].schema.field(right).type
        if _is_text(types[0]) != _is_text(types[1]):
            raise SpecError(
                f"{paths['r']}: column {left!r} is {types[0]} and cannot be compared with "
                f"{right!r} of {paths['s']}, which is {types[1]}"
            )


def _check_column(kind: str, table: pa.Table, path: Path, column: str) -> None:
    if column not in table.column_names:
        have = ", ".join(table.column_names)
        raise SpecError(f"{path}: there is no column {column!r}; it has {have}")
    found = table.column(column)
    whole = pa.types.is_integer(found.type)
    if kind == "on" and not (whole or _is_text(found.type)):
        raise SpecError(
            f"{path}: column {column!r} of --on must be whole numbers or text, not {found.type}"
        )
    if kind == "band" and not (whole or pa.types.is_floating(found.type)):
        raise SpecError(f"{path}: column {column!r} of --band must be numbers, not {found.type}")
    if found.null_count:
        row = pc.index(found.is_null(), value=True).as_py()
        raise SpecError(f"{path}: column {column!r} is empty in row {row}: remove such rows")


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)
