"""The page of published claims with their verdicts, in Markdown, from the records of runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamjoin.report.sentences import (
    CLAIM_MEASURES,
    claim_figure,
    claim_points,
    claim_published,
    claim_rule,
)

HEADINGS = ("figure", "published", "there", "here", "of", "verdict")


@dataclass(frozen=True)
class Judged:
    """The claims of one experiment, held beside the records of one run."""

    experiment: str
    run: Mapping[str, Any]
    claims: Sequence[Mapping[str, Any]]


def counted(judged: Sequence[Judged]) -> str:
    """Say how many claims have which verdict.

    Examples
    --------
    >>> verdicts = ["holds", "not measured", "does not hold here", "does not hold here"]
    >>> counted([Judged("x", {}, [{"verdict": verdict} for verdict in verdicts])])
    '4 claims: 1 holds, 1 not measured, 2 do not hold here'
    """
    verdicts = [claim["verdict"] for each in judged for claim in each.claims]
    kinds = ", ".join(_times(verdicts.count(kind), kind) for kind in dict.fromkeys(verdicts))
    return f"{len(verdicts)} claims: {kinds}" if verdicts else "no claims"


def _times(number: int, verdict: str) -> str:
    """Say how many claims have a verdict, with the verb that the number asks for."""
    said = verdict if number == 1 else verdict.replace("does ", "do ").replace("holds", "hold")
    return f"{number} {said}"


def table(
    claims: Sequence[Mapping[str, Any]], heading: str, last: Callable[[Mapping[str, Any]], str]
) -> list[str]:
    """Return the lines of a table of claims, with a last column of the caller's."""
    lines = [f"| {' | '.join((*HEADINGS, heading))} |", "|" + " --- |" * (len(HEADINGS) + 1)]
    for claim in claims:
        rule = claim_rule(claim)
        cells = (
            ", ".join(claim["figures"]) or "-",
            claim["text"],
            claim_published(claim),
            claim_figure(claim) + (f" ({rule})" if rule else ""),
            CLAIM_MEASURES[claim["of"]],
            f"**{claim['verdict']}**",
            last(claim) or "-",
        )
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return lines


def page(judged: Sequence[Judged], command: str) -> str:
    """Write the page.

    Parameters
    ----------
    judged : sequence of Judged
        By experiment.
    command : str
        How to make the page again.
    """
    lines = [
        "# What was published, and what holds here",
        "",
        f"Generated from stored records by `{command}`. {counted(judged)}. How a verdict follows",
        "from the figures is said in `docs/how-to/own-experiment.md`; sizes and threads are those",
        "of one machine.",
    ]
    for each in judged:
        environment = each.run.get("environment") or {}
        about = [each.run.get("created"), environment.get("processor"), environment.get("revision")]
        lines += ["", f"## {each.experiment}", ""]
        lines += [f"{each.run['title']}. {'; '.join(str(part) for part in about if part)}.", ""]
        lines += table(each.claims, "at", claim_points)
    return "\n".join(lines) + "\n"
