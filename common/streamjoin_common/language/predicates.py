"""Join predicates as plain data: what is compared with what, and how it is written.

A predicate is a conjunction of terms over one column of each side: ``equi`` (``r.k == s.k``)
or ``band`` (``s.a - lo <= r.x <= s.a + hi``).
"""

import math
import re
from dataclasses import dataclass

from streamjoin_common.errors import InputError
from streamjoin_common.language.durations import shown
from streamjoin_common.spelling import argument, option

Number = int | float

MAX_WIDTH = 10**400
"""Limit of an integer width's magnitude, exclusive: it has at most 400 digits."""

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,399})")
_REAL = re.compile(r"-?(?:(?:0|[1-9][0-9]{0,399})(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,9})?|inf)")


@dataclass(frozen=True)
class Equi:
    """``r[r_column] == s[s_column]``."""

    r_column: str
    s_column: str

    kind = "equi"

    def __post_init__(self) -> None:
        _check_names(self, ",=")

    @property
    def text(self) -> str:
        """The term as ``--on`` takes it."""
        same = self.r_column == self.s_column
        return self.r_column if same else f"{self.r_column}={self.s_column}"


@dataclass(frozen=True)
class Band:
    """``s[s_column] - lo <= r[r_column] <= s[s_column] + hi``.

    ``lo`` and ``hi`` may be negative: ``lo=-5, hi=10`` asks for ``s + 5 <= r <= s + 10``.
    """

    r_column: str
    s_column: str
    lo: Number
    hi: Number

    kind = "band"

    def __post_init__(self) -> None:
        _check_names(self, "=:")
        for width in (self.lo, self.hi):
            if not isinstance(width, int | float) or isinstance(width, bool):
                raise InputError(f"a band's width must be a number, not {width!r}")
            if isinstance(width, int) and abs(width) >= MAX_WIDTH:
                raise InputError("a band's integer width must have at most 400 digits")
            if isinstance(width, float) and math.isnan(width):
                raise InputError("a band's width cannot be NaN")

    @property
    def real_widths(self) -> tuple[float, float]:
        """The widths as floating-point numbers; an integer beyond their range is infinite."""
        return _as_real(self.lo), _as_real(self.hi)

    @property
    def text(self) -> str:
        """The term as ``--band`` takes it."""
        return f"{self.r_column}={self.s_column}:{self.lo}:{self.hi}"


Term = Equi | Band


@dataclass(frozen=True)
class Predicate:
    """A conjunction of one or more terms.

    Examples
    --------
    >>> Predicate.parse(on="k").text
    'k'
    >>> Predicate.parse(band=["x=a:10:10", "y=b:0.5:2"]).text
    'x=a:10:10 and y=b:0.5:2'
    """

    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        if not self.terms:
            raise InputError(
                f"a predicate is needed: {option('on', 'COL[=COL]')} or "
                f"{option('band', 'COL=COL:LO:HI')}"
            )

    @classmethod
    def parse(
        cls, on: str | list[str] | None = None, band: str | list[str] | None = None
    ) -> "Predicate":
        """Read a predicate from the command line's spelling.

        Parameters
        ----------
        on : str or list of str
            Equal columns: ``"k"``, ``"rk=sk"``, several separated by commas.
        band : str or list of str
            Band terms: ``"x=a:10:10"`` means ``a - 10 <= x <= a + 10``.

        Raises
        ------
        InputError
            If a term cannot be read or there is none.
        """
        on_strings, band_strings = _strings(on, "on"), _strings(band, "band")
        terms: list[Term] = [
            _parse_equi(part) for string in on_strings for part in string.split(",")
        ]
        terms += [_parse_band(string) for string in band_strings]
        return cls(tuple(terms))

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of term that occur: ``"equi"``, ``"band"``."""
        return frozenset(term.kind for term in self.terms)

    @property
    def kind(self) -> str:
        """What an engine must be able to do: ``"equi"`` if all terms are, else ``"band"``."""
        return "equi" if self.kinds == {"equi"} else "band"

    @property
    def text(self) -> str:
        """The predicate as it is shown in tables and metrics."""
        return " and ".join(term.text for term in self.terms)

    @property
    def on(self) -> list[str]:
        """The equi terms as ``--on`` takes them."""
        return [term.text for term in self.terms if isinstance(term, Equi)]

    @property
    def band(self) -> list[str]:
        """The band terms as ``--band`` takes them."""
        return [term.text for term in self.terms if isinstance(term, Band)]

    @property
    def r_columns(self) -> list[str]:
        """Columns of R that it names, each once."""
        return list(dict.fromkeys(term.r_column for term in self.terms))

    @property
    def s_columns(self) -> list[str]:
        """Columns of S that it names, each once."""
        return list(dict.fromkeys(term.s_column for term in self.terms))


def check_kinds(term: Term, r_kind: str, s_kind: str, r_source: str, s_source: str) -> None:
    """Refuse columns that a term cannot compare, naming input, column, kind and what is right.

    Parameters
    ----------
    term : Equi or Band
    r_kind, s_kind : str
        What the columns hold: ``"integer"``, ``"floating-point"``, ``"string"``, ``"timestamp"`` or
        ``"duration"``.
    r_source, s_source : str
        What errors call the inputs.

    Raises
    ------
    InputError
        If the kinds do not compare with each other, or not under the term.
    """
    names = f"{r_source}: {term.r_column!r} is {r_kind}, {s_source}: {term.s_column!r} is {s_kind}"
    if isinstance(term, Equi):
        if "floating-point" in {r_kind, s_kind}:
            raise InputError(
                f"{names}; equality is for integers and strings: for floating-point numbers take "
                f"band {term.r_column}={term.s_column}:0:0, or make integers of them"
            )
        if r_kind != s_kind:
            raise InputError(f"{names}; both must be integers, both strings or both timestamps")
        return
    sides = ((r_source, term.r_column, r_kind), (s_source, term.s_column, s_kind))
    for source, column, kind in sides:
        if kind not in {"integer", "floating-point"}:
            raise InputError(f"{source}: column {column!r} is {kind}; a band needs numbers")
    if r_kind != s_kind:
        raise InputError(f"{names}; a band needs two columns of the same kind")
    if r_kind == "integer" and not (isinstance(term.lo, int) and isinstance(term.hi, int)):
        raise InputError(
            f"band {term.text}: the columns hold integers, so the widths must be integers too"
        )


def _check_names(term: Term, separators: str) -> None:
    for name in (term.r_column, term.s_column):
        if not name or any(mark in name for mark in separators):
            raise InputError(
                f"a column of {argument('on' if term.kind == 'equi' else 'band')} has a name "
                f"without {separators[0]!r} and {separators[1]!r}, not {shown(name)}"
            )


def _as_real(width: Number) -> float:
    try:
        return float(width)
    except OverflowError:
        return math.copysign(math.inf, width > 0 or -1)


def _strings(given: str | list[str] | None, name: str) -> list[str]:
    if given is None:
        return []
    strings = [given] if isinstance(given, str) else given
    if not isinstance(strings, list | tuple) or not all(
        isinstance(string, str) for string in strings
    ):
        example = "'rk=sk'" if name == "on" else "'x=a:10:10'"
        raise InputError(
            f"{name} must be a string or a list of strings, not {given!r}: write {example}"
        )
    return list(strings)


def _parse_equi(string: str) -> Equi:
    left, equals, right = string.partition("=")
    if not left or (equals and not right) or "=" in right:
        raise InputError(f"on takes COL or RCOL=SCOL, not {shown(string)}")
    return Equi(left, right or left)


def _parse_band(string: str) -> Band:
    columns, *widths = string.split(":")
    left, _, right = columns.partition("=")
    if not (left and right and "=" not in right and len(widths) == 2):
        raise InputError(f"band takes RCOL=SCOL:LO:HI, as x=a:10:10, not {shown(string)}")
    lo, hi = (_parse_width(width, string) for width in widths)
    return Band(left, right, lo, hi)


def _parse_width(string: str, whole: str) -> Number:
    if _INTEGER.fullmatch(string):
        return int(string)
    if not _REAL.fullmatch(string):
        raise InputError(
            f"band {shown(whole)}: the width {shown(string)} is not a number; write it as 10, -5, "
            "0.5, 1e3 or inf"
        )
    width = float(string)
    if math.isinf(width) and "inf" not in string:
        raise InputError(f"band {shown(whole)}: the width {shown(string)} is too large; write inf")
    return width
