"""What is fed to the designs under cocotb: seeds, design points, inputs."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from streamjoin_common.contract import DesignParams, Theta, parse_term
from streamjoin_common.contract.presets import EQUI, REFERENCE_BAND
from streamjoin_hw.sim.testing import Workload, random_workload

SEED = int(os.environ.get("SEED", "1"))


def near(r: Any, s: Any) -> Any:
    """Return whether two points are at most two steps apart: a predicate of one's own."""
    return abs(r.key0 - s.key0) + abs(r.key1 - s.key1) <= 2


POINT = (parse_term("key:int32"), parse_term("key:int32"))


DESIGNS = {
    "equi-1": DesignParams(cores=1, segment_tuples=8, lanes=3, terms=EQUI),
    "equi-4": DesignParams(cores=4, segment_tuples=8, lanes=4, terms=EQUI, merge_arity=2),
    "equi-7": DesignParams(cores=7, segment_tuples=5, lanes=2, terms=EQUI, payload_bits=20),
    "band-1": DesignParams(cores=1, segment_tuples=9, lanes=2, terms=REFERENCE_BAND),
    "band-4": DesignParams(cores=4, segment_tuples=8, lanes=4, terms=REFERENCE_BAND),
    "band-7": DesignParams(cores=7, segment_tuples=4, lanes=1, terms=REFERENCE_BAND, merge_arity=3),
    "fast-1": DesignParams(cores=1, segment_tuples=8, lanes=3, terms=EQUI, forward="fast"),
    "fast-5": DesignParams(
        cores=5, segment_tuples=6, lanes=2, terms=REFERENCE_BAND, forward="fast", timestamp_bits=16
    ),
    "time-3": DesignParams(cores=3, segment_tuples=8, lanes=4, terms=EQUI, timestamp_bits=20),
    "split-1": DesignParams(
        design="splitjoin", cores=1, segment_tuples=20, terms=EQUI, probes=2, order="outer"
    ),
    "split-4": DesignParams(
        design="splitjoin", cores=4, segment_tuples=16, terms=EQUI, probes=4, merge_arity=2
    ),
    "split-5": DesignParams(
        design="splitjoin",
        order="inner",
        probes=3,
        timestamp_bits=16,
        cores=5,
        segment_tuples=40,
        lanes=2,
        terms=REFERENCE_BAND,
    ),
    "shared-5": DesignParams(
        design="splitjoin",
        order="inner",
        probes=3,
        cores=5,
        segment_tuples=12,
        lanes=2,
        terms=EQUI,
        comparators="shared",
    ),
    "points-3": DesignParams(
        design="splitjoin",
        order="inner",
        probes=3,
        cores=3,
        segment_tuples=12,
        lanes=2,
        terms=REFERENCE_BAND,
        comparators="shared",
    ),
    "group-5": DesignParams(
        design="splitjoin",
        order="outer",
        stars="grouped",
        probes=3,
        timestamp_bits=16,
        cores=5,
        segment_tuples=40,
        lanes=2,
        terms=REFERENCE_BAND,
    ),
    "group-3": DesignParams(
        design="splitjoin",
        order="inner",
        stars="grouped",
        probes=4,
        cores=3,
        segment_tuples=20,
        lanes=2,
        terms=EQUI,
        comparators="shared",
    ),
    "hash-2": DesignParams(
        design="splitjoin-hash",
        cores=1,
        segment_tuples=24,
        lanes=2,
        terms=EQUI,
        buckets=8,
        ways=3,
        lead_tuples=8,
    ),
    "hash-4": DesignParams(
        design="splitjoin-hash",
        cores=1,
        segment_tuples=20,
        lanes=4,
        terms=(*EQUI, *REFERENCE_BAND),
        timestamp_bits=20,
        buckets=4,
        ways=4,
        lead_tuples=16,
        own_buckets=4,
        beat_results=2,
    ),
    "index-4": DesignParams(
        design="splitjoin-index",
        cores=1,
        segment_tuples=20,
        lanes=8,
        terms=REFERENCE_BAND,
        buckets=16,
        ways=4,
        timestamp_bits=20,
    ),
    "theta-3": DesignParams(
        cores=3, segment_tuples=6, lanes=3, terms=POINT, theta=Theta.of(near), forward="fast"
    ),
}
"""Three counts of cores for both predicates; lanes that divide the segment and that do not; the
low-latency variant; time windows; SplitJoin in each order and between groups of arrivals; the
designs that look tuples up; a predicate of one's own."""

GROUPS = (1, 2, 3, 7, 64)
"""Arrivals of a group, where stars are grouped."""

STALLS = {
    "none": (0.0, 0.0),
    "idle": (0.5, 0.0),
    "backpressure": (0.0, 0.6),
    "both": (0.4, 0.7),
}
"""Share of cycles in which the input pauses and in which the output is not ready."""

INPUT_TUPLES = {"short": (1, 40, 90, 170), "long": (1, 40, 280, 440)}
"""Tuples of the inputs that follow one another in one scenario: from nearly nothing up."""

LENGTH = os.environ.get("STREAMJOIN_LENGTH", "short")
"""Which of them are simulated."""

DESIGN_TUPLES = {"short": 5_000, "long": 7_000}
"""Minimum tuples for each design; long ones in 16 designs make more than 10^5."""


def inputs(params: DesignParams, salt: int) -> list[Workload]:
    """Draw a scenario's inputs: windows, band widths and shares differ from one to the next."""
    rng = np.random.default_rng([SEED, salt])
    return [
        random_workload(
            params,
            rng,
            tuples,
            extremes=0.02 if index % 2 else 0.0,
            share_r=float(rng.choice([0.5, 0.5, 0.2, 0.9])),
        )
        for index, tuples in enumerate(INPUT_TUPLES[LENGTH])
    ]


def record(tally: Counter[str]) -> None:
    """Add a scenario's counts to the file that the test outside reads."""
    with Path(os.environ["STREAMJOIN_TALLY"]).open("a") as file:
        file.write(json.dumps(tally) + "\n")
