"""One batch of a streaming query after the other, each done once."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin.errors import InputError
from streamjoin_common import storage
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window
from streamjoin_spark.batch.classes import Classes, WithEvery
from streamjoin_spark.batch.local import NO_TIME
from streamjoin_spark.batch.matched import asked_sides
from streamjoin_spark.batch.partition import LAST_TIME
from streamjoin_spark.batch.plan import choose_classes
from streamjoin_spark.batch.rows import RowColumns
from streamjoin_spark.streaming.state import (
    FORMAT,
    classes_from,
    classes_to,
    end_of,
    forget,
    kept_folder,
    last_record,
    record_path,
    write_end,
    write_record,
)
from streamjoin_spark.streaming.step import Step

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from streamjoin_spark.streaming.source import Arrived


@dataclass(frozen=True)
class StreamingJoin:
    """What every batch of a streaming join needs to know.

    Attributes
    ----------
    predicate, window
        What joins; the window is tumbling or a time window.
    described : dict of str to str
        What a checkpoint is of: it continues with the same alone.
    delay_us : int
        How much later than a younger tuple of its stream a tuple may arrive.
    classes : int
        Classes of keys: tasks of each batch.
    out, state : Path
        Folders of the pairs, which get a folder a batch, and of the state.
    names : tuple of tuple of str
        Row, arrival and join columns, of R and of S.
    columns : RowColumns or None
        What joined rows have; None for row numbers.
    payload : tuple of pyarrow.Schema or None
        Columns of R and of S that joined rows have.
    how : str
        The kind of join.
    arrived : callable
        Makes of a batch's DataFrame what it brings.
    heard : callable
        Is called with the record of every batch when it is done.
    """

    predicate: Predicate
    window: Window
    described: dict[str, str]
    delay_us: int
    classes: int
    out: Path
    state: Path
    names: tuple[tuple[str, ...], tuple[str, ...]]
    columns: RowColumns | None
    payload: "tuple[pa.Schema | None, pa.Schema | None]"
    how: str
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
        with self._step(number, before, classes) as step:
            if step is not None:
                reports = arrived.run(step, int(before["kept"]))
        self._finish(number, before, classes, reports)

    def end(self) -> dict[str, Any]:
        """Report the tuples that still wait, as a batch of its own: both streams have ended.

        Nothing happens if it was done before.

        Raises
        ------
        InputError
            If Spark has begun a batch that is not done.
        """
        before = last_record(self.state)
        number = int(before["batch"]) + 1
        ended = end_of(self.state)
        if ended is None:
            begun = self.state.parent / "offsets" / str(number)
            if begun.exists():
                raise InputError(
                    f"{self.state.parent}: Spark has begun batch {number} and not ended it: run "
                    "the same query again, then end its streams"
                )
            write_end(self.state, number - 1)
        elif ended < number - 1:
            return before
        classes = None
        if before["classes"] is not None:
            classes = classes_from(before["classes"], self.predicate)
        last_us = max(before["r_last"], before["s_last"])
        reports = []
        with self._step(number, {**before, "watermark_us": LAST_TIME}, classes, last_us) as step:
            if step is not None:
                reports = [step.run(task) for task in range(step.classes.count)]
        return self._finish(number, before, classes, reports)

    @contextlib.contextmanager
    def _step(
        self,
        number: int,
        before: dict[str, Any],
        classes: Classes | None,
        last_us: int = LAST_TIME,
    ) -> Iterator[Step | None]:
        """Give what is done with each class of a batch; then its rows and what it keeps are there.

        It is None where no tuple has come yet.
        """
        # Rows that are there were named before a crash: they are the same.
        rows, kept = self.out / f"batch={number}", kept_folder(self.state, number)
        with (
            storage.new_folder(rows, keep=lambda _: True, empty=False) as draft,
            storage.new_folder(kept) as after,
        ):
            if classes is None:
                yield None
                return
            sides = asked_sides(self.how)
            yield Step(
                self.predicate,
                self.window,
                WithEvery(classes, sides) if sides else classes,
                int(before["watermark_us"]),
                self.names,
                kept_folder(self.state, int(before["batch"])),
                after,
                draft,
                self.columns,
                self.payload,
                self.how,
                last_us,
            )

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
    ) -> dict[str, Any]:
        """Make the batch done, whose rows are visible, then forget the state before it."""
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
        return record
