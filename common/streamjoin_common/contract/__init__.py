"""What a design is, as data: parameters, tuple and result layouts, register map, manifest.

The one definition that the Amaranth designs, the driver, the simulation models, the test
benches and the documentation share. Standard library only, so that a board can import it
without any hardware tool. Parameters are what the user chooses; everything that follows from
them is a property. A design's identity is the digest of its parameters and of this interface.
"""

from streamjoin_common.contract.active import active_cores
from streamjoin_common.contract.bucket_words import (
    COUNT_BITS,
    ONE_WORD,
    Bucket,
    bucket_writes,
    buckets_of,
)
from streamjoin_common.contract.c_header import HEADER_NAME, c_header
from streamjoin_common.contract.description import BOARDS, TUSER, manifest, ports, tuser_of
from streamjoin_common.contract.layouts import (
    SIDE_R,
    SIDE_S,
    LayoutField,
    TUser,
    beat_bits,
    result_beat_layout,
    result_layout,
    tuple_layout,
    tuser_bits,
)
from streamjoin_common.contract.limits import (
    CHOICES,
    DESIGNS,
    FORWARDS,
    HOLD_WORDS,
    JOIN_KINDS,
    KEY_BITS,
    MAX_TERMS,
    MEMORIES,
    ORDERS,
    SWEPT_ROWS,
    WINDOW_BITS,
)
from streamjoin_common.contract.model_library import (
    LIBRARY_NAME,
    RunState,
    SjmRun,
    load_model_library,
)
from streamjoin_common.contract.packets import (
    GROUP_TUPLES,
    HEADER,
    MARK,
    PACKET_CYCLES,
    PACKET_RESULTS,
    TRAILER,
    input_word_bits,
    max_packet_bytes,
    result_word_bits,
)
from streamjoin_common.contract.params import INTERFACE_VERSION, DesignParams
from streamjoin_common.contract.register_map import (
    MAGIC,
    NEXT_INPUT,
    NEXT_S_TUPLE,
    Register,
    RegisterField,
    registers,
)
from streamjoin_common.contract.splitters import (
    even_splitters,
    order_codes,
    splitters_of,
    used_buckets,
)
from streamjoin_common.contract.terms import KeyType, ParameterError, Term, TermKind, parse_term
from streamjoin_common.contract.theta import Theta, ThetaError, TupleView

__all__ = [
    "BOARDS",
    "CHOICES",
    "COUNT_BITS",
    "DESIGNS",
    "FORWARDS",
    "GROUP_TUPLES",
    "HEADER",
    "HEADER_NAME",
    "HOLD_WORDS",
    "INTERFACE_VERSION",
    "JOIN_KINDS",
    "KEY_BITS",
    "LIBRARY_NAME",
    "MAGIC",
    "MARK",
    "MAX_TERMS",
    "MEMORIES",
    "NEXT_INPUT",
    "NEXT_S_TUPLE",
    "ONE_WORD",
    "ORDERS",
    "PACKET_CYCLES",
    "PACKET_RESULTS",
    "SIDE_R",
    "SIDE_S",
    "SWEPT_ROWS",
    "TRAILER",
    "TUSER",
    "WINDOW_BITS",
    "Bucket",
    "DesignParams",
    "KeyType",
    "LayoutField",
    "ParameterError",
    "Register",
    "RegisterField",
    "RunState",
    "SjmRun",
    "TUser",
    "Term",
    "TermKind",
    "Theta",
    "ThetaError",
    "TupleView",
    "active_cores",
    "beat_bits",
    "bucket_writes",
    "buckets_of",
    "c_header",
    "even_splitters",
    "input_word_bits",
    "load_model_library",
    "manifest",
    "max_packet_bytes",
    "order_codes",
    "parse_term",
    "ports",
    "registers",
    "result_beat_layout",
    "result_layout",
    "result_word_bits",
    "splitters_of",
    "tuple_layout",
    "tuser_bits",
    "tuser_of",
    "used_buckets",
]
