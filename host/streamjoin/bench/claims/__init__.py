"""What was published of an experiment, and whether it holds here."""

from streamjoin.bench.claims.measures import MEASURES, SHARES, is_right
from streamjoin.bench.claims.reading import KEYS, names_of, read, text_of
from streamjoin.bench.claims.rules import HOLDS, NOISE, NOT_MEASURED, VERDICTS, Claim

__all__ = [
    "HOLDS",
    "KEYS",
    "MEASURES",
    "NOISE",
    "NOT_MEASURED",
    "SHARES",
    "VERDICTS",
    "Claim",
    "is_right",
    "names_of",
    "read",
    "text_of",
]
