"""Old names of modules that have moved: they are imported under their new names, with a warning.

Each stays for one release. The packages' ``__init__`` call :func:`keep_old_names`.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import CodeType, ModuleType

MOVED = {
    "streamjoin.predicates": "streamjoin_common.language.predicates",
    "streamjoin.stores": "streamjoin.relations",
    "streamjoin.windows": "streamjoin_common.language.windows",
    "streamjoin_datagen.distributed.cli": "streamjoin_spark.cli",
    "streamjoin_datagen.distributed.engine": "streamjoin_spark.engine",
    "streamjoin_datagen.distributed.join": "streamjoin_spark.batch.join",
    "streamjoin_datagen.distributed.streaming": "streamjoin_spark.streaming.query",
    "streamjoin_datagen.distributed.submit": "streamjoin_spark.submit",
    "streamjoin_datagen.distributed": "streamjoin_spark",
    "streamjoin_hw.build": "streamjoin_hw.flow.build",
    "streamjoin_hw.contract": "streamjoin_common.contract",
    "streamjoin_hw.emit": "streamjoin_hw.flow.emit",
    "streamjoin_hw.handshake": "streamjoin_hw.rtl.designs",
    "streamjoin_hw.presets": "streamjoin_common.contract.presets",
    "streamjoin_hw.top": "streamjoin_hw.rtl.top",
}
"""New name of each module, by its old one; what lies below a moved package moves with it."""


def new_name(name: str) -> str | None:
    """Return where a module of an old name is now; None if it is no old name.

    Examples
    --------
    >>> new_name("streamjoin_hw.contract.params")
    'streamjoin_common.contract.params'
    >>> new_name("streamjoin.api")
    """
    old, below = name, ""
    while old:
        if old in MOVED:
            return MOVED[old] + below
        old, dot, last = old.rpartition(".")
        below = dot + last + below
    return None


def _typed() -> str:
    """The module that ``python -m`` runs, or nothing."""
    words = sys.orig_argv
    return words[words.index("-m") + 1] if "-m" in words[1:-1] else ""


class _OldNames(MetaPathFinder, Loader):
    """Imports a module by its old name: what is loaded is the module of the new name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if new_name(fullname) is None else spec_from_loader(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = new_name(old)
        assert new is not None
        if not _typed().startswith(f"{old}."):  # of that module a sentence is shown
            warnings.warn(
                f"{old} has moved: import {new}; the old name ends with the next release",
                FutureWarning,
                stacklevel=2,
            )
        sys.modules[old] = import_module(new)

    def get_code(self, fullname: str) -> CodeType:
        """Return what ``python -m`` runs: the module of the new name."""
        new = new_name(fullname)
        sentence = f"streamjoin: {fullname} has moved: type {new}"
        return compile(
            f"import runpy, sys; print({sentence!r}, file=sys.stderr); "
            f"runpy.run_module({new!r}, run_name='__main__', alter_sys=True)",
            fullname,
            "exec",
        )


def keep_old_names() -> None:
    """Let modules be imported by their old names from now on."""
    if not any(isinstance(finder, _OldNames) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OldNames())  # before a moved package is searched again
