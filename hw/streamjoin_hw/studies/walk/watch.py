"""Signals worth looking at, under names of their own beside the design.

Inside the design a port has a name in every module that it reaches, some of them made up by the
simulator. A copy with one good name is what a person opens.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from amaranth.hdl import Elaboratable, Module, Shape, Signal, Value
from amaranth.lib import data, enum

from streamjoin_common.contract import SIDE_R, SIDE_S, TUser


class Phase(enum.Enum, shape=2):
    """What the design does; waveforms show the name."""

    WAITING = 0
    RUNNING = 1
    DRAINING = 2
    REFUSING = 3


class Side(enum.Enum, shape=1):
    """Whose tuple it is."""

    R = SIDE_R
    S = SIDE_S


def _leaves(prefix: str, value: Any) -> Iterator[tuple[str, Value]]:
    """Walk through a structure's fields, named by their own names under a prefix."""
    if not isinstance(value, data.View):
        yield prefix, Value.cast(value)
        return
    for name, _field in value.shape():
        # What wraps a tuple says nothing about it.
        inner = prefix if name in ("beat", "body") else f"{prefix}_{name}"
        yield from _leaves(inner, value[name])


class Watch(Elaboratable):
    """Copies of the signals at the design's streams and in its cores.

    It must be elaborated after the design, whose cores and rings are known only then.

    Parameters
    ----------
    join : Join
        The design.
    cores, rings : sequence
        Its cores, and for each the rings of R and S; filled when the design is elaborated.

    Attributes
    ----------
    groups : dict of str to list of Signal
        What belongs together, in the order in which to show it; filled by ``elaborate``.
    """

    def __init__(self, join: Any, cores: Sequence[Any], rings: Sequence[Any]) -> None:
        self.join = join
        self.cores = cores
        self.rings = rings
        self.groups: dict[str, list[Signal]] = {}

    def _copy(self, m: Module, group: str, name: str, value: Any, shape: Any = None) -> None:
        copied: Any = Signal(Shape.cast(len(value)) if shape is None else shape, name=name)
        m.d.comb += Value.cast(copied).eq(value)
        self.groups.setdefault(group, []).append(copied)

    def elaborate(self, _platform: object) -> Module:
        """Copy the streams here, and what each core does in a module of its own."""
        m = Module()
        self._copy_streams(m)
        self._copy_state(m)
        for index, core in enumerate(self.cores):
            inner = Module()
            m.submodules[f"core{index}"] = inner
            self._copy_core(inner, f"core {index}", core, self.rings[2 * index : 2 * index + 2])
        return m

    def _copy_streams(self, m: Module) -> None:
        given, results = self.join.i, self.join.o
        self._copy(m, "tuples", "tuple_valid", given.valid)
        self._copy(m, "tuples", "tuple_ready", given.ready)
        for name, value in _leaves("tuple", given.payload):
            side = Side if name == "tuple_side" else None
            self._copy(m, "tuples", name, value, side)
        self._copy(m, "results", "result_valid", results.valid)
        self._copy(m, "results", "result_ready", results.ready)
        for name, value in _leaves("result", results.payload):
            if name == "result_user":
                self._copy(m, "results", "result_probing", value[TUser.SIDE], Side)
                self._copy(m, "results", "result_is_punctuation", value[TUser.PUNCTUATION])
            else:
                self._copy(m, "results", name, value)

    def _copy_state(self, m: Module) -> None:
        join = self.join
        phase: Any = Signal(Phase, name="phase")
        with m.If(join.window_error):
            m.d.comb += phase.eq(Phase.REFUSING)
        with m.Elif(join.draining):
            m.d.comb += phase.eq(Phase.DRAINING)
        with m.Elif(join.running):
            m.d.comb += phase.eq(Phase.RUNNING)
        self.groups["state"] = [phase]
        self._copy(m, "state", "scan_held", join.hold_cycle)
        self._copy(m, "state", "input_ended", join.drained)

    def _copy_core(self, m: Module, group: str, core: Any, rings: Sequence[Any]) -> None:
        for side, ring in zip("rs", rings, strict=True):
            self._copy(m, group, f"{side}_steps", ring.step)
            for name in ("enter", "oldest"):
                for leaf, value in _leaves(f"{side}_{name}", getattr(ring, name)):
                    self._copy(m, group, leaf, value)
        self._copy(m, group, "scans", core.command.scan)
        self._copy(m, group, "scanned_word", core.command.scan_word)
        self._copy(m, group, "match_valid", core.results.valid)
        self._copy(m, group, "match_ready", core.results.ready)
        for name, value in _leaves("match", core.results.payload):
            self._copy(m, group, name, value, Side if name == "match_side" else None)
        self._copy(m, group, "nearly_full", core.hold)
