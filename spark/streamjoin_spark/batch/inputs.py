"""The inputs of a join on Spark: checked, opened and sampled before anything runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.tuples import Stream
from streamjoin_common.language.arrivals import ArrivalColumn, Arrivals
from streamjoin_common.language.kinds import parse_how
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.selections import Chosen, Selection
from streamjoin_common.language.windows import CountWindow, Window, parse_window
from streamjoin_spark.batch.files import StreamFiles, open_stream, schema_of
from streamjoin_spark.batch.frames import StreamFrame, open_frame
from streamjoin_spark.batch.plan import Side
from streamjoin_spark.batch.rows import RowColumns

SAMPLE_BLOCKS = 16
"""Row groups of a stream that are sampled."""


SAMPLE_ROWS = 1 << 12
"""Rows of each sampled row group."""

PATHS = ("auto", "files", "shuffle")


@dataclass(frozen=True)
class Inputs:
    """What is to be joined and how, checked; files need no Spark for that.

    Attributes
    ----------
    predicate, window
        What joins.
    path : str
        As :func:`distributed_join` is given it.
    partition_tuples : int
        Tuples that a task should have.
    how : str
        The kind of join.
    columns : RowColumns or None
        What joined rows have; None for row numbers.
    opened : tuple of StreamFiles or StreamFrame
        R and S.
    """

    predicate: Predicate
    window: Window
    path: str
    partition_tuples: int
    how: str
    columns: RowColumns | None
    opened: tuple[StreamFiles | StreamFrame, StreamFiles | StreamFrame]


def opened_inputs(
    r: Any,
    s: Any,
    *,
    on: str | list[str] | None,
    band: str | list[str] | None,
    window: Window | str,
    ts: str | None,
    ts_unit: str | None,
    row: str,
    path: str,
    per_task: int,
    how: str = "inner",
    columns: str | Sequence[str] | None = None,
) -> Inputs:
    """Check all that :func:`distributed_join` is given and open its inputs; files need no Spark.

    Raises
    ------
    InputError, UnsupportedError
        As :func:`distributed_join`.
    """
    predicate, how = Predicate.parse(on, band), parse_how(how)
    chosen = parse_window(window) if isinstance(window, str) else window
    if isinstance(chosen, CountWindow):
        raise UnsupportedError(
            f"spark cannot join under window {chosen.text}, only all, tumbling, time"
        )
    if path not in PATHS:
        raise InputError(f"path must be one of {', '.join(PATHS)}, not {path!r}")
    if per_task < 1:
        raise InputError(f"partition_tuples must be at least 1, not {per_task}")
    arrivals = Arrivals.parse(ts, ts_unit, chosen)
    for data, name in ((r, "r"), (s, "s")):
        if not isinstance(data, str | Path) and not hasattr(data, "mapInArrow"):
            kind = f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
            raise InputError(f"{name} must be a path or a DataFrame of Spark's, not a {kind}")
    rows: list[Chosen] = []
    if columns is not None:
        rows = Selection.parse(columns).resolve(_names(r), _names(s), how=how)
    opened = (
        _open(r, "r", row, arrivals.r, (predicate.r_columns, rows)),
        _open(s, "s", row, arrivals.s, (predicate.s_columns, rows)),
    )
    given = RowColumns.of(rows, opened[0].payload, opened[1].payload) if rows else None
    return Inputs(predicate, chosen, path, per_task, how, given, opened)


def _names(data: Any) -> list[str]:
    return list(schema_of(Path(data)).names if isinstance(data, str | Path) else data.columns)


def _open(
    data: Any,
    name: str,
    row: str,
    arrival: ArrivalColumn,
    columns: tuple[list[str], list[Chosen]],
) -> StreamFiles | StreamFrame:
    payload = [each.column for each in columns[1] if each.side == name]
    if isinstance(data, str | Path):  # workers have a working folder of their own
        return open_stream(Path(data).absolute(), columns[0], arrival, payload)
    return open_frame(data, name, row, arrival, columns[0], payload=payload)


def side_of(stream: StreamFiles | StreamFrame) -> Side:
    """Count and sample a stream for the plan."""
    if isinstance(stream, StreamFrame):
        return stream.side()
    blocks = stream.blocks
    count = len(blocks.groups)
    times = np.stack([blocks.first_us, blocks.last_us], axis=1).ravel()
    chosen = np.unique(np.linspace(0, count - 1, min(SAMPLE_BLOCKS, count)).astype(np.int64))
    samples = []
    for block in chosen.tolist():
        part, _ = stream.read_blocks(block, block + 1)
        step = math.ceil(part.rows / SAMPLE_ROWS)
        samples.append(part.slice(0, part.rows) if step <= 1 else _every(part, step))
    if not samples:
        samples = [stream.read_blocks(0, 0)[0]]
    return Side(stream.rows, times, _joined(samples))


def _every(stream: Stream, step: int) -> Stream:
    columns = {name: column[::step] for name, column in stream.columns.items()}
    missing = None if stream.missing is None else stream.missing[::step]
    return Stream(columns, stream.ts[::step], stream.source, missing=missing)


def _joined(streams: list[Stream]) -> Stream:
    columns = {
        name: np.concatenate([stream.columns[name] for stream in streams])
        for name in streams[0].columns
    }
    masks = [
        np.zeros(stream.rows, np.bool_) if stream.missing is None else stream.missing
        for stream in streams
    ]
    missing = np.concatenate(masks)
    ts = np.concatenate([stream.ts for stream in streams])
    return Stream(columns, ts, streams[0].source, missing=missing if missing.any() else None)
