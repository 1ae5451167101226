"""A LiteX system with a stream join: registers on its bus, streams and a bus master at its ports.

    streamjoin hw verilog --preset tiny --out build/tiny
    python examples/litex_soc.py build/tiny build/litex

The second command needs LiteX (pip install litex). It writes streamjoin_soc.v, whose ports have the
names of the design's own, and LiteX's headers for C, mem.h (STREAMJOIN_BASE) and soc.h
(STREAMJOIN_REG_WINDOW_R and the other registers). In a system of yours the bus has a processor,
and the streams lead to your DMA or to another core.
"""

import sys
from pathlib import Path

from litex.build.generic_platform import GenericPlatform, Pins
from litex.gen import LiteXModule
from litex.soc.integration.export import get_mem_header, get_soc_header
from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect.axi import AXILiteInterface
from migen import ClockDomain

from streamjoin_hw.flow.litex import StreamJoin

ORIGIN = 0x3000_0000
CLOCK_HZ = 100e6


class Clocks(LiteXModule):
    """The system's clock and reset, from ports."""

    def __init__(self, platform: GenericPlatform) -> None:
        self.cd_sys = ClockDomain()
        self.comb += self.cd_sys.clk.eq(platform.request("aclk"))
        self.comb += self.cd_sys.rst.eq(~platform.request("aresetn"))


class System(SoCMini):
    """A system without a processor: its bus has a master outside.

    Parameters
    ----------
    platform : GenericPlatform
        Gets the ports.
    folder : Path
        The design's Verilog and manifest.
    """

    def __init__(self, platform: GenericPlatform, folder: Path) -> None:
        self.crg = Clocks(platform)
        SoCMini.__init__(self, platform, clk_freq=CLOCK_HZ)
        self.join = StreamJoin(platform, folder)
        self.join.add_to(self, origin=ORIGIN)

        outside = AXILiteInterface(data_width=32, address_width=32)
        self.bus.add_master(name="outside", master=outside)
        platform.add_extension(outside.get_ios("s_axil_ctrl"))
        self.comb += outside.connect_to_pads(platform.request("s_axil_ctrl"), mode="slave")
        for name, stream, mode in (
            ("s_axis_tuples", self.join.tuples, "slave"),
            ("m_axis_results", self.join.results, "master"),
        ):
            platform.add_extension(stream.get_ios(name))
            self.comb += stream.connect_to_pads(platform.request(name), mode=mode)


def main(folder: Path, out: Path) -> None:
    """Write the system's Verilog and headers."""
    pins = [("aclk", 0, Pins(1)), ("aresetn", 0, Pins(1))]
    platform = GenericPlatform("", pins, name="streamjoin_soc")
    system = System(platform, folder)
    system.finalize()
    out.mkdir(parents=True, exist_ok=True)
    made = platform.get_verilog(system.get_fragment(), name="streamjoin_soc")
    made.write(str(out / "streamjoin_soc.v"))
    (out / "mem.h").write_text(get_mem_header(system.bus.regions))
    (out / "soc.h").write_text(get_soc_header(system.constants))
    sys.stdout.write(f"{out / 'streamjoin_soc.v'}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
