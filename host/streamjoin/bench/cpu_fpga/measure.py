"""Measures a contestant: the rate that it sustains, and latencies at shares of that rate.

Both mean the same on both sides. A rate is that at which no queue grows. A latency is counted from
the arrival of the later tuple, with whatever it waits for, to the match. A CPU engine replays the
arrivals in real time; a design in cycles of its model, which a clock turns into seconds.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from streamjoin.bench.cpu_fpga.contestants import Contestant
from streamjoin.bench.cpu_fpga.inputs import (
    NATURAL_RATE,
    Columns,
    Query,
    Streams,
    for_latency,
    for_rate,
)
from streamjoin.bench.sustained import LOADS, MIN_REPLAY_S, search
from streamjoin.errors import InputError, MismatchError
from streamjoin.run import Outcome
from streamjoin.sequence import Request, ResolvedJoin
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import CountWindow

SCANNED = 1024
"""Maximum window that a judge scans: beyond it a tree takes less time."""

FILL_LOAD = 0.9
"""Share of the sustained rate at which windows are filled before a latency is measured."""

PRECISION = {"quick": 0.12, "full": 0.08}
"""Share between the rates that a CPU engine keeps up with and not."""

REPLAY_S = {"quick": 0.3, "full": 0.5}
"""Seconds that arrivals last under which a CPU engine's latency is measured."""

WARM_S = {"quick": 0.1, "full": 0.2}
"""Minimum seconds of arrivals before those, in which threads start and memory is touched."""

SPARE = 1.8
"""Tuples of a search by those of its shortest replay at the rate at rest, as rates climb."""

AT_REST_S = 0.2
"""Minimum seconds of the run that says how many tuples a replay needs."""

MEASURED = {"quick": 4_000, "full": 20_000}
"""Tuples under each load of a design, behind those that fill its windows."""

MAX_CPU_TUPLES = 16_000_000


def measure(
    contestant: Contestant, query: Query, window: int, size: str, report: Callable[[str], None]
) -> dict[str, Any]:
    """Measure one contestant at one point.

    Returns
    -------
    dict
        ``rate_tuples_per_s``; ``latency_us``, for each load by its percentage ``p50`` and
        ``p99``; for a design ``cycles_per_tuple`` and ``clock_mhz``.

    Raises
    ------
    MismatchError
        If a result is not the judge's.
    """
    point = _Point(contestant, query, window, report)
    rate = point.design_rate(MEASURED[size]) if contestant.is_fpga else point.cpu_rate(size)
    found: dict[str, Any] = {"rate_tuples_per_s": rate}
    if contestant.board is not None:
        clock_mhz = contestant.board.clock_mhz
        found |= {"cycles_per_tuple": clock_mhz * 1e6 / rate, "clock_mhz": clock_mhz}
    found["latency_us"] = {f"{load:.0%}": point.latency(rate, load, size) for load in LOADS}
    return found


def at_clock(found: Mapping[str, Any], clock_mhz: float) -> dict[str, Any]:
    """Return what was measured of a design as it is at another clock.

    Rate, loads and latencies are counted in cycles, so that the clock only scales them.
    """
    faster = clock_mhz / found["clock_mhz"]
    latency_us = {
        load: {name: None if value is None else value / faster for name, value in at.items()}
        for load, at in found["latency_us"].items()
    }
    return {
        "rate_tuples_per_s": found["rate_tuples_per_s"] * faster,
        "cycles_per_tuple": found["cycles_per_tuple"],
        "clock_mhz": clock_mhz,
        "latency_us": latency_us,
    }


def judge(contestant: Contestant, window: int) -> str:
    """Name the engine that a result is compared with: another one, and a fast one."""
    if contestant.engine == "kang":
        return "ibwj-flat"
    return "kang" if window <= SCANNED else "ibwj-pim"


class _Point:
    """A contestant, a query and a window."""

    def __init__(
        self, contestant: Contestant, query: Query, window: int, report: Callable[[str], None]
    ) -> None:
        self.contestant, self.query, self.window = contestant, query, window
        self.report = report

    def design_rate(self, tuples: int) -> float:
        """Return what a design takes: the difference of a longer input and a shorter one."""
        filling = 3 * self.window + 1_000
        drawn = for_rate(self.query, self.window, filling + tuples)
        seconds = []
        for count in (filling, filling + tuples):
            outcome = self._joined(_first(*drawn, count), "instant")
            seconds.append(outcome.metrics["cycles"] / outcome.metrics["clock_hz"])
        return float(tuples / (seconds[1] - seconds[0]))

    def cpu_rate(self, size: str) -> float:
        """Search the rate that a CPU engine sustains."""
        count, seconds = 3 * self.window + 10_000, 0.0
        while seconds < AT_REST_S and count < MAX_CPU_TUPLES:  # the first run may compile, too
            count *= 3
            resting = self._resolved(for_rate(self.query, self.window, count), "instant")
            seconds = float(resting.run().metrics["wall_s"])
        tuples = math.ceil(SPARE * MIN_REPLAY_S * count / seconds)
        while True:
            join = self._resolved(for_rate(self.query, self.window, tuples), "replay")
            check = partial(self._check, right=self._right(join))
            found = search(join, PRECISION[size], check, lambda _: None)
            if found.at_least:  # it is faster than at rest: more tuples are needed
                if tuples > MAX_CPU_TUPLES:
                    raise InputError(f"{tuples} tuples are too few for {self.contestant.name}")
                tuples = max(2 * tuples, found.wanted)
                continue
            best = found.best
            return best.rate_tuples_per_s if best else 0.0

    def latency(self, rate: float, load: float, size: str) -> dict[str, float | None]:
        """Return quantiles of the latency, in microseconds, at a share of a rate."""
        warm, tuples = 0, MEASURED[size]
        if not self.contestant.is_fpga:
            warm = min(MAX_CPU_TUPLES, math.ceil(WARM_S[size] * FILL_LOAD * rate))
            tuples = min(MAX_CPU_TUPLES, max(2_000, math.ceil(REPLAY_S[size] * load * rate)))
        drawn = for_latency(self.query, self.window, tuples, load / FILL_LOAD, warm)
        outcome = self._joined(drawn, "replay", load * rate / NATURAL_RATE)
        latency: dict[str, float | None] = outcome.metrics["latency_us"]
        return {name: latency[name] for name in ("p50", "p99")}

    def _joined(self, drawn: Streams, arrival: str, speedup: float = 1.0) -> Outcome:
        """Join and compare with the judge's result."""
        join = self._resolved(drawn, arrival, speedup)
        outcome = join.run(prepared=join.prepare(self.report))
        self._check(outcome, self._right(join))
        return outcome

    def _check(self, outcome: Outcome, right: Outcome) -> None:
        if outcome.metrics["digest"] != right.metrics["digest"]:
            raise MismatchError(
                f"{self.contestant.name}, {self.query.name}, window {self.window}: "
                f"{len(outcome.pairs)} pairs differ from the {len(right.pairs)} of "
                f"{judge(self.contestant, self.window)}"
            )

    def _resolved(self, drawn: Streams, arrival: str, speedup: float = 1.0) -> ResolvedJoin:
        request = self._request(arrival, speedup)
        job = request.take(*drawn)
        return request.resolve(self.contestant.engine, job, self.contestant.knobs)

    def _right(self, join: ResolvedJoin) -> Outcome:
        """Return the judge's result of the query as it is meant, not as a design takes it."""
        predicate = Predicate.parse(**self.query.predicate(self.window))
        job = replace(join.job, arrival="instant", backend=None, predicate=predicate)
        request = replace(self._request("instant"), predicate=predicate)
        return request.resolve(judge(self.contestant, self.window), job).run()

    def _request(self, arrival: str, speedup: float = 1.0) -> Request:
        as_band = self.contestant.takes_bands
        return Request(
            predicate=Predicate.parse(**self.query.predicate(self.window, as_band=as_band)),
            window=CountWindow(self.window),
            arrival=arrival,
            speedup=speedup,
        )


def _first(r: Columns, s: Columns, count: int) -> Streams:
    """Return the first ``count`` tuples of both streams together."""
    end = np.sort(np.concatenate([r["ts"], s["ts"]]))[count - 1]
    r, s = ({name: column[each["ts"] <= end] for name, column in each.items()} for each in (r, s))
    return r, s
