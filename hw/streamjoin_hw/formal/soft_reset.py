"""Soft reset at the top levels: what is offered stays, what is accepted afterwards counts."""

from typing import Any

from amaranth.hdl import Cat, ClockSignal, DomainRenamer, Module, Signal
from amaranth.lib import wiring

from streamjoin_common.contract import DesignParams
from streamjoin_hw.formal.faults import Fault
from streamjoin_hw.formal.harness import Harness, StandIn
from streamjoin_hw.formal.passage import PingPongTurns
from streamjoin_hw.rtl.board_top import BoardTop
from streamjoin_hw.rtl.join import Join, output_layout
from streamjoin_hw.rtl.streams import PingPongReg
from streamjoin_hw.rtl.top import Top

STATES = ("drained", "idle", "draining", "running", "held")
"""Outputs of a design that go to registers."""

HASTY_RESET = Fault(
    "rtl.top",
    "restart.eq(asked & ~waits)",
    "restart.eq(file.soft_reset)",
    "a soft reset waits for nothing",
)
HASTY_WORDS = Fault(
    "rtl.board_top",
    "waits.eq(self.m_axis_words_tvalid & ~self.m_axis_words_tready)",
    "waits.eq(top.m_axis_results_tvalid & ~top.m_axis_results_tready)",
    "a soft reset waits for a result but for no trailer",
)


class AnyJoin(Join):
    """A design that gives what the solver likes: all of them end in a register stage.

    Parameters
    ----------
    params : DesignParams
        The design.
    chosen : dict of str to Signal
        Free inputs: ``valid``, ``payload``, ``takes`` and :data:`STATES`.
    """

    def __init__(self, params: DesignParams, chosen: dict[str, Signal]) -> None:
        super().__init__(params)
        self.chosen = chosen

    def elaborate(self, _platform: object) -> Module:
        """Build the register stage behind free inputs."""
        m = Module()
        m.submodules.output = output = PingPongReg(output_layout(self.params))
        m.d.sync += self.i.ready.eq(self.chosen["takes"] & self.enable & ~self.writing)
        m.d.comb += [
            output.i.valid.eq(self.chosen["valid"]),
            output.i.payload.eq(self.chosen["payload"]),
            *(getattr(self, name).eq(self.chosen[name]) for name in STATES),
        ]
        wiring.connect(m, output.o, wiring.flipped(self.o))
        return m


class SoftReset(Harness):
    """A top level around any design, with any writes to its registers.

    Parameters
    ----------
    board : bool
        Whether it is the top level for boards.
    """

    def __init__(self, *, board: bool = False) -> None:
        super().__init__()
        self.board = board
        self.params = DesignParams(cores=1, segment_tuples=1, payload_bits=8)
        top = "dut.top" if board else "dut"
        self.closed, self.restart = (
            self.probe(1, f"{top}.{name}") for name in ("closed", "restart")
        )
        chosen = {name: self.free(1, f"chosen_{name}") for name in ("valid", "takes", *STATES)}
        chosen["payload"] = self.free(output_layout(self.params).size, "chosen_payload")

        def any_join(params: DesignParams, **_how: Any) -> AnyJoin:
            return AnyJoin(params, chosen)

        self.turns = PingPongTurns(self, f"{top}.design.output")
        self.stand_ins = [StandIn("rtl.top", "Join", any_join)]

    def prove(self, m: Module) -> None:
        """Claim the rules of the results' stream, of the responses, and of the tuples' stream."""
        kind: Any = BoardTop if self.board else Top
        dut: Any = DomainRenamer({"sync": "design"})(kind(self.params))
        self.drive(m, dut, but=("aclk",))
        m.d.comb += dut.aclk.eq(ClockSignal("sync"))
        what = "words" if self.board else "results"
        out = {
            name: getattr(dut, f"m_axis_{what}_{name}")
            for name in ("tvalid", "tready", "tdata", "tlast", *(() if self.board else ("tuser",)))
        }
        beat = Cat(out["tdata"], out["tlast"], *([] if self.board else [out["tuser"]]))
        self.turns.claim(m)
        self._stays(m, dut, (out["tvalid"], out["tready"], beat), "what is offered")
        for channel in ("b", "r"):
            valid, ready, resp = (
                getattr(dut, f"s_axil_ctrl_{channel}{name}") for name in ("valid", "ready", "resp")
            )
            payload = resp if channel == "b" else Cat(resp, dut.s_axil_ctrl_rdata)
            self._stays(m, dut, (valid, ready, payload), f"a response of channel {channel}")

        closed = self.closed
        taken = getattr(dut, f"s_axis_{'words' if self.board else 'tuples'}_tready")
        self.claim(m, ~(closed & taken), "nothing is accepted until a soft reset has ended")
        asked = closed & ~self.restart & dut.aresetn & ~(out["tvalid"] & ~out["tready"])
        self.claim(
            m,
            ~self.last(m, asked) | self.restart,
            "a soft reset empties the design once what is offered is taken",
        )

    def _stays(self, m: Module, dut: Any, stream: tuple[Any, Any, Any], name: str) -> None:
        """Claim that what is offered is withdrawn and changed by ``aresetn`` alone."""
        valid, ready, payload = stream
        waiting = self.last(m, valid & ~ready & dut.aresetn)
        same = valid & (payload == self.last(m, payload))
        self.claim(m, ~waiting | same, f"{name} stays, unchanged, until it is taken")
