"""Files of the user's own, CSV, Parquet or of a known layout, as workloads.

Rows keep their order, so they must be sorted by arrival already: a workload that silently
differs from its file would be wrong. Nothing here needs Spark: the check of the order is
sequential, and Arrow reads both formats as they are.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import TumblingWindow, parse_window
from streamjoin_datagen.errors import SpecError
from streamjoin_datagen.imports.arrival_times import with_arrivals
from streamjoin_datagen.imports.readers import Reader
from streamjoin_datagen.pairs import table_pairs
from streamjoin_datagen.predicates import check_columns
from streamjoin_datagen.store import (
    STREAMS,
    Outcome,
    file_digest,
    identity,
    staged,
    write_tables,
)

_INT32 = np.iinfo(np.int32)


def tables_identity(
    kind: str,
    paths: dict[str, Path],
    predicate: Predicate,
    ts: str | None,
    *,
    ts_unit: str | None = None,
    layout: str | None = None,
    window: str = "all",
) -> dict[str, Any]:
    """What ``workload.json`` says of an import before it is made.

    Parameters
    ----------
    kind : str
        ``"csv"``, ``"parquet"``, or the family of a layout.
    layout : str, optional
        Name of the layout in its family.

    Raises
    ------
    SpecError
        If a file is missing.
    """
    params: dict[str, Any] = {}
    for stream, path in paths.items():
        if not path.exists():
            raise SpecError(f"there is no file {path}")
        params[stream] = path.name
        params[f"{stream}_sha256"] = file_digest(path)
    read = {"ts": ts, "ts_unit": ts_unit} if ts_unit else {"ts": ts}
    written = {"on": predicate.on, "band": predicate.band}
    return identity(
        f"{paths['r'].stem}-{paths['s'].stem}",
        kind,
        params={**params, **({"layout": layout} if layout else read)},
        seed=None,
        predicate={name: terms for name, terms in written.items() if terms},
        window=window,
    )


def import_tables(
    known: dict[str, Any],
    paths: dict[str, Path],
    out: Path,
    predicate: Predicate,
    arrivals: Arrivals,
    *,
    reader: Reader,
) -> Outcome:
    """Turn two files into a workload.

    Parameters
    ----------
    known : dict
        The workload's :func:`tables_identity`.
    paths : dict of str to Path
        The files of ``"r"`` and ``"s"``.
    arrivals : Arrivals
        Arrival columns: integers, or any Arrow timestamp or duration. By default ``ts`` where the
        files have it; without it they are data at rest.
    reader : callable
        :func:`csv_table`, :func:`parquet_table`, or a layout's.

    Raises
    ------
    SpecError
        If a file cannot be read, lacks a column, or is not sorted by arrival (with the row).
    """
    started = time.monotonic()
    tables = {stream: reader(stream, path) for stream, path in paths.items()}
    tables = _typed_empty_columns(tables, predicate)
    check_columns(predicate, tables, paths)
    if known["kind"] != "parquet":
        tables = _narrowed(tables, predicate)
    tables = with_arrivals(tables, paths, arrivals)
    pairs = None
    if predicate.kind == "equi":
        pairs = _counted(known["window"], tables, predicate)
    with staged(out) as folder:
        size = write_tables(folder, known, tables, pairs)
    rows = sum(table.num_rows for table in tables.values())
    return Outcome(known["name"], "imported", out, rows, size, time.monotonic() - started)


def _counted(window: str, tables: dict[str, pa.Table], predicate: Predicate) -> tuple[str, int]:
    """Count the pairs under the workload's window, which is all or tumbling."""
    columns = {
        "r": [term.r_column for term in predicate.terms],
        "s": [term.s_column for term in predicate.terms],
    }
    chosen = parse_window(window)
    if isinstance(chosen, TumblingWindow):
        for stream in STREAMS:
            numbers = tables[stream].column("ts").to_numpy() // chosen.length_us
            tables = {**tables, stream: tables[stream].append_column("", pa.array(numbers))}
            columns[stream].append("")
    return window, table_pairs(tables["r"], tables["s"], columns["r"], columns["s"])


def _cast(table: pa.Table, column: str, kind: pa.DataType) -> pa.Table:
    index = table.schema.get_field_index(column)
    return table.set_column(index, column, table.column(column).cast(kind))


def _typed_empty_columns(tables: dict[str, pa.Table], predicate: Predicate) -> dict[str, pa.Table]:
    """Give columns without any value a type: their partner's, else string.

    A CSV file of a header alone says nothing about its types.
    """
    typed = dict(tables)
    partners = {
        "r": {term.r_column: term.s_column for term in predicate.terms},
        "s": {term.s_column: term.r_column for term in predicate.terms},
    }
    for stream, other in (("r", "s"), ("s", "r")):
        for field in tables[stream].schema:
            if not pa.types.is_null(field.type):
                continue
            partner = partners[stream].get(field.name)
            kind: pa.DataType = pa.string()
            if partner in tables[other].column_names:
                kind = tables[other].schema.field(partner).type
            elif field.name == "ts":
                kind = pa.int64()
            if pa.types.is_null(kind):
                kind = pa.int32()
            typed[stream] = _cast(typed[stream], field.name, kind)
    return typed


def _narrowed(tables: dict[str, pa.Table], predicate: Predicate) -> dict[str, pa.Table]:
    """Make int32 of compared columns whose integers all fit, as engines carry 32 bits."""
    typed = dict(tables)
    for term in predicate.terms:
        sides = [("r", term.r_column), ("s", term.s_column)]
        columns = [tables[stream].column(name) for stream, name in sides]
        if all(pa.types.is_int64(column.type) and _fits(column) for column in columns):
            for stream, name in sides:
                typed[stream] = _cast(typed[stream], name, pa.int32())
    return typed


def _fits(column: "pa.ChunkedArray[Any]") -> bool:
    if not len(column):
        return True
    low, high = pc.min(column).as_py(), pc.max(column).as_py()
    return bool(_INT32.min <= low and high <= _INT32.max)
