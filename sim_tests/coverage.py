"""Functional coverage: which stall met which state, which windows met which tuples.

A bin is a sentence that was true in some cycle, or of some tuple; its count says how often. Bins
are seen at the ports and in the status register's bits, which every design has, and not in the
states of one implementation.
"""

from collections import Counter

from sim_tests.ports import Ports

from streamjoin_common.contract import SIDE_R, DesignParams, TUser, active_cores, registers
from streamjoin_hw.sim.testing import Workload

STATES = ("waiting", "refusing", "running", "draining", "ending")
"""Between inputs; windows that cannot be held; from the first tuple to the end of the input;
until all that is owed has met; until the punctuation is taken."""

_NOT_REQUIRED = {
    # Nothing is taken without legal windows, or between the end of an input and its punctuation.
    "refusing, input taken",
    "draining, input taken",
    # There is nothing to give before an input's first tuple has met another.
    *("waiting, output taken", "waiting, output stalls"),
    *("refusing, output taken", "refusing, output stalls"),
    # The punctuation is on offer, or a last result in front of it.
    "ending, output idle",
    *("waiting, scan held", "refusing, scan held"),
    # Not owed: the next input would have to fill the cores while the punctuation waits.
    "ending, scan held",
}


def required() -> list[str]:
    """Return the bins that every design must hit, in the order in which to show them."""
    bins = []
    for state in STATES:
        bins += [f"{state}, input {what}" for what in ("idle", "taken", "stalls")]
        bins += [f"{state}, output {what}" for what in ("idle", "taken", "stalls")]
        bins += [f"{state}, scan held", f"{state}, reset", f"{state}, soft reset"]
    bins += [f"scan held, output {what}" for what in ("taken", "stalls")]
    bins += [
        f"{side} arrives, its window {own}, the other {other}"
        for side in "RS"
        for own in ("filling", "full")
        for other in ("empty", "filling", "full")
    ]
    bins += [
        *("window of one tuple", "windows of the capacity", "windows that differ"),
        *("every core active", "input of one side alone"),
    ]
    return [each for each in bins if each not in _NOT_REQUIRED]


def bins_of(params: DesignParams, workload: Workload) -> Counter[str]:
    """Count the bins of one input: its windows, and how full they are when a tuple arrives."""
    windows = (workload.window_r, workload.window_s)
    seen = [0, 0]
    bins: Counter[str] = Counter()

    def filled(side: int) -> str:
        if not seen[side]:
            return "empty"
        return "full" if seen[side] >= windows[side] else "filling"

    for arrival in workload.arrivals:
        mine, other = filled(arrival.side), filled(1 - arrival.side)
        name = "R" if arrival.side == SIDE_R else "S"
        mine = "full" if mine == "full" else "filling"
        bins[f"{name} arrives, its window {mine}, the other {other}"] += 1
        seen[arrival.side] += 1
    facts = {
        "window of one tuple": 1 in windows,
        "windows of the capacity": windows == (params.window_capacity,) * 2,
        "windows that differ": windows[0] != windows[1],
        "every core active": active_cores(params, *windows) == params.cores,
        "input of one side alone": bool(seen[0]) != bool(seen[1]),
    }
    bins.update(name for name, holds in facts.items() if holds)
    return bins


class Coverage:
    """Looks at a design every cycle and counts the bins it hits.

    Parameters
    ----------
    params : DesignParams
        What it was built from.

    Attributes
    ----------
    state : str
        One of :data:`STATES`, as of the last clock edge.
    """

    def __init__(self, params: DesignParams) -> None:
        self._cycles: Counter[tuple[str, str, str, bool, bool]] = Counter()
        self._others: Counter[str] = Counter()
        self.state = "waiting"
        (status,) = (each for each in registers(params) if each.name == "status")
        self._masks = {each.name: 1 << each.bit for each in status.fields}
        self._in_reset = True

    def _state(self, ports: Ports) -> str:
        if ports.m_axis_results_tvalid and ports.result()[1] >> TUser.PUNCTUATION & 1:
            return "ending"
        if ports.get_status & self._masks["window_error"]:
            return "refusing"
        if ports.get_status & self._masks["draining"]:
            return "draining"
        if ports.running:
            return "running"
        return "waiting" if ports.get_status & self._masks["idle"] else "ending"

    def step(self, ports: Ports) -> None:
        """Look at one cycle."""
        if not ports.aresetn:
            if not self._in_reset:
                self._others[f"{self.state}, reset"] += 1
            self._in_reset = True
            return
        if self._in_reset or ports.restart:
            # The first cycle after a reset still shows the state of before.
            self._in_reset = False
            return
        self.state = self._state(ports)
        given = taken = "idle"
        if ports.s_axis_tuples_tvalid:
            given = "taken" if ports.s_axis_tuples_tready else "stalls"
        if ports.m_axis_results_tvalid:
            taken = "taken" if ports.m_axis_results_tready else "stalls"
        held = bool(ports.get_status & self._masks["held"])
        self._cycles[self.state, given, taken, held, bool(ports.soft_reset)] += 1

    def add(self, bins: Counter[str]) -> None:
        """Count further bins, of an input."""
        self._others.update(bins)

    @property
    def bins(self) -> Counter[str]:
        """Bins hit so far: cycles of most, inputs and tuples of those that were added."""
        bins = self._others.copy()
        for (state, given, taken, held, soft_reset), cycles in self._cycles.items():
            bins[f"{state}, input {given}"] += cycles
            bins[f"{state}, output {taken}"] += cycles
            if held:
                bins[f"{state}, scan held"] += cycles
                bins[f"scan held, output {taken}"] += cycles
            if soft_reset:
                bins[f"{state}, soft reset"] += cycles
        return bins
