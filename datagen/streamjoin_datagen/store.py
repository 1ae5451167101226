"""How a workload lies on disk: part files, ``workload.json``, and folders that appear whole.

A stream is one Parquet file, or, when it has more rows than a part, a folder of part files
that follow each other in arrival order. Names and boundaries of parts come from row numbers
alone, and the writer's settings are fixed, so equal rows are equal bytes.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin_datagen.errors import GenerationError, SpecError

FORMAT = 1
"""Raised whenever the meaning of ``workload.json`` or of the files changes."""

PART_ROWS = 1 << 20
BLOCK_ROWS = 1 << 16
"""Rows of a part file and of one of its row groups."""

REMOVE_DEADLINE_S = 2.0

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
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Random keys have no repetition for a dictionary or compression to find; arrival times
        # do, as differences. The size does not depend on the data, nor does the time to read.
        with pq.ParquetWriter(
            beside,
            schema,
            version="2.6",
            data_page_version="1.0",
            compression="none",
            use_dictionary=False,
            column_encoding={"ts": "DELTA_BINARY_PACKED"} if "ts" in schema.names else None,
        ) as writer:
            for block in blocks:
                writer.write_table(block, row_group_size=BLOCK_ROWS)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path.stat().st_size


def write_stream(
    folder: Path, stream: str, table: pa.Table, part_rows: int = PART_ROWS
) -> dict[str, Any]:
    """Write a stream that is in memory, and return its entry in ``workload.json``."""
    written = 0
    for name, first, count in part_ranges(stream, table.num_rows, part_rows):
        blocks = (
            # One chunk a block: page boundaries must not depend on how the table came together.
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
    found = [pq.read_table(part, columns=[column], partitioning=None) for part in parts]
    return pa.concat_tables(found).column(column).to_numpy()


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
    text = json.dumps(description, indent=2) + "\n"
    (folder / DESCRIPTION).write_text(text, encoding="utf-8")


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
    found = {**description, "generator": description.get("generator", {}).get("streamjoin")}
    if any(found.get(key) != value for key, value in wanted.items()):
        return None
    for stream in STREAMS:
        if _size_bytes(out / f"{stream}.parquet") != description[stream].get("bytes"):
            return None
    return description


def earlier(out: Path) -> dict[str, Any] | None:
    """Description of the workload that a folder holds, whichever it is; see :func:`unchanged`."""
    if not out.exists():
        return None
    if not out.is_dir():
        raise SpecError(f"--out must be a folder, and {out} is a file")
    if not any(out.iterdir()):
        return None
    try:
        description = json.loads((out / DESCRIPTION).read_text(encoding="utf-8"))
        ours = description["format"] and all(description[stream]["path"] for stream in STREAMS)
    except (OSError, ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        raise SpecError(f"--out must be a new folder or a workload, and {out} holds other files")
    files = {DESCRIPTION, *(f"{stream}.parquet" for stream in STREAMS)}
    others = sorted(entry.name for entry in out.iterdir() if entry.name not in files)
    if others:
        # Replacing the workload would take these along.
        raise SpecError(f"--out must hold a workload alone, and {out} also holds {others[0]}")
    return dict(description)


def _files(path: Path) -> list[Path]:
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in found if file.is_file()]


def _size_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in _files(path))


@contextlib.contextmanager
def staged(out: Path) -> Iterator[Path]:
    """Give a folder beside ``out`` to write to; at the end of the block it becomes ``out``.

    If the block fails nothing is left behind, no folder above ``out`` that was not there
    either, and an earlier workload stays as it was.
    """
    earlier(out)
    out = out.absolute()
    above = [folder for folder in out.parents if not folder.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise SpecError(f"--out: {out.parent} cannot be written to: {error.strerror}") from error
    try:
        fresh = beside / "new"
        fresh.mkdir()
        yield fresh
        if out.exists():
            out.rename(beside / "old")
        fresh.rename(out)
    finally:
        if (beside / "old").exists() and not out.exists():
            (beside / "old").rename(out)
        _remove(beside)
        if not out.exists():
            with contextlib.suppress(OSError):  # somebody else may use one by now
                for folder in above:
                    folder.rmdir()


def _remove(folder: Path) -> None:
    """Remove a folder, to which a worker of a job that ended may be writing its last file."""
    until = time.monotonic() + REMOVE_DEADLINE_S
    shutil.rmtree(folder, ignore_errors=True)
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.02)
        shutil.rmtree(folder, ignore_errors=True)


def os_words(error: OSError) -> str:
    """What the system says of a failure, without Arrow's words around it."""
    found = re.search(r"\[errno \d+\] (.*)", str(error))
    return found[1].rstrip(". ") if found else error.strerror or str(error)


def write_tables(
    out: Path,
    folder: Path,
    known: Mapping[str, Any],
    tables: Mapping[str, pa.Table],
    counted: tuple[str, int] | None,
    *,
    java_version: str | None = None,
) -> int:
    """Write a workload whose streams are in memory, and return its streams' size in bytes.

    Parameters
    ----------
    out : Path
        Where the folder will be.

    Raises
    ------
    GenerationError
        If the folder cannot be written to.
    """
    try:
        entries = {stream: write_stream(folder, stream, tables[stream]) for stream in STREAMS}
        write_description(folder, known, entries, counted, java_version)
    except OSError as error:
        raise GenerationError(f"{out} could not be written: {os_words(error)}") from error
    return sum(entry["bytes"] for entry in entries.values())


def file_digest(path: Path) -> str:
    """SHA-256 of a file, or of all files of a folder in the order of their names."""
    found = hashlib.sha256()
    for file in _files(path):
        with file.open("rb") as opened:
            while piece := opened.read(1 << 20):
                found.update(piece)
    return found.hexdigest()
