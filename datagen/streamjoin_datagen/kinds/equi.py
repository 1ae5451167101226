"""Equi-joins at rest or at one rate: the plainest workload, and the one to try first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamjoin_datagen.errors import require
from streamjoin_datagen.spec import (
    MAX_KEY,
    MAX_RATE_PER_S,
    MAX_ROWS,
    MAX_SECONDS,
    WorkloadSpec,
    zipf_meeting,
)

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.fillers import Column


@dataclass(frozen=True, kw_only=True)
class EquiSpec(WorkloadSpec):
    """An equi-join on one int32 key with an int32 payload, after the IaWJ study's Micro.

    Parameters
    ----------
    r_tuples, s_tuples : int
        Rows of the stream.
    keys : str
        How keys repeat, ``unique``, ``duplicated`` or ``zipf``. Unique: no key occurs twice in R
        and S draws uniformly from the domain. Duplicated: each key occurs ``duplicates`` times in
        R (the last one maybe less often) and S draws uniformly. Zipf: both streams draw from one
        Zipf distribution.
    duplicates : int
        Tuples of R a key, for duplicated keys only.
    skew : float
        Zipf exponent, 0 to 2, for Zipf keys only.
    domain : int
        Keys that may occur, 1 to ``domain``; 0 takes as many as R has (for Zipf keys, as
        R has rows). For unique and duplicated keys a larger domain lowers the share of S
        that finds a match to distinct R keys / domain.
    rate : float
        Tuples a millisecond of each stream; 0 is data at rest, all at ``ts`` 0.
    window : str
        Window of the workload, unless a run is given another.
    arrivals : str
        Spacing in time where the rate is not 0, ``regular`` or ``poisson``.

    Raises
    ------
    SpecError
        If a parameter is out of its range or does not go with the others.
    """

    r_tuples: int = 1_000_000
    s_tuples: int = 1_000_000
    keys: str = "unique"
    duplicates: int = 1
    skew: float = 0.0
    domain: int = 0
    rate: float = 0.0
    window: str = "all"
    arrivals: str = "regular"

    kind: ClassVar[str] = "equi"
    summary: ClassVar[str] = "an equi-join on k, keys unique, duplicated or Zipf"
    counted_key: ClassVar[str | None] = "k"
    labels: ClassVar[Mapping[str, str]] = {
        "r_tuples": "r",
        "s_tuples": "s",
        "keys": "",
        "duplicates": "x",
        "skew": "z",
        "domain": "d",
        "rate": "v",
        "window": "w",
        "arrivals": "",
    }

    def __post_init__(self) -> None:
        self._check_seed_and_window(self.window)
        self._check_choice("arrivals", "regular", "poisson")
        self._check_count("r_tuples", 0, MAX_ROWS)
        self._check_count("s_tuples", 0, MAX_ROWS)
        self._check_choice("keys", "unique", "duplicated", "zipf")
        self._check_count("duplicates", 1, MAX_ROWS)
        self._check_number("skew", 0, 2, above=False)
        self._check_number("rate", 0, MAX_RATE_PER_S / 1e3, above=False)
        self._check_count("domain", 0, MAX_KEY)
        for name, only in (("duplicates", "duplicated"), ("skew", "zipf")):
            value, default = getattr(self, name), 1 if name == "duplicates" else 0
            ok = self.keys == only or value == default
            require(ok, name, f"omitted unless keys is {only}", value)
        if self.keys != "zipf":
            require(
                self.domain == 0 or self.domain >= self.distinct_r_keys,
                "domain",
                f"0 or at least R's {self.distinct_r_keys} distinct keys",
                self.domain,
            )
        rows = max(self.r_tuples, self.s_tuples)
        require(
            self.rate == 0 or rows / (self.rate * 1e3) <= MAX_SECONDS,
            "rate",
            f"0 or high enough for {rows} tuples in {MAX_SECONDS:g} s",
            self.rate,
        )

    @property
    def window_text(self) -> str:
        """The workload's window, unless a run is given another."""
        return self.window

    @property
    def distinct_r_keys(self) -> int:
        """Distinct keys of R for unique and duplicated keys."""
        return -(-self.r_tuples // self.duplicates)

    @property
    def key_domain(self) -> int:
        """The domain in force: keys lie in 1 to this."""
        return self.domain or max(1, self.distinct_r_keys)

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return self.r_tuples if stream == "r" else self.s_tuples

    def timing(self, stream: str) -> "Timing":
        """When the rows of a stream arrive."""
        from streamjoin_datagen.rows.arrivals import paced

        return paced(self.arrivals, self.seed, stream, self.rate * 1e3)

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Keys as ``keys`` says, and random payloads."""
        from streamjoin_datagen.rows import fillers, keys

        rows = (first_row, row_count)
        labels = (self.seed, "both")
        if self.keys == "zipf":
            values = keys.zipf(self.seed, stream, rows, self.key_domain, self.skew, labels=labels)
        elif stream == "r":
            size = (self.r_tuples, self.duplicates)
            values = keys.dealt(self.seed, stream, rows, size, self.key_domain, labels=labels)
        else:
            values = keys.uniform(self.seed, stream, rows, self.key_domain)
        return {"k": values, "v": fillers.payloads(self.seed, stream, first_row, row_count)}

    def estimated_pairs(self) -> float | None:
        """Pairs of the window: S tuples meet the keys of R as often as these occur."""
        from streamjoin_datagen.estimates import met_tuples

        rates = (self.rate * 1e3, self.rate * 1e3)
        met = met_tuples(self.window, rows=(self.r_tuples, self.s_tuples), rates_per_s=rates)
        if self.keys == "zipf":
            return met * zipf_meeting(self.key_domain, self.skew)
        return met / self.key_domain
