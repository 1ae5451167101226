"""The band query that CellJoin, handshake join and SplitJoin were measured with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamjoin_datagen.spec import MAX_KEY, MAX_RATE_PER_S, MAX_SECONDS, WorkloadSpec

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.fillers import Column
    from streamjoin_datagen.rows.seeds import UInt64s


@dataclass(frozen=True, kw_only=True)
class BandSpec(WorkloadSpec):
    """The reference band query of CellJoin, handshake join (section 6.1) and SplitJoin.

    R(x int32, y float32, z string of 20 characters) and S(a int32, b float32, c float64, d bool),
    ``r.x between s.a - lo and s.a + hi and r.y between s.b - lo and s.b + hi``.

    Parameters
    ----------
    rate_r, rate_s : float
        Tuples a second of the stream, which has ``round(rate * duration_s)`` rows.
    duration_s : float
        Length of the input in seconds.
    window : str
        Window of the workload, unless a run is given another.
    domain : int
        Values are uniform in 1 to ``domain``.
    lo, hi : int
        Width of the band, ``lo`` below and ``hi`` above.
    arrivals : str
        Spacing in time, ``regular`` or ``poisson``.

    Raises
    ------
    SpecError
        If a parameter is out of its range.
    """

    rate_r: float = 2000.0
    rate_s: float = 2000.0
    duration_s: float = 10.0
    window: str = "count:1024"
    domain: int = 10_000
    lo: int = 10
    hi: int = 10
    arrivals: str = "regular"

    kind: ClassVar[str] = "band"
    summary: ClassVar[str] = "the reference band query, x=a:10:10 and y=b:10:10"
    labels: ClassVar[Mapping[str, str]] = {
        "rate_r": "r",
        "rate_s": "s",
        "duration_s": "t",
        "window": "w",
        "domain": "d",
        "lo": "lo",
        "hi": "hi",
        "arrivals": "",
    }

    def __post_init__(self) -> None:
        self._check_seed_and_window(self.window)
        self._check_choice("arrivals", "regular", "poisson")
        for name in ("rate_r", "rate_s"):
            self._check_number(name, 0, MAX_RATE_PER_S, above=True)
        self._check_number("duration_s", 0, MAX_SECONDS, above=True)
        self._check_count("domain", 1, MAX_KEY)
        self._check_count("lo", 0, MAX_KEY)
        self._check_count("hi", 0, MAX_KEY)
        for name in ("rate_r", "rate_s"):
            self._check_rows(f"{name} * duration_s", round(getattr(self, name) * self.duration_s))

    @property
    def window_text(self) -> str:
        """The workload's window, unless a run is given another."""
        return self.window

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return round(self._rate_per_s(stream) * self.duration_s)

    def _rate_per_s(self, stream: str) -> float:
        return self.rate_r if stream == "r" else self.rate_s

    def timing(self, stream: str) -> "Timing":
        """When the rows of a stream arrive."""
        from streamjoin_datagen.rows.arrivals import paced

        return paced(self.arrivals, self.seed, stream, self._rate_per_s(stream))

    @property
    def predicate(self) -> dict[str, list[str]]:
        """The join condition, in the command line's spelling."""
        return {"band": [f"x=a:{self.lo}:{self.hi}", f"y=b:{self.lo}:{self.hi}"]}

    def types(self, stream: str) -> dict[str, str]:
        """Arrow's name of the type of each column, ``ts`` aside."""
        if stream == "r":
            return {"x": "int32", "y": "float", "z": "string"}
        return {"a": "int32", "b": "float", "c": "double", "d": "bool"}

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Values uniform in 1 to ``domain``, strings and Booleans beside them."""
        from streamjoin_datagen.rows import fillers
        from streamjoin_datagen.rows.seeds import column_key, hashes, scaled

        def raw(column: str) -> "UInt64s":
            return hashes(column_key(self.seed, stream, column), first_row, row_count)

        integer, real = ("x", "y") if stream == "r" else ("a", "b")
        columns: dict[str, Column] = {
            integer: fillers.from_one(scaled(raw(integer), self.domain)),
            real: fillers.reals(raw(real), self.domain).astype("float32"),
        }
        if stream == "r":
            columns["z"] = fillers.strings([raw("z0"), raw("z1")])
        else:
            columns["c"] = fillers.reals(raw("c"), self.domain)
            columns["d"] = fillers.truths(raw("d"))
        return columns

    def estimated_pairs(self) -> float | None:
        """Pairs of the window: every tuple meets the window's tuples with equal probability."""
        from streamjoin_datagen.estimates import met_tuples

        chance = min(1.0, (self.lo + self.hi + 1) / self.domain)
        if self.domain > 1:  # else all real values are the same
            chance *= min(1.0, (self.lo + self.hi) / (self.domain - 1))
        met = met_tuples(
            self.window,
            rows=(self.rows("r"), self.rows("s")),
            rates_per_s=(self.rate_r, self.rate_s),
        )
        return met * chance
