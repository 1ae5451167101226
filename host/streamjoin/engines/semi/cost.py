"""The cost model of MESHJOIN and SSBJ (SSBJ, section 3.2), with measured constants.

Equation 1 gives the memory, equation 2 the cost of a loop, equations 3 to 6 the service rate from
both. It differs from the paper in two points: a thread of its own reads partitions ahead, so a loop
takes the maximum of reading and joining, not their sum; and matches are counted by pairs, as a
tuple may have many.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from streamjoin.errors import InputError
from streamjoin_common.documents import read_json
from streamjoin_common.storage import cache

SHIPPED = Path(__file__).with_name("costs.json")
"""The package's own constants; their evidence is in ``benchmarks/calibration``."""

MIN_PARTITION_ROWS, MAX_PARTITION_ROWS = 64, 1 << 16


@dataclass(frozen=True)
class Loop:
    """The average work of one loop.

    Attributes
    ----------
    rows : float
        Rows of the partition (b).
    row_bytes : int
        Width of a row (v_R).
    cached : float
        Stream tuples joined in the cache (w_N).
    queued : float
        Stream tuples put into H_S, and as many deleted (w_S).
    pairs : float
        Matches of the disk phase.
    cached_pairs : float
        Matches of the cache phase.
    """

    rows: float
    row_bytes: int
    cached: float
    queued: float
    pairs: float
    cached_pairs: float


@dataclass(frozen=True)
class Costs:
    """The constants, in nanoseconds.

    Attributes
    ----------
    read, read_byte : float
        Reading a partition, and each of its bytes (c_I/O).
    loop : float
        An empty loop.
    lookup : float
        Probing H_S with a row of R (c_H).
    hit : float
        Taking a stream tuple that the cache holds (c_S + c_H).
    append : float
        Taking a stream tuple and inserting it into H_S and the queue (c_S + c_A).
    delete : float
        Deleting a stream tuple (c_E).
    output, cached_output : float
        Writing a pair in the disk phase, and in the cache phase (c_O).
    """

    read: float
    read_byte: float
    loop: float
    lookup: float
    hit: float
    append: float
    delete: float
    output: float
    cached_output: float

    def read_ns(self, work: Loop) -> float:
        """Return the cost of reading a partition."""
        return self.read + self.read_byte * work.rows * work.row_bytes

    def join_ns(self, work: Loop) -> float:
        """Return the cost of everything except reading: equation 2."""
        return (
            self.loop
            + self.lookup * work.rows
            + self.hit * work.cached
            + (self.append + self.delete) * work.queued
            + self.output * work.pairs
            + self.cached_output * work.cached_pairs
        )

    def loop_ns(self, work: Loop) -> float:
        """Return the cost of a loop, reading in parallel with joining."""
        return max(self.read_ns(work), self.join_ns(work))

    def to_dict(self) -> dict[str, float]:
        """Plain JSON values."""
        return asdict(self)


def best_partition_rows(costs: Costs, memory_bytes: float, row_bytes: int) -> int:
    """Return the rows of the disk buffer with MESHJOIN's maximum rate (figure 6(b)).

    A larger buffer spreads the cost of a loop over more rows, and leaves less memory for H_S. The
    service rate is the number of tuples in H_S over the time of a cycle.
    """
    rows, best, best_rate = MIN_PARTITION_ROWS, MIN_PARTITION_ROWS, 0.0
    while rows <= MAX_PARTITION_ROWS and 2 * rows * row_bytes <= memory_bytes / 2:
        loop_ns = costs.loop_ns(Loop(rows, row_bytes, 0.0, 0.0, 0.0, 0.0))
        rate = (memory_bytes - 2 * rows * row_bytes) * rows / loop_ns
        if rate > best_rate:
            best, best_rate = rows, rate
        rows += rows // 4
    return best


def calibrated_path() -> Path:
    """Return the path of this machine's own constants."""
    return cache.file("costs.json")


def load(kind: str) -> tuple[Costs, Path]:
    """Read the constants for a kind of store: this machine's, else those of the package.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    path = calibrated_path() if calibrated_path().is_file() else SHIPPED
    try:
        known: dict[str, Any] = read_json(path)["costs"]
        if kind not in known and path != SHIPPED:  # a store that was not measured
            path = SHIPPED
            known = read_json(path)["costs"]
        plain: dict[str, Any] = known[kind]
        return Costs(**{name: float(value) for name, value in plain.items()}), path
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: holds no costs of store {kind} ({error!r}): type "
            "streamjoin advise --calibrate-stores to write it anew"
        ) from None
