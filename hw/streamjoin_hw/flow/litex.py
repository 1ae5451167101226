"""A design as a module of LiteX: registers on its bus, streams as LiteX's own.

It is made of a folder that ``streamjoin hw verilog`` has written, and needs LiteX alone besides:
neither Amaranth nor Yosys. LiteX is no dependency of this package.
"""

from pathlib import Path
from typing import Any

from streamjoin_common.contract.description import CLOCK, RESET
from streamjoin_common.documents import DocumentError, read_json
from streamjoin_common.errors import MissingToolError, UsageError
from streamjoin_hw.flow.emit import MANIFEST_NAME, VERILOG_NAME

try:
    from litex.gen import LiteXModule
except ImportError:  # then no StreamJoin is made; the module can still be looked at
    LiteXModule = None

Base: Any = LiteXModule or object

REGION_BYTES = 1 << 12
"""Size of the registers' region on the bus: the slave decodes one page."""

ADDRESS_BITS = REGION_BYTES.bit_length() - 1

CHANNELS = {
    "aw": ("i", "o", ("addr", "prot")),
    "w": ("i", "o", ("data", "strb")),
    "b": ("o", "i", ("resp",)),
    "ar": ("i", "o", ("addr", "prot")),
    "r": ("o", "i", ("data", "resp")),
}
"""Channels of AXI4-Lite: direction of what is sent, of ``ready``, and what is sent."""


def _facts(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder.

    Raises
    ------
    UsageError
        If it is missing or none.
    """
    path = folder / MANIFEST_NAME
    try:
        facts = read_json(path)
        return {name: facts[name] for name in ("ports", "registers")}
    except OSError as error:
        why = error.strerror
    except (DocumentError, KeyError, TypeError):
        why = "it is no manifest of a design"
    raise UsageError(
        f"{path} cannot be read ({why}): name a folder that streamjoin hw verilog has written"
    )


class StreamJoin(Base):  # type: ignore[misc]  # LiteX has no types
    """A design in a LiteX system.

    Parameters
    ----------
    platform : litex.build.generic_platform.GenericPlatform
        Gets the Verilog file as a source.
    folder : Path or str
        What ``streamjoin hw verilog --out`` has written.

    Attributes
    ----------
    bus : AXILiteInterface
        Registers; :meth:`add_to` puts them on a system's bus, whatever its standard.
    tuples : AXIStreamInterface
        Takes tuples: ``data`` by the manifest's ``tuple_layout``, ``dest`` 0 for R and 1 for S,
        ``last`` with the last tuple of an input.
    results : AXIStreamInterface
        Gives results: ``data`` by ``result_layout``, ``user`` by ``tuser``, ``last`` with the
        punctuation that ends an input.
    registers : dict of str to int
        Offsets of the registers in bytes, by name.

    Raises
    ------
    MissingToolError
        If LiteX is not installed.
    UsageError
        If the folder holds no design.
    """

    def __init__(self, platform: Any, folder: Path | str) -> None:
        if LiteXModule is None:
            raise MissingToolError("LiteX is needed for StreamJoin: type  pip install litex")
        from litex.soc.interconnect.axi import AXILiteInterface, AXIStreamInterface
        from migen import ClockSignal, Instance, ResetSignal

        facts = _facts(Path(folder))
        bits = {each["name"]: each["bits"] for each in facts["ports"]}
        self.registers = {each["name"]: each["offset"] for each in facts["registers"]}
        self.bus = AXILiteInterface(data_width=32, address_width=32)
        self.tuples = AXIStreamInterface(
            bits["s_axis_tuples_tdata"], keep_width=0, dest_width=bits["s_axis_tuples_tdest"]
        )
        self.results = AXIStreamInterface(
            bits["m_axis_results_tdata"], keep_width=0, user_width=bits["m_axis_results_tuser"]
        )
        streams = {"s_axis_tuples": self.tuples, "m_axis_results": self.results}
        signals = {CLOCK: ClockSignal("sys"), RESET: ~ResetSignal("sys")}
        connected = {}
        for port in facts["ports"]:
            prefix, _, name = port["name"].rpartition("_t")
            signal = signals.get(port["name"])
            if signal is None:
                signal = getattr(streams[prefix], name)
            connected[f"{port['direction'][0]}_{port['name']}"] = signal
        for channel, (forth, back, sent) in CHANNELS.items():
            endpoint, prefix = getattr(self.bus, channel), f"s_axil_ctrl_{channel}"
            connected[f"{forth}_{prefix}valid"] = endpoint.valid
            connected[f"{back}_{prefix}ready"] = endpoint.ready
            for name in sent:
                signal = getattr(endpoint, name)
                is_address = name == "addr"
                connected[f"{forth}_{prefix}{name}"] = (
                    signal[:ADDRESS_BITS] if is_address else signal
                )
        self.specials += Instance("streamjoin_top", **connected)
        platform.add_source(str(Path(folder) / VERILOG_NAME))

    def add_to(self, soc: Any, name: str = "streamjoin", origin: int | None = None) -> None:
        """Put the registers on a system's bus and their offsets among its constants.

        In LiteX's headers for C these are ``STREAMJOIN_BASE`` and, for each register,
        ``STREAMJOIN_REG_WINDOW_R`` and so on, as in ``streamjoin.h``.

        Parameters
        ----------
        soc : litex.soc.integration.soc.SoC
            The system.
        name : str
            Name of the region.
        origin : int, optional
            Its address; LiteX chooses one by default.
        """
        from litex.soc.integration.soc import SoCRegion

        region = SoCRegion(origin=origin, size=REGION_BYTES, cached=False)
        soc.bus.add_slave(name=name, slave=self.bus, region=region)
        for register, offset in self.registers.items():
            soc.add_constant(f"{name}_reg_{register}".upper(), offset)
