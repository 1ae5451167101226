"""Named design points: each fills but fits its device, ``tiny`` simulates in seconds."""

from streamjoin_hw.contract import DesignParams, KeyType, Term, TermKind

EQUI = (Term(TermKind.EQUI, KeyType.INT32),)
REFERENCE_BAND = (Term(TermKind.BAND, KeyType.INT32), Term(TermKind.BAND, KeyType.FLOAT32))
"""The band query of CellJoin, handshake join and SplitJoin: an int and a float column."""

PRESETS: dict[str, DesignParams] = {
    "tiny": DesignParams(cores=4, segment_tuples=8, lanes=4, terms=EQUI),
    "tiny-band": DesignParams(cores=4, segment_tuples=8, lanes=4, terms=REFERENCE_BAND),
}
