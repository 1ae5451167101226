"""Join columns of a relation in a store as 64-bit codes, by the stream's values.

The stream is in memory and the relation is not, so a dictionary is made of the stream's values, and
a row of R that holds none of them gets a code that no stream tuple has. Integers in a single column
are their own codes. Both are exact for any type that a join compares.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines import codes, numbering
from streamjoin.engines.job import Job
from streamjoin.errors import InputError
from streamjoin.inputs.agreement import no_values
from streamjoin.inputs.conversion import plain
from streamjoin.inputs.strings import Strings
from streamjoin.relations import Partition, Projection, Store
from streamjoin.relations.base import Columns, Words, key_words
from streamjoin.relations.stream import StoredRelation, arrivals
from streamjoin_common.language.windows import TumblingWindow

Values = NDArray[Any]
Missing = NDArray[np.bool_] | None
Ranks = NDArray[np.int64]

ABSENT = -1
"""Rank of a value that the stream does not hold."""

SIGN = np.uint64(1 << 63)
FIRST_ROWS = 1 << 10
MAX_NUMBERS = 1 << 32
"""Limit of row numbers: results hold 32 bits of them."""


class Dictionary:
    """Ranks of one column's values among those of the stream.

    Parameters
    ----------
    values : ndarray or Strings
        The stream's column: integers or strings.
    missing : ndarray of bool, or None
        Which values are missing.
    """

    def __init__(self, values: Values | Strings, missing: Missing) -> None:
        present = values if missing is None else values[~missing]
        self.is_string = values.dtype.kind == "O"
        if self.is_string:
            strings = Strings.of(present)
            rows = np.empty(len(strings), dtype=np.int64)
            numbering.number_strings(strings, rows)
            self._known = strings[rows == np.arange(len(rows))].copy()
            self._table = numbering.number_strings(self._known, rows[: len(self._known)])
        else:
            wide = np.uint64 if values.dtype.kind == "u" else np.int64
            self._values = np.unique(np.asarray(present).astype(wide))

    def __len__(self) -> int:
        return len(self._known) if self.is_string else len(self._values)

    def ranks(self, values: Values | Strings, missing: Missing) -> Ranks:
        """Return the rank of each value; :data:`ABSENT` for unknown and missing ones."""
        ranks = np.full(len(values), ABSENT)
        if self.is_string:
            numbering.find_strings(Strings.of(values), self._known, self._table, ranks, ABSENT)
        elif len(self._values):
            ranks = self._integer_ranks(np.asarray(values))
        if missing is not None:
            ranks[missing] = ABSENT
        return ranks

    def _integer_ranks(self, values: Values) -> Ranks:
        signed, kind = self._values.dtype.kind == "i", values.dtype.kind
        if signed != (kind == "i"):  # values that one type has and the other has not
            wide = values.astype(np.uint64 if kind == "u" else np.int64)
            beyond = wide.view(np.uint64) >= SIGN
            values = np.where(beyond, 0, wide).astype(self._values.dtype)
        else:
            beyond = np.zeros(len(values), dtype=np.bool_)
            values = values.astype(self._values.dtype, copy=False)
        positions = np.minimum(np.searchsorted(self._values, values), len(self._values) - 1)
        positions[beyond | (self._values[positions] != values)] = ABSENT
        return positions


class KeyCoder:
    """Encodes rows of R: a row's code equals a stream tuple's code if the two join.

    Parameters
    ----------
    job : Job
        Whose R is in a store.
    stored : StoredRelation
        That R.
    first : mapping
        The first rows of R's columns, for their types.

    Attributes
    ----------
    s_words : ndarray of uint64, shape (s rows,)
        The stream's codes.
    """

    def __init__(self, job: Job, stored: StoredRelation, first: Columns) -> None:
        self._source, self._ts_column = stored.relation.text, stored.ts_column
        self._ts_unit = stored.ts_unit
        self._window_us = job.window.length_us if isinstance(job.window, TumblingWindow) else None
        self._columns = [term.r_column for term in job.predicate.terms]
        s = [_plain(job.s.held(term.s_column), job.s.missing) for term in job.predicate.terms]
        self._are_strings = [values.dtype.kind == "O" for values, _ in s]
        self._first_kind: str | None = None
        if self._are_words(s, first):
            self._first_kind = _plain(*first[self._columns[0]])[0].dtype.kind
            self.s_words = key_words(np.asarray(s[0][0]))
            self._nobody = _unused(self.s_words)
            return
        if self._window_us is not None:
            s.append((job.s.ts // self._window_us, None))
        self._dictionaries = [Dictionary(values, missing) for values, missing in s]
        self._combined: list[Ranks] = []
        ranks = self._ranks(s, learn=True)
        # A stream tuple without a value must not join with a row without one: their codes differ.
        self._nobody = np.uint64(job.s.rows)
        self.s_words = np.where(ranks == ABSENT, job.s.rows + 1, ranks).astype(np.uint64)

    def words(self, columns: Columns) -> Words:
        """Return the codes of some rows of R.

        Raises
        ------
        InputError
            If a column's type differs from that of the first rows.
        """
        read = [self._checked(columns, index) for index in range(len(self._columns))]
        values, missing = read[0]
        if self._first_kind is not None:
            words = key_words(np.asarray(values))
            return words if missing is None else np.where(missing, self._nobody, words)
        if self._window_us is not None:
            ts = arrivals(columns, self._ts_column, self._source, len(values), self._ts_unit)
            read.append((ts // self._window_us, None))
        ranks = self._ranks(read, learn=False)
        words = ranks.astype(np.uint64)
        words[ranks == ABSENT] = self._nobody
        return words

    def _are_words(self, s: list[tuple[Any, Missing]], first: Columns) -> bool:
        """Whether codes are the values: one column of integers, all of them distinct as codes."""
        if len(s) > 1 or self._window_us is not None or s[0][1] is not None or self._are_strings[0]:
            return False
        values, missing = _plain(*first[self._columns[0]])
        if not len(values) or (missing is not None and missing.all()):
            return False  # its type is not known
        alike = (values.dtype.kind == "u") == (s[0][0].dtype.kind == "u")
        return alike or not (key_words(s[0][0]) >= SIGN).any()

    def _ranks(self, columns: Sequence[tuple[Values | Strings, Missing]], *, learn: bool) -> Ranks:
        """Return the rank of each row's combined values; ``learn`` records combinations."""
        ranks, *more = (
            each.ranks(*column) for each, column in zip(self._dictionaries, columns, strict=True)
        )
        for index, (each, others) in enumerate(zip(self._dictionaries[1:], more, strict=True)):
            wide = np.where((ranks < 0) | (others < 0), ABSENT, ranks * len(each) + others)
            if learn:
                self._combined.append(np.unique(wide[wide != ABSENT]))
            ranks = _among(self._combined[index], wide)
        return ranks

    def _checked(self, columns: Columns, index: int) -> tuple[Values | Strings, Missing]:
        name = self._columns[index]
        values, missing = _plain(*columns[name])
        kind = values.dtype.kind
        changed = self._first_kind is not None and kind != self._first_kind
        if changed or (kind == "O") != self._are_strings[index] or kind not in "iuO":
            if (missing is not None and missing.all()) or not len(values):
                wanted = np.dtype(object if self._are_strings[index] else np.int64)
                return no_values(len(values), wanted), np.ones(len(values), np.bool_)
            raise InputError(
                f"{self._source}: column {name!r} is {values.dtype} now, which does not compare "
                "with the stream's: start the join anew"
            )
        return values, missing


class CodedStore(Store):
    """A relation in a store, read for its join columns alone.

    Parameters
    ----------
    job : Job
        Whose R is in a store.
    stored : StoredRelation
        That R.

    Attributes
    ----------
    s_words : ndarray of uint64, shape (s rows,)
        The stream's codes.
    """

    def __init__(self, job: Job, stored: StoredRelation) -> None:
        self._inner: Store = stored.open(with_ts=isinstance(job.window, TumblingWindow))
        try:
            _, first = self._inner.columns(0, min(FIRST_ROWS, self._inner.positions))
            self._coder = KeyCoder(job, stored, first)
        except BaseException:
            self._inner.close()
            raise
        self.s_words = self._coder.s_words
        super().__init__(self._inner.location, Projection())

    @property
    def kind(self) -> str:  # type: ignore[override]  # that of what it reads
        """The relation's kind of store."""
        return self._inner.kind

    @property
    def positions(self) -> int:
        """Current number of positions."""
        return self._inner.positions

    @property
    def read_bytes(self) -> int:
        """Bytes that are read of a row."""
        return max(self.row_bytes, self._inner.read_bytes)

    def read(self, first: int, end: int) -> Partition:
        """Read rows, and encode their join columns."""
        numbers, columns = self._inner.columns(first, end)
        if len(numbers) and int(numbers.max()) >= MAX_NUMBERS:
            raise InputError(
                f"{self.location}: row number {int(numbers.view(np.int64).max())} does not "
                "fit into 32 bits: name rows by a smaller number"
            )
        return Partition(self._coder.words(columns), numbers, np.zeros(1, dtype=np.uint64))

    def interrupt(self) -> None:
        """Interrupt a read that hangs."""
        self._inner.interrupt()

    def reopen(self) -> None:
        """Open anew after a failure."""
        self._inner.reopen()

    def _open(self) -> None:
        self.names = self._inner.names

    def close(self) -> None:
        """Close the store."""
        self._inner.close()


def _plain(values: Any, missing: Missing) -> tuple[Values | Strings, Missing]:
    """Return integers or strings that are equal where values are, and which are missing."""
    values = plain(values)
    if isinstance(values, Strings) or values.dtype.kind != "f":
        return values, missing
    nothing = np.isnan(values)
    if nothing.any():
        missing = nothing if missing is None else missing | nothing
    return codes.float_bits(values.astype(np.float64)), missing


def _among(known: Ranks, wide: Ranks) -> Ranks:
    """Return the rank of combinations among the known ones."""
    if not len(known):
        return np.full(len(wide), ABSENT)
    positions = np.minimum(np.searchsorted(known, wide), len(known) - 1)
    positions[known[positions] != wide] = ABSENT
    return positions


def _unused(words: Words) -> np.uint64:
    """Return a code that does not occur: of ``len(words) + 1`` candidates one is free."""
    used = np.zeros(len(words) + 1, dtype=np.bool_)
    used[words[words <= len(words)]] = True
    return np.uint64(np.argmin(used))
