"""What a workload is, as data: its parameters, checked when made, and its name.

Standard library only. A workload's rows are a function of these parameters and the seed, so
two workloads with equal parameters and seed are the same workload.
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from streamjoin_datagen.errors import check_seed, check_window, require

MAX_ROWS = (1 << 31) - 1
"""Rows of one stream: row numbers travel as 32-bit payloads."""

MAX_KEY = (1 << 31) - 1
"""Largest domain: keys are int32 and start at 1."""

MAX_ZIPF_DOMAIN = 1 << 24
"""Largest domain of Zipf keys: every worker holds a table of 8 bytes a key."""

DRAWN = ("zipf", "foreign")
"""Kinds of keys that are drawn one by one, so that a domain may be of any size."""

MAX_RATE_PER_S = 1e8
"""Poisson gaps are whole nanoseconds, so the mean gap must be well above one."""

MAX_SECONDS = 1e9
"""Longest input: sums of whole nanoseconds stay far inside int64."""


@dataclass(frozen=True, kw_only=True)
class WorkloadSpec:
    """What every generated workload has: a seed, a default window, two row counts."""

    seed: int

    kind: ClassVar[str]
    labels: ClassVar[Mapping[str, str]]

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
        return "-".join([*words, f"seed{self.seed}"])

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        raise NotImplementedError

    def rate_per_s(self, stream: str) -> float:
        """Arrivals a second of stream ``"r"`` or ``"s"``; 0 is data at rest."""
        raise NotImplementedError

    @property
    def predicate(self) -> dict[str, list[str]]:
        """The join condition, in the command line's spelling."""
        raise NotImplementedError

    def _check_common(self, window: str, arrivals: str) -> None:
        check_seed(self.seed)
        check_window(window)
        require(arrivals in ("regular", "poisson"), "arrivals", "regular or poisson", arrivals)

    def _check_count(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        ok = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        require(ok, name, f"a whole number from {least} to {most}", value)

    def _check_number(self, name: str, least: float, most: float, *, above: bool) -> None:
        value = getattr(self, name)
        ok = isinstance(value, (int, float)) and not isinstance(value, bool)
        ok = ok and math.isfinite(value) and (least < value if above else least <= value)
        start = f"above {least:g}" if above else f"of at least {least:g}"
        require(ok and value <= most, name, f"a number {start} and at most {most:g}", value)
        object.__setattr__(self, name, float(value))


@dataclass(frozen=True, kw_only=True)
class BandSpec(WorkloadSpec):
    """The reference band query of CellJoin, handshake join (section 6.1) and SplitJoin.

    R(x int32, y float32, z text of 20 characters) and S(a int32, b float32, c float64, d bool),
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
        self._check_common(self.window, self.arrivals)
        for name in ("rate_r", "rate_s"):
            self._check_number(name, 0, MAX_RATE_PER_S, above=True)
        self._check_number("duration_s", 0, MAX_SECONDS, above=True)
        self._check_count("domain", 1, MAX_KEY)
        self._check_count("lo", 0, MAX_KEY)
        self._check_count("hi", 0, MAX_KEY)
        for name in ("rate_r", "rate_s"):
            rows = round(getattr(self, name) * self.duration_s)
            require(rows <= MAX_ROWS, f"{name} * duration_s", f"at most {MAX_ROWS} rows", rows)

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return round(self.rate_per_s(stream) * self.duration_s)

    def rate_per_s(self, stream: str) -> float:
        """Arrivals a second of stream ``"r"`` or ``"s"``."""
        return self.rate_r if stream == "r" else self.rate_s

    @property
    def predicate(self) -> dict[str, list[str]]:
        """The join condition, in the command line's spelling."""
        return {"band": [f"x=a:{self.lo}:{self.hi}", f"y=b:{self.lo}:{self.hi}"]}


@dataclass(frozen=True, kw_only=True)
class EquiSpec(WorkloadSpec):
    """An equi-join on one int32 key with an int32 payload, after the IaWJ study's Micro.

    Parameters
    ----------
    r_tuples, s_tuples : int
        Rows of the stream.
    keys : str
        How keys repeat, ``unique``, ``duplicated``, ``zipf`` or ``foreign``. Unique: no key occurs
        twice in R and S draws uniformly from the domain. Duplicated: each key occurs
        ``duplicates`` times in R (the last one maybe less often) and S draws uniformly. Zipf: both
        streams draw from one Zipf distribution. Foreign: R draws uniformly, with repetition, and S
        from a Zipf distribution over the same domain (SSBJ, section 4.1).
    duplicates : int
        Tuples of R a key, for duplicated keys only.
    skew : float
        Zipf exponent, 0 to 2, for Zipf and foreign keys only.
    domain : int
        Keys that may occur, 1 to ``domain``; 0 takes as many as R has (for Zipf and foreign
        keys, as R has rows). For unique and duplicated keys a larger domain lowers the share of S
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
        self._check_common(self.window, self.arrivals)
        self._check_count("r_tuples", 0, MAX_ROWS)
        self._check_count("s_tuples", 0, MAX_ROWS)
        require(
            self.keys in ("unique", "duplicated", *DRAWN),
            "keys",
            "unique, duplicated, zipf or foreign",
            self.keys,
        )
        self._check_count("duplicates", 1, MAX_ROWS)
        self._check_number("skew", 0, 2, above=False)
        self._check_number("rate", 0, MAX_RATE_PER_S / 1e3, above=False)
        most = MAX_ZIPF_DOMAIN if self.keys in DRAWN else MAX_KEY
        self._check_count("domain", 0, most)
        for name, only in (("duplicates", ("duplicated",)), ("skew", DRAWN)):
            value, default = getattr(self, name), 1 if name == "duplicates" else 0
            ok = self.keys in only or value == default
            require(ok, name, f"left out unless keys is {' or '.join(only)}", value)
        if self.keys not in DRAWN:
            require(
                self.domain == 0 or self.domain >= self.distinct_r_keys,
                "domain",
                f"0 or at least R's {self.distinct_r_keys} distinct keys",
                self.domain,
            )
        rows = max(self.r_tuples, self.s_tuples)
        require(
            self.rate == 0 or rows / self.rate_per_s("r") <= MAX_SECONDS,
            "rate",
            f"0 or high enough for {rows} tuples in {MAX_SECONDS:g} s",
            self.rate,
        )
        require(self.key_domain <= most, "domain", f"at most {most}", self.key_domain)

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

    def rate_per_s(self, stream: str) -> float:
        """Arrivals a second of either stream; 0 is data at rest."""
        return self.rate * 1e3

    @property
    def predicate(self) -> dict[str, list[str]]:
        """The join condition, in the command line's spelling."""
        return {"on": ["k"]}
