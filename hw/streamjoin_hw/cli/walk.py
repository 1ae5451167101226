"""``streamjoin hw animate`` and ``hw simulate --waves``: one input, watched from inside."""

import argparse
from pathlib import Path
from typing import Any

from streamjoin_common.errors import UsageError
from streamjoin_hw.cli.options import check_array, chosen_group, design_from
from streamjoin_hw.cli.terminal import say, show, write_text


def configure_input(action: argparse.ArgumentParser, tuples: int) -> None:
    """Add the flags that draw an input, with this many tuples if none are asked for."""
    usual = "two tuples a core" if action.prog.endswith("animate") else "the capacity"
    for flag, default, help_line in (
        ("--tuples", tuples, f"tuples of both sides together (default {tuples})"),
        ("--seed", 1, "seed of the workload (default 1)"),
        ("--window-r", None, f"count window of R (default: {usual})"),
        ("--window-s", None, f"count window of S (default: {usual})"),
    ):
        action.add_argument(flag, type=int, default=default, metavar="COUNT", help=help_line)


def chosen_windows(arguments: argparse.Namespace, usual: int) -> tuple[int, int]:
    """Return the count windows that were asked for, else the usual one."""
    chosen = (arguments.window_r, arguments.window_s)
    window_r, window_s = (usual if window is None else window for window in chosen)
    return window_r, window_s


def check_seed(seed: int) -> None:
    """Refuse what is no seed.

    Raises
    ------
    UsageError
        If it is below 0.
    """
    if seed < 0:
        raise UsageError(f"--seed must be 0 or more, not {seed}")


def _small_workload(arguments: argparse.Namespace, params: Any, windows: tuple[int, int]) -> Any:
    """Draw an input for the simulation that shows every signal."""
    import numpy as np

    from streamjoin_hw.sim import testing
    from streamjoin_hw.studies.walk.waves import MAX_WAVE_TUPLES

    check_seed(arguments.seed)
    if not 1 <= arguments.tuples <= MAX_WAVE_TUPLES:
        raise UsageError(
            f"--tuples must be from 1 to {MAX_WAVE_TUPLES} where every signal is recorded, "
            f"not {arguments.tuples}"
        )
    rows = 1 << params.payload_bits
    if arguments.tuples > rows:
        raise UsageError(
            f"--tuples must be at most {rows} where payload_bits={params.payload_bits} number "
            f"the rows, not {arguments.tuples}"
        )
    rng = np.random.default_rng(arguments.seed)
    group = chosen_group(params, getattr(arguments, "group", 1))
    return testing.random_workload(params, rng, arguments.tuples, windows=windows, group=group)


def waves(arguments: argparse.Namespace, params: Any, idle: int, stall: int) -> int:
    """Simulate in Amaranth's simulator, which names every signal, and write waveforms."""
    from streamjoin_common.contract import active_cores
    from streamjoin_hw.sim import testing
    from streamjoin_hw.studies.walk.waves import record_waves

    if not arguments.waves.endswith(".vcd"):
        raise UsageError(f"--waves must name a .vcd file, not {arguments.waves!r}")
    windows = chosen_windows(arguments, params.window_capacity)
    active_cores(params, *windows)
    workload = _small_workload(arguments, params, windows)
    recording, save = record_waves(
        workload,
        Path(arguments.waves),
        seed=arguments.seed,
        idle_per_1024=idle,
        stall_per_1024=stall,
    )
    wrong = testing.difference(testing.reference(workload), recording.pairs)
    say(f"wrote {arguments.waves} and {save}")
    figures = {
        "digest": params.digest,
        "seed": arguments.seed,
        "tuples": len(workload.arrivals),
        "results": len(recording.pairs),
        "cycles": recording.cycles,
        "steps": len(recording.steps),
        "verdict": wrong or "exact",
    }
    show(figures, as_json=arguments.json)
    return 1 if wrong else 0


def animate(arguments: argparse.Namespace) -> int:
    """Write the animated page."""
    from streamjoin_common.contract import active_cores
    from streamjoin_hw.sim import testing
    from streamjoin_hw.studies.walk.page import MAX_PAGE_CORES, MAX_PAGE_SLOTS, walk_page
    from streamjoin_hw.studies.walk.recording import record

    params = design_from(arguments.preset, arguments.param)
    if not arguments.out:
        raise UsageError("--out must name the HTML file to write")
    check_array(params, "animate")
    if params.stores_in_turn:
        raise UsageError("hw animate shows the lock-step chain: drop --param forward=fast")
    # Two tuples of each side in a core: enough to see that a segment is more than one.
    usual = params.cores * min(2, params.segment_tuples)
    windows = chosen_windows(arguments, usual)
    active = active_cores(params, *windows)
    if active > MAX_PAGE_CORES or max(windows) > MAX_PAGE_SLOTS * active:
        raise UsageError(
            f"a page shows up to {MAX_PAGE_CORES} cores of {MAX_PAGE_SLOTS} tuples of each side, "
            f"not {active} cores with windows of {windows[0]} and {windows[1]}: set "
            "--param cores=4, --window-r or --window-s"
        )
    workload = _small_workload(arguments, params, windows)
    recording = record(workload)
    wrong = testing.difference(testing.reference(workload), recording.pairs)
    if wrong:
        say(f"no page is written: {wrong}")
        return 1
    write_text(walk_page(recording), Path(arguments.out))
    return 0
