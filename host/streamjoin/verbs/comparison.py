"""``sj.compare``: several engines side by side on a workload or a suite."""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamjoin.api import as_window
from streamjoin.bench.compare import ShowProgress
from streamjoin.bench.compare import compare as compare_all
from streamjoin.bench.suites import read_suite
from streamjoin.bench.workloads import Comparison, read_workload
from streamjoin.engines import catalog
from streamjoin.errors import InputError
from streamjoin.metrics import ProgressCallback
from streamjoin.report.run_folder import check_run_folder, write_run
from streamjoin.verbs.workload import Columns, changed, listed
from streamjoin_common.language.kinds import parse_how
from streamjoin_common.language.windows import Window

DEFAULT_DATA = Path("runs/workloads")
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


def compare(
    workload: str | Path,
    engines: str | Sequence[str] | None = None,
    *,
    on: Columns | None = None,
    band: Columns | None = None,
    window: Window | str | None = None,
    how: str = "inner",
    rounds: int | None = None,
    threads: int | None = None,
    max_pairs: int | None = None,
    data: str | Path = DEFAULT_DATA,
    out: str | Path | None = None,
    force: bool = False,
    show: ShowProgress | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Compared:
    """Run several engines side by side on one workload or a suite, and check each result.

    Parameters
    ----------
    workload : str or Path
        A workload's folder, or the TOML file of a suite, which names its own engines.
    engines : str or list of str, optional
        Names of engines: ``"kang,splitjoin"`` or a list.
    on, band, window
        As ``sj.join`` takes them; by default the workload's own.
    how : str
        The kind of join; not with a suite.
    rounds, threads : int, optional
        Measured rounds of each software engine, and threads of parallel ones.
    max_pairs : int, optional
        Maximum pairs, beyond which a run ends.
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
        If workload, engines and machine do not fit together.
    MismatchError
        If the oracle finds other pairs than the workload's generator.
    """
    if out is not None:
        check_run_folder(Path(out), say, force=force)
    cores = os.cpu_count() or 1 if threads is None else threads
    names = tuple(engines.split(",") if isinstance(engines, str) else engines or ())
    kind = parse_how(how)
    if Path(workload).suffix == ".toml":
        if kind != "inner":
            raise InputError("--how does not go with a suite: its workloads are joined inner")
        _refuse_with_suite(engines=names, window=window, on=on, band=band)
        title, comparisons = read_suite(Path(workload), Path(data), cores)
    else:
        only = changed(_on_folder(Path(workload), names, cores), on, band, window)
        only = replace(only, how=kind)
        title, comparisons = only.name, [only]
    if rounds is not None:
        comparisons = [replace(each, rounds=rounds) for each in comparisons]
    if max_pairs is not None:
        comparisons = [replace(each, max_pairs=max_pairs) for each in comparisons]
    for comparison in comparisons:
        for name in comparison.engines:
            catalog.get(name)
    command = _command(
        str(workload),
        ("engines", ",".join(names) or None),
        ("window", as_window(window).text if window else None),
        ("rounds", rounds),
        ("max-pairs", max_pairs),
        ("how", None if kind == "inner" else kind),
        *(("on", term) for term in listed(on) or ()),
        *(("band", term) for term in listed(band) or ()),
        ("threads", cores),
        ("out", out),
    )
    records = compare_all(comparisons, title, command, show or _quietly, say)
    return Compared(records, None if out is None else write_run(records, Path(out), say))


def _refuse_with_suite(**given: object) -> None:
    for name, value in given.items():
        if value:
            raise InputError(f"--{name} does not go with a suite: it names its own")


def _on_folder(folder: Path, names: tuple[str, ...], threads: int) -> Comparison:
    if not names:
        raise InputError(
            "--engines is needed, as kang,fpga-handshake (engines= in Python); see streamjoin "
            "engines"
        )
    for name in names:
        catalog.get(name)
    return read_workload(folder, names, threads)


def _command(workload: str, *flags: tuple[str, object]) -> str:
    """The command line that repeats a comparison."""
    given = [word for name, value in flags if value is not None for word in (f"--{name}", value)]
    return shlex.join(["streamjoin", "compare", workload, *map(str, given)])


@contextmanager
def _quietly(_what: str) -> Iterator[ProgressCallback]:
    yield lambda _done, _total: None
