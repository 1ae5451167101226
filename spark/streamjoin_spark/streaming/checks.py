"""The request for a streaming join: read, checked, and compared with the folders' earlier one."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.inputs.agreement import comparable_on_spark
from streamjoin.tuples import Stream
from streamjoin_common import storage
from streamjoin_common.documents import read_json
from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.kinds import parse_how
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.selections import Chosen, Selection
from streamjoin_common.language.windows import AllWindow, CountWindow, Window, parse_window
from streamjoin_spark.batch.files import footer
from streamjoin_spark.streaming.state import FOLDER, end_of, last_record, record_path

ROW_NUMBERS = "row numbers"
"""What a checkpoint says of a join without columns."""

_BATCH = re.compile(r"batch=([0-9]+)")
"""A batch's pairs."""


class Asked:
    """The request for a streaming join.

    Attributes
    ----------
    predicate, window
        What joins; the window is tumbling or a time window.
    names : tuple of tuple of str
        Row, arrival and join columns, of R and of S.
    arrivals : Arrivals
        The arrival columns.
    how : str
        The kind of join.
    rows : list of Chosen
        Columns of joined rows, when :meth:`choose` was called; none for row numbers.
    described : dict of str to str
        What a checkpoint is of: it continues with the same alone.

    Raises
    ------
    InputError
        If the predicate or the window cannot be read.
    UnsupportedError
        If the window bounds no state.
    """

    def __init__(
        self,
        on: str | list[str] | None,
        band: str | list[str] | None,
        window: Window | str,
        row: str,
        ts: str | None,
        *,
        ts_unit: str | None = None,
        how: str = "inner",
    ) -> None:
        self.how = parse_how(how)
        self.predicate = Predicate.parse(on, band)
        self.window = parse_window(window) if isinstance(window, str) else window
        if isinstance(self.window, AllWindow | CountWindow):
            raise UnsupportedError(
                "a streaming join needs a window that time ends, tumbling or time, not "
                f"{self.window.text}"
            )
        self.arrivals = arrivals = Arrivals.parse(ts, ts_unit, self.window)
        self.rows: list[Chosen] = []
        self.names = (
            (row, arrivals.r.name, *self.predicate.r_columns),
            (row, arrivals.s.name, *self.predicate.s_columns),
        )
        self.described = {
            "predicate": self.predicate.text,
            "window": self.window.text,
            "row": row,
            "ts": (ts or arrivals.r.name) + (f" in {ts_unit}" if ts_unit else ""),
            "columns": ROW_NUMBERS,
            "how": self.how,
        }

    def choose(
        self, columns: str | Sequence[str] | None, r_names: Sequence[str], s_names: Sequence[str]
    ) -> None:
        """Choose the columns of joined rows among those that there are.

        Raises
        ------
        InputError
            If one is not there.
        """
        if columns is None:
            return
        self.rows = Selection.parse(columns).resolve(r_names, s_names, how=self.how)
        self.described["columns"] = ",".join(f"{each.side}.{each.column}" for each in self.rows)

    def payload(self, side: str) -> list[str]:
        """Columns of a side that joined rows have."""
        return [each.column for each in self.rows if each.side == side]

    def check_types(self, r: Stream, s: Stream) -> None:
        """Refuse columns that do not compare, from streams without a tuple.

        Raises
        ------
        InputError
            Naming the columns and their types.
        """
        # Tuples would show it too late, and keys that never meet in a class not at all.
        ones = [
            Stream(
                {n: np.zeros(1, c.dtype) for n, c in x.columns.items()}, np.zeros(1, int), x.source
            )
            for x in (r, s)
        ]
        comparable_on_spark(ones[0], ones[1], self.predicate)


def check_folders(what: Asked, out: Path, checkpoint: Path, *, ending: bool = False) -> None:
    """Refuse a checkpoint of another join or of streams that have ended, and other pairs.

    Parameters
    ----------
    what : Asked
        The join.
    out, checkpoint : Path
        Its folders.
    ending : bool
        Whether its streams end, or have ended: nothing else is to be read.

    Raises
    ------
    InputError
        Naming the folder.
    """
    for folder in (out, checkpoint):
        storage.check_writable(folder)
    before = last_record(checkpoint.absolute() / FOLDER)
    what.described["out"] = str(out.absolute())
    if before["batch"] >= 0:
        before = {"columns": ROW_NUMBERS, "how": "inner", **before}  # of earlier versions too
    for name, asked in what.described.items():
        if before.get(name, asked) != asked:
            raise InputError(
                f"{checkpoint}: is the checkpoint of a join with {name} {before[name]}, not "
                f"{asked}; choose another folder"
            )
    if not ending and end_of(checkpoint.absolute() / FOLDER) is not None:
        raise InputError(
            f"{checkpoint}: is the checkpoint of streams that --end has ended: choose another "
            "checkpoint and another --out"
        )
    _check_out(out, checkpoint, before)


def _check_out(out: Path, checkpoint: Path, before: dict[str, Any]) -> None:
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: is a file; a result is a folder")
    names = [path.name for path in out.iterdir()] if out.exists() else []
    batches = {name: _BATCH.fullmatch(name) for name in names if not storage.is_draft(name)}
    others = [name for name, batch in batches.items() if batch is None]
    if others:
        raise InputError(
            f"--out {out}: holds something else than a result, {others[0]}; choose another folder"
        )
    numbers = [int(batch[1]) for batch in batches.values() if batch]
    newest = max(numbers, default=-1)
    # The batch after the last that is done may have shown its pairs, if Spark had begun it.
    done = int(before["batch"])
    begun = (checkpoint / "offsets" / str(done + 1)).exists() or end_of(checkpoint / FOLDER) == done
    foreign = newest > done + begun
    record = record_path(checkpoint / FOLDER, newest)
    if not foreign and record.exists():
        shown = (out / f"batch={newest}").glob("part-*.parquet")
        rows = sum(footer(path).num_rows for path in shown)
        foreign = rows != read_json(record)["pairs"]
    if foreign:
        raise InputError(f"--out {out}: holds pairs of another checkpoint; choose another folder")
