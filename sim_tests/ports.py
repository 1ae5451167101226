"""The ports of the simulated top level, read once in a cycle for all that look at them."""

from typing import Any


class Ports:
    """Values of the ports as of the last clock edge; reading a handle is most of a cycle's cost.

    Parameters
    ----------
    dut : handle
        The simulated top level.
    """

    def __init__(self, dut: Any) -> None:
        self._ports = {name: getattr(dut, name) for name in self.__annotations__}
        self._result = (
            dut.m_axis_results_tdata,
            dut.m_axis_results_tuser,
            dut.m_axis_results_tlast,
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
        for name, port in self._ports.items():
            setattr(self, name, int(port.value))
        self._beat = None

    def result(self) -> tuple[int, int, int]:
        """Return ``tdata``, ``tuser`` and ``tlast`` of the result on offer."""
        if self._beat is None:
            data, user, last = (int(each.value) for each in self._result)
            self._beat = (data, user, last)
        return self._beat
