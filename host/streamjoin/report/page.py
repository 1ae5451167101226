"""The page: verdict first, then each workload, then how to repeat it and what the words mean."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin.report import sentences, tables, units
from streamjoin.report.charts import bars as charts
from streamjoin.report.charts import curves
from streamjoin.report.charts.shared import share_styles
from streamjoin.report.charts.sweeps import sweep_charts
from streamjoin.report.charts.theme import variables
from streamjoin.report.records import RecordsError, check_run, read_records
from streamjoin.report.results import WorkloadResults, group
from streamjoin.report.sentences import arrival, join_kind, summarize
from streamjoin.report.templating import TEMPLATES, environment
from streamjoin_common import storage
from streamjoin_common.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamjoin.report.charts.canvas import Chart
    from streamjoin.report.results import Result

RUN_PAGE = "report.html"
"""The page in a run's folder, beside its records."""

SCRIPTS = ("charts.js", "page.js")
"""Parts of the page's script, in their order; one module in the page."""

MARKERS = {"cpu": "●", "fpga": "◆", "other": "■"}
"""Platforms' markers, as the chart of throughput has them."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What a browser hides or refuses; names from files may hold it."""

DEFINITIONS = (
    (
        "Agrees",
        "The pairs are exactly those of the oracle, or of DuckDB where it is named: the same "
        "number and the same digest.",
    ),
    ("Oracle", "A slow, plain implementation of what the join means, run on the same input."),
    (
        "DuckDB",
        "A database, asked the same join in SQL; it gives the right result on inputs that are "
        "too large for the oracle.",
    ),
    (
        "Is the check",
        "The engine is the one that gave the right result, so nothing independent confirms it.",
    ),
    (
        "Digest",
        "64 bits over all pairs of row numbers, whatever their order; equal results have equal "
        "digests.",
    ),
    (
        "Whole call",
        "From the input in hand, the user's columns, to the result in hand, of every system: "
        "taking the columns, choosing a way, converting, joining. Files are read before; kernels "
        "are compiled in a round that is not counted; R of a semi-stream join lies in its store; "
        "DuckDB's connection is open. There is none of a replay and of a simulation.",
    ),
    (
        "Throughput",
        "Of the algorithm's part, by the definitions of the papers: "
        "input tuples of both streams divided by the time from the start to the end of the run: "
        "all input taken, all matches out, a device drained. Files are read, kernels compiled and "
        "a yardstick's native tables filled before the start.",
    ),
    (
        "Latency",
        "When a match was produced minus the moment that stands beside the word: the run's start "
        "where all input lies there then, the later tuple's arrival in a replay, or the cycle in "
        "which the hardware accepted it, after any wait. These are different quantities, each with "
        "its own tables and charts. p50 is the median; 95 % and 99 % of the matches were no slower "
        "than p95 and p99.",
    ),
    (
        "Measured, simulated",
        "A simulated design's cycles are exact, its seconds are cycles by a clock that no board "
        "has run. Such figures stand in a ranking of their own.",
    ),
    (
        "Rounds",
        "Throughput is the median of the checked rounds. Latency, progressiveness, phases and "
        "service rate are those of the round whose throughput is the median.",
    ),
    ("Progressiveness", "The share of all matches that had been produced by an elapsed time."),
    (
        "Phases",
        "Wait, partition, build or sort, merge, probe, other: what the threads' time was spent "
        "on, as shares of threads times wall time.",
    ),
    (
        "Service rate",
        "Of a semi-stream join: stream tuples a second from the middle of the run to its end, when "
        "H_S is full and the cache holds what it will hold.",
    ),
    (
        "H_S, H_R, loop",
        "Of a semi-stream join: the hash table of stream tuples that wait for a whole cycle "
        "through R, the cache of rows of R, and one partition of R with all that is done for it.",
    ),
    (
        "Peak memory",
        "The largest resident set during the run, above what was resident before it began; "
        "counted in pages of 4 kB.",
    ),
    (
        "Cycles",
        "Clock cycles of the design, from its first tuple to the end of the drain. Seconds are "
        "cycles divided by the clock that is named beside them; an assumed clock was neither "
        "measured nor placed and routed for.",
    ),
    (
        "Input stall, backpressure",
        "Cycles in which a tuple was offered and not taken; cycles in which a result was "
        "offered and not taken.",
    ),
    (
        "Window",
        "count:W joins a tuple with the last W of the other stream; time:T with those that "
        "arrived less than T before; tumbling:T with those of the same interval; all with all.",
    ),
)


def _workload_view(key: str, group_of_results: WorkloadResults) -> dict[str, Any]:
    """Everything the template needs about one workload."""
    results = group_of_results.results
    hardware = [r for r in results if r.is_fpga]
    progress = curves.progress_chart(f"{key}-progress", results)
    phases = charts.phases_chart(f"{key}-phases", results)
    throughput = charts.throughput_chart(f"{key}-throughput", results)
    calls = charts.call_chart(f"{key}-call", results)
    drawn: dict[str, list[Chart]] = {
        "throughput": [throughput] if throughput else [],
        "latency": charts.latency_charts(f"{key}-latency", results),
        "progressiveness": [progress] if progress else [],
        "phases": [phases] if phases else [],
    }
    of_semi_streams = [
        charts.memory_chart(f"{key}-components", results),
        charts.loop_chart(f"{key}-loop", results),
    ]
    phase_head, phase_rows = tables.phase_table(results)
    return {
        "key": key,
        "workload": group_of_results.workload,
        "verdict": summarize([group_of_results]),
        "kind": join_kind(group_of_results.workload),
        "arrival": arrival(group_of_results.workload),
        "checker": group_of_results.checker,
        "tables": tables.engine_tables(results),
        "charts": [
            *([calls] if calls else []),
            *(chart for charts_of_one in drawn.values() for chart in charts_of_one),
            *(chart for chart in of_semi_streams if chart),
        ],
        "undrawn": [title for title, charts_of_one in drawn.items() if not charts_of_one],
        "platforms": sorted({(r.tone, r.record["platform"]) for r in results}),
        "phase_head": phase_head,
        "phase_rows": phase_rows,
        "hardware": tables.hardware_rows(results),
        "stalls": charts.stalls_chart(f"{key}-stalls", hardware) if hardware else None,
        "assumed": any(r.clock and r.clock.assumed for r in results),
        "replayed": group_of_results.replayed,
        "fastest": group_of_results.fastest,
        "fastest_simulated": group_of_results.fastest_simulated,
        "rate": group_of_results.rate,
    }


def _readable_time(stamp: str) -> str:
    """Turn ``2026-11-20T23:30:00Z`` into ``2026-11-20 23:30 UTC``; leave anything else."""
    pattern = r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)"
    match = re.fullmatch(pattern, stamp)
    return f"{match[1]} {match[2]} UTC" if match else stamp


DRAWN = "<!-- the styles of the drawings -->"
"""Where they go."""

ENVIRONMENT = (
    *("cpu", "cores", "memory_bytes", "system", "python", "java", "revision", "load_average"),
)
"""What the page says of the machine, where a run knows it."""


def _run_view(index: int, title: str, run: dict[str, Any]) -> dict[str, Any]:
    groups = group(run)
    results = [result for group_of_results in groups for result in group_of_results.results]
    machine = {**dict.fromkeys(ENVIRONMENT), **(run.get("environment") or {})}
    load, cores = machine.get("load_average"), machine.get("cores")
    return {
        "key": f"run{index + 1}",
        "title": title,
        "run": run,
        "created": _readable_time(run.get("created") or ""),
        "environment": machine,
        # Half of the cores taken by something else: the reader should know.
        "busy": bool(load is not None and cores and load > cores / 2),
        "groups": groups,
        "verdict": summarize(groups),
        "workloads": [
            _workload_view(f"run{index + 1}-w{index_in_run + 1}", group_of_results)
            for index_in_run, group_of_results in enumerate(groups)
        ],
        "engines": len({r.record["engine"] for r in results}),
        "ranks_calls": any(group_of_results.ranks_calls(True) for group_of_results in groups),
        "simulates": any(not result.measured for result in results),
        "rounds": _rounds(results),
        "experiment": run.get("experiment"),
        "sweeps": sweep_charts(f"run{index + 1}", groups),
    }


def _rounds(results: Sequence[Result]) -> str | None:
    """Say how many checked rounds the run's engines had."""
    counts = sorted({rounds for r in results if (rounds := r.record.get("rounds"))})
    if not counts:
        return None
    said = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{said} checked round{'' if counts[-1] == 1 else 's'} for each engine and workload"


def _policy(script: str) -> str:
    """Return the content security policy: nothing is loaded, and this script alone runs."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )


def render(runs: list[dict[str, Any]]) -> str:
    """Render one self-contained HTML page.

    Parameters
    ----------
    runs : list of dict
        What :func:`read_records` returns, one for each run, in the order of the page.

    Raises
    ------
    RecordsError
        If a run is not of the stated form, or there is none.
    """
    if not runs:
        raise RecordsError("runs must hold at least one run, not none")
    checked = [check_run(run, f"run {index + 1}") for index, run in enumerate(runs)]
    titles = tables.run_titles(checked)
    views = [
        _run_view(index, title, run)
        for index, (title, run) in enumerate(zip(titles, checked, strict=True))
    ]
    templates = environment()
    templates.filters.update(
        exact=units.exact,
        seconds=units.seconds,
        memory=units.memory,
        significant=units.significant,
        rate=units.rate,
        claim_published=sentences.claim_published,
        claim_figure=sentences.claim_figure,
        claim_rule=sentences.claim_rule,
        claim_points=sentences.claim_points,
    )
    groups = [group_of_results for view in views for group_of_results in view["groups"]]
    script = "\n".join((TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS)
    page = templates.get_template("page.html").render(
        script=script,
        policy=_policy(script),
        markers=MARKERS,
        engine_names=list(dict.fromkeys(r.name for g in groups for r in g.results)),
        workload_names=list(dict.fromkeys(str(g.workload["name"]) for g in groups)),
        runs=views,
        titles=titles,
        verdict=summarize(groups),
        comparison=tables.comparison([view["groups"] for view in views]) if len(views) > 1 else [],
        definitions=DEFINITIONS,
        records=_records_mark(checked),
        claim_measures=sentences.CLAIM_MEASURES,
        light=variables(dark=False),
        dark=variables(dark=True),
        drawn=DRAWN,
    )
    return share_styles(page, DRAWN)


def _records_mark(runs: list[dict[str, Any]]) -> str:
    """Digest of the records that a page is drawn from, as the page carries it."""
    text = json.dumps(runs, sort_keys=True, separators=(",", ":"))
    return f'<meta name="records" content="sha256:{hashlib.sha256(text.encode()).hexdigest()}">'


def complete_page(folder: Path) -> Path | None:
    """Draw the page of a run's folder where there is none of these records.

    A run that is killed while its page is drawn leaves records without a page, or beside the page
    of an earlier run.

    Returns
    -------
    Path or None
        The page that was drawn; None where it was there.

    Raises
    ------
    RecordsError
        If the folder's records cannot be read.
    InputError
        If the page cannot be written.
    """
    page, run = folder / RUN_PAGE, read_records(folder)
    try:
        if _records_mark([run]) in page.read_text(encoding="utf-8"):
            return None
    except (OSError, ValueError):
        pass
    write_page(render([run]), page)
    return page


def _only(run: dict[str, Any], workloads: Sequence[str]) -> dict[str, Any]:
    """Return a run with some of its workloads."""
    return {
        **run,
        "workloads": [each for each in run["workloads"] if each["name"] in workloads],
        "records": [each for each in run["records"] if each["workload"] in workloads],
    }


def write_report(paths: list[Path], out: Path, workloads: Sequence[str] = ()) -> None:
    """Read runs and write their page, whole or not at all.

    Parameters
    ----------
    paths : list of Path
        Run folders or their ``records.json``.
    out : Path
        The HTML file; its folder is made where it is missing.
    workloads : sequence of str
        Names of those that the page shows; by default all.

    Raises
    ------
    RecordsError
        If no run has a workload of a given name, or a run cannot be read or is not of the stated
        form; nothing is written then.
    StorageError
        If the page cannot be written where it is wanted.
    """
    runs = [read_records(path) for path in paths]
    known = dict.fromkeys(str(each["name"]) for run in runs for each in run["workloads"])
    for name in workloads:
        if name not in known:
            near = did_you_mean(name, known) or f": there is {', '.join(known)}"
            raise RecordsError(f"no run has a workload {name!r}{near}")
    write_page(render([_only(run, workloads) if workloads else run for run in runs]), out)


def write_page(page: str, out: Path) -> None:
    """Write a page, whole or not at all.

    Raises
    ------
    InputError
        If it cannot be written where it is wanted.
    """
    shown = _CONTROL.sub(lambda mark: mark[0].encode("unicode_escape").decode(), page)
    storage.write_text(Path(out), shown, parents=True)
