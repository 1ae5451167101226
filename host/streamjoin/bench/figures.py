"""The published figures and tables, and what of this project shows each.

``benchmarks/papers/figures.toml`` lists them. Experiments name those that they repeat, in
``figures`` of a workload; claims those that they are of. The page of figures is made of both.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from streamjoin.bench import experiments
from streamjoin.bench.claims import Claim, clock
from streamjoin.errors import InputError
from streamjoin_common.documents import read_toml
from streamjoin_common.installed import shipped

LIST = shipped.EXPERIMENTS / "papers" / "figures.toml"
_KEYS = {"shows", "command", "differs", "why"}


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper that shows measurements or data.

    Attributes
    ----------
    name : str
        As it is cited: ``"iawj 9"``, ``"iawj T5"`` for a table.
    shows : str
        What the paper shows there.
    command : str
        A command that shows it, beside the experiments; empty for none.
    differs : str
        What is not as in the paper, beside sizes and machine; empty for nothing.
    why : str
        Why it cannot be shown; empty where it is.
    shown_by : dict of str to list of str
        Workloads that repeat it, by experiment.
    claims : list of (str, Claim)
        Experiment and claim.
    """

    name: str
    shows: str
    command: str = ""
    differs: str = ""
    why: str = ""
    shown_by: dict[str, list[str]] = field(default_factory=dict)
    claims: list[tuple[str, Claim]] = field(default_factory=list)


@dataclass(frozen=True)
class Paper:
    """A paper with its figures, in their order."""

    key: str
    title: str
    figures: tuple[Figure, ...]


def papers() -> tuple[Paper, ...]:
    """Read the list, and what every experiment says that it repeats.

    Raises
    ------
    InputError
        If an experiment cites a figure that is not in the list, or one is neither shown nor
        explained.
    """
    listed = tuple(
        Paper(
            table["key"],
            table["title"],
            tuple(
                Figure(f"{table['key']} {name}", **{key: said[key] for key in _KEYS & set(said)})
                for name, said in table["figures"].items()
            ),
        )
        for table in read_toml(LIST)["paper"]
    )
    named = {figure.name: figure for paper in listed for figure in paper.figures}
    for experiment in experiments.names():
        read = experiments.read(experiment, "full")
        for point in read.points:
            for name in point.figures:
                families = _named(named, name, experiment).shown_by.setdefault(experiment, [])
                if point.family not in families:
                    families.append(point.family)
        for claim in read.claims:
            for name in claim.figures:
                figure = _named(named, name, experiment)
                figure.claims.append((experiment, claim))
                if experiment not in figure.shown_by:
                    raise InputError(
                        f"{experiment}: no workload repeats {name}, which a claim is of"
                    )
    for name in clock.CLAIM.figures:
        named[name].claims.append(("hw scale", clock.CLAIM))
    for figure in named.values():
        if bool(figure.why) == bool(figure.command or figure.shown_by):
            raise InputError(f"{LIST}: {figure.name} must be shown, or why says why it is not")
    return listed


def _named(named: dict[str, Figure], name: str, experiment: str) -> Figure:
    if name not in named:
        raise InputError(f"{experiment}: there is no figure {name!r} in {LIST}")
    return named[name]


def page() -> str:
    """Write the page of figures in Markdown."""
    listed = papers()
    figures = [figure for paper in listed for figure in paper.figures]
    claims = {(name, claim.text) for figure in figures for name, claim in figure.claims}
    lines = [
        "# The figures of the five papers",
        "",
        "Generated from `benchmarks/` by `make docs`. Of "
        f"{len(figures)} figures and tables that show measurements or data, a command shows "
        f"{sum(not figure.why for figure in figures)}, {sum(bool(f.differs) for f in figures)} of",
        "them with a difference that is named; the others say why not. "
        f"{len(claims)} claims of the papers are decided by",
        "[a rule](../how-to/own-experiment.md#keys-of-claim) when an experiment is run. Sizes are "
        "scaled to one machine everywhere.",
        "`streamjoin data stock --seed 1 --out runs/workloads/stock` makes that workload.",
    ]
    for paper in listed:
        lines += ["", f"## {paper.title}", "", "| figure | shows | command | claims | differs |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        for figure in paper.figures:
            cells = (
                figure.name.partition(" ")[2].replace("T", "table "),
                figure.shows,
                "; ".join(_commands(figure)) or "none",
                str(len(figure.claims) or "-"),
                f"not shown: {figure.why}" if figure.why else figure.differs or "-",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _commands(figure: Figure) -> Iterator[str]:
    for experiment, families in figure.shown_by.items():
        yield f"`streamjoin bench {experiment}` ({', '.join(families)})"
    if figure.command:
        yield f"`{figure.command}`"
