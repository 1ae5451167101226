"""``streamjoin doctor``: what works on this machine, and what to type for the rest."""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib import import_module, metadata
from pathlib import Path

from streamjoin.cli.terminal import print_json, print_paragraph, print_table
from streamjoin_common.free_memory import available_bytes
from streamjoin_common.installed.checks import Check, Finding, package, programs
from streamjoin_common.storage import CacheError, cache

EPILOG = """\
examples:
  streamjoin doctor
  streamjoin doctor --json

The exit status is 0 if everything works that the CPU engines need.
"""

GROUP = "streamjoin.checks"
ENGINES = "CPU engines"
SMALL = platform.machine() == "armv7l"
"""There are no wheels of Numba and Arrow for these boards, which work without them."""


def _python() -> Finding:
    folder = Path(sys.prefix)
    return Finding("Python", True, f"{platform.python_version()} in {folder}", "all", base=True)


def _library(module: str, base: bool = True) -> Check:
    """Return a check that imports a library: a damaged one does not work."""

    def check() -> Finding:
        try:
            version, works = import_module(module).__version__, True
        except Exception as error:
            version, works = f"no: {error}", False
        advice = f"pip install {module}"
        return Finding(module, works, version, ENGINES, base=base, advice=advice)

    return check


def _cache() -> Finding:
    try:
        folder = cache.root()
    except CacheError as error:
        return Finding("cache", False, str(error), "kernels, models, tools", base=True)
    there = next(each for each in (folder, *folder.parents) if each.exists())
    writable = os.access(there, os.W_OK)
    here = f"{_bytes_below(folder) / 2**20:,.0f} MiB in {folder}"
    advice = f"set {cache.VARIABLE} to a folder that can be written"
    return Finding(
        "cache",
        writable,
        here if writable else f"{here}, which cannot be written",
        "kernels, models, tools",
        base=True,
        advice=advice,
    )


def _kernels() -> Finding:
    count = sum(1 for _ in cache.root().glob("kernels-*/*.nbc"))
    here = f"{count:,} compiled" if count else "none yet: the first joins take seconds longer"
    return Finding("kernels", True, here, ENGINES)


def _bytes_below(folder: Path) -> int:
    def sizes(path: str | Path) -> Iterator[int]:
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        yield from sizes(entry.path)
                    else:
                        yield entry.stat(follow_symlinks=False).st_size
        except OSError:
            return  # not there yet, or removed meanwhile

    return sum(sizes(folder))


def _threads() -> Finding:
    cores, usable = os.cpu_count() or 1, len(os.sched_getaffinity(0))
    here = f"{cores}" if cores == usable else f"{usable} of {cores}"
    return Finding("processors", True, here, "--threads", base=True)


def _memory() -> Finding:
    free = available_bytes()
    here = "not known" if free is None else f"{free / 2**30:.1f} GiB free"
    return Finding("memory", True, here, "inputs and results")


CHECKS: tuple[Check, ...] = (
    _python,
    _library("numpy"),
    _library("pyarrow", base=not SMALL),
    _library("numba", base=not SMALL),
    _kernels,
    _cache,
    _threads,
    _memory,
    package("duckdb", "second oracle, engine, store"),
    package("polars", "engine polars"),
    package("adbc-driver-postgresql", "store in PostgreSQL", "adbc_driver_postgresql"),
)
LAST = programs(
    ("chromium", "chromium-browser", "google-chrome"), "Chromium", "make test", "chromium"
)


class DoctorVerb:
    """Looks at what is installed."""

    help = "What works on this machine, and what to type for the rest."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Check and print; 1 if something does not work that the CPU engines need."""
        findings = _findings()
        broken = [each.part for each in findings if each.base and not each.works]
        if args.json:
            print_json([asdict(each) for each in findings])
            return 1 if broken else 0
        print_paragraph(f"streamjoin {metadata.version('streamjoin')}")
        print_table(
            ["part", "works", "what is here", "for"],
            [
                [
                    each.part,
                    "yes" if each.works else "NO" if each.base else "no",
                    here,
                    each.purpose,
                ]
                for each in findings
                for here in ["-" if each.here == "no" else each.here]
            ],
        )
        print_paragraph("")
        _print_advice([each for each in findings if not each.works])
        if broken:
            print_paragraph(f"The CPU engines do not work without {', '.join(broken)}.")
        else:
            print_paragraph("The CPU engines work.")
        return 1 if broken else 0


def _findings() -> list[Finding]:
    """Run every check, programs beside imports; those of other packages are behind our own."""
    checks = list(CHECKS)
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda each: each.name):
        checks += _loaded(entry)
    checks.append(LAST)
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(_safely, checks))


def _loaded(entry: metadata.EntryPoint) -> list[Check]:
    try:
        return list(entry.load())
    except ImportError as error:
        finding = Finding(entry.name, False, f"cannot be loaded: {error}", entry.name)
        return [lambda: finding]


def _safely(check: Callable[[], Finding]) -> Finding:
    """Run a check; one that fails is a finding too."""
    try:
        return check()
    except Exception as error:
        name = getattr(check, "__name__", "check").strip("_")
        return Finding(name, False, str(error) or type(error).__name__, "-")


def _print_advice(lacking: list[Finding]) -> None:
    """Print what to type for what is lacking, one line for each installer."""
    if not lacking:
        return
    extras = sorted({each.extra for each in lacking if each.extra})
    apt = sorted({each.apt for each in lacking if each.apt})
    lines = [f"pip install 'streamjoin[{','.join(extras)}]'"] if extras else []
    lines += [f"sudo apt-get install {' '.join(apt)}"] if apt else []
    lines += [each.advice for each in lacking if each.advice]
    print_paragraph("for the rest:")
    for line in dict.fromkeys(lines):
        print_paragraph(line, 2)
    print_paragraph("")


VERB = DoctorVerb()
