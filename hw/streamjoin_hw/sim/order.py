"""Whether results are in the order that a design promises."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_common.language.order import group_numbers
from streamjoin_hw.sim.bulk import Chunk
from streamjoin_hw.sim.testing import Workload


def out_of_order(workload: Workload, pairs: Sequence[tuple[int, int]], order: str = "") -> str:
    """Say which result breaks an order; empty if none does.

    The outer order is that of :func:`~streamjoin_common.language.order.group_numbers` by the
    workload's group.

    Parameters
    ----------
    workload : Workload
        The input; no payload of a side is there twice.
    pairs : sequence of (int, int)
        Payloads of R and S, in the order in which they were given.
    order : str
        The order to hold them against; the one that the design promises if not given.
    """
    order = order or workload.params.order_promise
    if order == "none":
        return ""
    arrivals = workload.arrivals
    numbers = {(each.side, each.payload): position for position, each in enumerate(arrivals)}
    last, before = (-1, -1), -1
    for r, s in pairs:
        earlier, later = sorted((numbers[SIDE_R, r], numbers[SIDE_S, s]))
        is_inner = order == "inner"
        group = group_numbers(later, 1 if is_inner else workload.group)
        key = (group, earlier if is_inner else -1)
        if key < last:
            return f"result {(r, s)} of arrival {later} was given after one of arrival {before}"
        last, before = key, later
    return ""


class ArrivalOrder:
    """Holds the results of an input that is given in chunks against an order promise.

    Only the numbers of the last two chunks and of the windows before them are kept: a design that
    still gives results of a tuple before those is as wrong as one that gives them in another order.

    Parameters
    ----------
    params : DesignParams
        The design.
    group : int
        Arrivals of a group; the outer order is exact between groups.

    Attributes
    ----------
    fault : str
        What was out of order first, in a sentence; empty if nothing was, or nothing is promised.
    """

    def __init__(self, params: DesignParams, group: int = 1) -> None:
        self.promised = params.order_promise
        self._group = 1 if self.promised == "inner" else group
        self.fault = ""
        self._window = params.window_capacity
        self._mask = (1 << params.payload_bits) - 1
        # Group, arrival and earlier tuple of the last result.
        self._last = (-1, -1, -1)
        self._taken = 0
        # For each side: the first row whose number is known, the numbers from there on, and how
        # many of them are of the last chunk.
        self._first = [0, 0]
        self._numbers = [np.empty(0, np.int64) for _ in (SIDE_R, SIDE_S)]
        self._newest = [0, 0]

    def take(self, chunk: Chunk) -> None:
        """Number the arrivals of the next chunk, before its results are seen."""
        for side in (SIDE_R, SIDE_S):
            (new,) = np.nonzero(chunk.sides == side)
            known = self._numbers[side]
            gone = max(0, len(known) - self._newest[side] - self._window)
            self._first[side] += gone
            self._numbers[side] = np.concatenate([known[gone:], new + self._taken])
            self._newest[side] = len(new)
        self._taken += len(chunk.sides)

    def see(self, r: npt.NDArray[np.uint64], s: npt.NDArray[np.uint64]) -> None:
        """Look at the next results, the payloads of each."""
        if self.promised == "none" or self.fault or not len(r):
            return
        numbers = []
        for side, rows in ((SIDE_R, r), (SIDE_S, s)):
            known = (rows.astype(np.int64) - self._first[side]) & self._mask
            if int(known.max()) >= len(self._numbers[side]):
                self.fault = f"a result of side {side} was given long after its tuple expired"
                return
            numbers.append(self._numbers[side][known])
        later, earlier = np.maximum(*numbers), np.minimum(*numbers)
        if self.promised == "outer":
            earlier[:] = -1
        groups: npt.NDArray[np.int64] = group_numbers(later, self._group)
        groups_before, later_before, earlier_before = (
            np.concatenate([[last], numbers[:-1]])
            for last, numbers in zip(self._last, (groups, later, earlier), strict=True)
        )
        wrong = groups < groups_before
        wrong |= (groups == groups_before) & (earlier < earlier_before)
        if wrong.any():
            first = int(np.argmax(wrong))
            self.fault = (
                f"result {(int(r[first]), int(s[first]))} of arrival {int(later[first])} was "
                f"given after one of arrival {int(later_before[first])}"
            )
        self._last = (int(groups[-1]), int(later[-1]), int(earlier[-1]))
