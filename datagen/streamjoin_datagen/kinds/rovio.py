"""The IaWJ study's Rovio: advertisements and purchases of a game's users."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamjoin_datagen.kinds.study import MAX_KEYS, StudySpec
from streamjoin_datagen.spec import MAX_ROWS

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.fillers import Column


@dataclass(frozen=True, kw_only=True)
class RovioSpec(StudySpec):
    """Rovio: advertisements R(k, price) and purchases S(k, price) of a game's users.

    From the study: a low and steady arrival rate (figure 3), high duplication, little skew.
    Read off its published file of six seconds: 58,300 tuples, joined with themselves, in batches
    of 100 every 10.3 ms; 160 keys whose frequencies fall from 900 to 8 about as the power 1.79
    of the remaining ranks, which gives the file's 36,002,768 pairs; prices 0 to 999.

    The published file is a thinned one: a tuple has 100 partners in one of its seconds. In the
    study's own run MWay misses 2442 lines of the L1 cache an input tuple (table 5), eight tuples
    each, so a key has some 20,000 tuples in the window: with 160 keys, 3000 tuples a millisecond.
    Its pairs, 6 * 10^10, are more than memory holds; fewer users give as many duplicates to less.

    Parameters
    ----------
    rate : float
        Tuples a millisecond of each stream.
    duration_ms : int
        Length of the input in milliseconds.
    users : int
        Keys lie in 1 to this.
    shape : float
        Power of the remaining ranks that the keys' frequencies fall by, 0 to 10; 0 is uniform.
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
