"""Which column holds the arrival times of each side, and in which unit.

Written ``COL`` for both sides or ``R_COL=S_COL``; ``ts`` by default, and nothing where no column
holds arrival times. Under windows that arrival times decide (``tumbling``, ``time``) both sides
must have one. Under ``all`` and ``count`` a side without one is in arrival order by position. A
column that is named must be there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from streamjoin_common.errors import InputError
from streamjoin_common.language.durations import shown
from streamjoin_common.language.windows import Window, needs_arrivals
from streamjoin_common.spelling import argument, option
from streamjoin_common.suggestions import did_you_mean

DEFAULT = "ts"

Unit = Literal["s", "ms", "us", "ns"]

UNITS: tuple[Unit, ...] = get_args(Unit)
"""Units of arrival times that are integers."""

EPOCH_S = (946_684_800, 4_102_444_800)
"""Seconds of the Unix epoch at the beginnings of the years 2000 and 2100."""

_PER_SECOND = {"s": 1, "ms": 1_000, "ns": 1_000_000_000}


@dataclass(frozen=True)
class ArrivalColumn:
    """The arrival column of one side.

    Attributes
    ----------
    name : str
        What it is called; empty where there is none, whatever the columns are called.
    named : bool
        Whether the user named it: then it must be there.
    window : str
        The window that needs it, as it is written; empty where none does.
    unit : str or None
        Unit of integers; None where none was given, and they are microseconds.
    """

    name: str = DEFAULT
    named: bool = False
    window: str = ""
    unit: str | None = None

    def among(self, have: Sequence[str], source: str) -> str | None:
        """Return the column's name, or None where there is none and none is needed.

        Parameters
        ----------
        have : sequence of str
            The columns that there are.
        source : str
            What errors call the input.

        Raises
        ------
        InputError
            Naming the columns that there are, if it is missing.
        """
        if not self.name:
            return None
        if self.name in have:
            return self.name
        there = ", ".join(have) or "none"
        if self.named:
            near = did_you_mean(self.name, have)
            raise InputError(
                f"{source}: there is no arrival column {self.name!r}; it has {there}{near}"
            )
        if self.window:
            raise InputError(
                f"{source}: window {self.window} needs arrival times and there is no column "
                f"{self.name!r}; it has {there}: name the arrival column with {option('ts', 'COL')}"
            )
        return None

    @property
    def otherwise(self) -> str:
        """The end of a refusal of its values: what to do if it holds no arrival times at all."""
        if self.named or self.window:
            return ""
        typed = option("ts")
        nothing = f"{typed}''" if typed.endswith("=") else f"{typed} ''"
        return f"; if {self.name!r} holds no arrival times, give {nothing}"

    def hint(self, first: int, last: int, source: str) -> str | None:
        """Say so where integers that are taken as microseconds look like another unit.

        Parameters
        ----------
        first, last : int
            The first and the last arrival time, as they were given.
        """
        if self.unit is not None:
            return None
        for unit, scale in _PER_SECOND.items():
            if EPOCH_S[0] * scale <= first <= last < EPOCH_S[1] * scale:
                return (
                    f"{source}: the integers in {self.name!r} are taken as microseconds and look "
                    f"like {unit} since 1970: if they are, add {option('ts_unit', unit)}, or "
                    "store them as timestamps"
                )
        return None


@dataclass(frozen=True)
class Arrivals:
    """The arrival columns of both sides."""

    r: ArrivalColumn = ArrivalColumn()
    s: ArrivalColumn = ArrivalColumn()

    @classmethod
    def parse(
        cls, ts: str | None = None, unit: str | None = None, window: Window | None = None
    ) -> "Arrivals":
        """Read ``COL`` or ``R_COL=S_COL`` and a unit.

        Parameters
        ----------
        ts : str, optional
            The columns; empty for none.
        unit : str, optional
            Of :data:`UNITS`: what integers count.
        window : Window, optional
            The window of the join.

        Raises
        ------
        InputError
            If the columns or the unit cannot be read.

        Examples
        --------
        >>> Arrivals.parse("sent=received").s.name
        'received'
        """
        if unit is not None and unit not in UNITS:
            raise InputError(f"{argument('ts_unit')} is s, ms, us or ns, not {shown(unit)}")
        needing = window.text if window is not None and needs_arrivals(window) else ""
        if ts is None:
            side = ArrivalColumn(DEFAULT, False, needing, unit)
            return cls(side, side)
        if not isinstance(ts, str):
            raise InputError(f"ts must be a column's name, or two as 'sent=received', not {ts!r}")
        if not ts:
            if needing:
                raise InputError(
                    f"window {needing} needs arrival times: name their column with "
                    f"{option('ts', 'COL')}"
                )
            return cls(ArrivalColumn(ts), ArrivalColumn(ts))
        left, equals, right = ts.partition("=")
        if not left or (equals and not right) or "=" in right:
            raise InputError(f"an arrival column is COL or R_COL=S_COL, not {shown(ts)}")
        return cls(
            ArrivalColumn(left, True, needing, unit),
            ArrivalColumn(right or left, True, needing, unit),
        )
