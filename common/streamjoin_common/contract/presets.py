"""Named design points: each fills but fits its device, ``tiny`` simulates in seconds."""

from streamjoin_common.contract import DesignParams, KeyType, Term, TermKind

EQUI = (Term(TermKind.EQUI, KeyType.INT32),)
BAND = (Term(TermKind.BAND, KeyType.INT32),)
REFERENCE_BAND = (Term(TermKind.BAND, KeyType.INT32), Term(TermKind.BAND, KeyType.FLOAT32))
"""The band query of CellJoin, handshake join and SplitJoin: an int and a float column."""


def _split(cores: int, probes: int) -> DesignParams:
    """Return SplitJoin for 32-bit equality, with sub-windows that fill a block RAM's depth."""
    return DesignParams(
        design="splitjoin",
        cores=cores,
        segment_tuples=508,
        lanes=4,
        probes=probes,
        order="outer",
        terms=EQUI,
        window_memory="bram",
    )


def _index(
    bits: int, terms: tuple[Term, ...], *, lanes: int, buckets: int, ways: int, memory: str = "bram"
) -> DesignParams:
    """Return an ordered index of windows of ``1 << bits`` tuples."""
    return DesignParams(
        design="splitjoin-index",
        cores=1,
        segment_tuples=1 << bits,
        lanes=lanes,
        terms=terms,
        result_fifo_words=64,
        window_memory=memory,
        buckets=buckets,
        ways=ways,
    )


PRESETS: dict[str, DesignParams] = {
    "tiny": DesignParams(cores=4, segment_tuples=8, lanes=4, terms=EQUI),
    "tiny-band": DesignParams(cores=4, segment_tuples=8, lanes=4, terms=REFERENCE_BAND),
    "tiny-split": DesignParams(
        design="splitjoin",
        cores=3,
        segment_tuples=8,
        lanes=4,
        probes=2,
        order="outer",
        terms=EQUI,
    ),
    "tiny-hash": DesignParams(
        design="splitjoin-hash",
        cores=1,
        segment_tuples=48,
        lanes=2,
        terms=EQUI,
        buckets=32,
        ways=6,
        lead_tuples=16,
    ),
    "tiny-index": DesignParams(
        design="splitjoin-index",
        cores=1,
        segment_tuples=48,
        lanes=8,
        terms=BAND,
        buckets=32,
        ways=2,
    ),
    # A board's first bitstream: small, and the fastest of the designs that were routed.
    "first": DesignParams(cores=4, segment_tuples=16, terms=EQUI),
    # SplitJoin fills 70 % of the LUTs, or 90 % of the block RAM, of each board's part, by Yosys's
    # counts (streamjoin hw synth --stored; docs/decisions/0016-open-synthesis.md).
    "pynq-z2": DesignParams(
        design="splitjoin",
        cores=17,
        segment_tuples=504,
        lanes=8,
        probes=8,
        order="outer",
        terms=EQUI,
        window_memory="bram",
        comparators="shared",
    ),
    # The reference query: few cores of many lanes, as what is no comparator is there for each core.
    "pynq-z2-band": DesignParams(
        design="splitjoin",
        cores=2,
        segment_tuples=3920,
        lanes=16,
        probes=14,
        order="outer",
        terms=REFERENCE_BAND,
        window_memory="bram",
        comparators="shared",
    ),
    "zcu104": _split(cores=44, probes=16),
    "kv260": _split(cores=22, probes=16),
    # A self-test that routes in minutes, not one that fills the part.
    "ulx3s-85f": _split(cores=4, probes=2),
    # Fills the block RAM of an XC7Z020; see docs/decisions/0010-an-index-in-block-ram.md.
    "pynq-z2-hash": DesignParams(
        design="splitjoin-hash",
        cores=1,
        segment_tuples=(1 << 14) - 512,
        lanes=4,
        terms=EQUI,
        result_fifo_words=64,
        window_memory="bram",
        buckets=4096,
        ways=8,
        lead_tuples=512,
        own_buckets=512,
        beat_results=2,
    ),
    # Windows of 2^13 tuples and a band, or the reference query; 2^16 tuples and a band. See
    # docs/decisions/0023-an-ordered-index-of-windows.md.
    "pynq-z2-index": _index(13, BAND, lanes=16, buckets=2048, ways=2),
    "pynq-z2-index-2d": _index(13, REFERENCE_BAND, lanes=28, buckets=2048, ways=4),
    "zcu104-index": _index(16, BAND, lanes=20, buckets=8192, ways=2, memory="uram"),
}
