"""A result on disk: part files that the workers write, a manifest, a folder that appears whole."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streamjoin.errors import InputError
from streamjoin.tuples import Pairs, Stream
from streamjoin_common import storage

MANIFEST = "_pairs.json"
"""Hidden from readers of the folder, as Parquet's own habit has it."""

FORMAT = 1
ROW_GROUP_PAIRS = 1 << 20
SCHEMA = pa.schema({"r_row": pa.int64(), "s_row": pa.int64(), "ts": pa.int64()})

Rows = NDArray[np.int64]
ROW_GROUP_BYTES = 1 << 25
"""Bytes of joined rows in a row group, about."""


class Batch(NamedTuple):
    """Some rows of a result.

    Attributes
    ----------
    r_rows, s_rows : ndarray of int64
        Row numbers in R and in S.
    ts : ndarray of int64
        Their times.
    columns : pyarrow.Table or None
        Their columns, if some were chosen.
    missing : str
        The side that they lack, ``"r"`` or ``"s"``, whose row numbers are -1; empty for pairs.
    """

    r_rows: Rows
    s_rows: Rows
    ts: Rows
    columns: pa.Table | None = None
    missing: str = ""

    def table(self) -> pa.Table:
        """Return what is written: the columns; without any, row numbers, null where missing."""
        if self.columns is not None:
            return self.columns
        sides = (("r", self.r_rows), ("s", self.s_rows))
        arrays = [
            pa.nulls(len(rows), pa.int64()) if side == self.missing else pa.array(rows, pa.int64())
            for side, rows in sides
        ]
        return pa.table([*arrays, pa.array(self.ts)], schema=SCHEMA)


@dataclass(frozen=True)
class Part:
    """One part file.

    Attributes
    ----------
    name : str
        Its name in the folder; empty where there was no pair to write.
    pairs, bytes : int
        What it holds.
    digest : int
        The pairs' digest as a number; those of parts add up, modulo 2**64.
    """

    name: str
    pairs: int
    bytes: int
    digest: int


def gathered(batches: Iterable[Batch], min_pairs: int = ROW_GROUP_PAIRS) -> Iterator[Batch]:
    """Put small batches together; all lack the same side."""
    held: list[Batch] = []
    pairs = held_bytes = 0
    for batch in batches:
        if len(batch.r_rows):
            held.append(batch)
            pairs += len(batch.r_rows)
            held_bytes += 0 if batch.columns is None else batch.columns.nbytes
        if pairs >= min_pairs or held_bytes >= ROW_GROUP_BYTES:
            yield _one(held)
            held, pairs, held_bytes = [], 0, 0
    if held:
        yield _one(held)


def _one(held: list[Batch]) -> Batch:
    if len(held) == 1:
        return held[0]
    first = held[0]
    r_rows, s_rows, ts = (np.concatenate([batch[index] for batch in held]) for index in range(3))
    tables = [batch.columns for batch in held if batch.columns is not None]
    return Batch(r_rows, s_rows, ts, pa.concat_tables(tables) if tables else None, first.missing)


def write_part(folder: Path, name: str, batches: Iterable[Batch]) -> Part:
    """Write a part file, whole or not at all; an attempt of the same task replaces it.

    Returns
    -------
    Part
        What was written; no file where there is no pair.
    """
    pairs, digest = 0, 0
    # The folder is a draft itself: what a killed worker leaves is removed when it gets its name.
    with (
        storage.new_file(Path(folder) / name, tidy=False) as draft,
        contextlib.ExitStack() as stack,
    ):
        writer = None
        for batch in gathered(batches):
            table = batch.table()
            if writer is None:
                writer = stack.enter_context(
                    pq.ParquetWriter(draft, table.schema, version="2.6", **_encoding(batch))
                )
            writer.write_table(table, ROW_GROUP_PAIRS)
            pairs += len(batch.r_rows)
            digest += int(Pairs(batch.r_rows, batch.s_rows).digest, 16)
    if not pairs:
        return Part("", 0, 0, 0)
    return Part(name, pairs, (Path(folder) / name).stat().st_size, digest % (1 << 64))


def _encoding(batch: Batch) -> dict[str, Any]:
    """Row numbers hardly repeat; columns of joined rows do."""
    return {"compression": "none", "use_dictionary": False} if batch.columns is None else {}


def table_of(stream: Stream, columns: list[str], shift_us: int = 0) -> pa.Table:
    """Make a table of a stream: its join columns, ``ts`` shifted by ``shift_us``, and ``row``.

    Numbers of 16 bits, which Spark cannot read, are written as float64, in which they are compared.
    """
    missing: dict[str, Any] = {"mask": stream.missing} if stream.missing is not None else {}
    chosen = {name: stream.column(name) for name in columns}
    arrays = {
        name: pa.array(column.astype("f8") if column.dtype == "f2" else column, **missing)
        for name, column in chosen.items()
    }
    arrays["ts"] = pa.array(stream.ts + shift_us)
    arrays["row"] = pa.array(np.arange(stream.rows))
    return pa.table(arrays)


def write_manifest(
    folder: Path, parts: Iterable[Part], about: Mapping[str, Any], schema: pa.Schema = SCHEMA
) -> dict[str, Any]:
    """Write the manifest, the last file of a result, and return it."""
    kept = [part for part in parts if part.name]
    digest = sum(part.digest for part in kept) % (1 << 64)
    manifest = {
        "format": FORMAT,
        **about,
        "pairs": sum(part.pairs for part in kept),
        "digest": f"{digest:016x}",
        "parts": [{"path": p.name, "pairs": p.pairs, "bytes": p.bytes} for p in kept],
    }
    if not kept:  # a reader of the folder still finds the columns
        pq.write_table(schema.empty_table(), folder / "part-00000.parquet")
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


@contextlib.contextmanager
def staged(out: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a folder beside ``out`` to write to; at the end of the block it becomes ``out``.

    If the block fails nothing is left behind and an earlier result stays as it was.

    Parameters
    ----------
    out : Path
        The folder.
    force : bool
        Whether an earlier result is replaced.

    Raises
    ------
    InputError
        If ``out`` holds an earlier result that is not to be replaced, or something else.
    StorageError
        If it cannot be written.
    """
    check_out(out, force=force)
    with storage.new_folder(out) as folder:
        yield folder


def check_out(out: Path, *, force: bool = False) -> None:
    """Refuse a folder that holds something else than a result, and an earlier result unless forced.

    Raises
    ------
    InputError
        Naming the folder.
    """
    storage.recover(out)
    storage.check_writable(out)
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: is a file; a result is a folder")
    if not out.absolute().parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.absolute().parent}")
    if (out / MANIFEST).is_file():
        if not force:
            raise InputError(
                f"--out {out}: holds an earlier result, {MANIFEST}: choose another folder, or add "
                "--force (force=True in Python) to replace it"
            )
    elif out.is_dir() and any(out.iterdir()):
        held = min(path.name for path in out.iterdir())
        raise InputError(
            f"--out {out}: holds something else than a result, {held}: choose another folder"
        )
