"""Where a relation lies that is in a store already, as users write it: ``KIND:LOCATION[:TABLE]``.

Examples: ``sqlite:planes.db:planes``, ``parquet:planes``, ``postgres:postgresql://host/db:planes``.
"""

from dataclasses import dataclass
from pathlib import Path

from streamjoin.errors import InputError
from streamjoin.relations import server_address as addresses
from streamjoin.relations.base import Projection, Store
from streamjoin.relations.catalog import KINDS, open_store
from streamjoin.relations.server_address import Address, is_address, shown, split_table
from streamjoin_common.suggestions import did_you_mean

DATABASES = ("sqlite", "duckdb", "postgres")
"""Kinds that hold relations by the names of tables."""

FORM = "KIND:LOCATION[:TABLE], as sqlite:planes.db:planes"


@dataclass(frozen=True, repr=False)
class Relation:
    """A relation in a store that somebody else has made.

    Attributes
    ----------
    kind : str
        One of :data:`streamjoin.relations.KINDS`.
    location : str
        File or folder; for PostgreSQL the server's address, or the file that says it.
    table : str or None
        Of a database; None where it holds only one.
    row : str or None
        The column with the number by which results name a row; None for its position.

    Raises
    ------
    InputError
        If there is no such kind, or a table is named where there are none.
    """

    kind: str
    location: str
    table: str | None = None
    row: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            kinds = ", ".join(KINDS)
            near = did_you_mean(self.kind, KINDS)
            raise InputError(f"there is no store {shown(self.kind)!r}; choose one of {kinds}{near}")
        if is_address(self.location):
            if self.kind != "postgres":
                raise InputError(
                    f"{self.kind}: takes a file, and this is the address of a PostgreSQL server: "
                    "write postgres:ADDRESS:TABLE"
                )
            Address.of(self.location)
        elif self.kind == "postgres" and not Path(self.location).exists():
            if addresses.is_file_name(self.location):
                raise InputError(f"{self.location}: there is no such file")
            raise InputError(
                "postgres: takes an address or a TOML file, and this is neither: write "
                f"postgres:{addresses.FORM}:TABLE"
            )
        if self.table is not None and self.kind not in DATABASES:
            raise InputError(
                f"{self.location}: {self.kind} holds one relation, so no table is named"
            )

    def __repr__(self) -> str:
        said = f"kind={self.kind!r}, location={shown(self.location)!r}"
        return f"Relation({said}, table={self.table!r}, row={self.row!r})"

    @property
    def text(self) -> str:
        """As users write it, without a password."""
        table = f":{self.table}" if self.table is not None else ""
        return f"{self.kind}:{shown(self.location)}{table}"

    def open(self, projection: Projection) -> Store:
        """Open it.

        Raises
        ------
        InputError, StoreError, UnavailableError
            If it is not there, does not answer, lacks a table or a column, or a package is missing.
        """
        location: Path | str = self.location if is_address(self.location) else Path(self.location)
        if isinstance(location, Path) and not location.exists():
            raise InputError(f"{location}: there is no such file")
        if isinstance(location, Path) and not (location.is_file() or location.is_dir()):
            raise InputError(f"{location}: is no regular file")
        return open_store(self.kind, location, projection, self.table)


def relation(given: Relation | Store | str) -> Relation:
    """Take a relation's text, or an open store, whose location, table and row numbers are taken.

    Raises
    ------
    InputError
        If the text does not say kind and location.

    Examples
    --------
    >>> relation("sqlite:planes.db:planes")
    Relation(kind='sqlite', location='planes.db', table='planes', row=None)
    """
    if isinstance(given, Relation):
        return given
    if isinstance(given, Store):
        return Relation(given.kind, given.address, given.table, given.projection.row)
    kind, colon, rest = given.partition(":")
    if rest.startswith("//"):
        raise _without_kind()
    if not colon or not rest:
        raise InputError(f"{shown(given)!r} names no relation in a store: write {FORM}")
    if kind not in DATABASES or kind not in KINDS:
        return Relation(kind, rest)
    if is_address(rest) and kind == "postgres":
        return Relation(kind, *split_table(rest))
    # A colon may also be a part of the file's name, or of the table's.
    ends = [at for at, character in enumerate(rest) if character == ":"]
    if Path(rest).is_file() or not ends:
        return Relation(kind, rest)
    end = next((at for at in ends if Path(rest[:at]).is_file()), ends[-1])
    return Relation(kind, rest[:end], rest[end + 1 :])


def source(text: str) -> Path | Relation:
    """Take a file's name, or a relation in a store, as ``sqlite:planes.db:planes``.

    Raises
    ------
    InputError
        If there is no such kind of store, or a table is named without it.
    """
    if _names_store(text):
        return relation(text)
    if is_address(text):
        raise _without_kind()
    location, colon, _ = text.rpartition(":")
    if colon and Path(location).is_file() and not Path(text).exists():
        raise InputError(
            f"{text}: say which kind of store {location} is, as sqlite:{text} or duckdb:{text}"
        )
    return Path(text)


def _without_kind() -> InputError:
    return InputError(
        "the address of a PostgreSQL server stands behind its kind and before a table: write "
        f"postgres:{addresses.FORM}:TABLE"
    )


def _names_store(text: str) -> bool:
    """Whether a text is meant as a relation in a store, rather than as a file's name."""
    kind, colon, _ = text.partition(":")
    if kind in KINDS:
        return bool(colon)
    return bool(colon) and len(kind) > 1 and kind.isalnum() and not Path(text).exists()
