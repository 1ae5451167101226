"""A random input of any length through the Verilated model, every result checked.

Where the design promises an order, that of the results is checked as well.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from streamjoin_common.contract import JOIN_KINDS, DesignParams, active_cores
from streamjoin_hw.sim.bulk import Owed, SlidingJoin, draw_chunks
from streamjoin_hw.sim.model import Model
from streamjoin_hw.sim.order import ArrivalOrder
from streamjoin_hw.sim.testing import random_bands, random_times, step_cycles, usual_domain

COUNTERS = ("input_stall_cycles", "results_backpressure_cycles", "hold_cycles")

WIDEST_BAND = 2

EXACT = "exact"
"""The verdict on a result without a pair too few or too many."""


def bulk_run(
    params: DesignParams,
    folder: Path,
    *,
    tuples: int,
    windows: tuple[int, int],
    seed: int,
    idle_per_1024: int,
    stall_per_1024: int,
    report: Callable[[int], None],
    group: int = 1,
) -> dict[str, Any]:
    """Run one input, chunk by chunk, and hold every result against the join of the same chunks.

    Parameters
    ----------
    params : DesignParams
        The design.
    folder : Path
        What :func:`streamjoin_hw.flow.build.build_model` returned.
    tuples : int
        Tuples of both sides together.
    windows : (int, int)
        Count windows of R and S in tuples.
    seed : int
        Seed of tuples, band widths and pauses.
    idle_per_1024, stall_per_1024 : int
        How often the input pauses and the output is not ready, of 1024 cycles.
    report : callable taking int
        Receives the count of tuples taken.
    group : int
        Arrivals of a group, 0 for all, where stars are grouped.

    Returns
    -------
    dict
        Figures by name; ``verdict`` is ``"exact"`` or says what is wrong. Pairs that are given
        and not owed, or out of a promised order, end the run.

    Raises
    ------
    ModelError
        If the model does not end a chunk in time.
    """
    rng = np.random.default_rng(seed)
    bands = random_bands(params, rng, WIDEST_BAND)
    active = active_cores(params, *windows)
    time_r, time_s = random_times(params, rng, windows)
    times = None if time_r is None or time_s is None else (time_r, time_s)
    join, owed = SlidingJoin(params, windows, bands, times), Owed()
    order = ArrivalOrder(params, group)
    taken = results = cycles = 0
    start, simulated_s = time.monotonic(), 0.0
    with Model(params, folder) as model:
        model.set_registers({"window_r": windows[0], "window_s": windows[1], **bands})
        if params.has_groups:
            model.set_registers({"group_arrivals": group})
        if times is not None:
            model.set_registers({"time_r": times[0], "time_s": times[1]})
        first_cycle = last_cycle = 0
        for number, chunk in enumerate(
            draw_chunks(params, rng, tuples, usual_domain(params, windows))
        ):
            accepted = np.empty(len(chunk.sides), np.int64)
            pieces = []
            if not taken:
                model.load_splitters(windows, chunk)
            order.take(chunk)
            begun = time.monotonic()
            for piece in model.feed(
                chunk,
                accepted=accepted,
                last=taken + len(chunk.sides) == tuples,
                seed=seed + number,
                idle_per_1024=idle_per_1024,
                stall_per_1024=stall_per_1024,
                max_cycles=10_000_000 + 4000 * len(chunk.sides),
            ):
                pieces.append(piece.r << np.uint64(32) | piece.s)
                order.see(piece.r, piece.s)
                cycles += piece.cycles
                report(taken + piece.taken)
            simulated_s += time.monotonic() - begun  # without the check of results
            received = np.concatenate(pieces)
            owed.update(join.join(chunk), received)
            first_cycle = first_cycle if taken else int(accepted[0])
            last_cycle = int(accepted[-1])
            taken += len(chunk.sides)
            results += len(received)
            if len(owed.surplus) or order.fault:
                break
        counters = {name: model.read(name) for name in COUNTERS}
    passes: dict[str, Any] = {}
    steps: dict[str, Any] = {
        "step_cycles_r": step_cycles(params, windows[1], active),
        "step_cycles_s": step_cycles(params, windows[0], active),
    }
    if params.design == "splitjoin":
        passes, steps = {"probes": params.probes}, {}
    if params.order_promise != "none":
        passes["order_checked"] = params.order_promise
        if params.has_groups:
            passes["group"] = group
    if params.decides_kinds:
        passes["kind"] = JOIN_KINDS[0]  # as after a reset
    seconds = time.monotonic() - start
    return {
        "digest": params.digest,
        "seed": seed,
        "design": params.design,
        "cores": params.cores,
        "lanes": params.lanes,
        **passes,
        "window_r": windows[0],
        "window_s": windows[1],
        "tuples": taken,
        "results": results,
        "cycles": cycles,
        "cycles_per_tuple": round((last_cycle - first_cycle) / max(1, taken - 1), 3),
        **steps,
        **counters,
        "seconds": round(seconds, 1),
        "cycles_per_second": round(cycles / max(simulated_s, 1e-9)),
        "verdict": order.fault or owed.difference() or EXACT,
    }
