"""How many cores take part in a join with given windows."""

from streamjoin_common.contract.limits import is_count
from streamjoin_common.contract.params import DesignParams
from streamjoin_common.contract.terms import require


def active_cores(params: DesignParams, window_r: int, window_s: int) -> int:
    """Cores that take part when the windows have these sizes.

    A core of a lock-step chain holds a share of both windows, so no more cores than the smaller
    window has tuples can take part, and those must hold the larger one. Where tuples are stored
    round robin all cores take part, whatever the windows.

    Parameters
    ----------
    params : DesignParams
        The design.
    window_r, window_s : int
        Count windows in tuples.

    Raises
    ------
    ParameterError
        If a window is empty or above the capacity, or the two are too uneven to be held.
    """
    capacity = params.window_capacity
    for name, window in (("window_r", window_r), ("window_s", window_s)):
        require(is_count(window, 1, capacity), name, f"an integer from 1 to {capacity}", window)
    if params.stores_in_turn:
        return params.cores
    active = min(params.cores, window_r, window_s)
    smaller, larger = sorted((("window_r", window_r), ("window_s", window_s)), key=lambda w: w[1])
    room = active * params.segment_tuples
    require(
        larger[1] <= room,
        larger[0],
        f"at most {room} while {smaller[0]} is {smaller[1]} "
        f"(a segment holds {params.segment_tuples} tuples)",
        larger[1],
    )
    return active
