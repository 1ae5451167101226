"""Plain values and strings in, checked workload parameters out."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from streamjoin_datagen.errors import SpecError, require, require_known
from streamjoin_datagen.kinds.band import BandSpec
from streamjoin_datagen.kinds.debs import DebsSpec
from streamjoin_datagen.kinds.dimension import DimensionSpec
from streamjoin_datagen.kinds.equi import EquiSpec
from streamjoin_datagen.kinds.micro import MicroSpec
from streamjoin_datagen.kinds.rovio import RovioSpec
from streamjoin_datagen.kinds.stock import StockSpec
from streamjoin_datagen.kinds.tpch import TpchOrdersSpec
from streamjoin_datagen.kinds.values import (
    GammaSpec,
    GaussianSpec,
    ShiftingGaussianSpec,
    UniformSpec,
)
from streamjoin_datagen.kinds.ysb import YsbSpec
from streamjoin_datagen.spec import WorkloadSpec

_CLASSES: tuple[type[WorkloadSpec], ...] = (
    BandSpec,
    EquiSpec,
    MicroSpec,
    StockSpec,
    RovioSpec,
    YsbSpec,
    DebsSpec,
    UniformSpec,
    GaussianSpec,
    GammaSpec,
    ShiftingGaussianSpec,
    DimensionSpec,
    TpchOrdersSpec,
)

SPECS: dict[str, type[WorkloadSpec]] = {spec.kind: spec for spec in _CLASSES}
"""The workloads that are generated, by kind."""


def make_spec(kind: str, seed: object, params: Mapping[str, Any]) -> WorkloadSpec:
    """Build the parameters of a workload from plain values.

    Parameters
    ----------
    kind : str
        One of ``SPECS``.
    seed : object
        The seed; None if the user gave none.
    params : mapping of str to object
        Values as TOML or JSON gives them, or strings as the command line does.

    Raises
    ------
    SpecError
        If the kind or a parameter is unknown, the seed is missing or a value is wrong.

    Examples
    --------
    >>> make_spec("band", 7, {"rate_r": "100", "window": "time:10s"}).name
    'band-r100-wtime_10s-seed7'
    """
    require_known(kind, SPECS, "workload")
    cls = SPECS[kind]
    if seed is None and cls.seedless:
        seed = 0
    if seed is None:
        raise SpecError(f"workload {kind} needs a seed: give --seed N, or seed = N in a suite")
    defaults = {field.name: field.default for field in dataclasses.fields(cls)}
    del defaults["seed"]
    values: dict[str, Any] = {}
    for name, value in params.items():
        require_known(name, defaults, f"{kind} parameter")
        values[name] = _typed(value, defaults[name]) if isinstance(value, str) else value
    return cls(seed=seed, **values)  # type: ignore[arg-type]  # checked by the class


def require_types(kind: str, params: Mapping[str, Any]) -> None:
    """Refuse a string for a number: a file has types, as the command line has not.

    Raises
    ------
    SpecError
        Naming the parameter.
    """
    numbers = {
        field.name
        for field in dataclasses.fields(SPECS[kind])
        if isinstance(field.default, int | float)
    }
    for name, value in params.items():
        is_text = name in numbers and isinstance(value, str)
        require(not is_text, f"{kind} parameter {name}", "a number", value)


def _typed(string: str, default: object) -> object:
    """Read a string as the type of the default; one that is none is returned for the checks."""
    try:
        if isinstance(default, float):
            return float(string)
        if isinstance(default, int):
            return int(string)
    except ValueError:
        pass
    return string


def parse_params(strings: list[str]) -> dict[str, str]:
    """Read ``["rate_r=2000", ...]``.

    Raises
    ------
    SpecError
        If one is not ``name=value`` or a name occurs twice.
    """
    params: dict[str, str] = {}
    for string in strings:
        name, equals, value = string.partition("=")
        require(bool(name and equals and value), "--param", "name=value", string)
        require(name not in params, "--param", "given once for each name", name)
        params[name] = value
    return params
