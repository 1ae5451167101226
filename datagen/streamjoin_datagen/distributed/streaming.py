"""The join as a streaming query: exactly once, with a state that the window bounds.

Spark cuts the streams into numbered batches and remembers in its checkpoint which input each
holds. This module keeps the tuples that later ones may still meet, and hands each batch to the
kernels in one job: its tuples are sent to classes of keys, and the worker of a class reads the
class's state, joins, writes pairs and the new state, and reports. A batch's pairs become visible
by one rename, and the batch is done when its record is written; until then it can be done again
from the state before it, which gives the same pairs. After a crash Spark repeats its last batch, so
every pair is there exactly once.

A pair is found when the second of its tuples is processed, in whatever order they come:
new R tuples meet S's state and its new tuples, new S tuples meet R's state. The watermark is the
arrival time that both streams have reached, less the delay that is allowed; tuples behind it are
late, are left out and are counted. A tuple of R is kept while ``ts + T_R`` (or the end of its
tumbling window) is ahead of the watermark, as nothing that is not late can meet it later.
"""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.inputs import comparable, r_columns, s_columns
from streamjoin.predicates import Band, Predicate
from streamjoin.tuples import Int64s
from streamjoin.windows import (
    AllWindow,
    CountWindow,
    TimeWindow,
    TumblingWindow,
    Window,
    parse_window,
)
from streamjoin_datagen.distributed.classes import Classes, OneClass, Radix, Ranges
from streamjoin_datagen.distributed.frames import StreamFrame, open_frame, received
from streamjoin_datagen.distributed.join import collected
from streamjoin_datagen.distributed.local import NO_TIME, join_rows
from streamjoin_datagen.distributed.partition import Partitioning
from streamjoin_datagen.distributed.parts import Batch, write_part
from streamjoin_datagen.distributed.plan import choose_classes
from streamjoin_datagen.distributed.worker import Tuples, settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FORMAT = 1
R, S, BEAT = 0, 1, 2
"""Sides of what is sent to a class; the last is sent to every class, so that all take part."""

DEFAULT_CLASSES = 8
FOLDER = "streamjoin"
"""Where the state lies in the query's checkpoint folder."""

_REPORT = "task long, pairs long, digest string, late long, kept long, r_last long, s_last long"
_REPORT_TYPES: list[tuple[str, pa.DataType]] = [
    (name, pa.string() if kind == "string" else pa.int64())
    for name, kind in (field.split() for field in _REPORT.split(", "))
]
_REPORT_SCHEMA = pa.schema(_REPORT_TYPES)


@dataclass(frozen=True)
class StreamingJoin:
    """What every batch of a streaming join needs to know.

    Attributes
    ----------
    predicate, window
        What joins; the window is tumbling or a time window.
    delay_us : int
        How much later than a younger tuple of its stream a tuple may come.
    classes : int
        Classes of keys: tasks of each batch.
    out, state : Path
        Where pairs go, a folder a batch, and where the state lies.
    r_names, s_names : tuple of str
        Row, arrival and join columns of each stream.
    """

    predicate: Predicate
    window: Window
    delay_us: int
    classes: int
    out: Path
    state: Path
    r_names: tuple[str, ...]
    s_names: tuple[str, ...]

    def process(self, batch: "DataFrame", number: int) -> None:
        """Join one batch; nothing happens if it was done before."""
        if self._record(number).exists():
            return
        before = last_record(self.state)
        sides = [
            StreamFrame(
                side,
                batch.where(f"side = {place}").select(
                    *(batch[f"{side}_{name}"].alias(name) for name in names)
                ),
                names[0],
                names[1],
                names[2:],
            )
            for place, (side, names) in enumerate((("r", self.r_names), ("s", self.s_names)))
        ]
        classes = self._classes(sides, before)
        draft = self.out / f".batch={number}"
        for folder in (draft, self._state_folder(number)):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        reports = [] if classes is None else self._run(sides, number, before, classes, draft)
        self._finish(number, before, classes, reports, draft)

    def _classes(self, sides: list[StreamFrame], before: dict[str, Any]) -> Classes | None:
        """Return the classes chosen by the first batch that held a tuple."""
        if before.get("classes") is not None:
            return classes_from(before["classes"], self.predicate)
        known = [side.side() for side in sides]
        if not any(side.rows for side in known):
            return None
        return choose_classes(known[0], known[1], self.predicate, self.classes)

    def _run(
        self,
        sides: list[StreamFrame],
        number: int,
        before: dict[str, Any],
        classes: Classes,
        draft: Path,
    ) -> list[dict[str, Any]]:
        from pyspark.sql import functions

        ones = (1,) * classes.count
        partitioning = Partitioning(AllWindow(), (), classes, ones, ones)
        frames = []
        for place, side in enumerate(sides):
            sent = side.sent(partitioning, of_r=place == R)
            names = {f"c{n}": f"{side.source}{n}" for n in range(len(side.columns))}
            frames.append(sent.withColumnsRenamed(names).withColumn("side", functions.lit(place)))
        spark = sides[0].frame.sparkSession
        beats = spark.range(classes.count).select(
            functions.col("id").alias("task"), functions.lit(BEAT).alias("side")
        )
        every = frames[0].unionByName(frames[1], True).unionByName(beats, True)
        columns = (sides[R].columns, sides[S].columns)
        step = _Step(
            self.predicate,
            self.window,
            int(before["watermark_us"]),
            columns,
            self.state / f"batch-{before['batch']}",
            self._state_folder(number),
            draft,
        )

        def work(table: pa.Table) -> pa.Table:
            settle()
            return step.run(table)

        grouped = every.repartition(classes.count, "task").groupBy("task")
        return [row.asDict() for row in collected(grouped.applyInArrow(work, _REPORT))]

    def _finish(
        self,
        number: int,
        before: dict[str, Any],
        classes: Classes | None,
        reports: list[dict[str, Any]],
        draft: Path,
    ) -> None:
        """Make the pairs visible, then the batch done, then forget the state before it."""
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
            "predicate": self.predicate.text,
            "window": self.window.text,
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
        target = self.out / f"batch={number}"
        if target.exists():  # renamed before a crash: the same pairs
            shutil.rmtree(draft)
        elif any(draft.iterdir()):
            draft.replace(target)
        else:
            draft.rmdir()
        path = self._record(number)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_text(json.dumps(record, indent=1) + "\n")
        beside.replace(path)
        for old in self.state.glob("batch-*"):
            if old.is_dir() and int(old.name.removeprefix("batch-")) < number:
                shutil.rmtree(old, ignore_errors=True)

    def _record(self, number: int) -> Path:
        return self.state / f"batch-{number}.json"

    def _state_folder(self, number: int) -> Path:
        return self.state / f"batch-{number}"


@dataclass(frozen=True)
class _Step:
    """What the worker of a class does with a batch."""

    predicate: Predicate
    window: Window
    watermark_us: int
    columns: tuple[tuple[str, ...], tuple[str, ...]]
    before: Path
    after: Path
    out: Path

    def run(self, table: pa.Table) -> pa.Table:
        task = int(table.column("task").to_numpy()[0])
        state_path = self.before / f"{task:05d}.parquet"
        state = pq.read_table(state_path) if state_path.exists() else table.slice(0, 0)
        side, ts = table.column("side").to_numpy(), _with_noughts(table.column("ts"))
        late = (side != BEAT) & (ts < self.watermark_us)
        fresh = table.filter(pa.array(~late & (side != BEAT)))
        (r_old, s_old), (r_new, s_new) = self._sides(state), self._sides(fresh)
        part = write_part(
            self.out,
            f"part-{task:05d}.parquet",
            [*self._joined(r_new, s_old), *self._joined(r_new, s_new), *self._joined(r_old, s_new)],
        )
        kept = pa.concat_tables([state.cast(table.schema), fresh])
        kept = kept.filter(pa.array(self._alive(kept)))
        pq.write_table(kept, self.after / f"{task:05d}.parquet", compression="none")
        row = {
            "task": task,
            "pairs": part.pairs,
            "digest": f"{part.digest:016x}",
            "late": int(late.sum()),
            "kept": kept.num_rows,
            "r_last": int(r_new.stream.ts[-1]) if len(r_new.rows) else None,
            "s_last": int(s_new.stream.ts[-1]) if len(s_new.rows) else None,
        }
        return pa.Table.from_pylist([row], schema=_REPORT_SCHEMA)

    def _sides(self, table: pa.Table) -> tuple[Tuples, Tuples]:
        found = []
        side = table.column("side").to_numpy()
        for place, name in ((R, "r"), (S, "s")):
            own = [f"{name}{n}" for n in range(len(self.columns[place]))]
            wanted = table.filter(pa.array(side == place))
            wanted = wanted.select(["task", "row", "ts", "missing", *own])
            found.append(received(wanted, self.columns[place], name))
        return found[0], found[1]

    def _joined(self, r: Tuples, s: Tuples) -> list[Batch]:
        if not len(r.rows) or not len(s.rows):
            return []
        r_stream, s_stream = comparable(r.stream, s.stream, self.predicate)
        return [
            (r.rows[r_at], s.rows[s_at], np.maximum(r_stream.ts[r_at], s_stream.ts[s_at]))
            for r_at, s_at in join_rows(r_stream, s_stream, self.predicate, self.window)
        ]

    def _alive(self, table: pa.Table) -> Any:
        """Which tuples something that is not late may still meet."""
        ts, side = table.column("ts").to_numpy(), table.column("side").to_numpy()
        return ends_us(ts, side, self.window) > self.watermark_us


def _with_noughts(column: Any) -> Int64s:
    return np.asarray(column.fill_null(0).to_numpy())


def ends_us(ts: Int64s, side: Any, window: Window) -> Int64s:
    """When each tuple's window ends: what arrives then or after does not meet it any more."""
    if isinstance(window, TumblingWindow):
        return np.asarray((ts // window.length_us + 1) * window.length_us)
    assert isinstance(window, TimeWindow)
    return np.asarray(ts + np.where(side == R, window.r_us, window.s_us))


def classes_to(classes: Classes) -> dict[str, Any]:
    """Write classes down."""
    if isinstance(classes, Radix):
        return {"kind": "radix", "count": classes.count}
    if isinstance(classes, Ranges):
        term = classes.term
        return {"kind": "ranges", "term": term.text, "bounds": list(classes.bounds)}
    return {"kind": "one"}


def classes_from(plain: dict[str, Any], predicate: Predicate) -> Classes:
    """Read what :func:`classes_to` wrote."""
    if plain["kind"] == "radix":
        return Radix(predicate, int(plain["count"]))
    if plain["kind"] == "ranges":
        (term,) = (term for term in predicate.terms if term.text == plain["term"])
        assert isinstance(term, Band)
        return Ranges(term, tuple(plain["bounds"]))
    return OneClass()


def last_record(state: Path) -> dict[str, Any]:
    """Return the record of the last batch that was done, or what is before the first."""
    numbers = [int(path.stem.removeprefix("batch-")) for path in state.glob("batch-*.json")]
    if numbers:
        found: dict[str, Any] = json.loads((state / f"batch-{max(numbers)}.json").read_text())
        return found
    return {
        "batch": -1,
        "classes": None,
        "r_last": NO_TIME,
        "s_last": NO_TIME,
        "watermark_us": NO_TIME,
        "pairs_so_far": 0,
        "late_so_far": 0,
    }


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
    """Join two streaming DataFrames.

    Parameters
    ----------
    r, s : DataFrame
        Streaming, from any source; each with a column of row numbers, an arrival column whose
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
    from pyspark.sql import functions

    predicate = Predicate.parse(on, band)
    chosen = parse_window(window) if isinstance(window, str) else window
    if isinstance(chosen, AllWindow | CountWindow):
        raise UnsupportedError(
            f"a streaming join needs a window that time ends, tumbling or time, not {chosen.text}"
        )
    if classes < 1 or delay_us < 0:
        raise InputError(f"classes must be at least 1, and the delay not below 0: {classes}")
    sides = []
    for frame, name, columns in ((r, "r", r_columns(predicate)), (s, "s", s_columns(predicate))):
        if not frame.isStreaming:
            raise InputError(f"{name}: is no streaming DataFrame; join it with distributed_join")
        opened = open_frame(frame, name, row, ts, columns)
        opened.nothing.column(columns[0])
        sides.append(opened)
    state = checkpoint.absolute() / FOLDER
    before = last_record(state)
    for what, asked in (("predicate", predicate.text), ("window", chosen.text)):
        if before.get(what, asked) != asked:
            raise InputError(
                f"{checkpoint}: is the checkpoint of a join with {what} {before[what]}, not "
                f"{asked}; choose another folder"
            )
    _check_out(out, before)
    names = [(row, ts, *side.columns) for side in sides]
    join = StreamingJoin(
        predicate, chosen, delay_us, classes, out.absolute(), state, names[0], names[1]
    )
    both = [
        side.frame.select(
            functions.lit(place).alias("side"),
            *(
                side.frame[name].alias(f"{side.source}_{name}")
                for name in dict.fromkeys(names[place])
            ),
        )
        for place, side in enumerate(sides)
    ]
    query = both[0].unionByName(both[1], allowMissingColumns=True)
    writer = query.writeStream.foreachBatch(join.process)
    return writer.option("checkpointLocation", str(checkpoint.absolute()))


def _check_out(out: Path, before: dict[str, Any]) -> None:
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: is a file; a result is a folder")
    others = [p.name for p in out.iterdir() if "batch=" not in p.name] if out.is_dir() else []
    if others:
        raise InputError(f"--out {out}: holds something else than a result, {others[0]}")
    if before["batch"] < 0 and out.is_dir() and any(out.glob("batch=*")):
        raise InputError(f"--out {out}: holds pairs of another checkpoint; choose another folder")
