"""The comparison of CPU and FPGA as it is kept: its record, its picture, its page in Markdown."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamjoin.bench.cpu_fpga.contestants import area_of
from streamjoin.bench.cpu_fpga.costs import ASSUMED
from streamjoin.bench.cpu_fpga.inputs import QUERIES
from streamjoin.bench.cpu_fpga.verdict import (
    RATE_NOISE,
    Lowest,
    answers,
    best,
    board_of,
    by_board,
    is_disturbed,
    latency_us,
    latency_with_transfer_us,
    lowest,
    verdicts,
    with_transfer,
)
from streamjoin.report import units
from streamjoin.report.stored import chart
from streamjoin.report.stored.crossover_form import read
from streamjoin.report.stored.distil import rounded, text_of
from streamjoin_common import storage

NAME = "cpu-fpga"
"""Its records are called by it and by the size."""

KEPT = (
    *("query", "window", "who", "is_fpga", "cycles_per_tuple", "clock_mhz", "rate_tuples_per_s"),
    *("latency_us", "joules_per_million", "transfer", "comparisons_per_cycle", "measured"),
)
"""What is stored of a point."""

HEADINGS = (
    "window",
    "who",
    "rate",
    "through the port",
    "p50, p99 at 10 %",
    "at 50 %",
    "at 90 %",
    "p99 at 50 % with the transfer",
    "comparisons a cycle",
    "LUT, block RAM",
    "J per million",
)

WITH = "; with transfer"
"""Behind the names of lines whose figures are through a board's port."""

FREE_LOAD = 2.0
"""Maximum load of a machine that nobody else uses: a run of one thread and its surroundings."""

DISTURBED = " *"
"""Behind the name of a contestant that others on the machine disturbed."""

DISTURBED_NOTE = (
    f"Rows with{DISTURBED} have a p99 that falls by more than a tenth as the load rises, which a "
    f"queue's does not, or a core's rate that is exceeded by more than {RATE_NOISE:.0%} in a "
    "larger window, where a join costs no less: others on the machine disturbed them. A core of a "
    "free machine may reach a higher rate and a lower p99 than any here."
)

Record = dict[str, Any]


def store(run: Mapping[str, Any], folder: Path) -> Path:
    """Write the stored record of a run, ``cpu-fpga-SIZE.json``; return its path."""
    small = {
        "benchmark": NAME,
        "size": run["size"],
        "environment": run["environment"],
        "points": [
            {name: each[name] for name in KEPT if each.get(name) is not None}
            for each in run["points"]
        ],
    }
    path = folder / f"{NAME}-{run['size']}.json"
    storage.write_text(path, text_of(rounded(small)), parents=True)
    return path


def runs(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the stored records of a folder by ``cpu-fpga-SIZE``.

    Raises
    ------
    InputError
        If one has no points, or figures that cannot be.
    """
    return {path.stem: read(path) for path in sorted(folder.glob(f"{NAME}-*.json"))}


def table_row(record: Record, others: Sequence[Record] = ()) -> list[str]:
    """Return the figures of a point among others, as pages show them under :data:`HEADINGS`."""
    scanned = record.get("comparisons_per_cycle")
    joules, through = record.get("joules_per_million"), "transfer" in record
    return [
        f"{record['window']:,}",
        record["who"] + DISTURBED * is_disturbed(record, others),
        units.rate(record["rate_tuples_per_s"]),
        units.rate(with_transfer(record)) if through else units.MISSING,
        *(_latencies(record, load) for load in record["latency_us"]),
        units.microseconds(latency_with_transfer_us(record)) if through else units.MISSING,
        units.MISSING if scanned is None else f"{scanned:,.0f}",
        _area(record),
        units.MISSING if joules is None else units.significant(joules),
    ]


def has_disturbed(records: Sequence[Record]) -> bool:
    """Whether a row of a table has the mark that :data:`DISTURBED_NOTE` explains."""
    return any(is_disturbed(each, records) for each in records)


def _area(record: Record) -> str:
    if not record["is_fpga"]:
        return units.MISSING
    area = area_of(record["who"], record["query"])
    if not area:
        return "not synthesised"
    ultra = f", UltraRAM {area['uram']:.1%}" if "uram" in area else ""
    return f"{area['lut']:.1%}, {area['ramb18']:.1%}{ultra}"


def _latencies(record: Record, load: str) -> str:
    both = (latency_us(record, load, name) for name in ("p50", "p99"))
    return ", ".join(units.microseconds(value) for value in both)


def panels(records: Sequence[Record]) -> list[chart.Panel]:
    """Return two panels for each query: rates and latencies of the best of each side."""
    made = []
    for query in (each.name for each in QUERIES):
        mine = [each for each in records if each["query"] == query]
        if not mine:
            continue
        windows = sorted({each["window"] for each in mine})
        values = [f"{window:,}" for window in windows]
        rates = _lines(mine, windows, {WITH: with_transfer})
        made.append(
            chart.Panel(
                query,
                "window, tuples",
                "sustained rate, tuples/s; designs simulated, through their port",
                values,
                rates,
                units.count,
            )
        )
        latencies = _lines(
            mine, windows, {WITH: latency_with_transfer_us, "; without transfer": latency_us}
        )
        lows = [lowest([each for each in mine if each["window"] == at]) for at in windows]
        if known := [(at, low.p99_us) for at, low in enumerate(lows) if low]:
            latencies["CPU core, lowest of any engine and load"] = known
        made.append(
            chart.Panel(
                query,
                "window, tuples",
                "p99 latency at half of the own rate; designs simulated",
                values,
                {who: [(at, us / 1e6) for at, us in line] for who, line in latencies.items()},
                units.seconds,
            )
        )
    return made


def _lines(
    records: Sequence[Record],
    windows: Sequence[int],
    figures: Mapping[str, Callable[[Record], float | None]],
) -> dict[str, list[tuple[int, float]]]:
    """Return for the CPU core and by boards the figures of the fastest at each window."""
    lines: dict[str, list[tuple[int, float]]] = {}
    cpu = {}
    for window in windows:
        here = [each for each in records if each["window"] == window]
        if fastest := best(here, of_fpga=False, figure=with_transfer):
            cpu[window] = fastest
    sides = [("CPU core, fastest engine", cpu, {"": figures[WITH]})]
    for boards in by_board(records):
        mine = {window: several[0] for window, several in boards.fastest.items()}
        sides.append((boards.label, mine, dict(figures)))
    for name, mine, asked in sides:
        for words, figure in asked.items():
            line = [
                (at, value)
                for at, window in enumerate(windows)
                if window in mine and (value := figure(mine[window]))
            ]
            if line:
                lines[name + words] = line
    return lines


def svg(records: Sequence[Record]) -> str:
    """Draw the answer: rates and latencies by window, the best of a core and of each board."""
    return chart.draw("CPU core beside FPGA", panels(records))


def page(stored: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the page of the stored records."""
    lines = [
        "# When does the FPGA win?",
        "",
        "Generated by `make docs` from the records in `benchmarks/results/`, which",
        "`streamjoin bench cpu-fpga --size quick --record benchmarks/results` makes;",
        "[what it measures](../benchmarks.md#cpu-beside-fpga). Designs are simulated cycle for "
        "cycle: none has run on a board.",
    ]
    if not stored:
        return "\n".join([*lines, "", "No record is stored."]) + "\n"
    for name, run in stored.items():
        points = run["points"]
        lines += ["", f"## {name}", ""]
        for said in answers(points):
            lines += [said, ""]
        lines += [f"![Rates and latencies by window](charts/{name}.svg)", "", _machine(run), ""]
        if has_disturbed(points):
            lines += [DISTURBED_NOTE, ""]
        lines += [ASSUMED]
        for query in (each.name for each in QUERIES):
            mine = sorted(
                (each for each in points if each["query"] == query),
                key=lambda each: each["window"],
            )
            if not mine:
                continue
            lines += ["", f"### {query}, {run['size']}", ""]
            lines += _table(summary(mine))
            lines += ["", f"All contestants, {query}:", ""]
            lines += _table([list(HEADINGS), *(table_row(each, mine) for each in mine)])
    return "\n".join(lines) + "\n"


SUMMARY = ("window", "CPU core: rate", "lowest p99 of its engines, at which rate")
"""First headings of :func:`summary`; two for each of its boards and one of energy follow."""


def summary(records: Sequence[Record]) -> list[list[str]]:
    """Return a small table of one query: its headings, and a row for each window."""
    groups = by_board(records)
    headings, names = list(SUMMARY), [name for boards in groups for name in boards.names]
    for boards in groups:
        headings += [f"{boards.label}: rate through the port", "p99 with, without transfer"]
    rows = [[*headings, f"J per million: {', '.join(['core', *names])}"]]
    for at in verdicts(records):
        low: Lowest | None = at["lowest"]
        joules: dict[str, Record] = {}
        row = [f"{at['window']:,}", units.rate(with_transfer(at["cpu"])), _lowest(low)]
        for boards in groups:
            here = next((each for each in at["boards"] if each["boards"] == boards), None)
            if here is None:
                row += ["none known to fit", units.MISSING]
                continue
            fastest = here["fastest"][0]
            rate = units.rate(with_transfer(fastest))
            alone = boards.alone(at["window"])
            row.append(
                f"{rate} ({here['rate_ratio']:,.2g} {units.TIMES})"
                + f", {alone} alone" * bool(alone)
            )
            both = (latency_with_transfer_us(fastest), latency_us(fastest))
            row.append(", ".join(map(units.microseconds, both)))
            joules |= {board_of(each): each for each in here["fastest"]}
        known = [at["cpu"], *map(joules.get, names)]
        rows.append([*row, ", ".join(map(_joules, known))])
    return rows


def _joules(record: Record | None) -> str:
    joules = record.get("joules_per_million") if record else None
    return units.MISSING if joules is None else units.significant(joules)


def _lowest(low: Lowest | None) -> str:
    if low is None:
        return units.MISSING
    who = low.who.partition(", ")[2] or low.who
    return f"{units.microseconds(low.p99_us)} at {units.rate(low.rate_tuples_per_s)} ({who})"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(map(units.spaced, row)) + " |" for row in rows]
    return [lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]]


def _machine(run: Mapping[str, Any]) -> str:
    environment, measured = run["environment"], [each["measured"] for each in run["points"]]
    loads = sorted(each["load_average"] for each in measured if each["load_average"] is not None)
    median = loads[len(loads) // 2] if loads else 0.0
    load = f"; load {median:.1f}" if loads else ""
    if median > FREE_LOAD:
        load += (
            ": others used it too, so that the core's rates are too low and its latencies too high"
        )
    revisions = ", ".join(dict.fromkeys(each["revision"] for each in measured))
    took_s = sum(each["took_s"] for each in measured)
    return units.spaced(
        f"{environment.get('cpu')}, one thread of {environment.get('cores')} processors{load}; "
        f"revision {revisions or 'unknown'}, {measured[-1]['at'][:10]}; "
        f"{units.plural(len(run['points']), 'point')} in {units.seconds(took_s)}."
    )
