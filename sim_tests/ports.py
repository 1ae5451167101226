"""The ports of the simulated top level, read once in a cycle for all that look at them.

They are read as the simulator gives them, in binary digits: to make cocotb's logic values of them
takes several times as long, and was a third of a simulation.
"""

from collections.abc import Callable
from typing import Any


def digits(port: Any) -> Callable[[], str]:
    """Return what reads a port in binary digits."""
    reader: Callable[[], str] = port._handle.get_signal_val_binstr
    return reader


class Ports:
    """Values of the ports as of the last clock edge; reading a handle is most of a cycle's cost.

    Parameters
    ----------
    dut : handle
        The simulated top level.
    """

    def __init__(self, dut: Any) -> None:
        self._ports = {name: digits(getattr(dut, name)) for name in self.__annotations__}
        self._result = (
            digits(dut.m_axis_results_tdata),
            digits(dut.m_axis_results_tuser),
            digits(dut.m_axis_results_tlast),
        )
        self._beat: tuple[int, int, int] | None = None

    aresetn: int
    restart: int
    running: int
    soft_reset: int
    get_status: int
    s_axis_tuples_tvalid: int
    s_axis_tuples_tready: int
    m_axis_results_tvalid: int
    m_axis_results_tready: int

    def read(self) -> None:
        """Read all that is looked at in every cycle."""
        values = self.__dict__
        for name, port in self._ports.items():
            values[name] = int(port(), 2)
        self._beat = None

    def result(self) -> tuple[int, int, int]:
        """Return ``tdata``, ``tuser`` and ``tlast`` of the result on offer."""
        if self._beat is None:
            data, user, last = (int(each(), 2) for each in self._result)
            self._beat = (data, user, last)
        return self._beat
