"""How a workload lies on disk: part files, ``workload.json``, and folders that appear whole.

A stream is one Parquet file, or, when it has more rows than a part, a folder of part files
that follow each other in arrival order. Names and boundaries of parts come from row numbers
alone, and the writer's settings are fixed, so equal rows are equal bytes.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin_common import storage
from streamjoin_common.documents import read_json
from streamjoin_datagen.errors import SpecError

FORMAT = 1
"""Raised whenever the meaning of ``workload.json`` or of the files changes."""

PART_ROWS = 1 << 20
BLOCK_ROWS = 1 << 16
"""Rows of a part file and of one of its row groups."""

DESCRIPTION = "workload.json"
STREAMS = ("r", "s")

_TYPE_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}


@dataclass(frozen=True)
class Outcome:
    """One line of what the command reports: a workload and what became of it.

    ``status`` is ``"generated"``, ``"imported"`` or ``"unchanged"``; ``worker_cpu_s`` is what
    Spark's workers computed and wrote.
    """

    workload: str
    status: str
    folder: Path
    rows: int
    bytes: int
    seconds: float
    worker_cpu_s: float = 0.0


def part_ranges(stream: str, rows: int, part_rows: int = PART_ROWS) -> list[tuple[str, int, int]]:
    """Relative path, first row and row count of every part of a stream."""
    if rows <= part_rows:
        return [(f"{stream}.parquet", 0, rows)]
    return [
        (f"{stream}.parquet/part-{index:05d}.parquet", first, min(part_rows, rows - first))
        for index, first in enumerate(range(0, rows, part_rows))
    ]


def write_part(path: Path, schema: pa.Schema, blocks: Iterable[pa.Table]) -> int:
    """Write one part to a folder that is there, a row group a block; it appears whole or not.

    Returns
    -------
    int
        Its size in bytes.
    """
    # The folder is a draft itself: what a killed worker leaves is removed when it gets its name.
    # Random keys have no repetition for a dictionary or compression to find; arrival times do, as
    # differences. The size does not depend on the data, nor does the time to read.
    with (
        storage.new_file(path, tidy=False) as draft,
        pq.ParquetWriter(
            draft,
            schema,
            version="2.6",
            data_page_version="1.0",
            compression="none",
            use_dictionary=False,
            column_encoding={"ts": "DELTA_BINARY_PACKED"} if "ts" in schema.names else None,
        ) as writer,
    ):
        for block in blocks:
            writer.write_table(block, row_group_size=BLOCK_ROWS)
    return path.stat().st_size


def write_stream(
    folder: Path, stream: str, table: pa.Table, part_rows: int = PART_ROWS
) -> dict[str, Any]:
    """Write a stream that is in memory, and return its entry in ``workload.json``."""
    written = 0
    for name, first, count in part_ranges(stream, table.num_rows, part_rows):
        blocks = (
            # One chunk a block: page boundaries must not depend on how the table was put together.
            table.slice(start, min(BLOCK_ROWS, first + count - start)).combine_chunks()
            for start in range(first, first + count, BLOCK_ROWS)
        )
        (folder / name).parent.mkdir(exist_ok=True)
        written += write_part(folder / name, table.schema, blocks)
    return stream_entry(stream, table.schema, table.num_rows, written)


def stream_entry(stream: str, schema: pa.Schema, rows: int, size_bytes: int) -> dict[str, Any]:
    """Describe a stream as ``workload.json`` has it."""
    columns = {field.name: _TYPE_NAMES.get(str(field.type), str(field.type)) for field in schema}
    return {"path": f"{stream}.parquet", "rows": rows, "bytes": size_bytes, "columns": columns}


def read_column(folder: Path, stream: str, column: str) -> np.ndarray[Any, Any]:
    """Read one column of a stream's files, in arrival order."""
    path = folder / f"{stream}.parquet"
    parts = sorted(path.iterdir()) if path.is_dir() else [path]
    tables = [pq.read_table(part, columns=[column], partitioning=None) for part in parts]
    return pa.concat_tables(tables).column(column).to_numpy()


def identity(
    name: str,
    kind: str,
    *,
    params: Mapping[str, Any],
    seed: int | None,
    predicate: Mapping[str, list[str]],
    window: str,
) -> dict[str, Any]:
    """Everything about a workload that is known before its rows are."""
    return {
        "format": FORMAT,
        "name": name,
        "kind": kind,
        "params": dict(params),
        "seed": seed,
        "predicate": dict(predicate),
        "window": window,
    }


def write_description(
    folder: Path,
    known: Mapping[str, Any],
    streams: Mapping[str, Mapping[str, Any]],
    counted: tuple[str, int] | None,
    java_version: str | None,
    *,
    estimated_pairs: float | None = None,
) -> None:
    """Write ``workload.json``, the last file of a workload.

    Parameters
    ----------
    known : mapping
        The workload's :func:`identity`.
    streams : mapping of str to mapping
        The entries of ``"r"`` and ``"s"``.
    counted : tuple of str and int, optional
        A window and the pairs under it, where known.
    java_version : str or None
        Version of Java where Spark did the work.
    estimated_pairs : float, optional
        Pairs that the parameters let expect under the workload's own window.
    """
    head = ("format", "name", "kind", "params", "seed")
    expected = None
    if counted is not None:
        expected = {"window": counted[0], "pairs": counted[1], "digest": None}
    description = {
        **{key: known[key] for key in head},
        **{stream: dict(streams[stream]) for stream in STREAMS},
        "predicate": known["predicate"],
        "window": known["window"],
        "expected": expected,
        "estimated_pairs": estimated_pairs,
        "generator": {
            "streamjoin": metadata.version("streamjoin"),
            "pyspark": metadata.version("pyspark") if java_version else None,
            "java": java_version,
        },
    }
    written = json.dumps(description, indent=2) + "\n"
    (folder / DESCRIPTION).write_text(written, encoding="utf-8")


def unchanged(out: Path, known: Mapping[str, Any]) -> dict[str, Any] | None:
    """Description of the workload in a folder if it is the one wanted and its files are there.

    Raises
    ------
    SpecError
        If the folder holds something that is not a workload, or its parent is no folder.
    """
    description = earlier(out)
    if description is None:
        return None
    wanted = {**known, "generator": metadata.version("streamjoin")}
    generator = description.get("generator")
    version = generator.get("streamjoin") if isinstance(generator, dict) else None
    written = {**description, "generator": version}
    if any(written.get(key) != value for key, value in wanted.items()):
        return None
    for stream in STREAMS:
        if _size_bytes(out / f"{stream}.parquet") != description[stream].get("bytes"):
            return None
    return description


def earlier(out: Path) -> dict[str, Any] | None:
    """Description of the workload that a folder holds, whichever it is; see :func:`unchanged`."""
    storage.recover(out)
    storage.check_writable(out)
    if not out.exists():
        return None
    if not out.is_dir():
        raise SpecError(f"--out must be a folder, and {out} is a file")
    if not any(out.iterdir()):
        return None
    try:
        description = read_json(out / DESCRIPTION)
        ours = description["format"] and all(description[stream]["path"] for stream in STREAMS)
        ours = ours and isinstance(description["name"], str)
    except (OSError, ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        raise SpecError(
            f"--out must be a new folder or a workload, and {out} holds other files: "
            "choose another folder"
        )
    files = {DESCRIPTION, *(f"{stream}.parquet" for stream in STREAMS)}
    others = sorted(entry.name for entry in out.iterdir() if entry.name not in files)
    if others:
        # Replacing the workload would take these along.
        raise SpecError(
            f"--out must hold a workload alone, and {out} also holds {others[0]}: "
            "choose another folder"
        )
    return dict(description)


def _files(path: Path) -> list[Path]:
    paths = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in paths if file.is_file()]


def _size_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in _files(path))


@contextlib.contextmanager
def staged(out: Path) -> Iterator[Path]:
    """Give a folder beside ``out`` to write to; at the end of the block it becomes ``out``.

    If the block fails nothing is left behind, no folder above ``out`` that was not there
    either, and an earlier workload stays as it was.
    """
    earlier(out)
    with storage.new_folder(out) as folder:
        yield folder


def write_tables(
    folder: Path,
    known: Mapping[str, Any],
    tables: Mapping[str, pa.Table],
    counted: tuple[str, int] | None,
    *,
    java_version: str | None = None,
) -> int:
    """Write a workload whose streams are in memory, and return its streams' size in bytes.

    Raises
    ------
    OSError
        If the folder cannot be written to.
    """
    entries = {stream: write_stream(folder, stream, tables[stream]) for stream in STREAMS}
    write_description(folder, known, entries, counted, java_version)
    return sum(entry["bytes"] for entry in entries.values())


def file_digest(path: Path) -> str:
    """SHA-256 of a file, or of all files of a folder in the order of their names."""
    digest = hashlib.sha256()
    for file in _files(path):
        with file.open("rb") as opened:
            while piece := opened.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()
