"""The IaWJ study's Stock: trades and quotes of the same stocks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamjoin_datagen.kinds.study import MAX_KEYS, StudySpec
from streamjoin_datagen.spec import zipf_meeting

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.fillers import Column


@dataclass(frozen=True, kw_only=True)
class StockSpec(StudySpec):
    """Stock: trades R(k, v) and quotes S(k, v) of the same stocks.

    From the study: a low arrival rate, spikes (many tuples at one time, figure 3), skewed
    keys, low duplication. Read off its published files of one second: 60,527 and 77,227 tuples,
    984 stocks, arrivals at 74 and 84 of the 1000 milliseconds, mostly the same ones, with counts
    as dispersed as exponential ones; 15,598,112 pairs, which is a Zipf exponent of 0.615.

    Parameters
    ----------
    rate_r, rate_s : float
        Tuples a millisecond of the stream, in the mean.
    duration_ms : int
        Length of the input in milliseconds.
    stocks : int
        Keys lie in 1 to this.
    skew : float
        Zipf exponent of the keys of both streams.
    active : float
        Share of the milliseconds at which tuples arrive, those of both streams at the same ones.
    """

    rate_r: float = 60.527
    rate_s: float = 77.227
    duration_ms: int = 1000
    stocks: int = 984
    skew: float = 0.615
    active: float = 0.08

    kind: ClassVar[str] = "stock"
    summary: ClassVar[str] = "like the IaWJ study's Stock: spikes, skewed keys"
    labels: ClassVar[Mapping[str, str]] = {
        "rate_r": "r",
        "rate_s": "s",
        "duration_ms": "t",
        "stocks": "k",
        "skew": "z",
        "active": "a",
    }

    def __post_init__(self) -> None:
        self._check_rates("rate_r", "rate_s", duration_ms=self.duration_ms)
        self._check_count("stocks", 1, MAX_KEYS)
        self._check_number("skew", 0, 2, above=False)
        self._check_number("active", 0, 1, above=True)

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return round((self.rate_r if stream == "r" else self.rate_s) * self.duration_ms)

    @property
    def key_domain(self) -> int:
        """Keys lie in 1 to this."""
        return self.stocks

    def timing(self, stream: str) -> "Timing":
        """Bursts, at the same times in both streams."""
        from streamjoin_datagen.rows.arrivals import burst_slots

        return burst_slots(self.seed, self.rows(stream), self.duration_ms, self.active)

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Zipf keys, frequent stocks being the same in both streams."""
        from streamjoin_datagen.rows import fillers, keys

        law = (self.stocks, self.skew)
        rows = (first_row, row_count)
        return {
            "k": keys.zipf(self.seed, stream, rows, *law, labels=(self.seed, "both")),
            "v": fillers.payloads(self.seed, stream, first_row, row_count),
        }

    def estimated_pairs(self) -> float | None:
        """Pairs within a second, as if the bursts were even."""
        pairs = float(self.rows("r")) * self.rows("s") * zipf_meeting(self.stocks, self.skew)
        return pairs / max(1.0, self.duration_ms / 1000)
