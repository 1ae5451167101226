"""A join as Spark's own query: its predicate and window as SQL conditions.

Bands are joined as Spark users do it: by bins as wide as the band along each banded column, S
repeated for the bins that its interval touches, so that the join has equal columns to hash.
"""

from typing import TYPE_CHECKING

import numpy as np

from streamjoin.engines.job import Job
from streamjoin_common.language.predicates import Band, Equi
from streamjoin_common.language.windows import TimeWindow, TumblingWindow, Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROW_COLUMN = "row"
"""Column of row numbers in the files that the engines write."""

HINTS = {"merge": "merge", "hash": "shuffle_hash", "broadcast": "broadcast"}

MAX_DECIMAL = 10**37
"""Maximum of a number that Spark's decimals hold without overflow."""


def own_plan(r: "DataFrame", s: "DataFrame", job: Job) -> "DataFrame":
    """Return the pairs as Spark's own query."""
    from pyspark.sql import functions

    plan, bins = str(job.knobs["plan"]), str(job.knobs["bins"])
    r, s = sided(r, "r"), sided(s, "s")
    r, s, terms = with_terms(r, s, job, {"none": 0, "first": 1, "both": 2}[bins])
    r, s, window = windowed(r, s, job.window)
    condition = functions.expr(" AND ".join(f"({one})" for one in [*terms, *window]))
    if plan != "auto":
        s = s.hint(HINTS[plan])
    return r.join(s, condition).select(
        functions.col(f"r_{ROW_COLUMN}").alias("r_row"),
        functions.col(f"s_{ROW_COLUMN}").alias("s_row"),
        functions.greatest("r_ts", "s_ts").alias("ts"),
    )


def with_terms(
    r: "DataFrame", s: "DataFrame", job: Job, bins: int
) -> tuple["DataFrame", "DataFrame", list[str]]:
    """Write the predicate as SQL, with equal bins for so many of its band terms."""
    terms = [_term(term, job) for term in job.predicate.terms]
    binned = [
        term for term in job.predicate.terms if isinstance(term, Band) and _can_bin(term, job)
    ]
    for number, term in enumerate(binned[:bins]):
        r, s = _with_bins(r, s, term, number)
        terms.append(f"r_bin{number} = s_bin{number}")
    return r, s, terms


def sided(frame: "DataFrame", side: str) -> "DataFrame":
    """Name columns by their side."""
    return frame.toDF(*(f"{side}_{name}" for name in frame.columns))


def _term(term: Equi | Band, job: Job) -> str:
    r_name, s_name = f"`r_{term.r_column}`", f"`s_{term.s_column}`"
    r_type, s_type = job.r.column(term.r_column).dtype, job.s.column(term.s_column).dtype
    if isinstance(term, Equi):
        if (r_type.kind == "O") != (s_type.kind == "O"):
            return "false"  # strings beside a column without any value, which has no type
        return f"{r_name} = {s_name}"
    if r_type.kind in "iu":
        # Sums of 32-bit numbers fit in 64 bits; those of wider ones in 38 digits.
        narrow = max(r_type.itemsize, s_type.itemsize, 5) == 5 and all(
            abs(width) < 1 << 40 for width in (term.lo, term.hi)
        )
        kind = "BIGINT" if narrow else "DECIMAL(38,0)"
        lo, hi = (max(-MAX_DECIMAL, min(int(width), MAX_DECIMAL)) for width in (term.lo, term.hi))
        r, s = f"CAST({r_name} AS {kind})", f"CAST({s_name} AS {kind})"
        return f"{r} >= {s} - {lo} AND {r} <= {s} + {hi}"
    single = r_type == s_type == np.float32
    kind = "FLOAT" if single else "DOUBLE"
    with np.errstate(over="ignore"):
        widths = np.array(term.real_widths, np.float32 if single else np.float64).tolist()
    low, high = (f"CAST(CAST('{width!r}' AS DOUBLE) AS {kind})" for width in widths)
    r, s = f"CAST({r_name} AS {kind})", f"CAST({s_name} AS {kind})"
    # For Spark NaN equals NaN and is above all; here it matches nothing and bounds nothing.
    lower, upper = f"({s} - {low})", f"({s} + {high})"
    return (
        f"NOT isnan({r}) AND NOT isnan({lower}) AND NOT isnan({upper}) "
        f"AND {r} >= {lower} AND {r} <= {upper}"
    )


def _can_bin(term: Band, job: Job) -> bool:
    """Whether a band is narrow enough, and its values tame enough, for bins of its width."""
    columns = [job.r.column(term.r_column), job.s.column(term.s_column)]
    width = sum(term.real_widths)
    if not 0 < width < 1 << 40 or not all(len(column) for column in columns):
        return False
    return all(bool(np.all(np.abs(column.astype(np.float64)) < 1 << 50)) for column in columns)


def _with_bins(
    r: "DataFrame", s: "DataFrame", term: Band, number: int
) -> tuple["DataFrame", "DataFrame"]:
    from pyspark.sql import functions

    width = max(sum(term.real_widths), 1.0)
    lo, hi = term.real_widths
    bin_of = f"CAST(floor((CAST({{0}} AS DOUBLE) {{1}}) / {width!r}D) AS BIGINT)"
    r = r.withColumn(f"r_bin{number}", functions.expr(bin_of.format(f"`r_{term.r_column}`", "")))
    # One bin more on either side of what rounding could move.
    low = bin_of.format(f"`s_{term.s_column}`", f"- {lo!r}D - 0.001D")
    high = bin_of.format(f"`s_{term.s_column}`", f"+ {hi!r}D + 0.001D")
    bins = functions.expr(f"explode(sequence({low}, greatest({low}, {high})))")
    return r, s.withColumn(f"s_bin{number}", bins)


def windowed(
    r: "DataFrame", s: "DataFrame", window: Window
) -> tuple["DataFrame", "DataFrame", list[str]]:
    """Add what Spark can hash of a window, and return what remains to be checked."""
    from pyspark.sql import functions

    if isinstance(window, TumblingWindow):
        r = r.withColumn("r_window", functions.expr(_floor("r_ts", window.length_us)))
        s = s.withColumn("s_window", functions.expr(_floor("s_ts", window.length_us)))
        return r, s, ["r_window = s_window"]
    if not isinstance(window, TimeWindow):
        return r, s, []
    length = max(window.r_us, window.s_us)
    r = r.withColumn("r_window", functions.expr(_floor("r_ts", length)))
    first = _floor(f"(s_ts - {length})", length)
    last = _floor(f"(s_ts + {length})", length)
    s = s.withColumn("s_window", functions.expr(f"explode(sequence({first}, {last}))"))
    near = f"s_ts > r_ts - {window.s_us} AND s_ts < r_ts + {window.r_us}"
    return r, s, ["r_window = s_window", near]


def _floor(ts: str, length: int) -> str:
    """Divide integers, rounding down."""
    return f"(({ts} - pmod({ts}, {length}L)) DIV {length}L)"
