"""A page that shows the idea in ten seconds: the recording of one input, animated.

The page holds its data, style and script, and loads nothing.
"""

import json
from importlib import resources
from typing import Any

from streamjoin_common.contract import SIDE_R, SIDE_S, active_cores
from streamjoin_hw.sim.testing import as_number
from streamjoin_hw.studies.walk.recording import Recording

MAX_PAGE_CORES = 8
"""Maximum cores of a chain on a page: as many as fit a screen; a narrow one scrolls."""

MAX_PAGE_SLOTS = 4
"""Maximum slots of a core's segment on a page."""

_DATA = "/*RECORDING*/null"


def page_data(recording: Recording) -> dict[str, Any]:
    """Return a recording as the page wants it.

    Returns
    -------
    dict
        ``cores`` (active ones), ``slots`` of R and S in the longest segment, ``windows``,
        ``keys`` by side and row as strings, and ``steps``: the ``side`` that moved, the row that
        ``arrived`` or null, ``positions`` as ``[side, row, core, slot]``, ``matches`` as
        ``[row of R, row of S, core]``.
    """
    workload = recording.workload
    windows = (workload.window_r, workload.window_s)
    active = active_cores(workload.params, *windows)
    keys: list[dict[int, str]] = [{}, {}]
    for arrival in workload.arrivals:
        numbers = [
            f"{as_number(bits, term.type):g}"
            for term, bits in zip(workload.params.terms, arrival.keys, strict=True)
        ]
        keys[arrival.side][arrival.payload] = " ".join(numbers)
    return {
        "cores": active,
        "slots": [-(-window // active) for window in windows],
        "windows": list(windows),
        "predicate": " and ".join(term.kind.value for term in workload.params.terms),
        "keys": [keys[SIDE_R], keys[SIDE_S]],
        "steps": [
            {
                "side": step.side,
                "arrived": step.arrived,
                "positions": [[*who, *where] for who, where in sorted(step.positions.items())],
                "matches": [list(match) for match in step.matches],
            }
            for step in recording.steps
        ],
    }


def walk_page(recording: Recording) -> str:
    """Return the page as HTML."""
    template = resources.files(__package__).joinpath("walk.html").read_text(encoding="utf-8")
    # A key of floats could not end the script, but no string may ever do so.
    data = json.dumps(page_data(recording), separators=(",", ":")).replace("</", "<\\/")
    if template.count(_DATA) != 1:
        raise ValueError(f"walk.html must hold {_DATA} once")
    return template.replace(_DATA, data)
