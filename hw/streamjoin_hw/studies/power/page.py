"""The study as table and page."""

from collections.abc import Sequence
from typing import Any

from streamjoin_hw.studies.power.model import CONSTANTS
from streamjoin_hw.studies.power.study import trend
from streamjoin_hw.studies.synth.page import design_in_words

COLUMNS = (
    *("cores", "clock in MHz", "cycles a tuple", "registers", "LUT"),
    *(f"{kind.replace('_', ' ')} (model mW)" for kind in CONSTANTS),
    "dynamic (model mW)",
    "to the first",
    "paper: MHz",
    "paper: dynamic mW",
    "to its first",
)


def rows(points: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return a row of strings for each point."""
    first = points[0]
    return [_row(each, first) for each in points]


def _row(entry: dict[str, Any], first: dict[str, Any]) -> tuple[str, ...]:
    paper, papers_first = entry["paper"], first["paper"]
    theirs = ("-", "-", "-")
    if paper and papers_first:
        ratio = paper["dynamic_mw"] / papers_first["dynamic_mw"]
        theirs = (f"{paper['clock_mhz']:g}", f"{paper['dynamic_mw']:g}", f"{ratio:.2f}")
    return (
        str(entry["params"]["cores"]),
        f"{entry['clock_hz'] / 1e6:.4g}",
        f"{entry['cycles_per_tuple']:.4g}",
        f"{entry['cells']['registers']:,}",
        f"{entry['cells']['luts']:,}",
        *(f"{entry['modelled_mw'][kind]:.3g}" for kind in CONSTANTS),
        f"{entry['modelled_dynamic_mw']:.4g}",
        f"{entry['modelled_dynamic_mw'] / first['modelled_dynamic_mw']:.2f}",
        *theirs,
    )


def notes(record: dict[str, Any]) -> list[str]:
    """Say in sentences what the figures are."""
    load, constants = record["points"][0]["input"], record["constants"]
    kinds = "; ".join(
        f"{kind.replace('_', ' ')} {each['microwatts_per_mhz']:g} uW/MHz ({each['source']})"
        for kind, each in constants.items()
    )
    return [
        *trend(record["points"]),
        f"Every power in milliwatts of these designs is {record['kind']}: "
        f"P = 1/2 V^2 f sum(alpha C) at {record['volts']} V, alpha counted in the simulated gates, "
        f"C by kind of net. {record['left_out']} Only ratios can be held against another part's.",
        f"Constants: {kinds}.",
        f"The paper's: {record['paper_source']}.",
        f"Input: windows of {load['window']} tuples, both full, {load['tuples'] - 1} tuples "
        f"counted, {load['keys']} keys, match rate {load['match_rate']:g}, seed {load['seed']}; "
        "every result of the gates was checked.",
        design_in_words(record["points"][0]["params"]),
        f"Tools: {', '.join(' '.join(pair) for pair in record['tools'].items())}.",
    ]


def study_page(record: dict[str, Any]) -> str:
    """Return the study as a page of its own."""
    from streamjoin_hw.studies.synth.page import ACCENT, FAINT, drawn, page

    points = record["points"]
    x = [each["params"]["cores"] for each in points]
    with_paper = [each for each in points if each["paper"]]
    shades = ("#0b6bb8", "#4d9bd6", "#a5cbe9", "#d98e3f", "#5b6b7a", "#b6c0ca")

    def paint(axes: Any) -> None:
        left, right = axes
        positions = range(len(points))
        below = [0.0] * len(points)
        for kind, shade in zip(CONSTANTS, shades, strict=True):
            parts = [each["modelled_mw"][kind] for each in points]
            if any(parts):
                label = kind.replace("_", " ")
                left.bar(positions, parts, 0.6, bottom=below, color=shade, label=label)
            below = [a + b for a, b in zip(below, parts, strict=True)]
        left.set_xticks(
            positions,
            [f"{each['clock_hz'] / 1e6:.3g} MHz\n{c}" for c, each in zip(x, points, strict=True)],
        )
        left.set(xlabel="clock, cores", ylabel="dynamic power in mW (model)")
        left.legend(frameon=False, fontsize=8)
        first = points[0]["modelled_dynamic_mw"]
        ratios = [each["modelled_dynamic_mw"] / first for each in points]
        right.plot(x, ratios, "o-", color=ACCENT, label="model")
        if with_paper:
            theirs = [each["paper"]["dynamic_mw"] for each in with_paper]
            cores = [each["params"]["cores"] for each in with_paper]
            right.plot(cores, [p / theirs[0] for p in theirs], "s--", color=FAINT, label="paper")
        right.set(xlabel="cores", ylabel="dynamic power, to the first", ylim=(0, None))
        right.legend(frameon=False, fontsize=8)

    said = [
        f"{each['params']['cores']} cores {each['modelled_dynamic_mw']:.3g} mW" for each in points
    ]
    return page(
        "Dynamic power of cores against clock (a model)",
        drawn(paint, panels=2, alt="; ".join(said)),
        (COLUMNS, rows(points)),
        notes(record),
    )
