"""The result of a live join: the pairs of one round."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from streamjoin.api import joined_table
from streamjoin.tuples import NO_ROW, Int64s, Pairs

if TYPE_CHECKING:
    import pyarrow as pa


class Matches:
    """Pairs that a round has completed.

    Attributes
    ----------
    r_rows, s_rows : ndarray of int64, shape (pairs,)
        Row numbers: the tuples of R and of S pushed before each pair's.
    ts : ndarray of int64, shape (pairs,)
        When the later tuple of each pair arrived, in microseconds; for a row of one side, the time
        of :doc:`docs/semantics`.
    """

    def __init__(
        self, how: str, tables: tuple[Any, Any], pairs: Pairs, named: Pairs, ts: Int64s
    ) -> None:
        self._how, self._tables, self._positions = how, tables, pairs
        self.r_rows, self.s_rows, self.ts = named.r_rows, named.s_rows, ts

    def __len__(self) -> int:
        return len(self.r_rows)

    def __repr__(self) -> str:
        return f"<Matches: {len(self)} pairs>"

    @cached_property
    def pairs(self) -> "pa.Table":
        """The pairs as an Arrow table ``r_row, s_row, ts``."""
        from streamjoin.inputs.files import arrow

        pa = arrow()
        rows = {"r_row": self.r_rows, "s_row": self.s_rows}
        if self._how != "inner":
            rows = {name: pa.array(each, mask=each == NO_ROW) for name, each in rows.items()}
        return pa.table({**rows, "ts": self.ts})  # type: ignore[no-any-return]  # see arrow()

    def table(self, r_suffix: str = "_r", s_suffix: str = "_s") -> "pa.Table":
        """Both sides' columns for every pair; suffixes where names clash.

        Dictionaries are written out.

        Raises
        ------
        InputError
            If what was pushed is not Arrow data, or two columns would get the same name.
        """
        (r_table, s_table), pairs = self._tables, self._positions
        return joined_table((r_table, pairs.r_rows, r_suffix), (s_table, pairs.s_rows, s_suffix))
