"""Generators in the likeness of the IaWJ study's four real workloads (section 4.2.1).

What the study's text says of them is in each class; figures that it does not name are read off
the files that its authors published, and said to be so. The rows themselves are random: only
these figures are the real data's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamjoin_datagen.errors import require
from streamjoin_datagen.spec import (
    MAX_KEY,
    MAX_RATE_PER_S,
    MAX_ROWS,
    WorkloadSpec,
    zipf_meeting,
)

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.tables import Column

MAX_MS = 1 << 22
"""Milliseconds for which a worker holds a table of arrivals."""

MAX_KEYS = 1 << 24
STUDY_WINDOW = "tumbling:1s"


class _Keyed(WorkloadSpec):
    """What the four have in common: keys ``k``, one column more, pairs that can be counted."""

    counted_key: ClassVar[str | None] = "k"

    def _check_rates(self, *names: str, duration_ms: int) -> None:
        self._check_seed_and_window("all")
        self._check_count("duration_ms", 1, MAX_MS)
        for name in names:
            self._check_number(name, 0, MAX_RATE_PER_S / 1e3, above=True)
            self._check_rows(f"{name} * duration_ms", getattr(self, name) * duration_ms)

    @property
    def window_text(self) -> str:
        """The study joins within one second."""
        return STUDY_WINDOW


@dataclass(frozen=True, kw_only=True)
class StockSpec(_Keyed):
    """Stock: trades R(k, v) and quotes S(k, v) of the same stocks.

    Said by the study: a low arrival rate, spikes (many tuples at one time, figure 3), skewed
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


@dataclass(frozen=True, kw_only=True)
class RovioSpec(_Keyed):
    """Rovio: advertisements R(k, price) and purchases S(k, price) of a game's users.

    Said by the study: a low and steady arrival rate (figure 3), high duplication, little skew.
    Read off its published file of six seconds: 58,300 tuples, joined with themselves, in batches
    of 100 every 10.3 ms; 160 keys whose frequencies fall from 900 to 8 about as the power 1.79
    of the ranks left, which gives the file's 36,002,768 pairs; prices 0 to 999.

    Parameters
    ----------
    rate : float
        Tuples a millisecond of each stream.
    duration_ms : int
        Length of the input in milliseconds.
    users : int
        Keys lie in 1 to this.
    shape : float
        Power of the ranks left that the keys' frequencies fall by, 0 to 10; 0 is uniform.
    batch_tuples : int
        Tuples that arrive at a time.
    streams : str
        Whether R and S are the same tuples, ``self``, or drawn apart, ``two``.
    """

    rate: float = 9.7167
    duration_ms: int = 6000
    users: int = 160
    shape: float = 1.79
    batch_tuples: int = 100
    streams: str = "self"

    kind: ClassVar[str] = "rovio"
    summary: ClassVar[str] = "like its Rovio: steady batches, few keys, high duplication"
    labels: ClassVar[Mapping[str, str]] = {
        "rate": "v",
        "duration_ms": "t",
        "users": "k",
        "shape": "a",
        "batch_tuples": "b",
        "streams": "",
    }

    def __post_init__(self) -> None:
        self._check_rates("rate", duration_ms=self.duration_ms)
        self._check_count("users", 1, MAX_KEYS)
        self._check_number("shape", 0, 10, above=False)
        self._check_count("batch_tuples", 1, MAX_ROWS)
        self._check_choice("streams", "self", "two")

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return round(self.rate * self.duration_ms)

    @property
    def key_domain(self) -> int:
        """Keys lie in 1 to this."""
        return self.users

    def timing(self, stream: str) -> "Timing":
        """Batches, evenly spaced."""
        from streamjoin_datagen.rows.arrivals import batch_slots

        return batch_slots(self.rows(stream), self.rate, self.batch_tuples)

    def types(self, stream: str) -> dict[str, str]:
        """Arrow's name of the type of each column, ``ts`` aside."""
        return {"k": "int32", "price": "int32"}

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Users and prices."""
        from streamjoin_datagen.rows import keys
        from streamjoin_datagen.rows.seeds import column_key, hashes, scaled

        source = "both" if self.streams == "self" else stream
        law = (self.users, self.shape)
        rows = (first_row, row_count)
        prices = scaled(hashes(column_key(self.seed, source, "price"), *rows), 1000)
        return {
            "k": keys.falling(self.seed, source, rows, *law, labels=(self.seed, "both")),
            "price": prices.astype("int32"),
        }

    def estimated_pairs(self) -> float | None:
        """Pairs within a second."""
        # The frequencies as if there were many keys; of few, a pair cannot be more than certain.
        share = max(1.0, (2 * self.shape + 1) / (self.shape + 1) ** 2 * self.users)
        return float(self.rows("r")) ** 2 / share / max(1.0, self.duration_ms / 1000)


@dataclass(frozen=True, kw_only=True)
class YsbSpec(_Keyed):
    """YSB: campaigns R(k, v) at rest, advertisement events S(k, ad, event).

    Said by the study: 1000 campaigns, a stream of events at a high, even rate, no key twice in
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
            found = keys.dealt(self.seed, stream, rows, size, self.campaigns, labels=labels)
            return {"k": found, "v": fillers.payloads(self.seed, stream, *rows)}
        ads = scaled(hashes(column_key(self.seed, stream, "ad"), *rows), self.campaigns * self.ads)
        events = scaled(hashes(column_key(self.seed, stream, "event"), *rows), 3)
        return {
            "k": fillers.whole(ads // self.ads),
            "ad": fillers.whole(ads),
            "event": events.astype("int32"),
        }

    def estimated_pairs(self) -> float | None:
        """Every event meets its campaign: exact."""
        return float(self.rows("s"))


@dataclass(frozen=True, kw_only=True)
class DebsSpec(_Keyed):
    """DEBS: posts R(k, v) and comments S(k, v) of the same users, both at rest.

    Said by the study: everything at rest, high duplication in both streams, less skew than
    Stock. Read off its published settings: a million posts and as many comments with 251,033,140
    pairs. Assumed: a Zipf exponent of 0.3, and then 4767 users give that many pairs.

    Parameters
    ----------
    posts, comments : int
        Rows of R and of S.
    users : int
        Keys lie in 1 to this.
    skew : float
        Zipf exponent of the keys of both streams.
    """

    posts: int = 1_000_000
    comments: int = 1_000_000
    users: int = 4767
    skew: float = 0.3

    kind: ClassVar[str] = "debs"
    summary: ClassVar[str] = "like its DEBS: at rest, high duplication in both streams"
    labels: ClassVar[Mapping[str, str]] = {
        "posts": "r",
        "comments": "s",
        "users": "k",
        "skew": "z",
    }

    def __post_init__(self) -> None:
        self._check_seed_and_window("all")
        self._check_count("posts", 0, MAX_ROWS)
        self._check_count("comments", 0, MAX_ROWS)
        self._check_count("users", 1, MAX_KEYS)
        self._check_number("skew", 0, 2, above=False)

    @property
    def window_text(self) -> str:
        """Everything is at rest."""
        return "all"

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return self.posts if stream == "r" else self.comments

    @property
    def key_domain(self) -> int:
        """Keys lie in 1 to this."""
        return self.users

    def timing(self, stream: str) -> "Timing":
        """At rest."""
        from streamjoin_datagen.rows.arrivals import Regular

        return Regular(0.0)

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Zipf keys, busy users being the same in both streams."""
        from streamjoin_datagen.rows import fillers, keys

        law = (self.users, self.skew)
        rows = (first_row, row_count)
        return {
            "k": keys.zipf(self.seed, stream, rows, *law, labels=(self.seed, "both")),
            "v": fillers.payloads(self.seed, stream, first_row, row_count),
        }

    def estimated_pairs(self) -> float | None:
        """Pairs of all posts and comments."""
        return float(self.posts) * self.comments * zipf_meeting(self.users, self.skew)
