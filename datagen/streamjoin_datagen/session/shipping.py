"""The project's packages as a zip file, for the workers of a cluster."""

import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from streamjoin_common.storage import new_file

PACKAGES = ("streamjoin_common", "streamjoin", "streamjoin_datagen", "streamjoin_spark")


def package(path: Path) -> None:
    """Write the packages' sources into a zip file, whole or not at all."""
    with new_file(path) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as written:
        for file, name in sorted(_sources(), key=lambda one: one[1]):
            written.write(file, name)


def _sources() -> Iterator[tuple[Path, str]]:
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            continue  # an installation without that part
        root = Path(spec.origin).parent
        for file in root.rglob("*"):
            if file.is_file() and file.suffix != ".pyc":
                yield file, str(Path(name) / file.relative_to(root))
