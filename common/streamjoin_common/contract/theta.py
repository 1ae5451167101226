"""A user's own predicate, as part of a design's parameters."""

import ast
import dis
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from streamjoin_common.errors import StreamJoinError

Function = Callable[[Any, Any], Any]

PLAIN = (bool, int, float, str, bytes, type(None))
"""Values that a predicate may take from outside: what ``repr`` shows is all there is to them."""


class ThetaError(StreamJoinError, ValueError):
    """A function cannot be a predicate; the message names it and what would be right."""

    exit_status = 2


class TupleView:
    """A tuple as a user's predicate sees it: ``key<i>`` and ``payload``, each a number.

    Parameters
    ----------
    side : str
        For messages: ``"R"`` or ``"S"``.
    fields : mapping of str to Any
        Amaranth values here, Python numbers in a reference.
    """

    def __init__(self, side: str, fields: Mapping[str, Any]) -> None:
        self._side = side
        self._fields = dict(fields)

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("_fields", {})
        if name not in fields:
            known = ", ".join(fields)
            raise ThetaError(
                f"theta can look at {known} of {self.__dict__['_side']}, not {name}: give a term "
                "key:TYPE for every column that it looks at"
            )
        return fields[name]


@dataclass(frozen=True)
class Theta:
    """A predicate of any kind, given when the design is built.

    Its function is called with an R and an S tuple and returns an Amaranth expression, true where
    the pair joins. A tuple has the attributes ``key<i>``, for each term of kind ``key``, and
    ``payload``. Keys of type int32 are signed, those of uint32 unsigned; one of float32 is its 32
    bits. Arithmetic never wraps: results are as wide as they need be.

    Use :meth:`of` to make one. Read back from a manifest it has no function: enough to drive the
    design, not to build it.

    Parameters
    ----------
    name : str
        What it is called.
    source_digest : str
        Hash of what the function is made of: its source and that of the functions it calls, and
        the values that it takes from outside by name. Attributes of classes and modules are not
        looked at: name a design anew when they change.
    function : callable, optional

    Examples
    --------
    >>> LIMIT = 3
    >>> def near(r, s):
    ...     return abs(r.key0 - s.key0) + abs(r.key1 - s.key1) <= LIMIT
    >>> theta = Theta.of(near)
    >>> theta.name, len(theta.source_digest)
    ('near', 16)
    """

    name: str
    source_digest: str
    function: Function | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, function: Function, name: str | None = None) -> "Theta":
        """Make a predicate of a function.

        Parameters
        ----------
        function : callable
            Of an R and an S tuple.
        name : str, optional
            Its own name if not given.

        Raises
        ------
        ThetaError
            If its source cannot be read, or what it takes from outside cannot be hashed.
        """
        wrapped = hasattr(function, "__wrapped__")
        if not isinstance(function, FunctionType) or function.__name__ == "<lambda>" or wrapped:
            raise ThetaError(f"theta must be a function made by a plain def, not {function!r}")
        called = name or function.__name__
        digest = hashlib.sha256()
        for part in _parts(function, called, set()):
            digest.update(part.encode() + b"\0")
        return cls(called, digest.hexdigest()[:16], function)


def _parts(function: FunctionType, called: str, seen: set[FunctionType]) -> Iterator[str]:
    """Yield a function's source, the values it takes from outside, and the same of its callees."""
    seen.add(function)
    yield _source(function, called)
    yield repr((function.__defaults__, function.__kwdefaults__))
    outside = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name in sorted(_names(function.__code__)):
        if name in outside:
            value = outside[name].cell_contents
        elif name in function.__globals__:
            value = function.__globals__[name]
        else:
            continue  # a built-in, or of the function around
        yield name
        yield from _value_parts(name, value, called, seen)


def _source(function: FunctionType, called: str) -> str:
    """Return a function's source; the lines that Python returns are checked to be its own."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        (definition,) = ast.parse(source).body
        if isinstance(definition, ast.FunctionDef) and definition.name == function.__name__:
            return source
    except (OSError, SyntaxError, ValueError):
        pass
    raise ThetaError(f"theta {called} must be defined in a file: its source cannot be read")


def _value_parts(name: str, value: Any, called: str, seen: set[FunctionType]) -> Iterator[str]:
    if isinstance(value, FunctionType) and not _is_library(value.__module__):
        if value not in seen:
            yield from _parts(value, called, seen)
    elif isinstance(value, ModuleType | FunctionType | BuiltinFunctionType | type):
        yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
    elif isinstance(value, PLAIN) or (
        isinstance(value, tuple) and all(isinstance(each, PLAIN) for each in value)
    ):
        yield repr(value)
    else:
        raise ThetaError(
            f"theta {called} may take numbers, strings, tuples of them, functions and modules from "
            f"outside, not {name}, a {type(value).__name__}"
        )


def _is_library(module: str) -> bool:
    """Return whether a module's functions are named, not hashed: their release is known."""
    return module.partition(".")[0] == "amaranth"


def _names(code: CodeType) -> set[str]:
    """Return the names that code takes from outside, in the functions inside it too."""
    names = {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}
    names.update(code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names
