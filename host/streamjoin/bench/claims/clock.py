"""Whether the array's clock stays as cores are added: of routed designs, not of an experiment."""

import statistics
from pathlib import Path
from typing import Any

from streamjoin.bench.claims.rules import Claim
from streamjoin_common.documents import read_json
from streamjoin_common.installed import shipped

FOLDER = shipped.EXPERIMENTS / "scale" / "chain"
"""Records of ``streamjoin hw scale``, a placement each."""

COMMAND = (
    "streamjoin hw scale --target ecp5-85k --cores 4,8,16,32 --seeds 1,2,3 --clock 200 "
    "--placements 3 --param segment_tuples=16 --out runs/scale"
)

CLAIM = Claim(
    text=(
        "handshake join, section 6.4, figure 18: the clock of the array remains largely "
        "unaffected by the number of cores; the most routed cores over the fewest"
    ),
    published=1,
    workload="chain",
    engines=("fpga-handshake",),
    over=("fpga-handshake",),
    of="clock",
    says="about",
    figures=("handshake 18",),
    why=(
        "wires that cross the part: of the longest path of {most} cores {many} are wires, of that "
        "of {fewest} cores {few} (the slowest and the fastest placement of each, nextpnr, an "
        "LFE5U-85F)"
    ),
)


def held(folder: Path = FOLDER) -> dict[str, Any]:
    """Hold the claim beside the median clocks of the fewest and the most cores that were routed.

    Of an even number of placements the slower one of the middle counts.

    Parameters
    ----------
    folder : Path
        Of the records.

    Returns
    -------
    dict
        As of :meth:`~streamjoin.bench.claims.rules.Claim.held`.
    """
    routed: dict[int, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("cores-*.json")):
        record = read_json(path)
        if record["clock"]["hz"]:
            routed.setdefault(record["params"]["cores"], []).append(record["clock"])
    few, many = routed[min(routed)], routed[max(routed)]
    ratio = _median(many) / _median(few)
    verdict, none = CLAIM.verdict([ratio]), CLAIM.held([])
    why = CLAIM.why.format(
        few=_on_wires(few), many=_on_wires(many), fewest=min(routed), most=max(routed)
    )
    point = {"point": f"{max(routed)} cores", "over": f"{min(routed)} cores", "ratio": ratio}
    return {
        **none,
        "verdict": verdict,
        "why": "" if verdict == "holds" else why,
        **dict.fromkeys(("here", "min", "max"), ratio),
        "points": [{**point, "holds": verdict == "holds"}],
    }


def _median(clocks: list[dict[str, Any]]) -> float:
    return float(statistics.median_low(clock["hz"] for clock in clocks))


def _on_wires(clocks: list[dict[str, Any]]) -> str:
    """Say how much of the longest paths of the slowest and of the fastest placement is wires."""
    ends = [pick(clocks, key=lambda clock: clock["hz"]) for pick in (min, max)]
    paths = [clock["critical_path"] for clock in ends]
    wires = [sum(step["ns"] for step in path if step["kind"] == "routing") for path in paths]
    whole = [sum(step["ns"] for step in path) for path in paths]
    said = [f"{part:.1f} of {all_of:.1f}" for part, all_of in zip(wires, whole, strict=True)]
    return f"{' and '.join(said)} ns"
