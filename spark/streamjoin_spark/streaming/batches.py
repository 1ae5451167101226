"""One batch of a streaming query after the other, each done once."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin_common import storage
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window
from streamjoin_spark.batch.classes import Classes
from streamjoin_spark.batch.local import NO_TIME
from streamjoin_spark.batch.plan import choose_classes
from streamjoin_spark.batch.rows import RowColumns
from streamjoin_spark.streaming.state import (
    FORMAT,
    classes_from,
    classes_to,
    forget,
    kept_folder,
    last_record,
    record_path,
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
                    self.columns,
                    self.payload,
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
