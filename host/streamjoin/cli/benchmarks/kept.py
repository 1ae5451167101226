"""Records that an interrupted benchmark left: the same command goes on where it was."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamjoin.bench import identity, points
from streamjoin.cli.terminal import say
from streamjoin.errors import InputError
from streamjoin_common import storage
from streamjoin_common.installed.environment import environment

CHECK = "check"
"""Under it a result holds the digest of all else that it says."""


SOURCES = "sources"
"""Under it a result holds the digest of the code that gave it."""


def sealed(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with what :func:`kept_records` knows it by: digests of code and result."""
    whole = {**result, SOURCES: identity.sources()}
    return {**whole, CHECK: _digest(whole)}


def _digest(result: Mapping[str, Any]) -> str:
    """Digest as that of an experiment's points, of the same canonical JSON."""
    content = {name: value for name, value in result.items() if name != CHECK}
    return points.check_of({"point": content.get("point"), "workload": None, "records": content})


@contextmanager
def says_how_to_go_on(folder: Path, command: str) -> Iterator[None]:
    """Say where finished points are and what to type, if Ctrl-C or SIGTERM ends the work."""
    try:
        yield
    except Exception:
        raise
    except BaseException:
        say(f"finished points are kept in {folder}; to go on, type {command}")
        raise


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder: two processes would measure each other, and each lose the other's points.

    Raises
    ------
    InputError
        If another process holds it, or its file system has no locks.
    """
    storage.make_folder(folder)
    with storage.hold(folder) as is_held:
        if not is_held:
            raise InputError(
                f"{folder}: another process measures here, or no file can be locked: wait for it, "
                "or add --out with another folder"
            )
        yield


def machine() -> dict[str, Any]:
    """Return what results depend on of the machine: all but what changes from run to run."""
    found = environment()
    return {name: found[name] for name in found if name != "load_average"}


def kept_records(
    records: Path, settings: dict[str, Any], listed: str, key: str
) -> dict[str, dict[str, Any]]:
    """Return the results that an earlier run with the same settings and the same code left.

    Results of other code, and those that were changed after they were written, are named and
    left out.

    Parameters
    ----------
    records : Path
        The file.
    settings : dict
        What the file must hold beside the results.
    listed : str
        Under which name the results are listed.
    key : str
        By which of its values a result is found.

    Raises
    ------
    InputError
        If the file cannot be read, or has results that were measured otherwise.
    """
    if not records.exists():
        return {}
    try:
        before = json.loads(records.read_text(encoding="utf-8"))
        results = {each[key]: each for each in before.pop(listed)}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{records} cannot be read as records of a benchmark ({error}): "
            "add --force to write new ones, or --out with another folder"
        ) from error
    if before != settings:
        raise InputError(
            f"{records} was measured with other settings or on another machine: "
            "add --force to measure anew, or --out with another folder"
        )
    code = identity.sources()
    kept = {name: each for name, each in results.items() if each.get(SOURCES) == code}
    if old := len(results) - len(kept):
        say(f"{old} {listed} in {records} are of other code and measured again")
    for name in [name for name, each in kept.items() if each.get(CHECK) != _digest(each)]:
        say(f"{records}: {name} was changed after it was written; it is measured again")
        del kept[name]
    return kept
