"""What a proof is stated in: free inputs, assumptions on them, claims.

A harness is an ordinary Amaranth design whose ports are free: the solver chooses their value in
every cycle. Assumptions may only be made about them, never about what the component does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Assert, Assume, ClockDomain, Module, Signal, Value
from amaranth.hdl._ast import ShapeLike
from amaranth.lib import wiring

from streamjoin_hw.rtl.streams import Component

CLAIMS_FILE = "claim"
"""Stands where Yosys keeps a source file; the line is the claim's number, from 1."""


@dataclass(frozen=True)
class StandIn:
    """A component inside that the proof replaces, as ``module.name`` of the design knows it."""

    module: str
    name: str
    make: Callable[..., Component]


class Harness:
    """Free inputs and claims around a component.

    Subclasses make their inputs in ``__init__`` with :meth:`free`, :meth:`constant` and
    :meth:`probe`, and state the proof in :meth:`prove`. Everything starts from reset; a proof
    that has a reset of its own makes it a free input.

    Attributes
    ----------
    ports : list of Signal
        The free inputs.
    probes : dict of str to str
        Name of an input and of the signal inside that it is tied to.
    stand_ins : list of StandIn
        What replaces a component inside while the design is elaborated.
    claims : list of str
        What is claimed, one sentence each, in the order in which :meth:`prove` says it.
    """

    def __init__(self) -> None:
        self.ports: list[Signal] = []
        self.probes: dict[str, str] = {}
        self.stand_ins: list[StandIn] = []
        self.claims: list[str] = []
        self._constants: list[Signal] = []
        self.started = Signal()
        """0 in the first cycle, then 1."""

    def free(self, shape: ShapeLike, name: str) -> Signal:
        """Make an input that may change in every cycle."""
        port = Signal(shape, name=name)
        self.ports.append(port)
        return port

    def constant(self, shape: ShapeLike, name: str) -> Signal:
        """Make an input that may have any value, the same in every cycle."""
        port = self.free(shape, name)
        self._constants.append(port)
        return port

    def probe(self, shape: ShapeLike, inner: str) -> Signal:
        """Look at a signal inside: ``inner`` is its path, submodules and signal, with dots.

        Inductive proofs need it to say which states can be reached.
        """
        port = self.free(shape, f"probe_{len(self.probes)}")
        self.probes[port.name] = inner
        return port

    def assume(self, m: Module, condition: Value) -> None:
        """Restrict the free inputs."""
        m.d.comb += Assume(condition, "what the streams' rules promise")

    def claim(self, m: Module, condition: Value, sentence: str) -> None:
        """State what must hold in every cycle."""
        line = len(self.claims) + 1
        claimed: Any = Assert(condition, sentence)
        # smtbmc names a failed assertion by its source location: this is the sentence's number.
        claimed.src_loc = (CLAIMS_FILE, line)
        m.d.comb += claimed
        self.claims.append(sentence)

    def last(self, m: Module, value: Value) -> Signal:
        """Return the value that a signal had in the cycle before."""
        before = Signal(len(value), name="before")
        m.d.sync += before.eq(value)
        return before

    def offered(self, m: Module, stream: Any) -> tuple[Value, Value]:
        """Return whether an offer was open a cycle ago, and whether it still stands unchanged."""
        payload = Value.cast(stream.payload)
        waiting = self.last(m, stream.valid & ~stream.ready)
        return waiting, stream.valid & (payload == self.last(m, payload))

    def keep_the_rules(self, m: Module, stream: Any) -> None:
        """Assume that an input stream keeps what it offers until it is taken."""
        waiting, stands = self.offered(m, stream)
        self.assume(m, ~waiting | stands)

    def claim_the_rules(self, m: Module, stream: Any, name: str = "the output") -> None:
        """Claim that an output stream keeps what it offers until it is taken."""
        waiting, stands = self.offered(m, stream)
        self.claim(m, ~waiting | stands, f"an offer of {name} stays, unchanged, until it is taken")

    def drive(self, m: Module, component: Component, *, but: Sequence[str] = ()) -> None:
        """Add the component as ``dut``, its inputs free by the name of its ports, but some."""
        m.submodules.dut = component
        for path, member, value in component.signature.flatten(component):
            if member.flow == wiring.In and path[0] not in but:
                name = "__".join(str(part) for part in path)
                port = Signal(len(Value.cast(value)), name=f"i_{name}")
                m.d.comb += Value.cast(value).eq(port)
                self.ports.append(port)

    def prove(self, m: Module) -> None:
        """State assumptions and claims; subclasses say which."""
        raise NotImplementedError

    def build(self) -> Module:
        """Build the design that is proven; its ports are complete afterwards."""
        m = Module()
        domain: Any = ClockDomain("sync", reset_less=True)
        m.domains += domain
        m.d.sync += self.started.eq(1)
        self.prove(m)
        for port in self._constants:
            self.assume(m, ~self.started | (port == self.last(m, port)))
        self.ports.append(domain.clk)
        return m
