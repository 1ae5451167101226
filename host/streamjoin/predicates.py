"""Join predicates as plain data: what is compared with what, and how it is written.

A predicate is a conjunction of terms over one column of each side: ``equi`` (``r.k == s.k``)
or ``band`` (``s.a - lo <= r.x <= s.a + hi``).
"""

import math
import re
from dataclasses import dataclass

from streamjoin.errors import InputError

Number = int | float
_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")


@dataclass(frozen=True)
class Equi:
    """``r[r_column] == s[s_column]``."""

    r_column: str
    s_column: str

    kind = "equi"

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

    @property
    def real_widths(self) -> tuple[float, float]:
        """The widths as real numbers; a whole number beyond their range is infinite."""
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
            raise InputError("a predicate is needed: on COLUMN, or band COL=COL:LO:HI")

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
        on_texts, band_texts = _texts(on, "on"), _texts(band, "band")
        terms: list[Term] = [_parse_equi(part) for text in on_texts for part in text.split(",")]
        terms += [_parse_band(text) for text in band_texts]
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


def _as_real(width: Number) -> float:
    try:
        return float(width)
    except OverflowError:
        return math.copysign(math.inf, width > 0 or -1)


def _texts(given: str | list[str] | None, name: str) -> list[str]:
    if given is None:
        return []
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{name} must be a text or a list of texts, not {given!r}")
    return list(texts)


def _parse_equi(text: str) -> Equi:
    left, equals, right = text.partition("=")
    if not left or (equals and not right) or "=" in right:
        raise InputError(f"on takes COL or RCOL=SCOL, not {text!r}")
    return Equi(left, right or left)


def _parse_band(text: str) -> Band:
    columns, _, widths = text.partition(":")
    left, _, right = columns.partition("=")
    lo, _, hi = widths.partition(":")
    if not (left and right and lo and hi):
        raise InputError(f"band takes RCOL=SCOL:LO:HI, as x=a:10:10, not {text!r}")
    return Band(left, right, _parse_width(lo, text), _parse_width(hi, text))


def _parse_width(text: str, whole: str) -> Number:
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        width = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        raise InputError(f"band {whole!r}: the width {text!r} is not a number") from None
    if math.isnan(width):
        raise InputError(f"band {whole!r}: a width cannot be NaN")
    return width
