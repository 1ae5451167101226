"""Streams of tuples, their arrival order, and the digest of a set of pairs.

A stream is a table with an arrival column ``ts`` (int64 microseconds, never decreasing). A row
is named by its 0-based position. Both streams have one total arrival order: by ``ts``, then R
before S, then position.
"""

import functools
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError
from streamjoin_common.suggestions import did_you_mean

Int64s = NDArray[np.int64]
Rows = NDArray[np.uint32] | NDArray[np.int64]

NO_ROW = -1
"""Row number of a side that a result's row lacks."""

DIGEST_STEP_PAIRS = 1 << 16
"""Pairs mixed at once: what a digest needs beside the pairs stays in the cache."""


class Clock(NamedTuple):
    """What sentences about arrival times call them: the column, and whether it holds dates.

    A refusal of them ends with ``otherwise``.
    """

    name: str = "ts"
    dated: bool = False
    otherwise: str = ""

    @property
    def column(self) -> str:
        """The column's name, in quotes where it is no plain word."""
        return self.name if self.name.isidentifier() else repr(self.name)

    def shown(self, us: int) -> str:
        """Write an arrival time in microseconds, a date as ISO 8601 has it.

        Examples
        --------
        >>> Clock("seen", True).shown(1_714_557_780_000_000), Clock().shown(60)
        ('2024-05-01T10:03:00', '60')
        """
        if not self.dated:
            return str(us)
        return str(np.datetime64(int(us), "us")).removesuffix(".000000")

    def back(self, row: int, before_us: int, us: int) -> str:
        """Say that the time of a row is before the one of the row before it."""
        return (
            f"{self.column} goes back at row {row}, from {self.shown(before_us)} to "
            f"{self.shown(us)}"
        )


CLOCK = Clock()
"""Of arrival times that have no other name."""


@dataclass(frozen=True)
class Stream:
    """One input of a join.

    Attributes
    ----------
    columns : mapping of str to ndarray or Strings
        The columns by name, each of length ``rows``, without ``ts``. Strings that came from Arrow
        are :class:`~streamjoin.inputs.strings.Strings`: bytes, not Python objects.
    ts : ndarray of int64, shape (rows,)
        Arrival times in microseconds, never decreasing.
    source : str
        What errors call it: a file's path, or ``"r"`` or ``"s"``.
    table : pyarrow.Table, Arrays, Later or None
        The whole input, for looking rows up at the end; None where there is nothing to look up.
    missing : ndarray of bool, shape (rows,), or None
        Rows that lack the value of a column: they arrive, they take their place in a count
        window, and they match nothing. None where no row does.
    numbers : ndarray of int64, shape (rows,), or None
        What each row is called in results; None where it is called by its position.
    late : int
        Tuples that arrived too late to be among the rows.
    clock : Clock
        What errors call the arrival times.

    Other Parameters
    ----------------
    in_order : bool
        Whether arrival times are known not to go back: they are not checked then.

    Raises
    ------
    InputError
        If a column's length differs or an arrival time goes back, naming the row.
    """

    columns: Mapping[str, Any]
    ts: Int64s
    source: str
    table: Any = None
    missing: NDArray[np.bool_] | None = None
    numbers: Int64s | None = None
    late: int = 0
    clock: Clock = CLOCK
    in_order: InitVar[bool] = False

    in_memory: ClassVar[bool] = True
    """Whether columns and arrival times are here; false of a relation in a store."""

    def __post_init__(self, in_order: bool) -> None:
        for name, column in self.columns.items():
            if len(column) != self.rows:
                raise InputError(
                    f"{self.source}: column {name!r} has {len(column)} rows and ts {self.rows}"
                )
        if not in_order and len(self.ts) > 1 and (falls := self.ts[1:] < self.ts[:-1]).any():
            row = int(np.flatnonzero(falls)[0]) + 1
            raise InputError(
                f"{self.source}: {self.clock.back(row, self.ts[row - 1], self.ts[row])}: sort the "
                f"input by {self.clock.column}, or give a lateness{self.clock.otherwise}"
            )

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return len(self.ts)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column as an array: strings as Python objects.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        return np.asarray(self.held(name))

    def held(self, name: str) -> Any:
        """Return a column as it is held: strings that came from Arrow as bytes.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        if name not in self.columns:
            have = ", ".join(sorted(self.columns)) or "none"
            near = did_you_mean(name, self.columns)
            raise InputError(f"{self.source}: there is no column {name!r}; it has {have}{near}")
        return self.columns[name]

    def named(self, rows: Rows) -> Rows:
        """What results call these rows."""
        return rows if self.numbers is None else self.numbers[rows]

    def named_or_none(self, rows: Rows) -> Rows:
        """What results call these rows, of which some may be :data:`NO_ROW`."""
        return rows if self.numbers is None else named_or_none(self.numbers, rows)

    def latest_ts(self, rows: Rows, ts: Int64s) -> Int64s:
        """Return the later of each row's arrival time and a given one."""
        return np.maximum(self.ts[rows], ts)

    def take(self, rows: Int64s) -> "Stream":
        """Copy of these rows, which are in order."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        missing = None if self.missing is None else self.missing[rows]
        return Stream(columns, self.ts[rows], self.source, missing=missing)

    def slice(self, start: int, stop: int) -> "Stream":
        """View of the rows ``start`` to ``stop``, sharing memory."""
        columns = {name: column[start:stop] for name, column in self.columns.items()}
        missing = None if self.missing is None else self.missing[start:stop]
        ts = self.ts[start:stop]
        return Stream(columns, ts, self.source, missing=missing, in_order=True)


def whole(given: object) -> int | None:
    """Return an integer of Python's or NumPy's as Python's, None for anything else or a bool.

    Examples
    --------
    >>> whole(np.int8(3)), whole(True), whole(3.0)
    (3, None, None)
    """
    is_whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    return int(given) if is_whole else None  # type: ignore[call-overload]  # as it is one


def arrival_positions(r_ts: Int64s, s_ts: Int64s) -> tuple[Int64s, Int64s]:
    """Position of every tuple in the one arrival order of both streams.

    Parameters
    ----------
    r_ts, s_ts : ndarray of int64
        Arrival times in microseconds, never decreasing.

    Returns
    -------
    r_positions, s_positions : ndarray of int64
        Together a permutation of ``range(len(r_ts) + len(s_ts))``.

    Examples
    --------
    >>> r, s = arrival_positions(np.array([0, 5]), np.array([0, 3]))
    >>> r.tolist(), s.tolist()
    ([0, 3], [1, 2])
    """
    s_before_r = np.searchsorted(s_ts, r_ts, side="left")
    r_before_s = np.searchsorted(r_ts, s_ts, side="right")
    return (
        np.arange(len(r_ts), dtype=np.int64) + s_before_r,
        np.arange(len(s_ts), dtype=np.int64) + r_before_s,
    )


def arrival_order(r_ts: Int64s, s_ts: Int64s) -> tuple[NDArray[np.bool_], Int64s]:
    """Both streams merged in arrival order.

    Returns
    -------
    is_s : ndarray of bool, shape (n_r + n_s,)
        Whether the tuple at that place of the order is of S.
    rows : ndarray of int64, shape (n_r + n_s,)
        Its row in its own stream.
    """
    r_positions, s_positions = arrival_positions(r_ts, s_ts)
    is_s = np.zeros(len(r_ts) + len(s_ts), dtype=np.bool_)
    rows = np.empty(len(is_s), dtype=np.int64)
    is_s[s_positions] = True
    rows[r_positions] = np.arange(len(r_ts))
    rows[s_positions] = np.arange(len(s_ts))
    return is_s, rows


@dataclass(frozen=True)
class Pairs:
    """A join's result by row numbers.

    Attributes
    ----------
    r_rows, s_rows : ndarray of uint32 or int64, shape (pairs,)
        Row of R and of S, in the order in which the pairs were produced; :data:`NO_ROW` for a
        side that is missing, and both are int64 then.
    """

    r_rows: Rows
    s_rows: Rows

    def __len__(self) -> int:
        return len(self.r_rows)

    @classmethod
    def of(cls, rows: list[tuple[int, int]]) -> "Pairs":
        """Pairs from a list of ``(r_row, s_row)``."""
        both = np.array(rows, dtype=np.int64).reshape(-1, 2)
        return cls(both[:, 0].copy(), both[:, 1].copy())

    @functools.cached_property
    def digest(self) -> str:
        """The pairs' order-insensitive digest: 16 hexadecimal digits.

        The sum modulo 2**64 of a 64-bit mix (SplitMix64's finaliser) of each pair, so that
        engines that emit the same multiset in any order agree.
        """
        total = 0
        for start in range(0, len(self), DIGEST_STEP_PAIRS):
            step = slice(start, start + DIGEST_STEP_PAIRS)
            r = self.r_rows[step].astype(np.uint64)
            s = self.s_rows[step].astype(np.uint64)
            mixed = _mix64(_mix64(r + np.uint64(1)) ^ s)
            total += int(np.add.reduce(mixed, dtype=np.uint64))
        return f"{total % (1 << 64):016x}"

    def in_row_order(self) -> "Pairs":
        """The pairs ordered by R row, then S row."""
        order = np.lexsort((self.s_rows, self.r_rows))
        return Pairs(self.r_rows[order], self.s_rows[order])

    def difference(self, expected: "Pairs") -> str | None:
        """Say how these pairs differ from the expected ones, or None if they do not.

        The sentence names the first missing and the first surplus pair in row order.
        """
        mine, theirs = _counted(self), _counted(expected)
        missing = sorted(pair for pair, times in theirs.items() if mine.get(pair, 0) < times)
        surplus = sorted(pair for pair, times in mine.items() if theirs.get(pair, 0) < times)
        if not missing and not surplus:
            return None
        parts = [f"{len(self)} pairs where {len(expected)} are right"]
        if missing:
            parts.append(f"first missing (r_row, s_row) = {shown_pair(*missing[0])}")
        if surplus:
            parts.append(f"first surplus (r_row, s_row) = {shown_pair(*surplus[0])}")
        return "; ".join(parts)


def lacking(rows: Rows) -> NDArray[np.bool_] | None:
    """Return which rows are :data:`NO_ROW`; None where none is. Unsigned ones are not looked at.

    Examples
    --------
    >>> lacking(np.array([3, -1])), lacking(np.array([3], dtype=np.uint32))
    (array([False,  True]), None)
    """
    if rows.dtype.kind == "u":
        return None
    missing = rows < 0
    return missing if missing.any() else None


def named_or_none(numbers: Int64s, rows: Rows) -> Int64s:
    """Return the numbers of rows, of which some may be :data:`NO_ROW` and stay so."""
    names = np.full(len(rows), NO_ROW, dtype=np.int64)
    there = rows != NO_ROW
    names[there] = numbers[rows[there]]
    return names


def shown_pair(r_row: int, s_row: int) -> str:
    """Write a pair for an error."""
    r, s = ("null" if row == NO_ROW else str(row) for row in (r_row, s_row))
    return f"({r}, {s})"


def _counted(pairs: Pairs) -> dict[tuple[int, int], int]:
    both = np.stack([pairs.r_rows.astype(np.int64), pairs.s_rows.astype(np.int64)], axis=1)
    unique, times = np.unique(both, axis=0, return_counts=True)
    return {(int(r), int(s)): int(t) for (r, s), t in zip(unique, times, strict=True)}


def _mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
