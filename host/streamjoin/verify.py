"""Comparing a result with the oracle's, and checking the promised order."""

from dataclasses import dataclass, replace

import numpy as np

from streamjoin import estimate, oracle
from streamjoin.engines import catalog
from streamjoin.engines.arrivals import scan_ranges
from streamjoin.engines.job import Job
from streamjoin.errors import InputError, MismatchError
from streamjoin.metrics import Meter, ProgressCallback
from streamjoin.relations.stream import StoredStream
from streamjoin.tuples import Pairs, arrival_positions
from streamjoin_common.language.windows import CountWindow, TimeWindow

MAX_ORACLE_COMPARISONS = 30_000_000_000
"""Maximum comparisons that the oracle makes; beyond them DuckDB computes the right result."""


@dataclass(frozen=True)
class Expected:
    """The right result of a join.

    Attributes
    ----------
    rows : Pairs
        The pairs, by row number of the inputs.
    oracle : str
        Name of the engine that computed them.
    """

    rows: Pairs
    oracle: str


def expected(job: Job, on_progress: ProgressCallback | None = None) -> Expected:
    """Compute the right result of a join.

    Raises
    ------
    TooLargeError
        If it has certainly more pairs than there is memory for.
    """
    estimate.check_fits(job)
    if isinstance(job.r, StoredStream):
        job = replace(job, r=job.r.store.stream().with_times_as_numbers())
    pairs, oracle_name = _right_pairs(job, on_progress)
    return Expected(job.named(pairs), oracle_name)


def _right_pairs(job: Job, on_progress: ProgressCallback | None) -> tuple[Pairs, str]:
    """Return the right pairs by position in the streams, and the name of their oracle."""
    if isinstance(job.window, CountWindow | TimeWindow):
        held = comparisons(job)
    else:  # the oracle's double loop compares all pairs of tuples, whatever the window
        held = job.r.rows * job.s.rows
    second = catalog.get("duckdb")
    if held <= MAX_ORACLE_COMPARISONS or second.unusable():
        return oracle.join(job.r, job.s, job.predicate, job.window, on_progress), "oracle"
    meter = Meter()
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


def check_order(pairs: Pairs, job: Job, promise: str) -> None:
    """Check every result against an order promise.

    Parameters
    ----------
    promise : str
        ``"none"``; ``"outer"``: grouped by the later tuple, groups in arrival order;
        ``"inner"``: within a group by arrival of the earlier tuple too.

    Raises
    ------
    MismatchError
        Naming the first pair that is out of order.
    """
    if promise == "none" or len(pairs) < 2:
        return
    r_positions, s_positions = arrival_positions(job.r.ts, job.s.ts)
    r_order, s_order = r_positions[pairs.r_rows], s_positions[pairs.s_rows]
    later, earlier = np.maximum(r_order, s_order), np.minimum(r_order, s_order)
    back = later[1:] < later[:-1]
    if promise == "inner":
        back |= (later[1:] == later[:-1]) & (earlier[1:] < earlier[:-1])
    if back.any():
        index = int(np.flatnonzero(back)[0]) + 1
        here = slice(index, index + 1)
        named = job.named(Pairs(pairs.r_rows[here], pairs.s_rows[here]))
        pair = (int(named.r_rows[0]), int(named.s_rows[0]))
        raise MismatchError(f"result {index}, (r_row, s_row) = {pair}, breaks order {promise}")


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
