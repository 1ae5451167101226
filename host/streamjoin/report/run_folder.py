"""A run's folder: ``records.json``, and ``report.html`` that is drawn from it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamjoin.bench import points
from streamjoin.bench.compare import RECORDS
from streamjoin.errors import InputError
from streamjoin.report.page import RUN_PAGE, complete_page, write_report
from streamjoin_common import storage
from streamjoin_common.documents import DocumentError, read_json
from streamjoin_common.spelling import option


def check_run_folder(
    out: Path,
    say: Callable[[str], None],
    *,
    force: bool = False,
    whose: tuple[str, str] | None = None,
) -> None:
    """Refuse a folder that holds something else than a run; complete an earlier run in it.

    A run that was ended has finished points, drafts, or records without their page; the page is
    drawn.

    Parameters
    ----------
    out : Path
        The folder, which need not be there.
    say : callable taking str
        Reports what is completed.
    force : bool
        Whether the run may go into a folder that holds something else, which stays, or replace
        the records of another experiment.
    whose : tuple of str, optional
        Experiment and size of the run; none for a comparison.

    Raises
    ------
    InputError
        If the folder holds something else, or a finished run of another experiment.
    StorageError
        If it cannot be written.
    """
    if out.exists() and not out.is_dir():
        raise InputError(f"{option('out', str(out))}: is a file; a run is a folder")
    storage.check_writable(out)
    if (out / RECORDS).is_file():
        held_by = _experiment(out / RECORDS)
        if held_by not in (None, whose) and not force:
            raise InputError(
                f"{option('out', str(out))}: holds a run of {' at size '.join(held_by or ())}: "
                f"choose another folder, or add {option('force', True)} to replace it"
            )
        _complete(out, say)
        return
    held = [path.name for path in out.iterdir()] if out.is_dir() else []
    if force or points.FOLDER in held:
        return
    foreign = next((name for name in sorted(held) if not storage.is_draft(name)), None)
    if foreign is not None:
        raise InputError(
            f"{option('out', str(out))}: holds something else than a run, {foreign}: choose "
            f"another folder, or add {option('force', True)} to write the run beside it"
        )


def _experiment(path: Path) -> tuple[str, str] | None:
    """Return experiment and size of a run; none of a comparison, and of what is no run."""
    try:
        about = read_json(path)["experiment"]
        return str(about["name"]), str(about["size"])
    except (OSError, DocumentError, KeyError, TypeError):
        return None


def _complete(out: Path, say: Callable[[str], None]) -> None:
    try:
        page = complete_page(out)
    except InputError as error:
        say(f"{error}; this run replaces it")
        return
    if page is not None:
        say(f"{page}: was missing or of other records than those beside it, and is drawn anew")


def write_run(records: dict[str, Any], out: Path, say: Callable[[str], None]) -> Path:
    """Write ``records.json``, then draw ``report.html`` from it; return the page's path.

    The records are the result and appear whole. The page names the digest of the records that it
    was drawn from, so that one that is missing or older is noticed and drawn by
    :func:`check_run_folder` or ``streamjoin report``.
    """
    storage.write_text(out / RECORDS, json.dumps(records, indent=1) + "\n", parents=True)
    page = out / RUN_PAGE
    try:
        write_report([out], page)
    except BaseException:
        say(f"the records are kept in {out}; to draw their page, type  streamjoin report {out}")
        raise
    return page
