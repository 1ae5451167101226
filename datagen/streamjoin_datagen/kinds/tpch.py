"""Customers and orders of TPC-H, made by the program tpchgen-cli inside Spark's workers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from streamjoin_common.installed.checks import not_installed
from streamjoin_datagen.errors import require
from streamjoin_datagen.spec import MAX_RATE_PER_S, WorkloadSpec

if TYPE_CHECKING:
    from streamjoin_datagen.rows.arrivals import Timing
    from streamjoin_datagen.rows.fillers import Column

ROWS_AT_1 = {"r": 150_000, "s": 1_500_000}
MAX_SCALE_FACTOR = 1400.0


@dataclass(frozen=True, kw_only=True)
class TpchOrdersSpec(WorkloadSpec):
    """Customer R(k, nation, balance) and Orders S(k, order, price) of TPC-H (SSBJ, section 4.1).

    R is at rest; its keys are unique, and a third of the customers never order. The paper's rows
    have 223 and 138 bytes: the stores of the semi-stream joins pad them (``--set r_bytes=223``).
    The rows are TPC-H's own, so there is no seed.

    Parameters
    ----------
    scale_factor : float
        Of TPC-H, in hundredths; at 1 there are 150,000 customers and 1,500,000 orders. The paper
        has 100.
    rate : float
        Orders a millisecond; 0 is data at rest.
    """

    seed: int = 0
    scale_factor: float = 1.0
    rate: float = 0.0

    kind: ClassVar[str] = "tpch-orders"
    summary: ClassVar[str] = "TPC-H's customers and orders; takes no --seed"
    counted_key: ClassVar[str | None] = "k"
    seedless: ClassVar[bool] = True
    labels: ClassVar[Mapping[str, str]] = {"scale_factor": "sf", "rate": "v"}

    def __post_init__(self) -> None:
        self._check_number("scale_factor", 0, MAX_SCALE_FACTOR, above=True)
        hundredths = self.scale_factor * 100
        is_multiple = abs(hundredths - round(hundredths)) < 1e-6 and round(hundredths) > 0
        require(is_multiple, "scale_factor", "a multiple of 0.01", self.scale_factor)
        self._check_number("rate", 0, MAX_RATE_PER_S / 1e3, above=False)

    @property
    def window_text(self) -> str:
        """R is a dimension table: no window bounds it."""
        return "all"

    def missing(self) -> str | None:
        """Say what must be installed first."""
        from streamjoin_datagen.kinds.tpchgen import find_program

        found = find_program() is not None
        return None if found else not_installed("tpchgen-cli", needed_by="tpch-orders")

    def rows(self, stream: str) -> int:
        """Rows of stream ``"r"`` or ``"s"``."""
        return round(self.scale_factor * 100) * ROWS_AT_1[stream] // 100

    def part_rows(self, stream: str, maximum: int) -> int:
        """Rows of a part: the generator cuts a table into parts of equal length."""
        rows = self.rows(stream)
        parts = -(-rows // maximum)
        while rows % parts:
            parts += 1
        return rows // parts

    @property
    def key_domain(self) -> int:
        """Keys lie in 1 to this."""
        return self.rows("r")

    def timing(self, stream: str) -> "Timing":
        """R is at rest, S regular."""
        from streamjoin_datagen.rows.arrivals import Regular

        return Regular(0.0 if stream == "r" else self.rate * 1e3)

    def types(self, stream: str) -> dict[str, str]:
        """Arrow's name of the type of each column, ``ts`` aside."""
        if stream == "r":
            return {"k": "int32", "nation": "int32", "balance": "double"}
        return {"k": "int32", "order": "int64", "price": "double"}

    def columns(self, stream: str, first_row: int, row_count: int) -> dict[str, "Column"]:
        """Rows of the generator's parts."""
        from streamjoin_datagen.kinds.tpchgen import read_rows
        from streamjoin_datagen.store import PART_ROWS

        part_rows = self.part_rows(stream, PART_ROWS)
        parts = self.rows(stream) // part_rows
        table = read_rows(self.scale_factor, stream, parts, part_rows, (first_row, row_count))
        return dict(zip(self.types(stream), table.columns, strict=True))

    def estimated_pairs(self) -> float | None:
        """Every order has a customer: exact."""
        return float(self.rows("s"))
