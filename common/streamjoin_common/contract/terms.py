"""Terms of a predicate as a design knows them, and the error of a parameter out of its range."""

from dataclasses import dataclass
from enum import Enum

from streamjoin_common.errors import StreamJoinError


class KeyType(str, Enum):
    """Type of one join column as it travels in a tuple; every one is 32 bits wide."""

    INT32 = "int32"
    UINT32 = "uint32"
    FLOAT32 = "float32"


class TermKind(str, Enum):
    """How one column of R is compared with one column of S."""

    EQUI = "equi"
    BAND = "band"
    KEY = "key"


@dataclass(frozen=True)
class Term:
    """One condition of a conjunctive predicate, on the key field of the same index.

    ``EQUI`` holds if the two keys are equal. ``BAND`` holds if ``s - lo <= r <= s + hi``, the
    widths ``lo`` and ``hi`` being registers. ``KEY`` always holds: the keys are for ``theta``.
    """

    kind: TermKind
    type: KeyType

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", TermKind(self.kind))
        object.__setattr__(self, "type", KeyType(self.type))

    @property
    def text(self) -> str:
        """The term as it is written in a parameter: ``equi:int32``."""
        return f"{self.kind.value}:{self.type.value}"


class ParameterError(StreamJoinError, ValueError):
    """A design parameter is out of its range; the message names it and what is required."""

    exit_status = 2


def require(ok: bool, name: str, requirement: str, value: object) -> None:
    """Raise :class:`ParameterError` with the name, what is required and the value, unless ok."""
    if not ok:
        raise ParameterError(f"{name} must be {requirement}, not {value!r}")


def parse_term(string: str) -> Term:
    """Read ``equi:int32`` or ``band:float32``.

    Raises
    ------
    ParameterError
        If the string names no known kind or type.
    """
    kind, _, type_name = string.partition(":")
    kinds, types = [k.value for k in TermKind], [t.value for t in KeyType]
    require(
        kind in kinds and type_name in types,
        "term",
        f"{'|'.join(kinds)}:{'|'.join(types)}",
        string,
    )
    return Term(TermKind(kind), KeyType(type_name))
