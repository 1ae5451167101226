"""Band joins on one number from a given distribution, with a given match rate."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamjoin_datagen.errors import require
from streamjoin_datagen.spec import MAX_RATE_PER_S, MAX_ROWS, WorkloadSpec

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.densities import Law
    from streamjoin_datagen.rows.fillers import Column, Int32s

DOMAIN = 1 << 30
"""Values are 0 to below this, and the unit interval of a density is all of it."""


@dataclass(frozen=True, kw_only=True)
class ValuesSpec(WorkloadSpec):
    """What the band joins of the PIM-Tree paper (section 5) have in common.

    R(x int32, v int32) and S(a int32, v int32), ``r.x between s.a - reach and s.a + reach`` with
    the reach at which a tuple finds ``match_rate`` partners in the other stream's window.
    """

    tuples: int = 1_000_000
    window_tuples: int = 65_536
    match_rate: float = 2.0
    streams: str = "two"
    rate: float = 1000.0

    span: ClassVar[int] = DOMAIN
    shared_labels: ClassVar[Mapping[str, str]] = {
        "tuples": "n",
        "window_tuples": "w",
        "match_rate": "m",
        "streams": "",
        "rate": "v",
    }

    def __post_init__(self) -> None:
        self._check_seed_and_window("all")
        self._check_count("tuples", 1, MAX_ROWS)
        self._check_count("window_tuples", 1, MAX_ROWS)
        self._check_number("match_rate", 0, MAX_ROWS, above=True)
        self._check_choice("streams", "two", "self")
        self._check_number("rate", 0, MAX_RATE_PER_S / 1e3, above=True)
        require(
            self.match_rate <= self.window_tuples,
            "match_rate",
            f"at most window_tuples, {self.window_tuples}",
            self.match_rate,
        )

    @property
    def window_text(self) -> str:
        """The last ``window_tuples`` of each stream."""
        return f"count:{self.window_tuples}"

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return self.tuples

    def timing(self, stream: str) -> "Timing":
        """Regular, both streams alternating."""
        from streamjoin_datagen.rows.arrivals import Regular

        return Regular(self.rate * 1e3)

    def law(self) -> "Law | None":
        """The density of the values on the unit interval; None is uniform."""
        return None

    @property
    def chance(self) -> float:
        """Probability that two tuples match."""
        return self.match_rate / self.window_tuples

    def reach(self) -> int:
        """How far two values of a pair may differ."""
        from streamjoin_datagen.rows.densities import reach_for, uniform_reach

        law = self.law()
        if law is None:
            return uniform_reach(self.chance, self.span)
        return reach_for(law, self.chance, self.span)

    @property
    def predicate(self) -> dict[str, list[str]]:
        """The join condition, in the command line's spelling."""
        reach = self.reach()
        return {"band": [f"x=a:{reach}:{reach}"]}

    def types(self, stream: str) -> dict[str, str]:
        """Arrow's name of the type of each column, ``ts`` aside."""
        return {"x" if stream == "r" else "a": "int32", "v": "int32"}

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Values of the law, and random payloads."""
        from streamjoin_datagen.rows import fillers
        from streamjoin_datagen.rows.seeds import column_key, hashes, scaled

        name = "x" if stream == "r" else "a"
        source = "both" if self.streams == "self" else stream
        drawn = hashes(column_key(self.seed, source, "value"), first_row, row_count)
        law = self.law()
        values = scaled(drawn, self.span) if law is None else law.drawn(drawn, self.span)
        return {
            name: self.placed(values.astype("int32"), first_row),
            "v": fillers.payloads(self.seed, stream, first_row, row_count),
        }

    def placed(self, values: "Int32s", first_row: int) -> "Int32s":
        """Move drawn values to where the distribution is at their rows."""
        return values

    def estimated_pairs(self) -> float | None:
        """Every tuple finds ``match_rate`` partners, once the windows are full, and itself."""
        from streamjoin_datagen.estimates import met_tuples

        rates = (self.rate * 1e3, self.rate * 1e3)
        rows = (self.tuples, self.tuples)
        met = met_tuples(self.window_text, rows=rows, rates_per_s=rates)
        certain = float(self.tuples) if self.streams == "self" else 0.0
        return self.chance * (met - certain) + certain


@dataclass(frozen=True, kw_only=True)
class UniformSpec(ValuesSpec):
    """A band join on uniform values (PIM-Tree, section 5).

    Parameters
    ----------
    tuples : int
        Rows of each stream.
    window_tuples : int
        Tuples of a stream's window.
    match_rate : float
        Partners that a tuple finds in the other stream's window, in the mean. The paper has 2,
        and others in figure 10b.
    streams : str
        Whether R and S are drawn apart, ``two``, or are the same tuples, ``self``. A tuple of S
        then also meets itself in R.
    rate : float
        Tuples a millisecond of each stream.
    """

    kind: ClassVar[str] = "uniform"
    summary: ClassVar[str] = "PIM-Tree's band join, uniform values, a given match rate"
    labels: ClassVar[Mapping[str, str]] = ValuesSpec.shared_labels


@dataclass(frozen=True, kw_only=True)
class GaussianSpec(ValuesSpec):
    """A band join on normally distributed values (PIM-Tree, section 5, figure 12b).

    Parameters
    ----------
    tuples : int
        Rows of each stream.
    window_tuples : int
        Tuples of a stream's window.
    match_rate : float
        Partners that a tuple finds in the other stream's window, in the mean.
    streams : str
        Whether R and S are drawn apart, ``two``, or are the same tuples, ``self``. A tuple of S
        then also meets itself in R.
    rate : float
        Tuples a millisecond of each stream.
    mean, sigma : float
        Of the distribution, on the unit interval, outside of which nothing is drawn. The paper
        has 0.5 and 0.125.
    """

    mean: float = 0.5
    sigma: float = 0.125

    kind: ClassVar[str] = "gaussian"
    summary: ClassVar[str] = "the same with normally distributed values"
    labels: ClassVar[Mapping[str, str]] = {
        **ValuesSpec.shared_labels,
        "mean": "mean",
        "sigma": "sigma",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_number("mean", 0, 1, above=False)
        self._check_number("sigma", 0.001, 10, above=False)

    def law(self) -> "Law | None":
        """The density of the values on the unit interval."""
        from streamjoin_datagen.rows.densities import gaussian

        return gaussian(self.mean, self.sigma)


@dataclass(frozen=True, kw_only=True)
class GammaSpec(ValuesSpec):
    """A band join on gamma distributed values (PIM-Tree, section 5, figure 12b).

    Parameters
    ----------
    tuples : int
        Rows of each stream.
    window_tuples : int
        Tuples of a stream's window.
    match_rate : float
        Partners that a tuple finds in the other stream's window, in the mean.
    streams : str
        Whether R and S are drawn apart, ``two``, or are the same tuples, ``self``. A tuple of S
        then also meets itself in R.
    rate : float
        Tuples a millisecond of each stream.
    shape, scale : float
        Of the distribution, k and theta. The paper has 3 and 3, and 1 and 5.
    """

    shape: float = 3.0
    scale: float = 3.0

    kind: ClassVar[str] = "gamma"
    summary: ClassVar[str] = "the same with gamma distributed values"
    labels: ClassVar[Mapping[str, str]] = {
        **ValuesSpec.shared_labels,
        "shape": "k",
        "scale": "theta",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_number("shape", 1, 100, above=False)
        self._check_number("scale", 0, 1e6, above=True)

    def law(self) -> "Law | None":
        """The density of the values, from 0 to where it is cut off."""
        from streamjoin_datagen.rows.densities import gamma

        return gamma(self.shape, self.scale)


@dataclass(frozen=True, kw_only=True)
class ShiftingGaussianSpec(ValuesSpec):
    """A band join on normal values of which the mean moves (PIM-Tree, section 5, figure 13).

    Values lie in the lower half of the domain at first; then the mean moves linearly by ``shift``
    of that half, and stays. ``tuples`` is split 4 : 10 : 4 into before, meanwhile and after, as
    the paper's 4, 10 and 4 million are.

    Parameters
    ----------
    tuples : int
        Rows of each stream.
    window_tuples : int
        Tuples of a stream's window.
    match_rate : float
        Partners that a tuple finds in the other stream's window, in the mean, before and after.
    streams : str
        Whether R and S are drawn apart, ``two``, or are the same tuples, ``self``. A tuple of S
        then also meets itself in R.
    rate : float
        Tuples a millisecond of each stream.
    mean, sigma : float
        Of the distribution at first, on the unit interval, outside of which nothing is drawn.
    shift : float
        How far the mean moves, 0 to 1 on the same scale.
    """

    tuples: int = 1_800_000
    mean: float = 0.5
    sigma: float = 0.125
    shift: float = 0.5

    kind: ClassVar[str] = "shifting-gaussian"
    span: ClassVar[int] = DOMAIN // 2
    summary: ClassVar[str] = "the same with normal values of which the mean moves"
    labels: ClassVar[Mapping[str, str]] = {
        **ValuesSpec.shared_labels,
        "mean": "mean",
        "sigma": "sigma",
        "shift": "shift",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_number("mean", 0, 1, above=False)
        self._check_number("sigma", 0.001, 10, above=False)
        self._check_number("shift", 0, 1, above=False)

    def law(self) -> "Law | None":
        """The density of the values at first, on the unit interval."""
        from streamjoin_datagen.rows.densities import gaussian

        return gaussian(self.mean, self.sigma)

    @property
    def phases(self) -> tuple[int, int]:
        """Rows at which the mean starts and ends to move."""
        return self.tuples * 4 // 18, self.tuples * 14 // 18

    def placed(self, values: "Int32s", first_row: int) -> "Int32s":
        """Move the law up by as much as the mean has moved by then."""
        import numpy as np

        start, end = self.phases
        rows = np.arange(first_row, first_row + len(values), dtype=np.float64)
        moved = np.clip((rows - start) / max(end - start, 1), 0.0, 1.0)
        moved *= self.shift * self.span
        return values + moved.astype(np.int32)
