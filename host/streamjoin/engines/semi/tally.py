"""Metrics of a semi-stream join: counts, times of its steps, its service rate."""

from dataclasses import dataclass, field

from streamjoin.metrics import Meter


@dataclass
class Tally:
    """Counts and times of a join."""

    loops: int = 0
    cycles: int = 0
    partitions: int = 0
    taken: int = 0
    shed: int = 0
    max_waiting: int = 0
    max_bytes: int = 0
    components: dict[str, int] = field(default_factory=dict)
    step_ns: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("wait", "cache", "disk", "expire", "migrate"), 0)
    )
    read_ns: int = 0
    rows: int = 0
    pairs: int = 0
    cached_pairs: int = 0
    curve: list[list[float]] = field(default_factory=list)
    """At every cycle's start: microseconds, tuples taken, joined in the cache, records cached."""
    cycle_taken: list[int] = field(default_factory=list)
    """Tuples taken at the start of every cycle."""


class Timed:
    """Adds the time inside a block to a step."""

    def __init__(self, meter: Meter, spent: dict[str, int], step: str) -> None:
        self._meter, self._spent, self._step = meter, spent, step

    def __enter__(self) -> None:
        self._began_us = self._meter.now_us()

    def __exit__(self, *_: object) -> None:
        self._spent[self._step] += int((self._meter.now_us() - self._began_us) * 1e3)


def service_rate(curve: list[list[float]], taken: int) -> float | None:
    """Return the tuples a second from the middle of the run to the last cycle that took tuples.

    By then H_S is full and the cache is stable. None for a run that was too short.
    """
    while len(curve) > 1 and curve[-2][1] >= taken:
        curve = curve[:-1]  # the queue was only emptied
    if len(curve) < 4:
        return None
    middle, last = curve[len(curve) // 2], curve[-1]
    return (last[1] - middle[1]) / (last[0] - middle[0]) * 1e6


def tuples_per_cycle(cycle_taken: list[int], taken: int) -> float | None:
    """Return the tuples taken in a cycle, from the middle of the run to its last whole cycle.

    Unlike a rate, it does not depend on the machine. None for a run that was too short.
    """
    filled = [each for each in cycle_taken if each < taken]
    if len(filled) < 4:
        return None
    middle = len(filled) // 2
    return (filled[-1] - filled[middle]) / (len(filled) - 1 - middle)
