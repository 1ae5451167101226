"""Which columns joined rows have: ``r.a``, ``s.b``, ``a`` where one side has it, ``r.*``, ``*``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from streamjoin_common.errors import InputError
from streamjoin_common.language.kinds import R_ONLY
from streamjoin_common.suggestions import did_you_mean

FORM = "r.a, s.b, r.*, s.* or *"
SIDES = ("r", "s")


@dataclass(frozen=True)
class Chosen:
    """A column of the joined rows.

    Attributes
    ----------
    side : str
        ``"r"`` or ``"s"``.
    column : str
        Its name in that input.
    name : str
        Its name in the result.
    """

    side: str
    column: str
    name: str


@dataclass(frozen=True)
class Selection:
    """Columns as users name them.

    Attributes
    ----------
    items : tuple of (str or None, str)
        Side, None where it is not said, and name, which may be ``"*"``.

    Examples
    --------
    >>> chosen = Selection.parse("r.*, b").resolve(["k", "a"], ["k", "b"])
    >>> [(each.side, each.column, each.name) for each in chosen]
    [('r', 'k', 'k'), ('r', 'a', 'a'), ('s', 'b', 'b')]
    """

    items: tuple[tuple[str | None, str], ...]

    @classmethod
    def parse(cls, given: "str | Iterable[str] | Selection | None") -> "Selection":
        """Read a list of columns, or a string with commas; None is ``"*"``.

        Raises
        ------
        InputError
            If it is neither, or names no column.
        """
        if given is None:
            return cls(((None, "*"),))
        if isinstance(given, cls):
            return given
        wrong = InputError(f"columns must be names such as {FORM}, not {given!r}")
        if isinstance(given, str):
            given = [name.strip() for name in given.split(",")]
        elif isinstance(given, bytes) or not isinstance(given, Iterable):
            raise wrong
        names = list(given)
        if not all(isinstance(name, str) for name in names):
            raise wrong
        if not names or not all(name.strip() for name in names):
            raise InputError(f"columns: a name is missing: write {FORM}")
        return cls(tuple(_item(name) for name in names))

    def needed(self, side: str, names: Sequence[str]) -> list[str]:
        """Return the columns of a side that the selection may name."""
        wanted = {name for at, name in self.items if at in {None, side}}
        return [name for name in names if "*" in wanted or name in wanted]

    def resolve(
        self,
        r_names: Sequence[str],
        s_names: Sequence[str],
        suffixes: tuple[str, str] = ("_r", "_s"),
        how: str = "inner",
    ) -> list[Chosen]:
        """Find the columns, and give those that clash their side's suffix.

        Parameters
        ----------
        r_names, s_names : sequence of str
            The columns of both inputs.
        suffixes : tuple of str
            R's and S's.
        how : str
            The kind of join: ``semi`` and ``anti`` have R's columns only.

        Raises
        ------
        InputError
            If there is no such column, both sides have it, it is named twice, or two would get
            the same name.
        """
        for at, suffix in zip(SIDES, suffixes, strict=True):
            if not isinstance(suffix, str):
                raise InputError(f"{at}_suffix must be a string, not {suffix!r}")
        have = {"r": r_names, "s": () if how in R_ONLY else s_names}
        columns: dict[tuple[str, str], None] = {}
        stars: list[str] = []
        for side, name in self.items:
            if side == "s" and how in R_ONLY:
                raise InputError(f"s.{name}: a join of kind {how} has R's columns only")
            if name == "*":
                stars += [side or "*"]
                columns.update({(at, each): None for at in _sides(side) for each in have[at]})
                continue
            at = side or _side_with(name, have, how)
            if name not in have[at]:
                near = did_you_mean(name, have[at])
                raise InputError(
                    f"{at}: there is no column {name!r}; it has {_listed(have[at])}{near}"
                )
            if (at, name) in columns and not {at, "*"} & set(stars):
                raise InputError(f"the column {at}.{name} is named twice")
            columns[at, name] = None
        return _named(list(columns), have, dict(zip(SIDES, suffixes, strict=True)))


def _item(text: str) -> tuple[str | None, str]:
    side, dot, name = text.partition(".")
    return (side, name) if dot and name and side in SIDES else (None, text)


def _sides(side: str | None) -> tuple[str, ...]:
    return SIDES if side is None else (side,)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _side_with(name: str, have: dict[str, Sequence[str]], how: str) -> str:
    sides = [side for side in SIDES if name in have[side]]
    if len(sides) == 1:
        return sides[0]
    if sides:
        raise InputError(f"the column {name!r} is in both r and s: write r.{name} or s.{name}")
    listed = "; ".join(f"{side} has {_listed(names)}" for side, names in have.items() if names)
    near = did_you_mean(name, [each for names in have.values() for each in names])
    only = f"; a join of kind {how} has R's columns only" if how in R_ONLY else ""
    raise InputError(f"there is no column {name!r}: {listed or 'there are none'}{only}{near}")


def _named(
    columns: list[tuple[str, str]], have: dict[str, Sequence[str]], suffixes: dict[str, str]
) -> list[Chosen]:
    names = [name for _, name in columns]
    for side, name in columns:
        if list(have[side]).count(name) > 1:
            times = list(have[side]).count(name)
            raise InputError(f"{side}: the column {name!r} occurs {times} times: rename one")
    chosen = [
        Chosen(side, name, name + suffixes[side] if names.count(name) > 1 else name)
        for side, name in columns
    ]
    results = [each.name for each in chosen]
    twice = next((name for name in results if results.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"two columns would be called {twice!r}: choose other suffixes (r_suffix, "
            "s_suffix), or name fewer columns"
        )
    return chosen
