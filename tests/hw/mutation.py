"""A fault in the design and the test that has to notice."""

from typing import NamedTuple

from streamjoin_hw.formal.faults import Fault


class Mutation(NamedTuple):
    """A fault, the test that fails then, and words of how it fails."""

    fault: Fault
    test: str
    shows: str
