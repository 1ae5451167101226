"""The join as a streaming query: exactly once, with a state that the window bounds.

Spark cuts the streams into numbered batches and remembers in its checkpoint which input each
holds. This module keeps the tuples that later ones may still meet, and hands each batch to the
kernels: for every class of keys, what was kept is read and joined with the class's new tuples, and
pairs and what is to be kept are written. A batch's pairs become visible by one rename, and the
batch is done when its record is written; until then it can be done again from the state before it,
which gives the same pairs. After a crash Spark repeats its last batch, so
every pair is there exactly once.

A pair is found when the second of its tuples is processed, in whatever order they come:
new R tuples meet S's state and its new tuples, new S tuples meet R's state. The watermark is the
arrival time that both streams have reached, less the delay that is allowed; tuples behind it are
late, are left out and are counted. A tuple of R is kept while ``ts + T_R`` (or the end of its
tumbling window) is ahead of the watermark, as nothing that is not late can meet it later.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin.errors import InputError
from streamjoin_common import storage
from streamjoin_common.language.arrivals import ArrivalColumn
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window
from streamjoin_spark.batch.classes import Classes
from streamjoin_spark.batch.frames import open_frame
from streamjoin_spark.batch.local import NO_TIME
from streamjoin_spark.batch.plan import choose_classes
from streamjoin_spark.batch.worker import load
from streamjoin_spark.streaming.checks import Asked, check_folders
from streamjoin_spark.streaming.source import Arrived, Folders, Rows
from streamjoin_spark.streaming.state import (
    FOLDER,
    FORMAT,
    classes_from,
    classes_to,
    forget,
    kept_folder,
    last_record,
    record_path,
    write_record,
)
from streamjoin_spark.streaming.step import SideFiles, Step, open_side

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

DEFAULT_CLASSES = 8


@dataclass(frozen=True)
class StreamingJoin:
    """What every batch of a streaming join needs to know.

    Attributes
    ----------
    predicate, window
        What joins; the window is tumbling or a time window.
    described : dict of str to str
        What a checkpoint is of: it goes on with the same alone.
    delay_us : int
        How much later than a younger tuple of its stream a tuple may come.
    classes : int
        Classes of keys: tasks of each batch.
    out, state : Path
        Where pairs go, a folder a batch, and where the state lies.
    names : tuple of tuple of str
        Row, arrival and join columns, of R and of S.
    arrived : callable
        Makes of a batch's DataFrame what it brings.
    heard : callable
        Told the record of every batch when it is done.
    """

    predicate: Predicate
    window: Window
    described: dict[str, str]
    delay_us: int
    classes: int
    out: Path
    state: Path
    names: tuple[tuple[str, ...], tuple[str, ...]]
    arrived: "Callable[[DataFrame], Arrived]"
    heard: Callable[[dict[str, Any]], None] = lambda _: None

    def process(self, batch: "DataFrame", number: int) -> None:
        """Join one batch; nothing happens if it was done before."""
        if record_path(self.state, number).exists():
            return
        before = last_record(self.state)
        arrived = self.arrived(batch)
        classes = self._classes(arrived, before)
        reports = []
        # Pairs that are there were named before a crash: they are the same.
        pairs, kept = self.out / f"batch={number}", kept_folder(self.state, number)
        with (
            storage.new_folder(pairs, keep=lambda _: True, empty=False) as draft,
            storage.new_folder(kept) as after,
        ):
            if classes is not None:
                step = Step(
                    self.predicate,
                    self.window,
                    classes,
                    int(before["watermark_us"]),
                    self.names,
                    kept_folder(self.state, int(before["batch"])),
                    after,
                    draft,
                )
                reports = arrived.run(step, int(before["kept"]))
        self._finish(number, before, classes, reports)

    def _classes(self, arrived: "Arrived", before: dict[str, Any]) -> Classes | None:
        """Return the classes chosen by the first batch that held a tuple."""
        if before["classes"] is not None:
            return classes_from(before["classes"], self.predicate)
        known = arrived.sides()
        if not any(side.rows for side in known):
            return None
        return choose_classes(known[0], known[1], self.predicate, self.classes)

    def _finish(
        self,
        number: int,
        before: dict[str, Any],
        classes: Classes | None,
        reports: list[dict[str, Any]],
    ) -> None:
        """Make the batch done, whose pairs are visible, then forget the state before it."""
        lasts = [
            max([before[name], *(row[name] for row in reports if row[name] is not None)])
            for name in ("r_last", "s_last")
        ]
        reached = min(lasts)
        watermark = NO_TIME if reached == NO_TIME else reached - self.delay_us
        digest = sum(int(row["digest"], 16) for row in reports) % (1 << 64)
        record = {
            "format": FORMAT,
            "batch": number,
            **self.described,
            "classes": None if classes is None else classes_to(classes),
            "r_last": lasts[0],
            "s_last": lasts[1],
            "watermark_us": max(int(before["watermark_us"]), watermark),
            "pairs": sum(row["pairs"] for row in reports),
            "digest": f"{digest:016x}",
            "late": sum(row["late"] for row in reports),
            "kept": sum(row["kept"] for row in reports),
            "pairs_so_far": before["pairs_so_far"] + sum(row["pairs"] for row in reports),
            "late_so_far": before["late_so_far"] + sum(row["late"] for row in reports),
        }
        write_record(self.state, record)
        forget(self.state, number)
        self.heard(record)


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
    ts: str = "ts",
    row: str = "row",
    classes: int = DEFAULT_CLASSES,
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
        How much later than a younger tuple of its stream a tuple may come; later ones are counted
        and left out.
    ts, row : str
        The arrival column and the column of row numbers.
    classes : int
        Classes of keys, each a task of every batch; fixed by the first batch.

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
    what = Asked(on, band, window, row, ts)
    sides = []
    for frame, name, names in zip((r, s), ("r", "s"), what.names, strict=True):
        if not frame.isStreaming:
            raise InputError(f"{name}: is no streaming DataFrame; join it with distributed_join")
        arrival = ArrivalColumn(names[1], named=True)
        sides.append(open_frame(frame, name, row, arrival, names[2:]))
    what.check_types(sides[0].nothing, sides[1].nothing)
    return _writer(what, Rows(sides[0], sides[1]), (out, checkpoint), delay_us, classes)


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
    ts: str = "ts",
    row: str = "row",
    classes: int = DEFAULT_CLASSES,
    most_files: int | None = None,
    heard: Callable[[dict[str, Any]], None] = lambda _: None,
) -> "DataStreamWriter":
    """Join two folders of Parquet files as they grow, without a row passing through the JVM.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Where it runs.
    r, s : Path
        Folders, each with a file at least, which tells the columns. Files are moved into them
        whole, and stay as they are.
    out, checkpoint, on, band, window, delay_us, ts, row, classes
        As for :func:`stream_join`.
    most_files : int, optional
        Files of each side in a batch at most.
    heard : callable taking dict
        Told the record of every batch when it is done.

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
        raise InputError(f"the most files of a batch must be at least 1, not {most_files}")
    what, sides = opened_folders(
        r, s, out=out, checkpoint=checkpoint, on=on, band=band, window=window, ts=ts, row=row
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
    ts: str,
    row: str,
) -> tuple["Asked", tuple[SideFiles, SideFiles]]:
    """Check what :func:`stream_join_files` is given and look into its folders, without Spark.

    Raises
    ------
    InputError, UnsupportedError
        As :func:`stream_join_files`.
    """
    what = Asked(on, band, window, row, ts)
    what.described |= {"r": str(r.absolute()), "s": str(s.absolute())}
    check_folders(what, out, checkpoint)
    sides = open_side(r, "r", what.names[0]), open_side(s, "s", what.names[1])
    what.check_types(sides[0].read().stream, sides[1].read().stream)
    return what, sides


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
    state = checkpoint.absolute() / FOLDER
    join = StreamingJoin(
        what.predicate,
        what.window,
        what.described,
        delay_us,
        classes,
        out.absolute(),
        state,
        what.names,
        source.arrived,
        heard,
    )
    writer = source.stream().writeStream.foreachBatch(join.process)
    return writer.option("checkpointLocation", str(checkpoint.absolute()))
