"""Relations that lie in stores before they are joined."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import streamjoin as sj
from streamjoin.relations.catalog import SUFFIXES, store_class


def written(kind: str, folder: Path, columns: dict[str, Any]) -> str:
    """Write columns as a relation of that kind, and name it as users do."""
    table = pa.table(columns)
    path = folder / f"own{SUFFIXES[kind]}"
    store_class(kind).write(path, iter(table.to_batches(max_chunksize=50)), table.schema)
    return f"{kind}:{path}"


def pairs(result: sj.JoinResult) -> list[tuple[int, int]]:
    return sorted(zip(result.r_rows.tolist(), result.s_rows.tolist(), strict=True))


@contextlib.contextmanager
def database(path: Path, *statements: str) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    yield
