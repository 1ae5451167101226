"""The IaWJ study's YSB: campaigns at rest and a stream of advertisement events."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamjoin_datagen.errors import require
from streamjoin_datagen.kinds.study import StudySpec
from streamjoin_datagen.spec import MAX_KEY, MAX_ROWS

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.fillers import Column


@dataclass(frozen=True, kw_only=True)
class YsbSpec(StudySpec):
    """YSB: campaigns R(k, v) at rest, advertisement events S(k, ad, event).

    From the study: 1000 campaigns, a stream of events at a high, even rate, no key twice in
    R, high duplication in S. Assumed: every event's advertisement is drawn uniformly, as Yahoo's
    generator does, and 10,000 events a millisecond.

    Parameters
    ----------
    rate : float
        Events a millisecond.
    duration_ms : int
        Length of the input in milliseconds.
    campaigns : int
        Rows of R, with keys 1 to this.
    ads : int
        Advertisements of a campaign.
    """

    rate: float = 10_000.0
    duration_ms: int = 1000
    campaigns: int = 1000
    ads: int = 10

    kind: ClassVar[str] = "ysb"
    summary: ClassVar[str] = "like its YSB: campaigns at rest, a fast stream of events"
    labels: ClassVar[Mapping[str, str]] = {
        "rate": "v",
        "duration_ms": "t",
        "campaigns": "k",
        "ads": "ads",
    }

    def __post_init__(self) -> None:
        self._check_rates("rate", duration_ms=self.duration_ms)
        self._check_count("campaigns", 1, MAX_ROWS)
        self._check_count("ads", 1, MAX_ROWS)
        ads = self.campaigns * self.ads
        require(ads <= MAX_KEY, "campaigns * ads", f"at most {MAX_KEY}", ads)

    @property
    def window_text(self) -> str:
        """R is a table, so every event meets it."""
        return "all"

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return self.campaigns if stream == "r" else round(self.rate * self.duration_ms)

    @property
    def key_domain(self) -> int:
        """Keys lie in 1 to this."""
        return self.campaigns

    def timing(self, stream: str) -> "Timing":
        """R is at rest, S regular."""
        from streamjoin_datagen.rows.arrivals import Regular

        return Regular(0.0 if stream == "r" else self.rate * 1e3)

    def types(self, stream: str) -> dict[str, str]:
        """Arrow's name of the type of each column, ``ts`` aside."""
        if stream == "r":
            return {"k": "int32", "v": "int32"}
        return {"k": "int32", "ad": "int32", "event": "int32"}

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Every campaign once; events of random advertisements, of three types."""
        from streamjoin_datagen.rows import fillers, keys
        from streamjoin_datagen.rows.seeds import column_key, hashes, scaled

        rows = (first_row, row_count)
        if stream == "r":
            size, labels = (self.campaigns, 1), (self.seed, "r")
            values = keys.dealt(self.seed, stream, rows, size, self.campaigns, labels=labels)
            return {"k": values, "v": fillers.payloads(self.seed, stream, *rows)}
        ads = scaled(hashes(column_key(self.seed, stream, "ad"), *rows), self.campaigns * self.ads)
        events = scaled(hashes(column_key(self.seed, stream, "event"), *rows), 3)
        return {
            "k": fillers.from_one(ads // self.ads),
            "ad": fillers.from_one(ads),
            "event": events.astype("int32"),
        }

    def estimated_pairs(self) -> float | None:
        """Every event meets its campaign: exact."""
        return float(self.rows("s"))
