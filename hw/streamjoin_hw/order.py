"""Whether results come out grouped by the later tuple, in its order of arrival."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from streamjoin_hw.bulk import Chunk
from streamjoin_hw.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.testing import Workload


def out_of_order(workload: Workload, pairs: Sequence[tuple[int, int]]) -> str:
    """Say which result breaks the order that the design promises; empty if none does.

    Parameters
    ----------
    workload : Workload
        The input; no payload of a side is there twice.
    pairs : sequence of (int, int)
        Payloads of R and S, in the order in which they came out.
    """
    if workload.params.order_promise == "none":
        return ""
    arrivals = workload.arrivals
    numbers = {(each.side, each.payload): place for place, each in enumerate(arrivals)}
    last = -1
    for r, s in pairs:
        later = max(numbers[SIDE_R, r], numbers[SIDE_S, s])
        if later < last:
            return f"result {(r, s)} of arrival {later} came after one of arrival {last}"
        last = later
    return ""


class ArrivalOrder:
    """Holds the results of an input that comes in chunks against an order promise.

    Only the numbers of the last two chunks are kept: a design that still gives results of one
    before those is as wrong as one that gives them in another order.

    Parameters
    ----------
    params : DesignParams
        The design.

    Attributes
    ----------
    fault : str
        What was out of order first, in a sentence; empty if nothing was, or nothing is promised.
    """

    def __init__(self, params: DesignParams) -> None:
        self.promised = params.order_promise == "outer"
        self.fault = ""
        self._mask = (1 << params.payload_bits) - 1
        self._last = -1
        self._taken = 0
        # For each side: the first row whose number is known, and the numbers from there on.
        self._first = [0, 0]
        self._numbers = [[np.empty(0, np.int64)] * 2 for _ in (SIDE_R, SIDE_S)]

    def take(self, chunk: Chunk) -> None:
        """Number the arrivals of the next chunk, before its results are seen."""
        for side in (SIDE_R, SIDE_S):
            (new,) = np.nonzero(chunk.sides == side)
            before_last, last = self._numbers[side]
            self._first[side] += len(before_last)
            self._numbers[side] = [last, new + self._taken]
        self._taken += len(chunk.sides)

    def see(
        self,
        r: npt.NDArray[np.uint64],
        s: npt.NDArray[np.uint64],
        sides: npt.NDArray[np.uint8],
    ) -> None:
        """Look at the next results: payloads, and the side of the later tuple of each."""
        if not self.promised or self.fault or not len(r):
            return
        later = np.empty(len(r), np.int64)
        for side, rows in ((SIDE_R, r), (SIDE_S, s)):
            mine = sides == side
            numbers = np.concatenate(self._numbers[side])
            known = (rows[mine].astype(np.int64) - self._first[side]) & self._mask
            if len(known) and int(known.max()) >= len(numbers):
                self.fault = f"a result of side {side} came when its tuple was long past"
                return
            later[mine] = numbers[known]
        if later[0] < self._last or bool((np.diff(later) < 0).any()):
            steps = np.diff(np.concatenate([[self._last], later]))
            place = int(np.argmax(steps < 0))
            self.fault = (
                f"result {(int(r[place]), int(s[place]))} of arrival {int(later[place])} came "
                f"after one of arrival {int(later[place] - steps[place])}"
            )
        self._last = int(later[-1])
