"""Comparing a result with the oracle's, and checking the promised order."""

from dataclasses import dataclass, replace

import numpy as np

from streamjoin import estimate, oracle
from streamjoin.engines import catalog
from streamjoin.engines.arrivals import scan_ranges
from streamjoin.engines.job import Job
from streamjoin.errors import IN_PARTS, InputError, MismatchError, TooLargeError
from streamjoin.inputs.conversion import stored_as_compared
from streamjoin.metrics import Meter, ProgressCallback
from streamjoin.oracle import INNER_JOIN, WITHOUT_CHECK
from streamjoin.relations.stream import StoredStream
from streamjoin.tuples import NO_ROW, Int64s, Pairs, arrival_positions, shown_pair
from streamjoin_common.language.windows import CountWindow, TimeWindow

MAX_ORACLE_COMPARISONS = 30_000_000_000
"""Maximum comparisons that the oracle makes; beyond them DuckDB computes the right result."""


CHECKED_PAIR_BYTES = 96
"""Bytes that a pair takes while a right result is computed: its rows twice, its time, their order.
"""


@dataclass(frozen=True)
class Expected:
    """The right result of a join.

    Attributes
    ----------
    rows : Pairs
        The pairs, by row number of the inputs.
    oracle : str
        Name of the engine that computed them.
    ts : ndarray of int64, shape (rows,), or None
        The rows' times; None of an inner join, whose times are the later tuples'.
    """

    rows: Pairs
    oracle: str
    ts: Int64s | None = None


def expected(job: Job, on_progress: ProgressCallback | None = None) -> Expected:
    """Compute the right result of a join.

    Raises
    ------
    TooLargeError
        If it has certainly more pairs than there is memory for.
    """
    try:
        estimate.check_fits(job)
    except TooLargeError as error:
        raise TooLargeError(error.much, WITHOUT_CHECK, IN_PARTS, what=INNER_JOIN) from None
    stored = isinstance(job.r, StoredStream)
    if isinstance(job.r, StoredStream):
        job = replace(job, r=stored_as_compared(job.r.store.stream(), job.predicate))
    pairs, oracle_name = _right_pairs(job, on_progress)
    if job.how == "inner":
        return Expected(job.named(pairs), oracle_name)
    rows, ts = oracle.of_kind(job.how, pairs, job.r, job.s, job.window, r_at_rest=stored)
    return Expected(job.named(rows), oracle_name, ts)


def _right_pairs(job: Job, on_progress: ProgressCallback | None) -> tuple[Pairs, str]:
    """Return the right pairs by position in the streams, and the name of their oracle."""
    if isinstance(job.window, CountWindow | TimeWindow):
        held = comparisons(job)
    else:  # the oracle's double loop compares all pairs of tuples, whatever the window
        held = job.r.rows * job.s.rows
    fitting = estimate.pairs_that_fit()
    limit = None if fitting is None else fitting * estimate.PAIR_BYTES // CHECKED_PAIR_BYTES
    second = catalog.get("duckdb")
    if held <= MAX_ORACLE_COMPARISONS or second.unusable():
        terms = (job.predicate, job.window, on_progress)
        return oracle.join(job.r, job.s, *terms, max_pairs=limit), "oracle"
    meter = Meter(fitting_pairs=limit)
    meter.start()
    at_rest = replace(job, arrival="instant")
    prepared = second.prepare(at_rest, lambda _: None)
    try:
        second.run(at_rest, prepared, meter)
    finally:
        meter.stop()
    return meter.pairs(), "duckdb"


def refuse(job: Job) -> None:
    """Refuse to verify a join whose knobs drop pairs.

    Raises
    ------
    InputError
        If the job has such a knob.
    """
    if job.knobs.get("shed_beyond"):
        raise InputError(
            "a join that sheds tuples lacks pairs, so its result cannot be verified: "
            "drop shed_beyond, or the check"
        )


def comparisons(job: Job) -> int:
    """Return how many pairs meet in the windows: the comparisons of a join that scans."""
    r_first, r_end, s_first, s_end = scan_ranges(job.r.ts, job.s.ts, job.window)
    return int((r_end - r_first).sum() + (s_end - s_first).sum())


def check_order(pairs: Pairs, job: Job, promise: str, ts: Int64s | None = None) -> None:
    """Check every result against an order promise.

    Parameters
    ----------
    promise : str
        ``"none"``; ``"outer"``: grouped by the later tuple, groups in arrival order;
        ``"inner"``: within a group by arrival of the earlier tuple too. Rows of one side are behind
        the pairs of the same time, R before S, by position.
    ts : ndarray of int64, shape (rows,), optional
        The rows' times, where some have one side alone.

    Raises
    ------
    MismatchError
        Naming the first pair that is out of order.
    """
    if promise == "none" or len(pairs) < 2:
        return
    r_positions, s_positions = arrival_positions(job.r.ts, job.s.ts)
    if ts is None:
        r_order, s_order = r_positions[pairs.r_rows], s_positions[pairs.s_rows]
        keys = [np.maximum(r_order, s_order)]
        if promise == "inner":
            keys.append(np.minimum(r_order, s_order))
    else:
        keys = _places(pairs, r_positions, s_positions, promise, ts)
    back, same = np.zeros(len(pairs) - 1, np.bool_), np.ones(len(pairs) - 1, np.bool_)
    for key in keys:
        back |= same & (key[1:] < key[:-1])
        same &= key[1:] == key[:-1]
    if back.any():
        index = int(np.flatnonzero(back)[0]) + 1
        here = slice(index, index + 1)
        named = job.named(Pairs(pairs.r_rows[here], pairs.s_rows[here]))
        pair = shown_pair(int(named.r_rows[0]), int(named.s_rows[0]))
        raise MismatchError(f"result {index}, (r_row, s_row) = {pair}, breaks order {promise}")


def _places(
    pairs: Pairs, r_positions: Int64s, s_positions: Int64s, promise: str, ts: Int64s
) -> list[Int64s]:
    """Return what rows are ordered by: time; pairs, R, S; the later tuple; the earlier one."""
    of_r, of_s = pairs.r_rows != NO_ROW, pairs.s_rows != NO_ROW
    r_order, s_order = np.full((2, len(pairs)), NO_ROW, dtype=np.int64)
    r_order[of_r] = r_positions[pairs.r_rows[of_r]]
    s_order[of_s] = s_positions[pairs.s_rows[of_s]]
    side = np.where(of_r & of_s, 0, np.where(of_r, 1, 2))
    keys = [ts, side, np.maximum(r_order, s_order)]
    return [*keys, np.minimum(r_order, s_order)] if promise == "inner" else keys


def check(pairs: Pairs, right: Pairs, engine: str) -> None:
    """Compare pairs with the right ones.

    Raises
    ------
    MismatchError
        Naming the first missing and the first surplus pair.
    """
    if len(pairs) == len(right) and pairs.digest == right.digest:
        return
    difference = pairs.difference(right)
    raise MismatchError(f"{engine} is wrong: {difference}")


def check_times(result: tuple[Pairs, Int64s], right: tuple[Pairs, Int64s], engine: str) -> None:
    """Compare the times of rows that are the right ones.

    Raises
    ------
    MismatchError
        Naming the first row in row order with another time.
    """
    (rows, ts), (right_rows, right_ts) = (
        (pairs.in_row_order(), times[np.lexsort((pairs.s_rows, pairs.r_rows))])
        for pairs, times in (result, right)
    )
    wrong = np.flatnonzero(ts != right_ts)
    if wrong.size:
        at = int(wrong[0])
        row = shown_pair(int(rows.r_rows[at]), int(right_rows.s_rows[at]))
        raise MismatchError(
            f"{engine} is wrong: (r_row, s_row) = {row} has ts {ts[at]} where {right_ts[at]} is "
            "right"
        )
