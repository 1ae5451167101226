"""The join as a streaming query: exactly once, with a state that the window bounds.

Spark cuts the streams into numbered batches and remembers in its checkpoint which input each
holds. This module keeps the tuples that later ones may still meet, and hands each batch to the
kernels: for every class of keys, what was kept is read and joined with the class's new tuples, and
pairs and what is to be kept are written. A batch's pairs become visible by one rename, and the
batch is done when its record is written; until then it can be done again from the state before it,
which gives the same pairs. After a crash Spark repeats its last batch, so every pair is there
exactly once.

A pair is produced when the second of its tuples is processed, in whatever order they arrive:
new R tuples meet S's state and its new tuples, new S tuples meet R's state. The watermark is the
arrival time that both streams have reached, less the delay that is allowed; tuples behind it are
late, dropped and counted. A tuple of R is kept while ``ts + T_R`` (or the end of its
tumbling window) is ahead of the watermark, as nothing that is not late can meet it later. For kinds
other than ``inner`` it is then decided whether it has a partner
(:mod:`~streamjoin_spark.streaming.decided`).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin.errors import InputError
from streamjoin_common.language.windows import Window
from streamjoin_spark.batch.files import schema_of
from streamjoin_spark.batch.frames import open_frame
from streamjoin_spark.batch.rows import RowColumns
from streamjoin_spark.batch.worker import load
from streamjoin_spark.streaming.batches import StreamingJoin
from streamjoin_spark.streaming.checks import Asked, check_folders
from streamjoin_spark.streaming.source import Folders, Rows
from streamjoin_spark.streaming.state import FOLDER
from streamjoin_spark.streaming.step import SideFiles, first_file, open_side

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

DEFAULT_CLASSES = 8


def stream_join(
    r: "DataFrame",
    s: "DataFrame",
    *,
    out: Path,
    checkpoint: Path,
    on: str | list[str] | None = None,
    band: str | list[str] | None = None,
    window: Window | str,
    delay_us: int = 0,
    ts: str | None = None,
    ts_unit: str | None = None,
    row: str = "row",
    classes: int = DEFAULT_CLASSES,
    columns: str | Sequence[str] | None = None,
    how: str = "inner",
) -> "DataStreamWriter":
    """Join two streaming DataFrames, of any sources.

    Parameters
    ----------
    r, s : DataFrame
        Streaming; each with a column of row numbers, an arrival column whose
        times are after the epoch, and the join columns.
    out : Path
        Folder that receives ``batch=N/part-*.parquet``: ``r_row, s_row, ts``.
    checkpoint : Path
        Folder of Spark's checkpoint and of the state.
    on, band : str or list of str, optional
        The predicate, as :func:`streamjoin.join` takes it.
    window : Window or str
        ``tumbling:DUR`` or ``time:DUR[,DUR]``.
    delay_us : int
        How much later than a younger tuple of its stream a tuple may arrive; later ones are counted
        and dropped.
    ts, ts_unit : str, optional
        The arrival columns and the unit of integers, as :func:`streamjoin.join` takes them.
    row : str
        The column of row numbers.
    classes : int
        Classes of keys, each a task of every batch; fixed by the first batch.
    columns : str or sequence of str, optional
        Columns of joined rows, as ``"r.a,s.b"`` or ``"*"``; row numbers and time by default.
    how : str
        ``inner``, ``left``, ``right``, ``full``, ``semi`` or ``anti``. A tuple without a partner is
        reported once the watermark has passed the time from which nothing can give it one; with
        ``semi`` a tuple once the watermark has passed its first pair.

    Returns
    -------
    pyspark.sql.streaming.DataStreamWriter
        To be given a trigger, and started.

    Raises
    ------
    InputError
        If columns or folders are not what they must be, or the checkpoint is of another join.
    UnsupportedError
        If the window bounds no state.
    """
    what = Asked(on, band, window, row, ts, ts_unit=ts_unit, how=how)
    source = _opened_frames(what, r, s, columns)
    return _writer(what, source, (out, checkpoint), delay_us, classes)


def _opened_frames(
    what: Asked, r: "DataFrame", s: "DataFrame", columns: str | Sequence[str] | None
) -> Rows:
    """Check two streaming DataFrames."""
    for frame, name in ((r, "r"), (s, "s")):
        if not frame.isStreaming:
            raise InputError(f"{name}: is no streaming DataFrame; join it with distributed_join")
    what.choose(columns, r.columns, s.columns)
    arrivals = (what.arrivals.r, what.arrivals.s)
    sides = [
        open_frame(frame, name, names[0], arrival, names[2:], payload=what.payload(name))
        for frame, name, names, arrival in zip(
            (r, s), ("r", "s"), what.names, arrivals, strict=True
        )
    ]
    what.check_types(sides[0].nothing, sides[1].nothing)
    return Rows(sides[0], sides[1])


def stream_join_files(
    spark: "SparkSession",
    r: Path,
    s: Path,
    *,
    out: Path,
    checkpoint: Path,
    on: str | list[str] | None = None,
    band: str | list[str] | None = None,
    window: Window | str,
    delay_us: int = 0,
    ts: str | None = None,
    ts_unit: str | None = None,
    row: str = "row",
    classes: int = DEFAULT_CLASSES,
    columns: str | Sequence[str] | None = None,
    how: str = "inner",
    most_files: int | None = None,
    heard: Callable[[dict[str, Any]], None] = lambda _: None,
) -> "DataStreamWriter":
    """Join two folders of Parquet files as they grow, without a row passing through the JVM.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Where it runs.
    r, s : Path
        Folders, each with at least one file, which gives the columns. Files are moved into them
        whole, and never change.
    out, checkpoint, on, band, window, delay_us, ts, ts_unit, row, classes, columns, how
        As for :func:`stream_join`.
    most_files : int, optional
        Maximum files of each side in a batch.
    heard : callable taking dict
        Is called with the record of every batch when it is done.

    Returns
    -------
    pyspark.sql.streaming.DataStreamWriter
        To be given a trigger, and started.

    Raises
    ------
    InputError, UnsupportedError
        As :func:`stream_join`.
    """
    if most_files is not None and most_files < 1:
        raise InputError(f"the maximum files of a batch must be at least 1, not {most_files}")
    what, sides = opened_folders(
        r,
        s,
        out=out,
        checkpoint=checkpoint,
        on=on,
        band=band,
        window=window,
        ts=ts,
        ts_unit=ts_unit,
        row=row,
        columns=columns,
        how=how,
    )
    load()
    folders = Folders(spark, r, s, sides, most_files)
    return _writer(what, folders, (out, checkpoint), delay_us, classes, heard=heard)


def opened_folders(
    r: Path,
    s: Path,
    *,
    out: Path,
    checkpoint: Path,
    on: str | list[str] | None,
    band: str | list[str] | None,
    window: Window | str,
    ts: str | None,
    ts_unit: str | None,
    row: str,
    columns: str | Sequence[str] | None,
    how: str,
    ending: bool = False,
) -> tuple["Asked", tuple[SideFiles, SideFiles]]:
    """Check what :func:`stream_join_files` is given and look into its folders, without Spark.

    Raises
    ------
    InputError, UnsupportedError
        As :func:`stream_join_files`.
    """
    what = Asked(on, band, window, row, ts, ts_unit=ts_unit, how=how)
    what.described |= {"r": str(r.absolute()), "s": str(s.absolute())}
    files = first_file(r, "r"), first_file(s, "s")
    what.choose(columns, schema_of(files[0]).names, schema_of(files[1]).names)
    check_folders(what, out, checkpoint, ending=ending)
    sides = (
        open_side(files[0], "r", what.names[0], what.arrivals.r, what.payload("r")),
        open_side(files[1], "s", what.names[1], what.arrivals.s, what.payload("s")),
    )
    what.check_types(sides[0].read().stream, sides[1].read().stream)
    return what, sides


def end_streams(
    r: "Path | DataFrame",
    s: "Path | DataFrame",
    *,
    out: Path,
    checkpoint: Path,
    heard: Callable[[dict[str, Any]], None] = lambda _: None,
    **asked: Any,
) -> dict[str, Any]:
    """End both streams of a query that has stopped: report the tuples that still wait, once.

    The rows are then those of all that has arrived. The checkpoint takes no more tuples.

    Parameters
    ----------
    r, s : Path or DataFrame
        The folders of :func:`stream_join_files`, or the DataFrames of :func:`stream_join`.
    out, checkpoint : Path
        Its folders.
    heard : callable taking dict
        Is called with the record of the last batch when it is done.
    **asked
        What else the query was given of ``on``, ``band``, ``window``, ``ts``, ``ts_unit``, ``row``,
        ``columns`` and ``how``.

    Returns
    -------
    dict
        The record of the last batch.

    Raises
    ------
    InputError
        If the checkpoint is of another join, or a batch has been begun and is not done.
    """
    asked = {**_DEFAULTS, **asked}
    source: Rows | Folders
    if isinstance(r, Path) and isinstance(s, Path):
        what, sides = opened_folders(r, s, out=out, checkpoint=checkpoint, ending=True, **asked)
        source = Folders(None, r, s, sides, None)
    else:
        columns = asked.pop("columns")
        what = Asked(**asked)
        source = _opened_frames(what, r, s, columns)  # type: ignore[arg-type]  # not paths, so frames
        check_folders(what, out, checkpoint, ending=True)
    return _joined(what, source, (out, checkpoint), heard=heard).end()


_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("on", "band", "ts", "ts_unit", "columns")),
    "row": "row",
    "how": "inner",
}
"""What a query is given by default."""


def _joined(
    what: Asked,
    source: Rows | Folders,
    folders: tuple[Path, Path],
    delay_us: int = 0,
    classes: int = DEFAULT_CLASSES,
    *,
    heard: Callable[[dict[str, Any]], None] = lambda _: None,
) -> StreamingJoin:
    out, checkpoint = folders
    payload = source.payload
    return StreamingJoin(
        what.predicate,
        what.window,
        what.described,
        delay_us,
        classes,
        out.absolute(),
        checkpoint.absolute() / FOLDER,
        what.names,
        RowColumns.of(what.rows, *payload) if what.rows else None,
        payload,
        what.how,
        source.arrived,
        heard,
    )


def _writer(
    what: Asked,
    source: Rows | Folders,
    folders: tuple[Path, Path],
    delay_us: int,
    classes: int,
    *,
    heard: Callable[[dict[str, Any]], None] = lambda _: None,
) -> "DataStreamWriter":
    out, checkpoint = folders
    if classes < 1 or delay_us < 0:
        raise InputError(f"classes must be at least 1, and the delay not below 0: {classes}")
    check_folders(what, out, checkpoint)
    join = _joined(what, source, folders, delay_us, classes, heard=heard)
    writer = source.stream().writeStream.foreachBatch(join.process)
    return writer.option("checkpointLocation", str(checkpoint.absolute()))
