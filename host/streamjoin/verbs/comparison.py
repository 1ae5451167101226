"""``sj.compare``: several engines side by side on inputs, a workload or a suite."""

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from html import escape
from pathlib import Path
from typing import Any, overload

from streamjoin.api import as_window
from streamjoin.bench.compare import ShowProgress
from streamjoin.bench.compare import compare as compare_all
from streamjoin.bench.suites import read_suite
from streamjoin.bench.workloads import Comparison, check_rounds, read_workload
from streamjoin.engines import catalog
from streamjoin.engines.job import Arrival
from streamjoin.errors import InputError
from streamjoin.metrics import ProgressCallback
from streamjoin.report.run_folder import check_run_folder, write_run
from streamjoin.verbs.workload import Columns, changed, listed
from streamjoin_common.arguments import with_hints
from streamjoin_common.installed import shipped
from streamjoin_common.language.arrivals import Arrivals, Unit
from streamjoin_common.language.durations import parse_lateness
from streamjoin_common.language.kinds import How, parse_how
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window
from streamjoin_common.screen import columns, table_lines
from streamjoin_common.spelling import option

DEFAULT_DATA = Path("runs/workloads")

OF_SUITE = "a suite, which names its own: change a copy of its file, or name a workload's folder"
"""Where a suite's workloads are made."""


@dataclass(frozen=True)
class Compared:
    """What a comparison gave.

    Attributes
    ----------
    records : dict
        The content of ``records.json``: ``workloads``, and ``records``, one an engine and workload.
    page : Path or None
        The report, where a folder was named.
    """

    records: dict[str, Any]
    page: Path | None

    @property
    def ok(self) -> bool:
        """Whether every engine gave the right result."""
        return all(record["status"] == "ok" for record in self.records["records"])

    def __repr__(self) -> str:
        headings = ("workload", "engine", "status", "pairs", "whole call", "tuples/s")
        rows = []
        for record in self.records["records"]:
            rate = (record.get("throughput_tuples_per_s") or {}).get("median")
            values = [record.get(name) for name in ("workload", "engine", "status", "pairs")]
            shown = ["-" if value is None else str(value) for value in values]
            total_s = (record.get("total_s") or {}).get("median")
            shown.append("-" if total_s is None else f"{total_s * 1e3:,.3g} ms")
            rows.append([*shown, "-" if rate is None else f"{rate:,.0f}"])
        lines, _ = table_lines(headings, rows, columns(), {"pairs", "whole call", "tuples/s"})
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the same table as a notebook shows it."""
        return f"<pre>{escape(repr(self))}</pre>"


@overload
def compare(
    workload: str | Path,
    engines: str | Sequence[str] | None = None,
    /,
    *,
    on: Columns | None = None,
    band: Columns | None = None,
    window: Window | str | None = None,
    how: How = "inner",
    rounds: int | None = None,
    threads: int | None = None,
    max_pairs: int | None = None,
    data: str | Path = DEFAULT_DATA,
    out: str | Path | None = None,
    force: bool = False,
    show: ShowProgress | None = None,
    say: Callable[[str], None] = ...,
) -> Compared: ...


@overload
def compare(
    r: object,
    s: object = None,
    /,
    engines: str | Sequence[str] | None = None,
    *,
    on: Columns | None = None,
    band: Columns | None = None,
    window: Window | str | None = None,
    how: How = "inner",
    rounds: int | None = None,
    threads: int | None = None,
    max_pairs: int | None = None,
    arrival: Arrival | None = None,
    speedup: float | None = None,
    ts: str | None = None,
    ts_unit: Unit | None = None,
    lateness: str | timedelta | None = None,
    knobs: Mapping[str, Mapping[str, int | str]] | None = None,
    data: str | Path = DEFAULT_DATA,
    out: str | Path | None = None,
    force: bool = False,
    show: ShowProgress | None = None,
    say: Callable[[str], None] = ...,
) -> Compared: ...


@with_hints
def compare(
    r: object,
    s: object = None,
    /,
    engines: str | Sequence[str] | None = None,
    *,
    on: Columns | None = None,
    band: Columns | None = None,
    window: Window | str | None = None,
    how: How = "inner",
    rounds: int | None = None,
    threads: int | None = None,
    max_pairs: int | None = None,
    arrival: Arrival | None = None,
    speedup: float | None = None,
    ts: str | None = None,
    ts_unit: Unit | None = None,
    lateness: str | timedelta | None = None,
    knobs: Mapping[str, Mapping[str, int | str]] | None = None,
    data: str | Path = DEFAULT_DATA,
    out: str | Path | None = None,
    force: bool = False,
    show: ShowProgress | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Compared:
    """Run several engines side by side, and check each result.

    Parameters
    ----------
    r, s
        Both inputs, as ``sj.join`` takes them; or a workload's folder alone, or the TOML file of a
        suite, which names its own engines.
    engines : str or list of str, optional
        Names of engines: ``"kang,splitjoin"`` or a list. They may follow a workload's folder.
    on, band, window
        As ``sj.join`` takes them; by default a workload's own.
    how : str
        The kind of join; a suite's tables name their own.
    rounds, threads : int, optional
        Measured rounds of each software engine, and threads of parallel ones.
    max_pairs : int, optional
        Maximum pairs, beyond which a run ends.
    arrival, speedup, ts, ts_unit, lateness
        As ``sj.join`` takes them, with ``r`` and ``s``.
    knobs : mapping of str to mapping, optional
        Tuning parameters by engine, with ``r`` and ``s``.
    data : str or Path
        Where a suite's workloads are made.
    out : str or Path, optional
        Folder of the run: ``records.json`` and ``report.html``.
    force : bool
        Whether the run may go into a folder that holds something else, which stays.
    show : callable, optional
        Makes a progress bar for a piece of work.
    say : callable
        Reports what goes on, a line each.

    Returns
    -------
    Compared
        The records, and the page where there is one.

    Raises
    ------
    InputError, UnsupportedError, UnavailableError
        If inputs, engines and machine do not fit together.
    MismatchError
        If the oracle finds other pairs than the workload's generator.

    Examples
    --------
    >>> import numpy as np
    >>> import streamjoin as sj
    >>> keys = {"k": np.arange(1000)}
    >>> sj.compare(keys, keys, ["npj", "prj"], on="k", rounds=1, threads=1).ok
    True
    """
    cores = os.cpu_count() or 1 if threads is None else threads
    if engines is None and isinstance(r, str | Path) and _is_names(s) and not _is_input(r):
        s, engines = None, s
    names = _names(engines)
    kind = parse_how(how)
    if rounds is not None:
        check_rounds(rounds)
    if out is not None:
        check_run_folder(Path(out), say, force=force)
    given: dict[str, object] = {"ts": ts, "ts_unit": ts_unit, "lateness": lateness}
    given |= {"arrival": arrival, "speedup": speedup, "knobs": knobs}
    if s is not None:
        chosen = as_window(window)
        comparison = Comparison(
            None,
            "r and s",
            "given in Python",
            r,
            s,
            Predicate.parse(listed(on), listed(band)),
            chosen,
            names or _no_engines(),
            threads=cores,
            arrival="instant" if arrival is None else arrival,
            speedup=1.0 if speedup is None else speedup,
            knobs=_checked_knobs(knobs, names),
            arrivals=Arrivals.parse(ts, ts_unit, chosen),
            lateness_us=parse_lateness(lateness),
            how=kind,
        )
        title, comparisons = comparison.name, [comparison]
    elif not isinstance(r, str | Path):
        raise InputError("compare takes a workload's folder or suite, or both inputs, r and s")
    elif (suite := shipped.suite(Path(r))).suffix == ".toml":
        _refuse(OF_SUITE, how=kind != "inner", engines=names, window=window)
        _refuse(OF_SUITE, on=on, band=band, **given)
        title, comparisons = read_suite(suite, Path(data), cores)
    else:
        _refuse("a workload's folder: give both inputs, r and s", **given)
        if not names and Path(r).is_dir():  # else the path is what is wrong
            _no_engines()
        only = changed(read_workload(Path(r), names, cores), on, band, window)
        title, comparisons = only.name, [replace(only, how=kind)]
    if rounds is not None:
        comparisons = [replace(each, rounds=rounds) for each in comparisons]
    if max_pairs is not None:
        comparisons = [replace(each, max_pairs=max_pairs) for each in comparisons]
    for comparison in comparisons:
        for name in comparison.engines:
            catalog.get(name)
    options = {
        "engines": ",".join(names) or None,
        "window": as_window(window).text if window else None,
        "rounds": rounds,
        "max_pairs": max_pairs,
        "how": None if kind == "inner" else kind,
        "on": listed(on),
        "band": listed(band),
        "threads": cores,
        "out": None if out is None else str(out),
    }
    command = _call({**options, **given}) if s is not None else _command(str(r), options)
    records = compare_all(comparisons, title, command, show or _quietly, say)
    return Compared(records, None if out is None else write_run(records, Path(out), say))


def _is_input(given: str | Path) -> bool:
    """Say whether it is a file to join, not a workload or suite."""
    return Path(given).suffix != ".toml" and Path(given).is_file()


def _is_names(given: object) -> bool:
    """Say whether it is engines, as the second argument after a workload's folder."""
    listed_names = isinstance(given, list | tuple) and all(isinstance(each, str) for each in given)
    return isinstance(given, str) or (listed_names and bool(given))


def _names(engines: object) -> tuple[str, ...]:
    """Return names of engines, each of which there is."""
    if isinstance(engines, str):
        engines = engines.split(",")
    if not isinstance(engines, Sequence | None):
        raise InputError(f"engines must be a list of names, as ['npj', 'kang'], not {engines!r}")
    names = tuple(engines or ())
    for name in names:
        catalog.get(name)
    return names


def _no_engines() -> tuple[str, ...]:
    raise InputError(
        f"no engine is named: add {option('engines', 'kang,fpga-handshake')} or other names of "
        "streamjoin engines"
    )


def _checked_knobs(knobs: object, names: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Refuse knobs that are of no engine of the comparison."""
    if knobs is None:
        return {}
    if not isinstance(knobs, Mapping) or not all(isinstance(k, Mapping) for k in knobs.values()):
        raise InputError(
            f"knobs must be a mapping for each engine, as {{'kang': {{...}}}}, not {knobs!r}"
        )
    for name in knobs:
        if name not in names:
            raise InputError(
                f"knobs are for the engines {', '.join(names)}, not for {name!r}: name it in "
                "engines= too"
            )
    return knobs


def _refuse(what: str, **given: object) -> None:
    for name, value in given.items():
        if value:
            raise InputError(f"{option(name)} does not go with {what}")


def _command(workload: str, options: Mapping[str, object]) -> str:
    """The command line that repeats a comparison."""
    words = ["streamjoin", "compare", workload]
    for name, value in options.items():
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            words += [f"--{name.replace('_', '-')}", str(each)]
    return shlex.join(words)


def _call(options: Mapping[str, object]) -> str:
    """The call that repeats a comparison."""
    given = [f"{name}={value!r}" for name, value in options.items() if value is not None]
    return f"sj.compare(r, s, {', '.join(given)})"


@contextmanager
def _quietly(_what: str) -> Iterator[ProgressCallback]:
    yield lambda _done, _total: None
