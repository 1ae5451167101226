"""Join predicates as plain data: what is compared with what, and how it is written.

A predicate is a conjunction of terms over one column of each side: ``equi`` (``r.k == s.k``)
or ``band`` (``s.a - lo <= r.x <= s.a + hi``). Of times a band's widths may be durations.
"""

import math
import re
from dataclasses import dataclass

from streamjoin_common.callers import warn_caller
from streamjoin_common.errors import InputError
from streamjoin_common.language.durations import (
    MAX_SHOWN_CHARACTERS,
    format_width,
    likely_duration,
    meant,
    parse_width,
    shown,
)
from streamjoin_common.spelling import argument, option

Number = int | float

MAX_WIDTH = 10**400
"""Limit of an integer width's magnitude, exclusive: it has at most 400 digits."""

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,399})")
_REAL = re.compile(r"-?(?:(?:0|[1-9][0-9]{0,399})(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,9})?|inf)")
_WITHIN = re.compile(r"(.+) within ([^ ]+)")


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

    Attributes
    ----------
    r_column, s_column : str
        What is compared.
    lo, hi : int or float
        The widths, of times in their columns' unit.
    is_duration : bool
        Whether the widths are nanoseconds, and the columns times.
    """

    r_column: str
    s_column: str
    lo: Number
    hi: Number
    is_duration: bool = False

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
    def is_empty(self) -> bool:
        """Whether the lower bound lies above the upper one.

        No numbers match then, but for infinite ones and floating-point sums that are rounded.
        """
        lo, hi = self.widths
        lo, hi = (lo, hi) if isinstance(lo, int) and isinstance(hi, int) else self.real_widths
        return lo + hi < 0

    @property
    def text(self) -> str:
        """The term as ``--band`` takes it."""
        lo, hi = (format_width(int(width)) if self.is_duration else width for width in self.widths)
        return f"{self.r_column}={self.s_column}:{lo}:{hi}"

    @property
    def widths(self) -> tuple[Number, Number]:
        """``lo`` and ``hi``."""
        return self.lo, self.hi


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
    >>> Predicate.parse(band="sent=got within 1.5s").text
    'sent=got:1500ms:1500ms'
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
            Band terms: ``"x=a:10:10"`` means ``a - 10 <= x <= a + 10``, and so does
            ``"x=a within 10"``. Widths of times may be durations: ``"t=u within 5s"``.

        Raises
        ------
        InputError
            If a term cannot be read or there is none.

        Warns
        -----
        InputWarning
            If a band is empty: its lower bound lies above its upper one.
        """
        on_strings, band_strings = _strings(on, "on"), _strings(band, "band")
        terms: list[Term] = [
            _parse_equi(part) for string in on_strings for part in string.split(",")
        ]
        bands = [_parse_band(string) for string in band_strings]
        predicate = cls((*terms, *bands))
        for string, term in zip(band_strings, bands, strict=True):
            if term.is_empty:
                warn_caller(
                    f"band {shown(string)} is empty: its lower bound {_bound(term, term.lo, -1)} "
                    f"lies above its upper bound {_bound(term, term.hi, 1)}; LO + HI must be at "
                    "least 0 for anything to match"
                )
        return predicate

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


ALIKE = (
    frozenset({"integer", "floating-point"}),
    frozenset({"integer", "decimal"}),
)
"""Kinds of two columns that an equality compares by their numbers."""

CASTS = {
    frozenset({"bool", "integer"}): "cast the bool column to int8",
    frozenset({"string", "binary"}): "cast the binary column to string",
    frozenset({"decimal", "floating-point"}): "cast one column to the other's type",
    frozenset({"timestamp", "duration"}): "add the origin to the duration",
}
"""What makes two kinds comparable."""

TIMES = frozenset({"timestamp", "duration"})


def check_kinds(term: Term, r_kind: str, s_kind: str, r_source: str, s_source: str) -> None:
    """Refuse columns that a term cannot compare, naming input, column, kind and what is right.

    Parameters
    ----------
    term : Equi or Band
    r_kind, s_kind : str
        What the columns hold: ``"integer"``, ``"floating-point"``, ``"decimal"``, ``"bool"``,
        ``"string"``, ``"binary"``, ``"timestamp"`` or ``"duration"``.
    r_source, s_source : str
        What errors call the inputs.

    Raises
    ------
    InputError
        If the kinds do not compare with each other, or not under the term.
    """
    names = f"{r_source}: {term.r_column!r} is {r_kind}, {s_source}: {term.s_column!r} is {s_kind}"
    kinds = frozenset({r_kind, s_kind})
    if isinstance(term, Equi):
        if len(kinds) > 1 and kinds not in ALIKE:
            remedy = CASTS.get(kinds, "cast one of them to the other's type")
            raise InputError(f"{names}; both must be of one kind: {remedy}")
        return
    sides = ((r_source, term.r_column, r_kind), (s_source, term.s_column, s_kind))
    for source, column, kind in sides:
        if kind not in {"integer", "floating-point", *TIMES}:
            remedy = ": cast it to double, or to an integer" if kind == "decimal" else ""
            raise InputError(
                f"{source}: column {column!r} is {kind}; a band needs numbers or times{remedy}"
            )
    if r_kind != s_kind:
        remedy = CASTS.get(kinds, "cast one of them to the other's type")
        raise InputError(f"{names}; a band needs two columns of the same kind: {remedy}")
    _check_widths(term, r_kind)


def _check_widths(term: Band, kind: str) -> None:
    if term.is_duration and kind not in TIMES:
        raise InputError(
            f"band {term.text}: the columns hold {kind} numbers, not times: write the widths "
            "without a unit"
        )
    if kind == "floating-point" or (isinstance(term.lo, int) and isinstance(term.hi, int)):
        return
    if kind in TIMES:
        raise InputError(
            f"band {term.text}: the columns hold times, so the widths must be durations such as "
            "5s, or integers of the columns' unit"
        )
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


def _bound(band: Band, width: Number, sign: int) -> str:
    """Write a bound of a band: its column of S, and what is added to it."""
    is_added = (width >= 0) == (sign > 0)
    size = format_width(abs(int(width))) if band.is_duration else str(abs(width))
    if len(size) > MAX_SHOWN_CHARACTERS:
        size = f"{size[: MAX_SHOWN_CHARACTERS - 3]}..."
    return f"{band.s_column} {'+' if is_added else '-'} {size}"


def _strings(given: str | list[str] | None, name: str) -> list[str]:
    if given is None:
        return []
    strings = [given] if isinstance(given, str) else given
    if not isinstance(strings, list | tuple) or not all(
        isinstance(string, str) for string in strings
    ):
        example = "'rk=sk'" if name == "on" else "'x=a:10:10'"
        raise InputError(
            f"{name} must be a string or a list of strings, for example {example}, not {given!r}"
        )
    return list(strings)


def _parse_equi(string: str) -> Equi:
    left, equals, right = string.partition("=")
    if not left or (equals and not right) or "=" in right:
        raise InputError(f"{argument('on')} takes COL or RCOL=SCOL, not {shown(string)}")
    return Equi(left, right or left)


def _parse_band(string: str) -> Band:
    columns, *widths = string.split(":")
    within = _WITHIN.fullmatch(string)
    if within is not None and not widths:
        columns, widths = within[1], [within[2], within[2]]
    left, _, right = columns.partition("=")
    if not (left and right and "=" not in right and len(widths) == 2):
        raise InputError(
            f"band takes RCOL=SCOL:LO:HI, as x=a:10:10, or RCOL=SCOL within WIDTH, as "
            f"t=u within 5s, not {shown(string)}{_band_meant(string)}"
        )
    spans = [parse_width(width) for width in widths]
    if all(span is None for span in spans):
        lo, hi = (_parse_number(width, string) for width in widths)
        return Band(left, right, lo, hi)
    wrong = next(
        (width for width, span in zip(widths, spans, strict=True) if span is None and width != "0"),
        None,
    )
    if wrong is not None:
        raise InputError(
            f"band {shown(string)}: {shown(wrong)} has no unit and the other width has one: write "
            "both as durations, as 5s"
        )
    return Band(left, right, spans[0] or 0, spans[1] or 0, is_duration=True)


def _band_meant(string: str) -> str:
    """Return what was probably meant by a band that cannot be read, or nothing."""
    column, within, width = string.partition(" within ")
    if within and not set("=: ") & set(column):
        width = likely_duration(width) or width
        return f": did you mean {shown(f'{column}={column} within {width}')}?"
    return meant(width)


def _parse_number(string: str, whole: str) -> Number:
    if _INTEGER.fullmatch(string):
        return int(string)
    if not _REAL.fullmatch(string):
        raise InputError(
            f"band {shown(whole)}: the width {shown(string)} is not a number, for example 10, -5, "
            f"0.5, 1e3 or inf, nor a duration, for example 5s{meant(string)}"
        )
    width = float(string)
    if math.isinf(width) and "inf" not in string:
        raise InputError(f"band {shown(whole)}: the width {shown(string)} is too large; write inf")
    return width
