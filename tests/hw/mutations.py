"""Faults in the designs and, for each, the test that has to notice.

Run as a program (`python -m tests.hw.mutations NAME`) it runs that test in the faulty design.
"""

import sys

import pytest
from tests.hw.array_mutations import ARRAY_MUTATIONS
from tests.hw.hash_mutations import HASH_MUTATIONS
from tests.hw.split_mutations import SPLIT_MUTATIONS

from streamjoin_hw.formal.faults import applied

MUTATIONS = {**ARRAY_MUTATIONS, **HASH_MUTATIONS, **SPLIT_MUTATIONS}


def main(name: str) -> int:
    """Run a mutation's test in its design."""
    mutation = MUTATIONS[name]
    with applied(mutation.fault):
        return pytest.main(["-q", "-m", "", "-p", "no:cacheprovider", f"tests/hw/{mutation.test}"])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
