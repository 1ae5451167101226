"""What the page says in words: the verdict, what a workload is, what became of a published ratio.

A verdict names whoever gave the right result. Where the oracle was too slow that is DuckDB, and
an engine that is itself the one that answered confirms nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamjoin.report import units
from streamjoin.report.results import Verdict, WorkloadResults, checker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streamjoin.report.results import Result


CLAIM_MEASURES = {
    "throughput": "throughput",
    "service_rate": "service rate",
    "clock": "clock after routing",
    "latency": "95th percentile of latency",
    "median_latency": "median of latency",
    "half": "time to half of the matches",
    "cpu": "CPU time",
    "memory": "memory of tables and buffers",
    "peak": "peak memory",
    "l1d_misses": "misses of the L1 data cache",
    "partition": "time to partition",
    "build": "time to build or sort",
    "merge": "time to merge",
    "probe": "time to probe",
    "wait_share": "share of the time spent waiting",
    "merge_share": "share of the time spent merging",
    "cpu_share": "share of the processors' time",
    "cache_share": "share of the tuples joined in the cache",
    "model_share": "computed by measured time of a loop, or its inverse, the smaller",
}
CLAIM_RULES = {"median": "median", "max": "maximum", "min": "minimum"}


@dataclass(frozen=True)
class Summary:
    """Verdict over several results: a sentence, and a short form for a table's cell.

    ``tone`` is the palette name: good, bad, or caution where something was not compared at all.
    """

    tone: str
    mark: str
    text: str
    brief: str
    remark: str

    @property
    def ok(self) -> bool:
        """Whether every result agrees with an independent one."""
        return self.tone == "good"


def _checkers(groups: Sequence[WorkloadResults]) -> str:
    """Who gave the right results: ``the oracle or, on the largest workload, with DuckDB``."""
    tuples: dict[str, dict[str, int]] = {}
    for group in groups:
        if group.results:
            workload = group.workload
            sizes = tuples.setdefault(group.checker, {})
            sizes[str(workload["name"])] = int(workload["n_r"]) + int(workload["n_s"])
    if not tuples:
        return checker({})
    # The oracle first, then by the number of answers.
    first, *others = sorted(tuples, key=lambda name: (name != checker({}), -len(tuples[name])))
    parts = [first]
    for name in others:
        sizes = tuples[name]
        rest = [size for other in tuples if other != name for size in tuples[other].values()]
        several = len(sizes) > 1
        where = f"{len(sizes)} workloads" if several else next(iter(sizes))
        if min(sizes.values()) > max(rest):
            where = f"the {len(sizes)} largest workloads" if several else "the largest workload"
        parts.append(f"on {where}, with {name}")
    return " or, ".join(parts)


def _subject(agreeing: int, checks: int) -> str:
    """``Both results agree``; those that are the check itself are not among them."""
    kind = "independent result" if checks else "result"
    if agreeing == 1:
        return f"The one {kind} agrees"
    return f"{'Both' if agreeing == 2 else f'All {agreeing}'} {kind}s agree"


def summarize(groups: Sequence[WorkloadResults]) -> Summary:
    """Say in one sentence whether everything agrees, and with whom."""
    results = [result for group in groups for result in group.results]
    total = len(results)
    if not total:
        return Summary("caution", "○", "No result was recorded.", "no result", "")
    counts = {verdict: sum(r.verdict is verdict for r in results) for verdict in Verdict}
    agreeing, checks = counts[Verdict.AGREES], counts[Verdict.CHECK]
    against = _checkers(groups)
    if not agreeing and checks == total:
        what = "The one result is" if total == 1 else f"All {total} results are"
        text = f"{what} the check itself; nothing was held against it."
        return Summary("caution", "○", text, "is the check", "nothing was held against it")
    if agreeing + checks == total:
        more = ""
        if checks:
            more = f"; {checks} more {'is' if checks == 1 else 'are'} the check itself"
        brief = {1: "agrees", 2: "both agree"}.get(agreeing, f"all {agreeing} agree")
        text = f"{_subject(agreeing, checks)} with {against}{more}."
        return Summary("good", "✓", text, brief, f"with {against}{more}")
    bad = counts[Verdict.WRONG] + counts[Verdict.FAILED]
    tone, mark = ("bad", "✗") if bad else ("caution", "○")
    others = [
        f"{counts[verdict]} {words}"
        for verdict, words in (
            (Verdict.WRONG, "wrong"),
            (Verdict.FAILED, "failed"),
            (Verdict.UNCHECKED, "not checked"),
            (Verdict.CHECK, "the check itself"),
        )
        if counts[verdict]
    ]
    if total == 1:
        words = {
            Verdict.WRONG: f"differs from that of {against}",
            Verdict.FAILED: "is missing: the engine failed",
            Verdict.UNCHECKED: f"was not checked against {against}",
        }[results[0].verdict]
        return Summary(tone, mark, f"The one result {words}.", results[0].verdict.value, "")
    verb = "agrees" if agreeing == 1 else "agree"
    text = f"{agreeing} of {total} results {verb} with {against}; {', '.join(others)}."
    remark = f"with {against}; {', '.join(others)}"
    return Summary(tone, mark, text, f"{agreeing} of {total} {verb}", remark)


def rounds_said(results: Iterable[Result], *, median: bool = True) -> str:
    """Say of how many rounds figures are: ``median of 3 to 5 checked rounds``.

    Parameters
    ----------
    results : iterable of Result
        Those without a count of rounds say nothing.
    median : bool
        Whether a figure is the median of all rounds, as throughput is, or of the one round whose
        throughput is the median, as all others are.
    """
    counts = sorted({rounds for r in results if (rounds := r.record.get("rounds"))})
    several = [rounds for rounds in counts if rounds > 1]
    if not several:
        return "one checked round" if counts else "rounds not recorded"
    span = f"{several[0]}" if len(several) == 1 else f"{several[0]} to {several[-1]}"
    said = f"median of {span} checked rounds"
    if not median:
        said = f"the round of median throughput, of {span} checked ones"
    return f"{said}, or one checked round" if 1 in counts else said


def join_kind(workload: Mapping[str, Any]) -> str:
    """Say what kind of join a workload asks for.

    Examples
    --------
    >>> join_kind({"predicate": "k and x=a:10:10"}), join_kind({"predicate": "k", "how": "left"})
    ('Equi and band join', 'Left equi join')
    """
    predicate, how = workload.get("predicate"), workload.get("how") or "inner"
    bands = [":" in term for term in re.split(r"\s+and\s+", (predicate or "").strip())]
    if not predicate:
        said = "join"
    elif all(bands):
        said = "band join"
    else:
        said = "equi and band join" if any(bands) else "equi join"
    return (said if how == "inner" else f"{how} {said}").capitalize()


def arrival(workload: dict[str, Any]) -> str:
    """Say how the input reached the engines; empty where the run does not know."""
    how = workload.get("arrival")
    if how == "instant":
        return "all handed over at once"
    if how == "replay":
        speedup = float(workload.get("speedup") or 1)
        times = f" ({units.TIMES}{units.NBSP}{units.significant(speedup)})" if speedup != 1 else ""
        return f"replayed at their arrival times{times}"
    return ""


def _unit(claim: Mapping[str, Any]) -> str:
    """Return what stands behind a claim's figures: nothing where they are no ratios."""
    return " x" if claim.get("divided", True) else ""


def claim_published(claim: Mapping[str, Any]) -> str:
    """Return the published figure: ``at most 0.16 x``."""
    says = claim.get("says", "at least")
    return ("" if says == "at least" else f"{says} ") + f"{claim['published']:.3g}{_unit(claim)}"


def claim_figure(claim: Mapping[str, Any]) -> str:
    """Return the figure that stands for all points, or that there is none."""
    return "no point" if claim["here"] is None else f"{claim['here']:.2f}{_unit(claim)}"


def claim_rule(claim: Mapping[str, Any]) -> str:
    """Say what the ratio is of: ``median of 4 points, 1.80 to 2.70 x``; empty for one point.

    Where points have no figure, they are counted: ``median of 3 of 4 points, 1.80 to 2.70 x``.
    """
    known = len(claim["points"])
    asked = max(claim.get("asked") or 0, known)
    among = f"{known} of {asked}" if known < asked else f"{known}"
    if known < 2:
        return f"{among} points" if 0 < known < asked else ""
    spread = f"{claim['min']:.2f} to {claim['max']:.2f}{_unit(claim)}"
    return f"{CLAIM_RULES[claim['by']]} of {among} points, {spread}"


def claim_points(claim: Mapping[str, Any]) -> str:
    """Name every point with its ratio where there are several, and the divisor where it differs."""
    several = len(claim["points"]) > 1
    named = []
    for at in claim["points"]:
        over = f" over {at['over']}" if at["over"] != at["point"] else ""
        best = f" ({' over '.join(at['best'])})" if at.get("best") else ""
        ratio = f" {at['ratio']:.2f}{_unit(claim)}" if several else ""
        named.append(f"{at['point']}{over}{best}{ratio}")
    return "; ".join(named)


def claim_said(claim: Mapping[str, Any]) -> str:
    """Say it all in one sentence."""
    whose = "Found by an earlier run" if claim.get("earlier") else "Why"
    why = f". {whose}: {claim['why']}" if claim.get("why") else ""
    if not claim["points"]:
        return f"no point was measured{why}"
    how = f" ({claim_rule(claim)})" if claim_rule(claim) else ""
    where = f"{CLAIM_MEASURES[claim['of']]} at {claim_points(claim)}"
    return f"{claim_figure(claim)}{how} of {where}{why}"
