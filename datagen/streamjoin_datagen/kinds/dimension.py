"""A dimension table whose keys repeat, and a stream that looks them up by Zipf's law."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamjoin_datagen.spec import MAX_KEY, MAX_RATE_PER_S, MAX_ROWS, WorkloadSpec

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.fillers import Column


@dataclass(frozen=True, kw_only=True)
class DimensionSpec(WorkloadSpec):
    """The synthetic data of SSBJ (section 4.1, table 2): R(k, v) at rest, a stream S(k, v).

    R's keys are drawn uniformly with repetition, so some occur several times and about a share
    1/e in no row; S draws from a Zipf distribution over the same domain. The paper's rows have
    120 and 20 bytes: the stores of the semi-stream joins pad them (``--set r_bytes=120``).

    Parameters
    ----------
    r_tuples : int
        Rows of the dimension table. The paper has 20 to 100 million.
    s_tuples : int
        Rows of the stream.
    skew : float
        Zipf exponent of the stream, 0 to 2. The paper has 0 to 1.
    domain : int
        Keys lie in 1 to this; 0 takes as many as R has rows.
    rate : float
        Stream tuples a millisecond; 0 is data at rest.

    Raises
    ------
    SpecError
        If a parameter is out of its range.
    """

    r_tuples: int = 1_000_000
    s_tuples: int = 1_000_000
    skew: float = 1.0
    domain: int = 0
    rate: float = 0.0

    kind: ClassVar[str] = "zipf-master"
    summary: ClassVar[str] = "SSBJ's dimension table with repeated keys, and its Zipf stream"
    counted_key: ClassVar[str | None] = "k"
    labels: ClassVar[Mapping[str, str]] = {
        "r_tuples": "r",
        "s_tuples": "s",
        "skew": "z",
        "domain": "d",
        "rate": "v",
    }

    def __post_init__(self) -> None:
        self._check_seed_and_window("all")
        self._check_count("r_tuples", 0, MAX_ROWS)
        self._check_count("s_tuples", 0, MAX_ROWS)
        self._check_number("skew", 0, 2, above=False)
        self._check_count("domain", 0, MAX_KEY)
        self._check_number("rate", 0, MAX_RATE_PER_S / 1e3, above=False)

    @property
    def window_text(self) -> str:
        """R is a dimension table: no window bounds it."""
        return "all"

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return self.r_tuples if stream == "r" else self.s_tuples

    @property
    def key_domain(self) -> int:
        """The domain in force: keys lie in 1 to this."""
        return self.domain or max(1, self.r_tuples)

    def timing(self, stream: str) -> "Timing":
        """R is at rest, S regular."""
        from streamjoin_datagen.rows.arrivals import Regular

        return Regular(0.0 if stream == "r" else self.rate * 1e3)

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Uniform keys in R, Zipf keys in S, random payloads."""
        from streamjoin_datagen.rows import fillers, keys

        rows = (first_row, row_count)
        if stream == "r":
            values = keys.uniform(self.seed, stream, rows, self.key_domain)
        else:
            law = (self.key_domain, self.skew)
            values = keys.zipf(self.seed, stream, rows, *law, labels=(self.seed, "both"))
        return {"k": values, "v": fillers.payloads(self.seed, stream, first_row, row_count)}

    def estimated_pairs(self) -> float | None:
        """Every stream tuple meets ``r_tuples / domain`` rows in the mean, whatever the skew."""
        return float(self.r_tuples) * self.s_tuples / self.key_domain
