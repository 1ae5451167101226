"""A predicate of one's own: pairs of points that are near each other on a grid.

    streamjoin hw simulate --preset tiny --param terms=key:int32,key:int32 \
        --param theta=examples/own_predicate.py:near
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from streamjoin_common.contract import DesignParams, Theta, parse_term
from streamjoin_hw.flow.emit import emit_verilog

REACH = 1


def near(r: Any, s: Any) -> Any:
    """Return an Amaranth expression: the points are at most REACH steps apart."""
    return abs(r.key0 - s.key0) + abs(r.key1 - s.key1) <= REACH


def main() -> None:
    """Write the design's Verilog and say how long it is."""
    key = parse_term("key:int32")
    params = DesignParams(
        cores=4, segment_tuples=8, lanes=4, terms=(key, key), theta=Theta.of(near)
    )
    with TemporaryDirectory() as folder:
        verilog = emit_verilog(params, Path(folder))
        lines = len(verilog.read_text().splitlines())
    sys.stdout.write(f"design {params.digest}: {lines} lines of Verilog\n")


if __name__ == "__main__":
    main()
