"""Files that travel with the packages: experiments, suites, constraints, Vivado's scripts.

In a checkout they lie at the top; a wheel holds them under the same paths in
``streamjoin_common/files/``.
"""

from pathlib import Path

_PACKED = Path(__file__).resolve().parents[1] / "files"
ROOT = _PACKED if _PACKED.is_dir() else Path(__file__).resolve().parents[3]
"""Folder in which ``benchmarks/``, ``constraints/``, ``hw/boards/`` and ``hw/ip/`` lie."""

EXPERIMENTS = ROOT / "benchmarks"
SUITES = EXPERIMENTS / "workloads"


def names(folder: Path) -> list[str]:
    """Names of the TOML files of a folder, without their suffix."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def suite(given: Path) -> Path:
    """Return the path of a suite: as given, or of the shipped suite that has this name.

    Examples
    --------
    >>> suite(Path("small")).relative_to(ROOT).as_posix()
    'benchmarks/workloads/small.toml'
    >>> suite(Path("own.toml")).as_posix()
    'own.toml'
    """
    shipped = SUITES / f"{given}.toml"
    if given.suffix or len(given.parts) != 1 or given.exists() or not shipped.is_file():
        return given
    return shipped
