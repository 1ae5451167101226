"""Packages that can be called: ``streamjoin.engines`` is a folder of modules and a function."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _CallableModule(ModuleType):
    """A module with a function's face; what it calls is imported on first use."""

    _function: tuple[str, str]

    def __call__(self, *given: Any, **named: Any) -> Any:
        module, name = self._function
        return getattr(import_module(module), name)(*given, **named)

    @property
    def __signature__(self) -> Any:
        """The function's parameters, for ``help`` and notebooks."""
        from inspect import signature

        module, name = self._function
        return signature(getattr(import_module(module), name))


def make_callable(package: str, module: str, name: str) -> None:
    """Let a package be called as one of its functions.

    Parameters
    ----------
    package : str
        The package, which is being imported.
    module, name : str
        Where the function is, and its name.
    """
    this = sys.modules[package]
    this.__class__ = _CallableModule
    this.__dict__["_function"] = (module, name)
