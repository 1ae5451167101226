"""Faults put into the design on purpose: a check that finds none of them checks nothing.

A fault replaces one line of one module. Inside :func:`applied` the whole design is imported
anew, from the changed source; outside it is what it was.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from streamjoin_common.errors import StreamJoinError

PACKAGE = "streamjoin_hw"

KEPT = (f"{PACKAGE}.flow.toolchain", f"{PACKAGE}.formal.faults")
"""Modules that are the same inside: parameters made outside are then of the same classes."""


class FaultError(StreamJoinError, ValueError):
    """A fault does not fit the source that it is to be put into."""


@dataclass(frozen=True)
class Fault:
    """One line of the design, changed.

    Parameters
    ----------
    module : str
        Module of the design, without the package: ``"trees"``.
    right, wrong : str
        A part of the source, which must occur in it exactly once, and what replaces it.
    meaning : str
        What is wrong then, in a few words.
    """

    module: str
    right: str
    wrong: str
    meaning: str

    def apply_to(self, source: str) -> str:
        """Return the source with the fault.

        Raises
        ------
        FaultError
            If the source does not hold ``right`` exactly once.
        """
        count = source.count(self.right)
        if count != 1:
            raise FaultError(
                f"{self.right!r} must be in the module {self.module} once, not {count} times"
            )
        return source.replace(self.right, self.wrong)


class _FaultyLoader(SourceFileLoader):
    """Compile a module from a changed source, which no cache may keep."""

    fault: Fault

    def get_code(self, fullname: str) -> CodeType:
        """Compile the changed source."""
        source = Path(self.path).read_text(encoding="utf-8")
        return compile(self.fault.apply_to(source), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.name = f"{PACKAGE}.{fault.module}"

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        spec = PathFinder.find_spec(fullname, path)  # type: ignore[arg-type]
        if spec is None or spec.origin is None:
            return None
        loader = _FaultyLoader(fullname, spec.origin)
        loader.fault = self.fault
        return ModuleSpec(fullname, loader, origin=spec.origin)


def _is_replaced(name: str) -> bool:
    inside = name.startswith(f"{PACKAGE}.")
    return inside and not any(name == kept or name.startswith(f"{kept}.") for kept in KEPT)


@contextmanager
def applied(fault: Fault | None) -> Iterator[None]:
    """Import the design anew, with a fault or, given none, do nothing.

    What is imported inside is a design of its own; import it by name, inside. Not for use by
    several threads at a time.

    Raises
    ------
    FaultError
        If the fault does not fit.
    """
    if fault is None:
        yield
        return
    module = importlib.import_module(f"{PACKAGE}.{fault.module}")
    fault.apply_to(Path(str(module.__file__)).read_text(encoding="utf-8"))
    before = {name: module for name, module in sys.modules.items() if _is_replaced(name)}
    finder = _Finder(fault)
    package = sys.modules[PACKAGE]
    for name in before:
        del sys.modules[name]
        # Or `from package import module` would still give the module outside.
        parent, _, leaf = name.rpartition(".")
        if parent == PACKAGE and hasattr(package, leaf):
            delattr(package, leaf)
    sys.meta_path.insert(0, finder)
    try:
        # Nothing that is emitted inside is kept for the design outside.
        importlib.import_module(f"{PACKAGE}.flow.emit").changed_source = repr(fault)  # type: ignore[attr-defined]  # a module's
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _is_replaced(name)]:
            del sys.modules[name]
        sys.modules.update(before)
        _restore_attributes(package, before)


def _restore_attributes(package: ModuleType, modules: dict[str, ModuleType]) -> None:
    """Let ``package.module`` be what ``sys.modules`` says again."""
    for name, module in modules.items():
        parent, _, leaf = name.rpartition(".")
        if parent == package.__name__:
            setattr(package, leaf, module)
        elif parent in modules:
            setattr(modules[parent], leaf, module)
