"""Thresholds of the decision tree, and their sources.

The study calls rates and duplications high, medium and low, and says that the values depend on
the machine. Here they are measured: ``streamjoin advise --calibrate`` writes a file with its
evidence into the cache; without one, the package's own constants count, whose evidence is in
``benchmarks/calibration``.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from streamjoin.errors import InputError
from streamjoin_common import storage
from streamjoin_common.documents import read_json
from streamjoin_common.storage import cache

SHIPPED = Path(__file__).with_name("thresholds.json")

NEVER = 1e18
"""Threshold of a branch that is never taken."""


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of the tree's branches.

    Attributes
    ----------
    high_duplication : float
        Tuples a key from which on sort-merge joins beat hash joins on complete windows.
    many_threads : int
        Threads from which on MPass beats MWay.
    large_tuples : int
        Tuples of both streams of a window from which on PRJ beats NPJ.
    high_key_skew : float
        Share of the most frequent key from which on NPJ beats PRJ.
    eager_high_duplication : float
        Tuples a key from which on PMJ-JB beats SHJ-JM.
    eager_tuples_per_s : mapping of int to float
        Tuples a second that SHJ-JM sustains, of both streams together, by number of threads.
    """

    high_duplication: float
    many_threads: int
    large_tuples: int
    high_key_skew: float
    eager_high_duplication: float
    eager_tuples_per_s: dict[int, float]

    def eager_capacity(self, threads: int) -> float:
        """Return the tuples a second that SHJ-JM sustains with a number of threads.

        Beyond the measured numbers, the rate of the maximum measured number of threads.
        """
        known = [count for count in self.eager_tuples_per_s if count <= threads]
        return self.eager_tuples_per_s[max(known, default=min(self.eager_tuples_per_s))]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Thresholds":
        """Read :meth:`to_dict`'s form, with keys of mappings as JSON has them."""
        eager = {int(count): float(rate) for count, rate in plain["eager_tuples_per_s"].items()}
        if not eager:
            raise ValueError("eager_tuples_per_s is empty")
        return cls(
            high_duplication=float(plain["high_duplication"]),
            many_threads=int(plain["many_threads"]),
            large_tuples=int(plain["large_tuples"]),
            high_key_skew=float(plain["high_key_skew"]),
            eager_high_duplication=float(plain["eager_high_duplication"]),
            eager_tuples_per_s=eager,
        )


def calibrated_path() -> Path:
    """Return the path of this machine's own thresholds."""
    return cache.file("thresholds.json")


def load() -> tuple[Thresholds, Path]:
    """Read this machine's thresholds, or else those of the package.

    Returns
    -------
    thresholds : Thresholds
        The thresholds.
    path : Path
        Their file, which includes the evidence.

    Raises
    ------
    InputError
        If the machine's file is damaged.
    """
    own = calibrated_path()
    path = own if own.is_file() else SHIPPED
    try:
        return Thresholds.from_dict(read_json(path)["thresholds"]), path
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: is not a file of thresholds ({error!r}): type "
            "streamjoin advise --calibrate to write it anew"
        ) from None


def save(document: dict[str, Any], path: Path) -> None:
    """Write thresholds with their evidence, whole or not at all."""
    storage.write_text(path, json.dumps(document, indent=1) + "\n", parents=True)
