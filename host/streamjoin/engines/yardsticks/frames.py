"""Outside yardsticks on data frames: Polars, pyarrow and pandas, each its own join at its best.

Native tables of the user's join columns and of row numbers are made before the clock starts, as
DuckDB's are; the measured time covers joining and materialising both row numbers, a whole call
making the tables too. Integers of two widths become the wider one first, as these libraries ask
for; only where no type of theirs holds both columns' values are these codes. The threads of
Polars are those of its pool, all cores unless ``POLARS_MAX_THREADS`` says otherwise before
Python starts.
"""

from abc import abstractmethod
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.base import Capabilities, Engine, Knob, Report
from streamjoin.engines.encode import encode_keys
from streamjoin.engines.job import Job
from streamjoin.inputs.files import arrow
from streamjoin.inputs.strings import Strings, with_nulls
from streamjoin.metrics import Meter
from streamjoin.tuples import Stream
from streamjoin_common.installed.checks import not_installed
from streamjoin_common.language.predicates import Predicate, Term
from streamjoin_common.language.windows import TumblingWindow


def joined_pairs(r: list[NDArray[Any]], s: list[NDArray[Any]]) -> int:
    """Count the pairs that are equal in all columns: the sum over keys of R's times S's rows."""
    numbers = np.zeros(len(r[0]) + len(s[0]), dtype=np.int64)
    for r_column, s_column in zip(r, s, strict=True):
        distinct, codes = np.unique(np.concatenate([r_column, s_column]), return_inverse=True)
        # Numbered anew after each column: products of two counts of rows stay inside int64.
        _, numbers = np.unique(numbers * len(distinct) + codes, return_inverse=True)
    keys = int(numbers.max(initial=-1)) + 1
    r_rows = np.bincount(numbers[: len(r[0])], minlength=keys)
    s_rows = np.bincount(numbers[len(r[0]) :], minlength=keys)
    return int(np.dot(r_rows, s_rows))


class Tables(NamedTuple):
    """Native tables of R and of S."""

    r: Any
    s: Any


def key_columns(job: Job) -> tuple[list[Any], list[Any]]:
    """Return the join columns of R and of S, a list each, of types that the libraries compare.

    They are the user's values: arrays of numbers, or strings as they are held.
    """
    r_columns, s_columns = [], []
    for term in job.predicate.terms:
        r, s = _of_one_type(term, job)
        r_columns.append(r)
        s_columns.append(s)
    return r_columns, s_columns


def _of_one_type(term: Term, job: Job) -> tuple[Any, Any]:
    r, s = job.r.held(term.r_column), job.s.held(term.s_column)
    if isinstance(r, Strings) and isinstance(s, Strings):
        return r.arrow, s.arrow
    if "O" in (r.dtype.kind, s.dtype.kind):
        return _strings(Strings.of(r), Strings.of(s))
    if r.dtype.kind not in "iuf":
        return r.astype(object), s.astype(object)
    both = np.promote_types(r.dtype, s.dtype)
    if both.kind == "f" and r.dtype.kind != s.dtype.kind:  # no integers hold both
        return encode_keys(job.r, job.s, Predicate((term,)))
    # Some libraries compare floating-point numbers by their bits: then -0.0 must be 0.0.
    zero = both.type(0)
    r, s = (np.ascontiguousarray(each, dtype=both) for each in (r, s))
    return (r + zero, s + zero) if both.kind == "f" else (r, s)


def _strings(r: Strings, s: Strings) -> tuple[Any, Any]:
    """Return Arrow arrays of strings, as bytes where Python's are no UTF-8."""
    if r.is_utf8 and s.is_utf8:
        return r.arrow, s.arrow
    kind = arrow().large_binary()
    return r.arrow.cast(kind), s.arrow.cast(kind)


class DataFrameEngine(Engine):
    """A data frame library's own inner join on keys (and window numbers)."""

    package: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi"}),
        windows=frozenset({"all", "tumbling"}),
        order="none",
        platform="dataframe",
    )

    def unusable(self) -> str | None:
        """Say so where the library is not installed."""
        return (
            None
            if find_spec(self.package)
            else not_installed(self.package, needed_by=f"the engine {self.name}")
        )

    def prepare(self, job: Job, report: Report) -> Tables:
        """Make the native tables."""
        tables = []
        names = [name for name in self.on(job) if name != "window"]
        for stream, keys, row in zip(
            (job.r, job.s), key_columns(job), ("r_row", "s_row"), strict=True
        ):
            columns: dict[str, Any] = dict(zip(names, keys, strict=True))
            columns[row] = np.arange(stream.rows, dtype=np.uint32)
            if isinstance(job.window, TumblingWindow):
                columns["window"] = stream.ts // job.window.length_us
            tables.append(self.table(self.present(columns, names, stream)))
        return Tables(tables[0], tables[1])

    def pairs_beforehand(self, job: Job) -> int:
        """Count the pairs: the library would continue until memory runs out."""
        columns: tuple[list[NDArray[Any]], ...] = tuple(
            [codes] for codes in encode_keys(job.r, job.s, job.predicate)
        )
        if isinstance(job.window, TumblingWindow):
            for stream, of_side in zip((job.r, job.s), columns, strict=True):
                of_side.append(stream.ts // job.window.length_us)
        return joined_pairs(columns[0], columns[1])

    def present(self, columns: dict[str, Any], keys: list[str], stream: Stream) -> dict[str, Any]:
        """Make null what a row lacks: one null in a conjunction is enough for it to fail."""
        if stream.missing is None:
            return columns
        return {**columns, keys[0]: with_nulls(columns[keys[0]], stream.missing)}

    def run(self, job: Job, prepared: Tables, meter: Meter) -> None:
        """Join the native tables."""
        meter.sleep_until_arrived(job)
        with meter.phase("probe"):
            r_rows, s_rows = self.join(prepared.r, prepared.s, job)
        meter.emit(r_rows, s_rows)

    @abstractmethod
    def table(self, columns: dict[str, Any]) -> Any:
        """Make a native table of arrays."""

    @abstractmethod
    def join(self, r: Any, s: Any, job: Job) -> tuple[Any, Any]:
        """Join and return both row numbers."""

    @staticmethod
    def on(job: Job) -> list[str]:
        """Columns to join on."""
        keys = [f"k{number}" for number in range(len(job.predicate.terms))]
        return [*keys, "window"] if isinstance(job.window, TumblingWindow) else keys


class Polars(DataFrameEngine):
    """Polars' own inner join, in memory or streaming: an outside yardstick."""

    name: ClassVar[str] = "polars"
    package: ClassVar[str] = "polars"
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("streaming", 1, "1 joins with the streaming engine, 0 in memory.", 0, 1),
    )

    def threads_for(self, asked: int) -> int:
        """Threads of the library's pool, which is made once."""
        import polars

        return polars.thread_pool_size()

    def table(self, columns: dict[str, Any]) -> Any:
        """Make a data frame."""
        import polars

        return polars.DataFrame(columns)

    def join(self, r: Any, s: Any, job: Job) -> tuple[Any, Any]:
        """Join lazily and collect."""
        query = s.lazy().join(r.lazy(), on=self.on(job), how="inner").select("r_row", "s_row")
        joined = query.collect(engine="streaming" if job.knobs["streaming"] else "in-memory")
        return joined["r_row"].to_numpy(), joined["s_row"].to_numpy()


class PyArrow(DataFrameEngine):
    """pyarrow's own hash join: an outside yardstick."""

    name: ClassVar[str] = "pyarrow"
    package: ClassVar[str] = "pyarrow"
    capabilities: ClassVar[Capabilities] = replace(DataFrameEngine.capabilities, parallel=True)

    def table(self, columns: dict[str, Any]) -> Any:
        """Make a table."""
        import pyarrow

        return pyarrow.table(columns)

    def join(self, r: Any, s: Any, job: Job) -> tuple[Any, Any]:
        """Join with as many threads as asked."""
        import pyarrow

        pool = pyarrow.cpu_count()
        pyarrow.set_cpu_count(job.threads)
        try:
            joined = s.join(r, keys=self.on(job), join_type="inner", use_threads=job.threads > 1)
        finally:
            pyarrow.set_cpu_count(pool)
        return joined["r_row"].to_numpy(), joined["s_row"].to_numpy()


class Pandas(DataFrameEngine):
    """pandas' own merge: an outside yardstick."""

    name: ClassVar[str] = "pandas"
    package: ClassVar[str] = "pandas"

    def present(self, columns: dict[str, Any], keys: list[str], stream: Stream) -> dict[str, Any]:
        """Drop rows that lack a value: for pandas a missing value equals another."""
        if stream.missing is None:
            return columns
        kept = np.flatnonzero(~stream.missing)
        return {name: np.asarray(column)[kept] for name, column in columns.items()}

    def table(self, columns: dict[str, Any]) -> Any:
        """Make a data frame."""
        import pandas

        return pandas.DataFrame(columns)

    def join(self, r: Any, s: Any, job: Job) -> tuple[Any, Any]:
        """Merge."""
        joined = s.merge(r, on=self.on(job), how="inner", sort=False)
        return joined["r_row"].to_numpy(), joined["s_row"].to_numpy()
