"""A design's registers and layouts as a C header, for drivers in other languages than Python."""

from streamjoin_common.contract.layouts import (
    SIDE_R,
    SIDE_S,
    LayoutField,
    TUser,
    beat_bits,
    result_beat_layout,
    tuple_layout,
)
from streamjoin_common.contract.params import DesignParams
from streamjoin_common.contract.register_map import MAGIC, registers

HEADER_NAME = "streamjoin.h"

_FUNCTIONS = """\
/* Puts the lowest bits of a value into a beat, whose bit 0 is bit 0 of words[0]. */
static inline void streamjoin_put(uint32_t *words, unsigned offset, unsigned width, uint64_t value)
{
    for (unsigned bit = 0; bit < width; ++bit) {
        uint32_t mask = UINT32_C(1) << ((offset + bit) % 32);
        if (bit < 64 && (value >> bit & 1))
            words[(offset + bit) / 32] |= mask;
        else
            words[(offset + bit) / 32] &= ~mask;
    }
}

/* Returns the lowest 64 bits of a field of a beat. */
static inline uint64_t streamjoin_get(const uint32_t *words, unsigned offset, unsigned width)
{
    uint64_t value = 0;
    for (unsigned bit = 0; bit < width && bit < 64; ++bit)
        value |= (uint64_t)(words[(offset + bit) / 32] >> ((offset + bit) % 32) & 1) << bit;
    return value;
}
"""


def c_header(params: DesignParams) -> str:
    """Return what a driver in C or C++ needs: offsets, bits, widths and two functions.

    Parameters
    ----------
    params : DesignParams
        The design.
    """
    terms = ", ".join(term.text for term in params.terms)
    lines = [
        f"/* Registers and layouts of one design of streamjoin: {params.design}, {terms}.",
        " * Generated; what they mean is in manifest.json and docs/registers.md. */",
        "#ifndef STREAMJOIN_H",
        "#define STREAMJOIN_H",
        "",
        "#include <stdint.h>",
        "",
        f"#define STREAMJOIN_INTERFACE_VERSION {params.interface_version}",
        f"#define STREAMJOIN_IDENTITY UINT32_C({MAGIC:#010x})",
        f"#define STREAMJOIN_DIGEST UINT64_C(0x{params.digest})",
        f"#define STREAMJOIN_WINDOW_CAPACITY {params.window_capacity}",
        f"#define STREAMJOIN_TERMS {len(params.terms)}",
        f"#define STREAMJOIN_TIMESTAMP_BITS {params.timestamp_bits}",
        "",
        "/* tdest of a tuple; the side bit of tuser. */",
        f"#define STREAMJOIN_SIDE_R {SIDE_R}",
        f"#define STREAMJOIN_SIDE_S {SIDE_S}",
        "",
        "/* Bits of m_axis_results_tuser. */",
        f"#define STREAMJOIN_TUSER_RESULT {1 << TUser.RESULT:#x}",
        f"#define STREAMJOIN_TUSER_PUNCTUATION {1 << TUser.PUNCTUATION:#x}",
        f"#define STREAMJOIN_TUSER_SIDE {1 << TUser.SIDE:#x}",
        *_second(params),
        "",
        "/* Offsets of 32-bit registers in bytes, and masks of their fields. */",
    ]
    for register in registers(params):
        name = f"STREAMJOIN_REG_{register.name.upper()}"
        lines.append(f"#define {name} {register.offset:#x} /* {register.access} {register.type} */")
        for field in register.fields:
            mask = ((1 << field.width) - 1) << field.bit
            field_name = f"STREAMJOIN_{register.name.upper()}_{field.name.upper()}"
            lines.append(f"#define {field_name} UINT32_C({mask:#x})")
    lines += ["", "/* Beats: their bits, and the lowest bit and the bits of each field. */"]
    lines += _layout("TUPLE", tuple_layout(params))
    lines += _layout("RESULT", result_beat_layout(params))
    return "\n".join([*lines, "", _FUNCTIONS, "#endif", ""])


def _second(params: DesignParams) -> list[str]:
    if params.beat_results == 1:
        return []
    return [f"#define STREAMJOIN_TUSER_SECOND {1 << TUser.SECOND:#x}"]


def _layout(name: str, layout: tuple[LayoutField, ...]) -> list[str]:
    lines = [f"#define STREAMJOIN_{name}_BITS {beat_bits(layout)}"]
    for field in layout:
        prefix = f"STREAMJOIN_{name}_{field.name.upper()}"
        lines += [
            f"#define {prefix}_OFFSET {field.offset}",
            f"#define {prefix}_WIDTH {field.width}",
        ]
    return lines
