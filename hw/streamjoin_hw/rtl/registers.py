"""The AXI4-Lite slave, generated from :func:`streamjoin_common.contract.registers`.

No offset is written here: decode, reset values and access all follow the contract's list.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import MAGIC, ORDERS, DesignParams, Register, registers
from streamjoin_hw.rtl.streams import Component, one_of, payload_of

ADDRESS_BITS = 12
"""The slave fills one page of 4 KiB."""

CHOICE_BITS = 2
"""Address bits that decide in a cycle of a read, which so chooses one of four words."""

OKAY, SLVERR = 0, 2
"""AXI responses."""

LIVE = (
    "status",
    "cycles_low",
    "cycles_high",
    "tuples_r",
    "tuples_s",
    "results",
    "input_stall_cycles",
    "results_backpressure_cycles",
    "hold_cycles",
)
"""Read-only registers that the design drives."""


INDEX_LIVE = ("index_reads", "displaced", "held_r", "held_s")
"""Those of ``splitjoin-index`` beside them."""


def live(params: DesignParams) -> tuple[str, ...]:
    """Return the names of the registers that this design drives."""
    evicted = ("evicted",) if params.timestamp_bits else ()
    return (*LIVE, *evicted, *(INDEX_LIVE if params.design == "splitjoin-index" else ()))


def has_splitters(params: DesignParams) -> dict[str, wiring.Member]:
    """Return the port ``splitter_written``, none for a design without splitters."""
    return {"splitter_written": Out(1)} if params.design == "splitjoin-index" else {}


def constants(params: DesignParams) -> dict[str, int]:
    """Values of the read-only registers that describe the design."""
    digest = int(params.digest, 16)
    return {
        "identity": MAGIC,
        "version": params.interface_version,
        "digest_low": digest & 0xFFFFFFFF,
        "digest_high": digest >> 32,
        "cores": params.cores,
        "segment_tuples": params.segment_tuples,
        "lanes": params.lanes,
    }


def axi_lite_members() -> dict[str, wiring.Member]:
    """Ports of an AXI4-Lite slave with 32 data bits, by their AXI names."""
    return {
        "awaddr": In(ADDRESS_BITS),
        "awprot": In(3),
        "awvalid": In(1),
        "awready": Out(1),
        "wdata": In(32),
        "wstrb": In(4),
        "wvalid": In(1),
        "wready": Out(1),
        "bresp": Out(2),
        "bvalid": Out(1),
        "bready": In(1),
        "araddr": In(ADDRESS_BITS),
        "arprot": In(3),
        "arvalid": In(1),
        "arready": Out(1),
        "rdata": Out(32),
        "rresp": Out(2),
        "rvalid": Out(1),
        "rready": In(1),
    }


class RegisterFile(Component):
    """Registers of a design behind AXI4-Lite.

    One read and one write at a time, each answered at the earliest three cycles after its address,
    a read one more for each choice of one word in four. ``wstrb`` selects the bytes that are
    written; the two lowest address bits count for nothing. An offset that the contract does not
    name is answered with SLVERR, and so is a write to a read-only register; such a write does
    nothing.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    aw*, w*, b*, ar*, r*
        AXI4-Lite (:func:`axi_lite_members`).
    get_<name> : In(32), for each of :func:`live`
        What the register reads.
    set_<name> : Out(32), for each writable register except ``control``
        What was written, from a register.
    enable, drain : Out(1)
        Control bits; ``drain`` stays 1 until ``drained``.
    drained : In(1)
    soft_reset, soft_reset_next : Out(1)
        Pulse, the cycle after the write, and a cycle before that.
    resetting : In(1)
        The soft reset is still running; what its bit reads.
    writing : Out(1)
        A register changes at the next clock edge.
    windows_written : Out(1)
        Pulse, in the first cycle in which a window register has its new value.
    splitter_written : Out(1), if there are splitters
        Pulse, in the first cycle in which the splitter register has its new value.
    """

    awaddr: Signal
    awvalid: Signal
    awready: Signal
    wdata: Signal
    wstrb: Signal
    wvalid: Signal
    wready: Signal
    bresp: Signal
    bvalid: Signal
    bready: Signal
    araddr: Signal
    arvalid: Signal
    arready: Signal
    rdata: Signal
    rresp: Signal
    rvalid: Signal
    rready: Signal
    get_cycles_high: Signal
    enable: Signal
    drain: Signal
    drained: Signal
    soft_reset: Signal
    soft_reset_next: Signal
    resetting: Signal
    writing: Signal
    windows_written: Signal
    splitter_written: Signal
    set_splitter_index: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        self.map = registers(params)
        self.written = [r for r in self.map if r.access == "rw" and r.name != "control"]
        super().__init__(
            {
                **axi_lite_members(),
                **{f"get_{name}": In(32) for name in live(params)},
                **{
                    f"set_{each.name}": Out(32, init=self._reset(each.name))  # type: ignore[call-arg]
                    for each in self.written
                },
                # The stubs of Amaranth do not know the initial value of a port.
                "enable": Out(1, init=1),  # type: ignore[call-arg]
                "drain": Out(1),
                "drained": In(1),
                "soft_reset": Out(1),
                "soft_reset_next": Out(1),
                "resetting": In(1),
                "writing": Out(1),
                "windows_written": Out(1),
                **has_splitters(params),
            }
        )

    def _reset(self, name: str) -> int:
        if name.startswith("time_"):
            return (1 << self.params.timestamp_bits) - 1
        at_reset = {"order": ORDERS.index(self.params.order), "interval": 1, "group_arrivals": 1}
        return self.params.window_capacity if name.startswith("window_") else at_reset.get(name, 0)

    def _value(self, name: str, high: Signal) -> Value:
        """Return what a register reads."""
        if name in constants(self.params):
            return Const(constants(self.params)[name], 32)
        if name == "control":
            return Cat(self.enable, self.drain, self.resetting, Const(0, 29))
        if name == "cycles_high":
            return high
        value: Signal = getattr(self, f"get_{name}" if name in live(self.params) else f"set_{name}")
        return value

    def elaborate(self, _platform: object) -> Module:
        """Build the two channels."""
        m = Module()
        self._build_read(m)
        self._build_write(m)
        return m

    def _build_read(self, m: Module) -> None:
        """Choose one of four registers, then one of four that were chosen, until one is left.

        A word has its register's value, and above it whether there is such a register.
        """
        asked = Signal()
        address = payload_of(ADDRESS_BITS)
        # The two halves of the cycle counter are read as one number: low first.
        high = payload_of(32)
        m.d.comb += self.arready.eq(~asked)
        with m.If(self.arvalid & self.arready):
            m.d.sync += [asked.eq(1), address.eq(self.araddr)]
        words: dict[int, Value] = {
            each.offset >> 2: Cat(self._value(each.name, high), Const(1)) for each in self.map
        }
        low = next(each.offset >> 2 for each in self.map if each.name == "cycles_low")
        left, is_low, begins, step = address[2:], payload_of(1), Signal(), Signal()
        m.d.sync += [
            begins.eq(self.arvalid & self.arready),
            is_low.eq(left == low),
            step.eq(begins),
        ]
        with m.If(step & is_low):
            m.d.sync += high.eq(self.get_cycles_high)
        while len(words) > 1:
            words, left = self._choose(m, words, left, step), left[CHOICE_BITS:]
            after = Signal(name="step")
            m.d.sync += after.eq(step)
            step = after
        with m.If(step & ~self.rvalid):
            (word,) = words.values()
            is_known = word[32] & ~left.any()
            m.d.sync += [
                self.rvalid.eq(1),
                self.rresp.eq(Mux(is_known, OKAY, SLVERR)),
                self.rdata.eq(Mux(left.any(), 0, word[:32])),
            ]
        with m.If(self.rvalid & self.rready):
            m.d.sync += [self.rvalid.eq(0), asked.eq(0)]

    @staticmethod
    def _choose(m: Module, words: dict[int, Value], left: Value, step: Signal) -> dict[int, Value]:
        """Return a register for each four words, which takes in a step the one that is named.

        Which of four it is, is a flip-flop's to say; what the first step took stays for the others.
        """
        named = payload_of(1 << CHOICE_BITS, name="named")
        m.d.sync += named.eq(Cat(left[:CHOICE_BITS] == k for k in range(len(named))))
        chosen: dict[int, Value] = {}
        for group in sorted({number >> CHOICE_BITS for number in words}):
            choice = payload_of(33, name=f"choice{group}")
            first = group << CHOICE_BITS
            members = [(bit, words[first + k]) for k, bit in enumerate(named) if first + k in words]
            with m.If(step):
                m.d.sync += choice.eq(one_of(members))
            chosen[group] = choice
        return chosen

    def _build_write(self, m: Module) -> None:
        has_address = Signal()
        has_data = Signal()
        address = payload_of(ADDRESS_BITS)
        # Which register it is, known a cycle ahead.
        decoded = Signal()
        word = payload_of(32)
        strobe = payload_of(4)
        m.d.comb += [self.awready.eq(~has_address), self.wready.eq(~has_data)]
        with m.If(self.awvalid & self.awready):
            m.d.sync += [has_address.eq(1), address.eq(self.awaddr)]
        with m.If(self.wvalid & self.wready):
            m.d.sync += [has_data.eq(1), word.eq(self.wdata), strobe.eq(self.wstrb)]
        m.d.comb += self.writing.eq(decoded)
        m.d.sync += decoded.eq(has_address & has_data & ~decoded & ~self.bvalid)
        m.d.sync += [self.soft_reset.eq(self.soft_reset_next), self.windows_written.eq(0)]
        if has_splitters(self.params):
            m.d.sync += self.splitter_written.eq(0)
            with m.If(self.splitter_written):
                m.d.sync += self.set_splitter_index.eq(self.set_splitter_index + 1)
        with m.If(self.drained):
            m.d.sync += self.drain.eq(0)
        meant = []
        for each in self.map:
            if each.access == "ro":
                continue
            is_meant = payload_of(1, name=f"meant_{each.name}")
            m.d.sync += is_meant.eq(address[2:] == each.offset >> 2)
            meant.append(is_meant)
            with m.If(self.writing & is_meant):
                self._write(m, each, word, strobe)
        with m.If(self.writing):
            is_known = Cat(*meant).any()
            m.d.sync += [self.bvalid.eq(1), self.bresp.eq(Mux(is_known, OKAY, SLVERR))]
        with m.If(self.bvalid & self.bready):
            m.d.sync += [self.bvalid.eq(0), has_address.eq(0), has_data.eq(0)]
        # A soft reset also ends a drain that was asked for: the design is empty then.
        with m.If(self.soft_reset):
            m.d.sync += self.drain.eq(0)

    def _write(self, m: Module, which: Register, word: Signal, strobe: Signal) -> None:
        """Write a register's bytes."""
        if which.name == "control":
            with m.If(strobe[0]):
                m.d.sync += [
                    self.enable.eq(word[0]),
                    self.drain.eq(word[1] | (self.drain & ~self.drained)),
                ]
                m.d.comb += self.soft_reset_next.eq(word[2])
            return
        target: Signal = getattr(self, f"set_{which.name}")
        for byte in range(4):
            part = target[8 * byte : 8 * byte + 8]
            with m.If(strobe[byte]):
                m.d.sync += part.eq(word[8 * byte : 8 * byte + 8])
        if which.name.startswith("window_"):
            m.d.sync += self.windows_written.eq(1)
        if which.name == "splitter":
            m.d.sync += self.splitter_written.eq(1)


class Counters(Component):
    """Event counters, cleared by reset.

    Parameters
    ----------
    beat_results : int
        Maximum results given in a cycle.

    Members
    -------
    cycle, tuple_r, tuple_s, input_stall, results_backpressure, hold : In(1)
        Count this cycle.
    result, evict : In
        Count so many.
    cycles : Out(64)
    tuples_r, tuples_s, results, input_stall_cycles, results_backpressure_cycles,
    hold_cycles, evicted : Out(32)
    """

    cycle: Signal
    tuple_r: Signal
    tuple_s: Signal
    result: Signal
    input_stall: Signal
    results_backpressure: Signal
    hold: Signal
    evict: Signal
    cycles: Signal
    evicted: Signal

    HALF_BITS = 32
    EVENTS = (
        ("cycle", "cycles", 64),
        ("tuple_r", "tuples_r", 32),
        ("tuple_s", "tuples_s", 32),
        ("result", "results", 32),
        ("input_stall", "input_stall_cycles", 32),
        ("results_backpressure", "results_backpressure_cycles", 32),
        ("hold", "hold_cycles", 32),
        ("evict", "evicted", 32),
    )

    def __init__(self, beat_results: int) -> None:
        super().__init__(
            {
                **{event: In(1) for event, _, _ in self.EVENTS},
                "result": In(range(beat_results + 1)),
                "evict": In(12),
                **{counter: Out(width) for _, counter, width in self.EVENTS},
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build two registers behind each event, which may be far, and a counter behind them."""
        m = Module()
        for event, counter, _ in self.EVENTS:
            given: Signal = getattr(self, event)
            count: Signal = getattr(self, counter)
            happened, counted = (
                Signal(len(given), name=f"{event}_{name}") for name in ("happened", "counted")
            )
            m.d.sync += [happened.eq(given), counted.eq(happened)]
            if len(count) <= self.HALF_BITS:
                m.d.sync += count.eq(count + counted)
                continue
            # A carry through all bits is slow: the lower half waits for the higher one.
            low = Signal(self.HALF_BITS, name=f"{counter}_low")
            carry = Signal(name=f"{counter}_carry")
            lower, higher = count[: self.HALF_BITS], count[self.HALF_BITS :]
            m.d.sync += [
                Cat(low, carry).eq(low + counted),
                lower.eq(low),
                higher.eq(higher + carry),
            ]
        return m
