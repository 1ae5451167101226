"""Old module names of :mod:`streamjoin_spark`, kept for one release.

A module here finds the new one by its name at run time, as data generation must not import the
joins on Spark. It returns the new module's values and reports the new name.
"""

import importlib
import warnings
from collections.abc import Callable
from typing import Any


def renamed(old: str, new: str) -> str:
    """Return the sentence that says where a module is now."""
    return f"{old} is now {new}; the old name will be removed in the next release"


def forward(old: str, new: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of an old module: the new module's names, with a warning.

    Parameters
    ----------
    old, new : str
        Full names of the modules.
    """

    def get(name: str) -> Any:
        if name.startswith("__"):  # the import system asks for its own names
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(new), name)
        warnings.warn(renamed(old, new), FutureWarning, stacklevel=2)
        return value

    return get
