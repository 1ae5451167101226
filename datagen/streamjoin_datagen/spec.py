"""What every generated workload is, as data: parameters, checked when made, and a name.

Standard library only. A workload's rows are a function of these parameters and the seed, so
two workloads with equal parameters and seed are the same workload. The kinds themselves, one
class each, are in :mod:`streamjoin_datagen.kinds`.
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from streamjoin_common.language.windows import parse_window
from streamjoin_datagen.errors import check_seed, require

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.fillers import Column

MAX_ROWS = (1 << 31) - 1
"""Rows of one stream: row numbers travel as 32-bit payloads."""

MAX_KEY = (1 << 31) - 1
"""Largest domain: keys are int32 and start at 1."""

MAX_RATE_PER_S = 1e8
"""Poisson gaps are integer nanoseconds, so the mean gap must be well above one."""

MAX_SECONDS = 1e9
"""Longest input: sums of integer nanoseconds stay far inside int64."""


@dataclass(frozen=True, kw_only=True)
class WorkloadSpec:
    """What every generated workload has; a subclass adds its parameters and its columns.

    Attributes
    ----------
    kind : str
        The word on the command line.
    labels : mapping of str to str
        What stands before a parameter's value in the workload's name.
    summary : str
        One line for the list of kinds.
    counted_key : str or None
        Column of both streams on which equal rows are pairs, where the kind is an equi-join.
    seedless : bool
        Whether the rows do not depend on the seed, which is 0 then.
    """

    seed: int

    kind: ClassVar[str]
    labels: ClassVar[Mapping[str, str]]
    summary: ClassVar[str]
    counted_key: ClassVar[str | None] = None
    seedless: ClassVar[bool] = False

    @property
    def params(self) -> dict[str, Any]:
        """Every parameter but the seed, as plain JSON values in a fixed order."""
        plain = dataclasses.asdict(self)
        del plain["seed"]
        return plain

    @property
    def name(self) -> str:
        """Name made from the kind, every parameter that is not the default, and the seed."""
        words = [self.kind]
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name != "seed" and value != field.default:
                shown = f"{value:.15g}" if isinstance(value, float) else str(value)
                words.append(self.labels[field.name] + re.sub(r"[^0-9A-Za-z.]", "_", shown))
        return "-".join(words if self.seedless else [*words, f"seed{self.seed}"])

    @property
    def window_text(self) -> str:
        """The workload's window, unless a run is given another."""
        raise NotImplementedError

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        raise NotImplementedError

    def part_rows(self, stream: str, maximum: int) -> int:
        """Rows of a part file, at most ``maximum``."""
        return maximum

    def missing(self) -> str | None:
        """Say what must be installed before this can be generated; None is nothing."""
        return None

    def timing(self, stream: str) -> "Timing":
        """When the rows of a stream arrive."""
        raise NotImplementedError

    @property
    def predicate(self) -> dict[str, list[str]]:
        """The join condition, in the command line's spelling."""
        return {"on": ["k"]}

    def types(self, stream: str) -> dict[str, str]:
        """Arrow's name of the type of each column, ``ts`` aside, in the files' order."""
        return {"k": "int32", "v": "int32"}

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Make the columns of :meth:`types` for a range of rows, whatever other rows are made."""
        raise NotImplementedError

    @property
    def key_domain(self) -> int:
        """Keys of ``counted_key`` lie in 1 to this."""
        raise NotImplementedError

    def estimated_pairs(self) -> float | None:
        """Expected pairs under the workload's own window; None if unknown."""
        raise NotImplementedError

    def _check_seed_and_window(self, window: str) -> None:
        check_seed(self.seed)
        parse_window(window)

    def _check_choice(self, name: str, *choices: str) -> None:
        value = getattr(self, name)
        shown = f"{', '.join(choices[:-1])} or {choices[-1]}"
        require(value in choices, name, shown, value)

    def _check_count(self, name: str, low: int, high: int) -> None:
        value = getattr(self, name)
        ok = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        require(ok, name, f"an integer from {low} to {high}", value)

    def _check_number(self, name: str, low: float, high: float, *, above: bool) -> None:
        value = getattr(self, name)
        ok = isinstance(value, (int, float)) and not isinstance(value, bool)
        ok = ok and math.isfinite(value) and (low < value if above else low <= value)
        start = f"above {low:g}" if above else f"of at least {low:g}"
        require(ok and value <= high, name, f"a number {start} and at most {high:g}", value)
        object.__setattr__(self, name, float(value))

    def _check_rows(self, what: str, rows: float) -> None:
        require(rows <= MAX_ROWS, what, f"at most {MAX_ROWS} rows", rows)


def power_sum(terms: int, exponent: float) -> float:
    """Sum of ``rank**-exponent`` over ranks 1 to ``terms``, to six digits or better."""
    head = min(terms, 4096)
    total = math.fsum(rank**-exponent for rank in range(1, head + 1))
    if terms == head:
        return total
    start, end = head + 0.5, terms + 0.5
    if abs(exponent - 1) < 1e-9:
        return total + math.log(end / start)
    ends: tuple[float, float] = (end ** (1 - exponent), start ** (1 - exponent))
    return total + (ends[0] - ends[1]) / (1 - exponent)


def zipf_meeting(domain: int, skew: float) -> float:
    """Probability that two draws from one Zipf distribution are the same key."""
    squared = power_sum(domain, skew) ** 2
    return power_sum(domain, 2 * skew) / float(squared)
