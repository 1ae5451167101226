"""Writing a result to a file, in several formats."""

from pathlib import Path
from typing import TYPE_CHECKING

from streamjoin.errors import InputError
from streamjoin.inputs.files import arrow
from streamjoin.run import Outcome
from streamjoin_common import storage

if TYPE_CHECKING:
    from collections.abc import Callable

PAIRS_SUFFIXES = (".parquet", ".arrow", ".csv")


def check_target(path: Path, suffixes: tuple[str, ...], flag: str) -> None:
    """Refuse an output path before anything is computed; folders that are missing are made.

    Raises
    ------
    InputError
        If it is a folder, or its suffix is not one of ``suffixes``.
    StorageError
        If it cannot be written.
    """
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{flag} {path}: must end in {' or '.join(suffixes)}")
    if path.is_dir():
        raise InputError(f"{flag} {path}: is a folder")
    storage.check_writable(path)


def pairs_table(outcome: Outcome) -> object:
    """Return a result as an Arrow table ``r_row, s_row, ts``."""
    pa = arrow()
    pairs = outcome.rows
    return pa.table({"r_row": pairs.r_rows, "s_row": pairs.s_rows, "ts": outcome.ts})


def write_pairs(outcome: Outcome, path: Path, suffix: str) -> None:
    """Write a result to ``path`` in the format that ``suffix`` names."""
    pa = arrow()
    table = pairs_table(outcome)
    writers: dict[str, Callable[[], None]] = {
        ".parquet": lambda: __import__("pyarrow.parquet").parquet.write_table(table, path),
        ".csv": lambda: __import__("pyarrow.csv").csv.write_csv(table, path),
    }
    if suffix in writers:
        writers[suffix]()
        return
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:  # type: ignore[attr-defined]  # a pyarrow table
        writer.write_table(table)
