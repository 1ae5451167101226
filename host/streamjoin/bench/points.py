"""Finished points of an experiment, kept so that an interrupted run goes on where it was.

A file holds one point with its identity and a digest over both. What is not exactly what was
written for exactly this point is not believed: it is named, and the point is measured again.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamjoin.bench import identity
from streamjoin.bench.experiments import Experiment, Point
from streamjoin_common import storage
from streamjoin_common.documents import DocumentError, read_json

FOLDER = "points"

_CONTENT = ("point", "workload", "records")


class NotThePointError(Exception):
    """A file does not hold the point that it should; the message says why."""


@dataclass(frozen=True)
class Kept:
    """Where a point is kept, and what it is.

    Attributes
    ----------
    path : Path
        The file.
    identity : mapping
        Experiment, label, settings, and the digest of all that the point's figures depend on.
    """

    path: Path
    identity: Mapping[str, Any]

    def read(self) -> dict[str, Any] | None:
        """Return the ``workload`` and ``records`` of the point; None where it was not kept.

        Raises
        ------
        NotThePointError
            If the file is not what was written for this point.
        """
        try:
            plain = read_json(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NotThePointError(f"cannot be read ({error.strerror})") from None
        except DocumentError as error:
            raise NotThePointError(error.reason) from None
        if not isinstance(plain, dict) or set(plain) != {*_CONTENT, "check"}:
            raise NotThePointError("is not a point with a check")
        if plain["check"] != check_of(plain):
            raise NotThePointError("was changed after it was written")
        if plain["point"] != self.identity:
            raise NotThePointError("holds another point")
        return {"workload": plain["workload"], "records": plain["records"]}

    def write(self, content: Mapping[str, Any]) -> None:
        """Keep a point, whole or not at all."""
        plain = {"point": self.identity, **content}
        text = json.dumps({**plain, "check": check_of(plain)}, indent=1) + "\n"
        storage.write_text(self.path, text)


def kept(
    folder: Path, experiment: Experiment, point: Point, workload: Mapping[str, Any], threads: int
) -> Kept:
    """Say where a point on a described workload is kept, and what it is."""
    definition = identity.definition(point, workload, threads)
    whose = {
        "experiment": experiment.name,
        "label": point.label,
        "family": point.family,
        "settings": dict(point.settings),
        "definition": definition,
    }
    slug = re.sub(r"[^0-9A-Za-z.]+", "-", point.label).strip("-")
    return Kept(folder / f"{slug}-{definition}.json", whose)


def check_of(plain: Mapping[str, Any]) -> str:
    """Digest of a point's content in canonical JSON: 64 hexadecimal digits."""
    content = {name: plain[name] for name in _CONTENT}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_or_say(point: Kept, say: Callable[[str], None]) -> dict[str, Any] | None:
    """Return what was kept of a point; say why not where a file is there."""
    try:
        return point.read()
    except NotThePointError as error:
        say(f"{point.path}: {error}; the point is measured again")
        return None


def say_unused(folder: Path, used: set[Path], say: Callable[[str], None]) -> None:
    """Name the kept points that are of another experiment, code, machine or other versions."""
    unused = sorted(path.name for path in set(folder.glob("*.json")) - used)
    if unused:
        are = "1 file is" if len(unused) == 1 else f"{len(unused)} files are"
        say(
            f"{folder}: {are} of no point of this experiment as it is here and ignored, "
            f"as {unused[0]}"
        )
