"""Passwords of server addresses appear nowhere, however the address is written or mistyped."""

import io
import random
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamjoin as sj
from streamjoin import cli
from streamjoin.cli import main
from streamjoin.errors import InputError, StreamJoinError
from streamjoin.relations import Projection, open_store, relation
from streamjoin.relations.server_address import Address, shown
from streamjoin_common.redaction import redacted

MARKER = "Xyzzy"
"""Occurs in every password, twice, with what could split it between."""

SPECIAL = ("", "@", ":", "/", "?", "#", "&", "=", "%", "%40", "%zz", " ", "'", "\\", '"', "+", "é")
SCHEMES = ("postgresql://", "postgres://", "POSTGRESQL://", "Postgres://", "postgresql:/")
PORT = 1  # nothing listens there: the driver is reached and says so


def password(rng: random.Random) -> str:
    special = rng.choice(SPECIAL) + rng.choice(SPECIAL)
    return f"{MARKER}{special}{MARKER}"


def in_quotes(secret: str) -> str:
    return "'" + secret.replace("\\", "\\\\").replace("'", "\\'") + "'"


def address(rng: random.Random) -> str:
    """An address with a password: right, or wrong in one of the ways in which people are wrong."""
    secret, scheme = password(rng), rng.choice(SCHEMES)
    written = rng.choice((secret, quote(secret), quote(secret, safe="")))
    host = rng.choice(("127.0.0.1", "[::1]", "localhost", "", "127.0.0.1:bad"))
    end = f":{PORT}/db"
    return rng.choice(
        (
            f"{scheme}me:{written}@{host}{end}",
            f"{scheme}me:{written}@{host}{end}?connect_timeout=2",
            f"{scheme}me:{written}@{host}{end}?odd=1",
            f"{scheme}:{written}@{host}{end}",
            f"{scheme}me:{written.replace('@', '')}",  # behind an @ would be a host
            f"{scheme}{host}{end}?password={written}&user=me",
            f"{scheme}{host}{end}?user=me&password={written}",
            f"{scheme}{host}{end}?user=me&%70assword={written}",
            f"host=127.0.0.1 port={PORT} password={in_quotes(secret)} dbname=db",
            f"host=127.0.0.1 port={PORT} password={written} dbname=db",
            f"PASSWORD = {written} host=127.0.0.1 port={PORT}",
            f"port={PORT} host=127.0.0.1 sslpassword={written} dbname='db",
            f"host=127.0.0.1 port={PORT} dbname=db password={written}",
        )
    )


@pytest.fixture
def s_file(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"k": [1, 2]}), tmp_path / "s.parquet")
    return tmp_path / "s.parquet"


def test_no_password_is_shown_on_any_way_through_the_command(
    s_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    join = ["join", "--engine", "ssbj", "--s", str(s_file), "--on", "k"]
    for seed in range(150):
        rng = random.Random(seed)
        where = address(rng)
        table = rng.choice((":t", ":t", ""))
        given = rng.choice(
            (
                [*join, "--r", f"postgres:{where}{table}"],
                [*join, "--r", f"postgres:{where}{table}", "--debug"],
                [*join, "--r", f"{rng.choice(('sqlite', 'duckdb', 'parquet'))}:{where}{table}"],
                [*join, "--r", f"{where}{table}"],
                ["join", "--engine", "npj", "--r", str(s_file), "--s", where, "--on", "k"],
                [*join, "--r", str(s_file), "--wrong", where],
                ["engines", where],
            )
        )
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            try:
                status = main(given)
            except SystemExit as error:
                status = int(str(error.code))
            except StreamJoinError:  # of --debug
                status = 2
                sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        assert status in (1, 2), (seed, out.getvalue())
        assert out.getvalue(), seed
        assert MARKER not in out.getvalue(), (seed, where, out.getvalue())
    assert not [path for path in tmp_path.rglob("*") if path != s_file]


def test_no_password_is_in_an_exception_or_a_repr(tmp_path: Path) -> None:
    reached = 0
    for seed in range(150):
        where = address(random.Random(seed))
        (tmp_path / "r.toml").write_text(f"uri = {toml_string(where)}\ntable = 't'\n")
        for given in (f"postgres:{where}:t", where, f"postgres:{tmp_path / 'r.toml'}"):
            try:
                found = relation(given)
                assert MARKER not in repr(found) + found.text, seed
                sj.join(found, {"k": np.array([1])}, on="k", engine="ssbj")
            except StreamJoinError as error:
                said = "".join(traceback.format_exception(error)) + repr(error)
                assert MARKER not in said, (seed, said)
                reached += "refused" in said
            else:
                raise AssertionError(f"nothing listens on port {PORT}")
    assert reached > 50, "few addresses were right: the driver had little to say"


def toml_string(text: str) -> str:
    """A TOML string."""
    import json

    return json.dumps(text, ensure_ascii=False)


def test_a_servers_own_words_are_shown_without_the_password(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A server that repeats the password: as the name of a role, of a database, of a table.
    host = postgres.partition("@")[2].partition("/")[0]
    where = f"postgresql://{MARKER}:{MARKER}@{host}/{MARKER}x:t"
    with pytest.raises(StreamJoinError) as raised:
        sj.join(f"postgres:{where}", {"k": np.array([1])}, on="k", engine="ssbj")
    assert 'role "***" does not exist' in str(raised.value)


def test_a_relation_is_written_without_the_servers_password(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamjoin.relations import write_store

    secret = postgres.replace("postgres@", f"postgres:{MARKER}@")
    monkeypatch.setenv("STREAMJOIN_POSTGRES", secret)
    store = write_store("postgres", tmp_path, np.arange(5, dtype=np.uint64), 16)
    assert store.read(0, 5).keys.tolist() == [0, 1, 2, 3, 4]
    assert all(MARKER not in path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    store.discard()
    store.close()
    monkeypatch.setenv("STREAMJOIN_POSTGRES", f"postgresql://me:{MARKER}/x@host/db")
    with pytest.raises(InputError, match=r"^STREAMJOIN_POSTGRES: .* cannot be read") as raised:
        write_store("postgres", tmp_path / "x", np.arange(5, dtype=np.uint64), 16)
    assert MARKER not in str(raised.value)


@pytest.mark.parametrize("number", range(40))
def test_a_right_address_says_to_the_driver_what_it_said(number: int) -> None:
    rng = random.Random(number)
    secret = password(rng)
    forms = (
        f"postgresql://me:{quote(secret, safe='')}@h:5/d?sslmode=require",
        f"POSTGRES://h:5/d?user=me&password={quote(secret, safe='')}&sslmode=require",
        f"host=h  port = 5 user=me password={in_quotes(secret)} dbname=d sslmode='require'",
    )
    for form in forms:
        found = Address.of(form)
        assert found.parameters["password"] == secret
        assert found.shown == "h:5/d"
        assert Address.of(found.uri()).parameters == found.parameters
        assert MARKER not in f"{found!r} {found} {shown(form)} {redacted(form)}"


def test_limits_hold_unless_the_address_says_otherwise() -> None:
    limited = Address.of("postgresql://h/d?connect_timeout=9&options=-c%20a%3Db")
    said = Address.of(limited.uri(connect_timeout="5", options="-c x=1")).parameters
    assert said["connect_timeout"] == "9"
    assert said["options"] == "-c x=1 -c a=b"


@pytest.mark.parametrize("kind", ["parquet", "sqlite", "duckdb", "arrow", "raw"])
def test_an_address_behind_a_file_kind_is_one_sentence(kind: str) -> None:
    with pytest.raises(InputError, match=f"^{kind}: takes a file, and this is the address of a"):
        relation(f"{kind}:postgresql://me@host/db:t")


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match=r"^nowhere\.toml: there is no such file"):
        relation("postgres:nowhere.toml:t")
    with pytest.raises(InputError, match=r"^nowhere\.toml: there is no such file"):
        open_store("postgres", Path("nowhere.toml"), Projection("k"))


def test_words_without_secrets_stay_as_they_are() -> None:
    for words in (
        "write postgresql://user@host:5432/database",
        "set STREAMJOIN_POSTGRES, as postgresql://localhost/database",
        "there is no column 'password'; it has user, password_hash",
        "runs/a.parquet: there is no such file",
        cli.EPILOG,
    ):
        assert redacted(words) == words
