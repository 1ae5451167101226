"""Generated pages of the documentation."""

from streamjoin_common.contract import (
    HEADER_NAME,
    DesignParams,
    LayoutField,
    beat_bits,
    ports,
    registers,
    result_beat_layout,
    tuple_layout,
    tuser_of,
)

SEQUENCE = """\
## How a driver uses it

1. Hold `aresetn` low for a cycle. Read `identity`, `version` and the digest, and compare them with
   the manifest's.
2. Write `window_r` and `window_s`, and the band widths: a pair is in the band where `r` lies from
   `s - lo` to `s + hi`. Write them between inputs: `design=splitjoin-index` and
   `comparators=shared` take band widths at an input's first tuple, other designs at every S tuple
   (`effect` in the manifest).
3. Give tuples of both sides in arrival order, each in one beat, its side in `tdest`, integers in
   two's complement, float32 by its bits. Take results at the same time: the design accepts nothing
   more once its FIFOs are full.
4. End the input with `tlast` on its last tuple, or by writing `control` with enable and drain. The
   design drains: it gives all results that are owed, then one beat with the punctuation bit and
   `tlast`. What `tdata` holds in a beat of punctuation does not count.
5. The next input begins with empty windows; registers and counters stay.

To abandon an input write `control` with enable and soft_reset, and keep `tready` at 1 until the bit
reads 0.
""".splitlines()
"""What the page says of the order in which a driver does things."""


def registers_page(params: DesignParams) -> str:
    """Return register map and layouts of a design as Markdown."""
    terms = ", ".join(term.text for term in params.terms)
    lines = [
        "# Registers and layouts",
        "",
        f"Generated from the contract by `make docs` for the terms `{terms}`; every design's",
        f"`manifest.json` holds its own, and `streamjoin hw verilog` writes `{HEADER_NAME}`,",
        "the same for C and C++ ([a driver with nothing else](../examples/verilated_driver.cpp)).",
        "",
        "## Registers",
        "",
        "AXI4-Lite slave `s_axil_ctrl`: 32-bit registers, 12 address bits; `wstrb` selects bytes.",
        "SLVERR answers an offset that is not listed, and a write to a read-only register.",
        "",
        "| offset | name | access | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for register in registers(params):
        effect = f" Takes effect: {register.effect}." if register.effect else ""
        lines.append(
            f"| `{register.offset:#04x}` | `{register.name}` | {register.access} "
            f"| {register.doc}{effect} |"
        )
        for field in register.fields:
            last = field.bit + field.width - 1
            bits = str(field.bit) if field.width == 1 else f"{last}:{field.bit}"
            lines.append(f"| | `{register.name}[{bits}]` {field.name} | | {field.doc} |")
    lines += ["", "## Tuples in, `s_axis_tuples_tdata`", *_layout(tuple_layout(params))]
    lines += ["", "## Results out, `m_axis_results_tdata`", *_layout(result_beat_layout(params))]
    lines += ["", "## Bits of `m_axis_results_tuser`", "", "| bit | name | meaning |"]
    lines += ["| --- | --- | --- |"]
    lines += [f"| {each['bit']} | {each['name']} | {each['doc']} |" for each in tuser_of(params)]
    lines += ["", "## Ports of `streamjoin_top`", "", "| port | direction | bits | meaning |"]
    lines += ["| --- | --- | --- | --- |"]
    lines += [
        f"| `{each['name']}` | {each['direction']} | {each['bits']} | {each['doc']} |"
        for each in ports(params)
    ]
    lines += ["| `s_axil_ctrl_*` | | | AXI4-Lite slave, by AXI's names. |", "", *SEQUENCE]
    return "\n".join(lines) + "\n"


def _layout(layout: tuple[LayoutField, ...]) -> list[str]:
    rows = [
        "",
        f"{beat_bits(layout)} bits a beat.",
        "",
        "| field | bits |",
        "| --- | --- |",
    ]
    return rows + [
        f"| `{field.name}` | {field.offset + field.width - 1}:{field.offset} |" for field in layout
    ]
