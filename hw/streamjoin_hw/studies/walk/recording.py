"""Run one input in Amaranth's simulator and write down who was where, step by step."""

import random
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from amaranth.hdl import Module, Value
from amaranth.sim import Simulator

from streamjoin_common.contract import ORDERS, SIDE_R, SIDE_S, TUser
from streamjoin_common.errors import StreamJoinError
from streamjoin_hw.rtl.chain import array as array_module
from streamjoin_hw.rtl.chain import core as core_module
from streamjoin_hw.rtl.join import Join
from streamjoin_hw.sim.testing import Workload
from streamjoin_hw.studies.walk.watch import Watch

CLOCK_S = 1e-8
"""The clock of the waveforms: 100 MHz."""

CYCLES_PER_TUPLE = 400
"""Cycles after which a run is given up, for each tuple and slot of the windows."""


class RecordingError(StreamJoinError, RuntimeError):
    """The design did something that the recording cannot be true of."""


@dataclass(frozen=True)
class Step:
    """One step of one side through the whole chain.

    ``side`` is the side that moved, ``arrived`` the row that entered the chain (None for a
    bubble of the drain), ``positions`` the core and slot of every stored tuple afterwards, by side
    and row, ``matches`` the pairs that the step made meet: row of R, row of S, core. Slot 0 is
    where a side enters a core.
    """

    cycle: int
    side: int
    arrived: int | None
    positions: dict[tuple[int, int], tuple[int, int]]
    matches: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Recording:
    """An input from first tuple to punctuation.

    ``pairs`` are what the design gave, in order of output.
    """

    workload: Workload
    steps: list[Step]
    pairs: list[tuple[int, int]]
    cycles: int


@dataclass
class _Watched:
    """The design and what of its inside is looked at."""

    join: Any
    cores: list[Any]
    rings: list[tuple[Any, Any]]
    watch: Watch


def _built(workload: Workload) -> tuple[_Watched, Any]:
    """Elaborate the design, keeping hold of its cores and rings."""
    cores: list[Any] = []
    rings: list[Any] = []

    def kept(make: Callable[..., Any], instances: list[Any]) -> Callable[..., Any]:
        def making(*arguments: Any) -> Any:
            instances.append(make(*arguments))
            return instances[-1]

        return making

    m = Module()
    m.submodules.design = join = Join(workload.params)
    m.submodules.watch = watch = Watch(join, cores, rings)
    with ExitStack() as patches:
        for module, name, instances in (
            (array_module, "Core", cores),
            (core_module, "SegmentRing", rings),
        ):
            make = kept(getattr(module, name), instances)
            patches.enter_context(mock.patch.object(module, name, make))
        simulator: Any = Simulator(m)
    # Each core makes its ring of R, then that of S.
    pairs = list(zip(rings[::2], rings[1::2], strict=True))
    return _Watched(join, cores, pairs, watch), simulator


def record(
    workload: Workload,
    *,
    seed: int = 0,
    idle_per_1024: int = 0,
    stall_per_1024: int = 0,
    waves: Path | None = None,
) -> Recording:
    """Run one input and return what happened.

    Parameters
    ----------
    workload : Workload
        The input; its payloads are rows, numbered from 0 on each side.
    seed : int
        Seed of the pauses.
    idle_per_1024, stall_per_1024 : int
        How often the input pauses and the output is not ready, of 1024 cycles.
    waves : Path, optional
        Write a VCD there, and beside it, with the ending ``.gtkw``, a save file for GTKWave.

    Raises
    ------
    RecordingError
        If the input does not end, or a tuple leaves a core that never entered it.
    """
    watched, simulator = _built(workload)
    simulator.add_clock(CLOCK_S)
    recorder = _Recorder(workload, watched)
    rng = random.Random(seed)

    def pauses(share: int) -> bool:
        return bool(share) and rng.randrange(1024) < share

    async def testbench(ctx: Any) -> None:
        await recorder.set_up(ctx)
        slots = workload.window_r + workload.window_s + 10
        for _ in range(CYCLES_PER_TUPLE * (len(workload.arrivals) + slots)):
            await recorder.cycle(ctx, idle=pauses(idle_per_1024), stall=pauses(stall_per_1024))
            if recorder.ended:
                return
        raise RecordingError("the input did not end")

    simulator.add_testbench(testbench)
    file: Any = nullcontext()
    if waves is not None:
        save = str(waves.with_suffix(".gtkw"))
        groups = [{name: signals} for name, signals in watched.watch.groups.items()]
        file = simulator.write_vcd(str(waves), save, traces=groups)
    with file:
        simulator.run()
    return recorder.finished()


class _Recorder:
    """Drives the design cycle by cycle and follows every tuple."""

    def __init__(self, workload: Workload, watched: _Watched) -> None:
        self.workload = workload
        self.watched = watched
        self.ended = False
        self.pairs: list[tuple[int, int]] = []
        self.steps: list[Step] = []
        self._cycles = 0
        self._given = 0
        self._offering = False
        # Rows in a core, by core and side: with the steps that they have stayed there.
        self._inside: dict[tuple[int, int], dict[int, int]] = {}
        self._entered: dict[tuple[int, int, int], int] = {}
        # All that is looked at, in one sample; `_names` says what is where.
        self._look: dict[Any, Value] = {
            "ready": watched.join.i.ready,
            "valid": watched.join.o.valid,
            "beat": Value.cast(watched.join.o.payload),
        }
        for index, rings in enumerate(watched.rings):
            for side, ring in zip((SIDE_R, SIDE_S), rings, strict=True):
                self._look["step", index, side] = ring.step
                for name in ("enter", "oldest"):
                    slot = getattr(ring, name)
                    self._look[f"{name}s", index, side] = slot.valid
                    self._look[name, index, side] = slot.body.payload
            results = watched.cores[index].results
            self._look["meets", index] = results.valid & results.ready
            self._look["meets r", index] = results.p.r_payload
            self._look["meets s", index] = results.p.s_payload

    async def set_up(self, ctx: Any) -> None:
        """Write windows and band widths, as the registers would."""
        join, workload = self.watched.join, self.workload
        ctx.set(join.enable, 1)
        ctx.set(join.window_r, workload.window_r)
        ctx.set(join.window_s, workload.window_s)
        for name, bits in workload.bands.items():
            ctx.set(join.band[name.removeprefix("band_")], bits)
        if workload.params.timestamp_bits:
            ctx.set(join.time_r, workload.time_r)
            ctx.set(join.time_s, workload.time_s)
        if workload.params.order != "none":
            ctx.set(join.order, ORDERS.index(workload.params.order))
        if workload.params.order == "inner":
            ctx.set(join.interval, 1)
        if workload.params.has_groups:
            ctx.set(join.group, workload.group)
        ctx.set(join.windows_written, 1)
        await ctx.tick()
        ctx.set(join.windows_written, 0)

    async def cycle(self, ctx: Any, *, idle: bool, stall: bool) -> None:
        """Drive one cycle and write down what it does."""
        join, arrivals = self.watched.join, self.workload.arrivals
        if not self._offering and self._given < len(arrivals) and not idle:
            arrival = arrivals[self._given]
            keys = {f"key{index}": key for index, key in enumerate(arrival.keys)}
            beat = {"side": arrival.side, **keys, "payload": arrival.payload}
            if self.workload.params.timestamp_bits:
                beat["ts"] = arrival.ts
            last = self._given + 1 == len(arrivals)
            ctx.set(join.i.payload, {"beat": beat, "last": last})
            self._offering = True
        ctx.set(join.i.valid, self._offering)
        ctx.set(join.o.ready, not stall)
        _, _, *values = await ctx.tick().sample(*self._look.values())
        seen = dict(zip(self._look, values, strict=True))
        if self._offering and seen["ready"]:
            self._given += 1
            self._offering = False
        if not stall and seen["valid"]:
            self._take(seen["beat"])
        self._move(seen)
        self._meet(seen)
        self._cycles += 1

    def _take(self, beat: int) -> None:
        """Keep a result, or see that the input has ended."""
        bits = self.workload.params.payload_bits
        mask = (1 << bits) - 1
        if beat >> (2 * bits + TUser.PUNCTUATION) & 1:
            self.ended = True
        else:
            self.pairs.append((beat & mask, beat >> bits & mask))

    def _move(self, seen: dict[Any, int]) -> None:
        """Follow what a step moves from core to core, as the cores' own ports show it."""
        sides = {key[2] for key, value in seen.items() if key[0] == "step" and value}
        if not sides:
            return
        (side,) = sides
        cores = [index for index in range(len(self.watched.cores)) if seen["step", index, side]]
        for index in cores:
            inside = self._inside.setdefault((index, side), {})
            if seen["oldests", index, side]:
                row = seen["oldest", index, side]
                if row not in inside:
                    raise RecordingError(f"row {row} leaves core {index} and was not in it")
                del inside[row]
            for row in inside:
                inside[row] += 1
        for index in cores:
            if seen["enters", index, side]:
                row = seen["enter", index, side]
                self._inside[index, side][row] = 0
                self._entered[index, side, row] = len(self.steps)
        entry = cores[0] if side == SIDE_R else cores[-1]
        arrived = seen["enter", entry, side] if seen["enters", entry, side] else None
        positions: dict[tuple[int, int], tuple[int, int]] = {}
        for (index, each), rows in self._inside.items():
            for row, slot in rows.items():
                if (each, row) in positions:
                    raise RecordingError(f"row {row} of side {each} is in two cores")
                positions[each, row] = (index, slot)
        self.steps.append(Step(self._cycles, side, arrived, positions))

    def _meet(self, seen: dict[Any, int]) -> None:
        """Put each match to the step in which the later of its tuples entered the core."""
        for index in range(len(self.watched.cores)):
            if seen["meets", index]:
                r, s = seen["meets r", index], seen["meets s", index]
                step = max(self._entered[index, SIDE_R, r], self._entered[index, SIDE_S, s])
                self.steps[step].matches.append((r, s, index))

    def finished(self) -> Recording:
        """Return the whole recording."""
        return Recording(self.workload, self.steps, self.pairs, self._cycles)
