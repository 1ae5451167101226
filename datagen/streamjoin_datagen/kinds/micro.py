"""The synthetic workload of the intra-window join study, every knob of its section 5.4."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamjoin_datagen.errors import require
from streamjoin_datagen.spec import MAX_RATE_PER_S, MAX_ROWS, WorkloadSpec, zipf_meeting

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.fillers import Column

MAX_WINDOW_MS = 3_600_000
MAX_SLOTS = 1 << 22
"""Milliseconds for which a worker holds a table, where arrivals are skewed."""


@dataclass(frozen=True, kw_only=True)
class MicroSpec(WorkloadSpec):
    """Micro of the IaWJ study (section 4.2.1, knobs of section 5.4): R(k, v) and S(k, v) int32.

    Both streams have ``rate * window_ms`` tuples in each of ``windows`` tumbling windows. R has
    ``ceil(tuples / duplicates)`` keys, and S the same ones; without key skew every window holds
    every key, in random order, each as often as any other, give or take one.

    Parameters
    ----------
    rate_r, rate_s : float
        Tuples a millisecond of the stream. The study has 1600 to 25600 (figures 9 and 10).
    window_ms : int
        Length of a window in milliseconds. The study has 500 to 2500 (figure 14).
    windows : int
        Windows that follow each other.
    duplicates : int
        Tuples of R a key. The study has 1 to 100 (figure 11).
    key_skew : float
        Zipf exponent of the keys of both streams, 0 to 2; 0 deals them evenly. The study has 0 to
        1.6 (figure 13).
    hot_keys : str
        Whose frequent keys are the same where keys are skewed, ``apart`` or ``shared``. Apart:
        each stream has its own, so the pairs stay as many as without skew. Shared: they meet.
    ts_skew : float
        Zipf exponent of the arrivals, 0 to 2, early milliseconds of a window having most. The
        study has 0 to 1.6 (figure 12).
    arrivals : str
        Spacing in time, ``regular``, ``poisson`` or ``rest`` (all at 0).

    Raises
    ------
    SpecError
        If a parameter is out of its range or does not go with the others.
    """

    rate_r: float = 1600.0
    rate_s: float = 1600.0
    window_ms: int = 1000
    windows: int = 1
    duplicates: int = 1
    key_skew: float = 0.0
    hot_keys: str = "apart"
    ts_skew: float = 0.0
    arrivals: str = "regular"

    kind: ClassVar[str] = "micro"
    summary: ClassVar[str] = "the IaWJ study's Micro: rates, window, duplicates, skews"
    counted_key: ClassVar[str | None] = "k"
    labels: ClassVar[Mapping[str, str]] = {
        "rate_r": "r",
        "rate_s": "s",
        "window_ms": "w",
        "windows": "n",
        "duplicates": "x",
        "key_skew": "z",
        "hot_keys": "",
        "ts_skew": "tz",
        "arrivals": "",
    }

    def __post_init__(self) -> None:
        self._check_seed_and_window("all")
        for name in ("rate_r", "rate_s"):
            self._check_number(name, 0, MAX_RATE_PER_S / 1e3, above=True)
        self._check_count("window_ms", 1, MAX_WINDOW_MS)
        self._check_count("windows", 1, MAX_ROWS)
        self._check_count("duplicates", 1, MAX_ROWS)
        self._check_number("key_skew", 0, 2, above=False)
        self._check_number("ts_skew", 0, 2, above=False)
        self._check_choice("hot_keys", "apart", "shared")
        self._check_choice("arrivals", "regular", "poisson", "rest")
        for name in ("rate_r", "rate_s"):
            rows = getattr(self, name) * self.window_ms
            require(rows == int(rows), f"{name} * window_ms", "an integer number of tuples", rows)
            self._check_rows(f"{name} * window_ms * windows", rows * self.windows)
        require(
            self.arrivals == "regular" or self.ts_skew == 0,
            "ts_skew",
            "omitted unless arrivals is regular",
            self.ts_skew,
        )
        require(
            self.ts_skew == 0 or self.window_ms * self.windows <= MAX_SLOTS,
            "window_ms * windows",
            f"at most {MAX_SLOTS} ms where ts_skew is not 0",
            self.window_ms * self.windows,
        )
        require(
            self.arrivals != "rest" or self.windows == 1,
            "windows",
            "1 where arrivals is rest",
            self.windows,
        )

    @property
    def window_text(self) -> str:
        """One window for each ``window_ms``; data at rest is one window."""
        return "all" if self.arrivals == "rest" else f"tumbling:{self.window_ms}ms"

    def window_rows(self, stream: str) -> int:
        """Tuples of a stream in a window."""
        return int((self.rate_r if stream == "r" else self.rate_s) * self.window_ms)

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return self.window_rows(stream) * self.windows

    @property
    def key_domain(self) -> int:
        """Keys lie in 1 to this."""
        return -(-self.window_rows("r") // self.duplicates)

    def timing(self, stream: str) -> "Timing":
        """When the rows of a stream arrive."""
        from streamjoin_datagen.rows.arrivals import paced, zipf_slots

        if self.ts_skew > 0:
            return zipf_slots(self.window_rows(stream), self.window_ms, self.ts_skew, self.windows)
        rate = self.rate_r if stream == "r" else self.rate_s
        return paced(
            self.arrivals, self.seed, stream, 0.0 if self.arrivals == "rest" else rate * 1e3
        )

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Keys dealt to every window or drawn by Zipf, and random payloads."""
        from streamjoin_datagen.rows import fillers, keys

        rows = (first_row, row_count)
        if self.key_skew == 0:
            size = self.window_rows(stream)
            values = keys.dealt_each_window(self.seed, stream, rows, size, self.key_domain)
        else:
            labels = (self.seed, "both" if self.hot_keys == "shared" else stream)
            law = (self.key_domain, self.key_skew)
            values = keys.zipf(self.seed, stream, rows, *law, labels=labels)
        return {"k": values, "v": fillers.payloads(self.seed, stream, first_row, row_count)}

    def estimated_pairs(self) -> float | None:
        """Pairs of all windows; exact where keys are dealt and arrivals regular or at rest."""
        r_rows, s_rows, domain = self.window_rows("r"), self.window_rows("s"), self.key_domain
        if self.key_skew == 0:
            # Every key occurs so often, and the first few keys once more.
            each_r, more_r = divmod(r_rows, domain)
            each_s, more_s = divmod(s_rows, domain)
            pairs: float = domain * each_r * each_s + each_r * more_s + each_s * more_r
            pairs += min(more_r, more_s)
        elif self.hot_keys == "shared":
            pairs = float(r_rows) * s_rows * zipf_meeting(domain, self.key_skew)
        else:
            pairs = float(r_rows) * s_rows / domain
        return pairs * self.windows
