"""A result on disk: part files that the workers write, a manifest, a folder that appears whole."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
SPARK_SCHEMA = "r_row long, s_row long, ts long"

Rows = NDArray[np.int64]
Batch = tuple[Rows, Rows, Rows]
"""Row numbers in R and in S, and times, of some pairs."""


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
    """Put small batches together."""
    held: list[Batch] = []
    pairs = 0
    for batch in batches:
        if len(batch[0]):
            held.append(batch)
            pairs += len(batch[0])
        if pairs >= min_pairs:
            yield _one(held)
            held, pairs = [], 0
    if held:
        yield _one(held)


def _one(held: list[Batch]) -> Batch:
    if len(held) == 1:
        return held[0]
    r_rows, s_rows, ts = (np.concatenate(column) for column in zip(*held, strict=True))
    return r_rows, s_rows, ts


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
            if writer is None:
                writer = stack.enter_context(
                    pq.ParquetWriter(
                        draft, SCHEMA, compression="none", use_dictionary=False, version="2.6"
                    )
                )
            writer.write_table(pa.table(list(batch), schema=SCHEMA), ROW_GROUP_PAIRS)
            pairs += len(batch[0])
            digest += int(Pairs(batch[0], batch[1]).digest, 16)
    if not pairs:
        return Part("", 0, 0, 0)
    return Part(name, pairs, (Path(folder) / name).stat().st_size, digest % (1 << 64))


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


def write_manifest(folder: Path, parts: Iterable[Part], about: Mapping[str, Any]) -> dict[str, Any]:
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
        pq.write_table(SCHEMA.empty_table(), folder / "part-00000.parquet")
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


@contextlib.contextmanager
def staged(out: Path) -> Iterator[Path]:
    """Give a folder beside ``out`` to write to; at the end of the block it becomes ``out``.

    If the block fails nothing is left behind and an earlier result stays as it was.

    Raises
    ------
    InputError
        If ``out`` holds something else than an earlier result.
    StorageError
        If it cannot be written.
    """
    check_out(out)
    with storage.new_folder(out) as folder:
        yield folder


def check_out(out: Path) -> None:
    """Refuse a folder that holds something else than an earlier result.

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
    if out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).is_file():
        raise InputError(f"--out {out}: holds something else than a result; choose another folder")
