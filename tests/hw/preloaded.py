"""What every test of a faulty design imports: a process forked with it starts in no time.

No fault is in these modules, but for those of the design, which ``applied`` imports anew.
"""

import gc
import importlib

from _pytest.config import default_plugins
from tests.hw import mutations

MODULES = (
    *(f"_pytest.{plugin}" for plugin in default_plugins),
    "amaranth.sim",
    "amaranth.back.verilog",
    "streamjoin_hw.sim.testing",
    "tests.hw.checks",
    "tomllib",
)

for name in (*MODULES, *{f"streamjoin_hw.{m.fault.module}" for m in mutations.MUTATIONS.values()}):
    importlib.import_module(name)
gc.disable()  # These processes end before it pays.
