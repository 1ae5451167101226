"""Addresses of PostgreSQL servers: read strictly, shown without a secret.

Both forms of libpq are read, ``postgresql://user:password@host:5432/database?key=value`` and
``host=... password=... dbname=...``. What the driver is given is written anew from the parts, so
that the driver never refuses an address in which a password looks like a host.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from streamjoin.errors import InputError
from streamjoin_common.redaction import redacted

FORM = "postgresql://user@host:5432/database"

_SCHEME = re.compile(r"(?i)\s*postgres(?:ql)?:/")
_KEYWORD_FORM = re.compile(r"(?i)\s*[a-z_]*(?:host|user|password|dbname|service|port)\w*\s*=")
_PLAIN_FILE = re.compile(r"[^:@=?%'\"\s][^:@=?%'\"]*")
_URI = re.compile(
    r"(?i)postgres(?:ql)?://(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^@/?#\s]*))?@)?"
    r"(?P<hosts>[^@/?#\s]*)(?:/(?P<dbname>[^@/?#\s]*))?(?:\?(?P<query>[^@?#\s]*))?"
)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
_PAIR = re.compile(r"\s*([a-z_]+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)(?:\s+|$)")
_KEY = re.compile(r"[a-z_]+")
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_SECRET_KEY = re.compile(r"password|secret")


@dataclass(frozen=True)
class Address:
    """Where a server is.

    Attributes
    ----------
    text : str
        As it was given, secrets included; not shown.
    parameters : dict
        By libpq's keywords, decoded; not shown.
    """

    text: str = field(repr=False)
    parameters: dict[str, str] = field(repr=False, compare=False)

    @classmethod
    def of(cls, text: str) -> "Address":
        """Read an address.

        Raises
        ------
        InputError
            If it is none, without showing any of it.
        """
        parameters = _uri_parts(text.strip()) if _SCHEME.match(text) else _pairs(text)
        if parameters is None:
            raise InputError(
                f"the address of a PostgreSQL server cannot be read: write {FORM}, with %40 for @, "
                "%3A for :, %2F for / and so on within a name or password, or host=... dbname=..."
            )
        return cls(text, parameters)

    @property
    def shown(self) -> str:
        """Host, port and database."""
        host, port = self.parameters.get("host") or "localhost", self.parameters.get("port")
        database = self.parameters.get("dbname")
        return host + (f":{port}" if port else "") + (f"/{database}" if database else "")

    def uri(self, **limits: str) -> str:
        """Write it for the driver; ``limits`` hold where the address does not say otherwise."""
        options = " ".join(filter(None, (limits.get("options"), self.parameters.get("options"))))
        said = {**limits, **self.parameters, "options": options}
        return "postgresql:///?" + "&".join(
            f"{key}={quote(value, safe='')}" for key, value in said.items() if value
        )

    def hide(self, words: str) -> str:
        """Remove secrets from what a driver says."""
        plain = [value for key, value in self.parameters.items() if _SECRET_KEY.search(key)]
        return redacted(
            words,
            [form for value in plain for form in (value, quote(value), quote(value, safe=""))],
        )


def is_address(text: object) -> bool:
    """Whether a text is meant as a server's address rather than as a file, well written or not."""
    return isinstance(text, str) and bool(_SCHEME.match(text) or _KEYWORD_FORM.match(text))


def shown(text: str) -> str:
    """Say of an address, or of what may be one, what may be shown; a file's name as it is."""
    if not is_address(text):
        return redacted(text)
    try:
        return Address.of(text).shown
    except InputError:
        return "a PostgreSQL server"


def is_file_name(text: str) -> bool:
    """Whether a text is a plain file name: what is neither that nor an address is not shown."""
    return _PLAIN_FILE.fullmatch(text) is not None


def split_table(text: str) -> tuple[str, str]:
    """Split ``ADDRESS:TABLE``.

    Raises
    ------
    InputError
        If no table is named, or what stands behind the last colon may be part of a password.
    """
    location, _, table = text.rpartition(":")
    address_ends_secret = re.search(r"(?i)(password|secret)\w*\s*=\s*[^\s&']*$", location)
    whole = re.fullmatch(r"[^/@=?\]]+", table) is not None
    if not is_address(location) or not whole or address_ends_secret:
        raise InputError(
            f"postgres:{shown(text)}: names no table: write its name behind a colon, as "
            "postgres:postgresql://host/database:planes; a password comes before the database"
        )
    return location, table


def _uri_parts(text: str) -> dict[str, str] | None:
    match = _URI.fullmatch(text)
    if match is None or _PERCENT.search(text):
        return None
    hosts, ports = [], []
    for one in match["hosts"].split(","):
        named = _HOST.fullmatch(one)
        if named is None:
            return None
        hosts.append(unquote(named[1].strip("[]")))
        ports.append(named[2] or "")
    parameters = {
        "user": unquote(match["user"] or ""),
        "password": unquote(match["password"] or ""),
        "host": ",".join(hosts),
        "port": ",".join(ports) if any(ports) else "",
        "dbname": unquote(match["dbname"] or ""),
    }
    for pair in filter(None, (match["query"] or "").split("&")):
        key, equals, value = (unquote(part) for part in pair.partition("="))
        if not equals or not _KEY.fullmatch(key):
            return None
        parameters[key] = value
    return {key: value for key, value in parameters.items() if value}


def _pairs(text: str) -> dict[str, str] | None:
    parameters, at = {}, 0
    while at < len(text.rstrip()):
        match = _PAIR.match(text, at)
        if match is None:
            return None
        value = match[2][1:-1] if match[2].startswith("'") else match[2]
        parameters[match[1]] = re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
        at = match.end()
    return {key: value for key, value in parameters.items() if value} or None
