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


def package(distribution: str, purpose: str, extra: str, module: str | None = "") -> Check:
    """Return a check of whether a Python package is there; it is not imported.

    ``module`` is its name in imports where that differs, None for one that holds a program alone.
    """

    def check() -> Finding:
        try:
            works = module is None or importlib.util.find_spec(module or distribution) is not None
            version = metadata.version(distribution) if works else ""
        except (ImportError, ValueError):
            works, version = False, ""
        return Finding(distribution, works, version or "no", purpose, extra=extra)

    return check


def programs(
    names: tuple[str, ...], part: str, purpose: str, apt: str = "", advice: str = ""
) -> Check:
    """Return a check of whether one of several programs is on the path."""

    def check() -> Finding:
        path = next(filter(None, map(shutil.which, names)), None)
        return Finding(part, path is not None, path or "no", purpose, apt=apt, advice=advice)

    return check
