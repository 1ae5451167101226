"""Designs on the command line: ``--preset``, ``--param``, and what their help says."""

import dataclasses
import importlib.util
import inspect
import re
import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from streamjoin_common.contract import CHOICES, DesignParams, Theta, parse_term
from streamjoin_common.contract.presets import PRESETS
from streamjoin_common.contract.terms import require
from streamjoin_common.errors import UsageError
from streamjoin_common.suggestions import did_you_mean


def design_parameters() -> Iterator[tuple[str, object, str]]:
    """Return name, default and meaning of each parameter, as its class documents them."""
    entries = re.compile(r"^(\w+) : .*\n((?:    .*\n?)+)", flags=re.MULTILINE)
    meanings = dict(entries.findall(inspect.getdoc(DesignParams) or ""))
    for field in dataclasses.fields(DesignParams):
        default = field.default
        if default is dataclasses.MISSING:
            default = "COUNT"
        elif isinstance(default, tuple):
            default = ",".join(term.text for term in default)
        elif default is None:
            default = "NONE"
        plain = " ".join(meanings.get(field.name, "").replace("``", "").split())
        yield field.name, default, re.split(r"\.(?: |$)", plain)[0]


def parameters_help() -> str:
    """List name, default, meaning and range of each parameter."""
    lines = ["design parameters (--param NAME=VALUE), with their defaults:"]
    for name, default, meaning in design_parameters():
        start = f"  {name}={default}".ljust(24)
        lines += textwrap.wrap(start + meaning, 80, subsequent_indent=" " * 24) or [start]
    return "\n".join(lines) + "\n"


GROUP_HELP = "arrivals of a group where stars=grouped, 0 for all (1)"


def chosen_group(params: DesignParams, group: int) -> int:
    """Check how many arrivals a group is to have.

    Raises
    ------
    UsageError
        If the design has no groups, or cannot count so many.
    """
    if not 0 <= group < 1 << 32:
        raise UsageError(f"a group must have from 0 to {(1 << 32) - 1} arrivals, not {group}")
    if group != 1 and not params.has_groups:
        raise UsageError(f"groups of {group} arrivals need --param stars=grouped")
    return group


def check_array(params: DesignParams, action: str) -> None:
    """Refuse a design that is no array of cores, where only one can be shown.

    Raises
    ------
    UsageError
        Naming what was asked for.
    """
    if params.design != "handshake":
        raise UsageError(
            f"hw {action} is about the array of cores: the design must be handshake, not "
            f"{params.design}"
        )


def _parse_param(string: str) -> tuple[str, Any]:
    """Read ``name=value``: integers, names, a list for ``terms``."""
    name, equals, value = string.partition("=")
    names = [field.name for field in dataclasses.fields(DesignParams)]
    if not equals:
        raise UsageError(f"--param takes NAME=VALUE, as cores=16, not {string!r}")
    if name not in names:
        hint = did_you_mean(name, names) or f": there are {', '.join(names)}"
        raise UsageError(f"--param {name}: a design has no such parameter{hint}")
    if name == "terms":
        return name, tuple(parse_term(term) for term in value.split(","))
    if name == "theta":
        return name, _theta_in(value)
    if name in CHOICES:
        require(value in CHOICES[name], name, f"one of {', '.join(CHOICES[name])}", value)
        return name, value
    try:
        return name, int(value)
    except ValueError:
        raise UsageError(f"--param {name} must be an integer, not {value!r}") from None


def _theta_in(string: str) -> Theta:
    """Load the predicate of ``FILE.py:FUNCTION``."""
    file, colon, name = string.rpartition(":")
    path = Path(file)
    if colon and path.suffix == ".py" and not path.is_file():
        raise UsageError(f"--param theta: there is no file {file}")
    if not colon or path.suffix != ".py":
        raise UsageError(f"--param theta must be FILE.py:FUNCTION, not {string!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None  # as its name ends in .py
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UsageError(f"--param theta: {file} does not run: {error!r}") from None
    if not hasattr(module, name):
        raise UsageError(f"--param theta: {file} has no function {name!r}")
    return Theta.of(getattr(module, name))


def as_typed(message: str, flags: Collection[str]) -> str:
    """Name design inputs in an error as the user types them.

    What an action has a flag for is called by that, another parameter at the beginning
    ``--param`` NAME. In mid-sentence only a name that is no word is one.
    """

    def typed(found: re.Match[str]) -> str:
        name = found[0]
        if name in flags:
            return f"--{name.replace('_', '-')}"
        is_parameter = name in (field.name for field in dataclasses.fields(DesignParams))
        return f"--param {name}" if is_parameter and not found.start() else name

    return re.sub(r"^[a-z]\w*(?= must )|\b[a-z]+_\w+", typed, message)


def chosen(flag: str, given: str | None, names: Collection[str]) -> str:
    """Return the name that a flag gives.

    Raises
    ------
    UsageError
        If none is given, or one that is not known.
    """
    if not given:
        raise UsageError(f"{flag} needs a name, one of {', '.join(names)}")
    if given not in names:
        near = did_you_mean(given, names)
        raise UsageError(f"{flag} must be one of {', '.join(names)}, not {given!r}{near}")
    return given


def design_from(preset: str | None, overrides: list[str]) -> DesignParams:
    """Build parameters from ``--preset`` and ``--param``.

    Raises
    ------
    UsageError
        If a name is unknown or a needed parameter is missing.
    ParameterError
        If a value is out of its range.
    """
    values: dict[str, Any] = {}
    if preset is not None:
        base = PRESETS[chosen("--preset", preset, PRESETS)]
        values = {field.name: getattr(base, field.name) for field in dataclasses.fields(base)}
    values.update(_parse_param(string) for string in overrides)
    for name in ("cores", "segment_tuples"):
        if name not in values:
            raise UsageError(f"give --preset NAME, or --param {name}=COUNT")
    return DesignParams(**values)
